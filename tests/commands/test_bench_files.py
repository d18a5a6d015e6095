"""bench compare, bench history and bench chart: files in, lines and documents out."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from ideepdoctor.commands import bench_files
from ideepdoctor.commands.bench_files import chart, check_chart, compare, history
from ideepdoctor.commands.session import Session
from ideepdoctor.errors import CouldNotCheck, UsageError
from ideepdoctor.model.report import Report
from ideepdoctor.proof.bench_file import from_data
from ideepdoctor.proof.bench_history import Store
from ideepdoctor.render.json import envelope, render
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.progress import Quiet
from tests.data.bench import make
from tests.test_cli import run

DATA = Path(__file__).parents[1] / "data" / "bench"
SCHEMA = json.loads((files("ideepdoctor") / "render" / "report.schema.json").read_text("utf-8"))


@pytest.fixture
def session(tmp_path: Path) -> Session:
    environ = {"IDEEPDOCTOR_STATE_DIR": str(tmp_path / "state")}
    return Session(RealSystem(), environ, str(DATA), Quiet(), lambda report: False)


def document(report: Report) -> dict[str, object]:
    data = json.loads(render(report))
    jsonschema.validate(data, SCHEMA)
    assert isinstance(data, dict)
    return data


def test_compare_shows_three_charts_and_gives_their_numbers(session: Session) -> None:
    report = compare(session, ["two-cores.json", "28-cores.json", "gpu.json"])
    text = "\n".join(report.body)
    for said in (
        "NumPy against iDeep",
        "Chainer with iDeep against PyTorch or Caffe",
        "CPUs against a GPU",
        "geometric",
    ):
        assert said in text
    data = document(report)["bench_compare"]
    assert isinstance(data, dict)
    assert [item["id"] for item in data["charts"]] == ["numpy", "peer", "gpu"]
    assert [item["label"] for item in data["runs"]] == ["two-cores", "28-cores", "gpu-server"]
    [bar] = [
        bar for bar in data["charts"][0]["nets"][0]["bars"] if (bar["engine"], bar["machine"]) == ("mkl", "28-cores")
    ]
    assert bar["ratio"]["median"] == pytest.approx(8.99, abs=0.01)
    assert bar["ratio"]["low"] < bar["ratio"]["median"] < bar["ratio"]["high"]


@pytest.mark.parametrize(("encoding", "unicode"), [("utf-8", True), ("ascii", False), ("latin-1", False)])
def test_bars_are_of_characters_that_the_terminal_has(session: Session, encoding: str, unicode: bool) -> None:
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding=encoding)):
        text = "\n".join(compare(session, ["two-cores.json"]).body)
    assert ("█" in text, text.isascii()) == (unicode, not unicode)


def test_files_that_are_none_are_named(session: Session) -> None:
    with pytest.raises(UsageError, match=r"there is no file .*no\.json"):
        compare(session, ["two-cores.json", "no.json"])
    with pytest.raises(UsageError, match=r"make\.py: no JSON"):
        chart(session, ["make.py"], "x.svg", "")


def test_runs_of_the_history_are_named_by_id(session: Session, tmp_path: Path) -> None:
    Store(session.system, str(tmp_path / "state")).add(make.small())
    data = document(compare(session, ["20261130", "gpu.json"]))["bench_compare"]
    assert isinstance(data, dict)
    assert [item["id"] for item in data["runs"]] == [make.small().id, make.GPU.id]
    with pytest.raises(UsageError, match=r"there is no file .*/1999, and no run of bench is called '1999'"):
        compare(session, ["1999"])


def test_history_lists_and_shows_what_was_kept(session: Session, tmp_path: Path) -> None:
    assert history(session, None).text == "nothing was measured yet: ideepdoctor bench\n"
    assert not (tmp_path / "state").exists()
    store = Store(session.system, str(tmp_path / "state"))
    store.add(make.small())
    store.add(replace(make.GPU, complete=False))
    report = history(session, None)
    assert report.text.splitlines()[0] == "20261130T162233Z-1a2b3c  2026-11-30T16:22:33Z  two-cores"
    assert report.text.splitlines()[3].endswith("gpu-server, interrupted")
    listed = document(report)["bench_history"]
    assert isinstance(listed, list)
    assert [item["id"] for item in listed] == [make.small().id, make.GPU.id]
    shown = history(session, "20261130")
    assert shown.body[0].startswith("bench 20261130T162233Z-1a2b3c")
    assert from_data(envelope(shown)) == make.small()
    with pytest.raises(UsageError, match="no run of bench"):
        history(session, "1999")


@pytest.mark.parametrize(
    ("name", "begins"), [("a.html", b"<!doctype html>"), ("A.SVG", b"<?xml"), ("a.png", b"\x89PNG")]
)
def test_charts_are_written_by_the_end_of_their_name(
    session: Session, tmp_path: Path, name: str, begins: bytes
) -> None:
    path = tmp_path / name
    report = chart(session, ["two-cores.json"], str(path), "")
    assert path.read_bytes().startswith(begins)
    assert report.extra["verdict"] == f"written: {path}"
    assert document(report)["chart"] == {"file": str(path)}


def test_one_chart_of_many_is_chosen_by_name(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    chart(session, ["two-cores.json"], str(path), "threads")
    assert "Speed by threads on two-cores" in path.read_text("utf-8")
    chart(session, ["two-cores.json", "gpu.json"], str(path), "")
    assert "NumPy against iDeep" in path.read_text("utf-8")
    with pytest.raises(UsageError, match="no chart of these files") as caught:
        chart(session, ["two-cores.json"], str(path), "speed")
    assert "engines, times, ceiling, roofline-tuned-alexnet, threads" in caught.value.hint
    with pytest.raises(UsageError, match="a page has all charts"):
        chart(session, ["two-cores.json"], str(tmp_path / "a.html"), "threads")


@pytest.mark.parametrize("name", ["a.gif", "a", ".svg", "html", ""])
def test_another_end_is_refused_before_anything_is_done(name: str) -> None:
    with pytest.raises(UsageError, match=r"does not end in \.html, \.svg or \.png"):
        check_chart(name)


def test_a_png_without_what_makes_it_says_how_to_get_it(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        bench_files.importlib.util, "find_spec", lambda name: None if name == "resvg_py" else find(name)
    )
    with pytest.raises(UsageError, match="resvg-py") as caught:
        chart(session, ["two-cores.json"], "a.png", "")
    assert 'pip install "ideepdoctor[png]"' in caught.value.hint
    check_chart("a.svg")


def test_a_file_that_cannot_be_written_and_a_run_without_times(session: Session, tmp_path: Path) -> None:
    with pytest.raises(CouldNotCheck, match="cannot write"):
        chart(session, ["two-cores.json"], str(tmp_path / "no" / "a.svg"), "")
    with pytest.raises(UsageError, match="nothing to draw"):
        bench_files.draw(session, [replace(make.GPU, results=())], str(tmp_path / "a.svg"))


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("bench", "compare", "two-cores.json"), 0),
        (("bench", "compare", "no.json"), 2),
        (("bench", "compare"), 2),
        (("bench", "history"), 0),
        (("bench", "history", "1999"), 2),
        (("bench", "chart", "two-cores.json"), 2),
        (("bench", "chart", "two-cores.json", "-o", "x.gif"), 2),
    ],
)
def test_the_command_line_prints_one_document(words: tuple[str, ...], code: int, tmp_path: Path) -> None:
    done = run(*words, "--format", "json", cwd=DATA, IDEEPDOCTOR_STATE_DIR=str(tmp_path))
    data = json.loads(done.stdout)
    jsonschema.validate(data, SCHEMA)
    assert (done.returncode, data["summary"]["exit_code"]) == (code, code)
    assert bool(data["error"]) == bool(code)
    assert done.stderr == ""


def test_the_result_of_compare_goes_to_a_file(tmp_path: Path) -> None:
    done = run("bench", "compare", "two-cores.json", "-o", str(tmp_path / "x.txt"), cwd=DATA)
    assert (done.returncode, done.stdout) == (0, "")
    assert "geometric mean" in (tmp_path / "x.txt").read_text("utf-8")
