"""Documents in a real shell and a real browser: readers that go away, disks that are full, eyes and keys."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.facts.serialize import facts_to_json, load_facts
from ideepdoctor.options import Format
from ideepdoctor.render.html import render
from tests.formats import READ
from tests.render.test_formats import reports
from tests.reports import REPORTS, many

HERE = Path(__file__).parent
HOST = str(HERE.parent / "hosts" / "py311-nothing.json")
PIPE_BYTES = 65536
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDTHS = (390, 1280)


def shell(line: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A line for bash, in which ``doctor`` is this doctor; ``ended`` tells its exit code on standard error."""
    doctor = (
        f'doctor() {{ "{sys.executable}" -m ideepdoctor "$@"; }}; ended() {{ echo "ended ${{PIPESTATUS[0]}}" >&2; }}'
    )
    environ = {**os.environ, "PYTHONPATH": str(HERE.parents[1]), **variables}
    return subprocess.run(
        ["bash", "-c", f"{doctor}; {line}; ended"], capture_output=True, text=True, cwd=folder, env=environ, timeout=120
    )


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs that lint says more of than a pipe holds."""
    folder = tmp_path_factory.mktemp("large")
    deep = folder / ("deep" * 50)  # documents that leave out rows have long ones
    deep.mkdir()
    for number in range(120):
        (deep / f"{'long' * 50}_{number:03}.py").write_text("import chainer\nchainer.config.use_ideep = 1\n" * 10)
    return folder


@pytest.mark.parametrize(
    "form", [pytest.param(form, marks=() if form is Format.SARIF else pytest.mark.slow) for form in Format]
)
def test_a_reader_that_goes_away_is_no_error_and_files_are_whole(form: Format, large: Path, tmp_path: Path):
    also = f"--also {form}:{tmp_path}/also"
    whole = shell(f"doctor lint . --format {form} -o {tmp_path}/whole", large)
    assert whole.stderr == "ended 1\n"
    assert (tmp_path / "whole").stat().st_size > 1.5 * PIPE_BYTES, "larger than what a pipe holds"
    done = shell(f"doctor lint . --format {form} {also} | head -n 1", large)
    assert (done.stderr, bool(done.stdout)) == ("ended 1\n", True)
    assert (tmp_path / "also").read_bytes() == (tmp_path / "whole").read_bytes()
    READ[form]((tmp_path / "also").read_text("utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("form", list(Format))
def test_a_closed_reader_of_a_healthy_report_leaves_exit_code_0(form: Format, large: Path):
    done = shell(f"doctor lint . --fail-on never --format {form} | true", large)
    assert done.stderr == "ended 0\n"


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    folder = tmp_path / "full"
    folder.mkdir()
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("a small file system takes root")
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True)
    if made.returncode != 0:
        pytest.skip(f"no small file system here: {made.stderr.decode()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_disk_is_one_error_and_leaves_nothing_of_the_file(full: Path, large: Path, tmp_path: Path):
    (full / "older.json").write_text("older")
    words = f"--also sarif:{full}/a.sarif --also json:{full}/older.json --also junit:{tmp_path}/b.xml"
    done = shell(f"doctor lint . --fail-on never {words} -o {tmp_path}/c.txt", large)
    assert done.stderr.splitlines() == [
        f"error  cannot write {full}/a.sarif: No space left on device",
        f"error  cannot write {full}/older.json: No space left on device",
        "ended 3",
    ]
    assert [item.name for item in full.iterdir()] == ["older.json"]
    assert (full / "older.json").read_text() == "older"
    READ[Format.JUNIT]((tmp_path / "b.xml").read_text("utf-8"))
    assert (tmp_path / "c.txt").read_text().count("IDP906") == 1200


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("form", [Format.TEXT, Format.JSON])
def test_standard_output_on_a_full_disk_is_one_error(full: Path, large: Path, unbuffered: str, form: Format):
    done = shell(f"doctor lint . --format {form} > {full}/a", large, PYTHONUNBUFFERED=unbuffered)
    assert done.stderr.splitlines()[0].startswith("error  cannot write the result")
    assert done.stderr.splitlines()[1:] == ["ended 3"]


@pytest.mark.slow
def test_devices_stay_devices(tmp_path: Path):
    before = Path(os.devnull).stat()
    done = shell(f"doctor diagnose --facts {HOST} --format json -o {os.devnull} --also sarif:/dev/stderr", tmp_path)
    assert done.stdout == ""
    assert READ[Format.SARIF](done.stderr.rpartition("ended 1")[0])["results"]
    assert Path(os.devnull).stat().st_rdev == before.st_rdev
    done = shell(f"doctor diagnose --facts {HOST} --format json -o >(cat >&2; echo read >&2)", tmp_path)
    assert "IDP201" in done.stderr


@functools.cache
def node_modules() -> str | None:
    """A folder with axe-core and puppeteer-core; None where they cannot be had."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        return None
    folder = Path(os.environ.get("IDEEPDOCTOR_CACHE_DIR", "/tmp")) / "npm"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"private": true}')
    words = ["npm", "install", "--no-audit", "--no-fund", "axe-core@4", "puppeteer-core@24"]
    done = subprocess.run(words, cwd=folder, capture_output=True, timeout=300)
    return str(folder / "node_modules") if done.returncode == 0 else None


def browsed(pages: dict[str, str], folder: Path, **more: Any) -> list[dict[str, Any]]:
    """What a browser says of pages in each width and colour scheme."""
    modules = node_modules()
    if BROWSER is None or modules is None:
        pytest.skip("no Chromium, or npm has no axe-core and puppeteer-core")
    files = []
    for name, text in pages.items():
        path = folder / f"{name}.html"
        path.write_text(text, "utf-8")
        files.append(str(path))
    told = {"browser": BROWSER, "axe": f"{modules}/axe-core/axe.min.js", "pages": files, "widths": WIDTHS}
    request = json.dumps({**told, "schemes": ["light", "dark"], **more})
    environ = {**os.environ, "NODE_PATH": modules}
    words = ["node", str(HERE / "browse.cjs"), request]
    done = subprocess.run(words, capture_output=True, text=True, env=environ, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def pages() -> dict[str, str]:
    kinds = {name.replace(" ", "-"): render(report) for name, report in reports().items()}
    drawn = {name.replace(" ", "-"): render(REPORTS[name]()) for name in ("bench", "bench compare", "smoke", "certify")}
    more = {name: render(REPORTS[name]()) for name in ("tune", "libs", "diff", "setup")}
    return {**kinds, **drawn, **more, "many": render(many(200))}


@pytest.mark.slow
def test_axe_has_no_complaint_and_nothing_hangs_over_an_edge(tmp_path: Path):
    found = browsed(pages(), tmp_path)
    assert len(found) == len(pages()) * len(WIDTHS) * 2
    for item in found:
        where = (Path(item["file"]).name, item["width"], item["scheme"])
        assert (where, item["violations"], item["problems"]) == (where, [], [])
        assert (where, item["over"]) == (where, 0)
        assert item["passes"] > 10, "axe looked at something"
    assert len({item["ground"] for item in found}) == 2, "light and dark have grounds of their own"


@pytest.mark.slow
def test_axe_complains_where_there_is_something_to_complain_of(tmp_path: Path):
    bad = {"bad": "<html><body><img src=x.png><input><p style='color:#ccc'>pale</p></body></html>"}
    [first, *_] = browsed(bad, tmp_path)
    assert {"image-alt", "label", "color-contrast"} <= {name for name, *_ in first["violations"]}


@pytest.mark.slow
def test_a_page_works_by_keys_alone(tmp_path: Path):
    found = browsed({"many": render(many(200)), "smoke": render(REPORTS["smoke"]())}, tmp_path, word="use_ideep")
    for item in found:
        assert item["link"] == "#findings"
        assert all(stop["outlined"] for stop in item["tabs"]), "what has the focus is seen to have it"
        assert {"a", "input", "div"} <= {stop["tag"] for stop in item["tabs"]}
        assert item["search"] == {**item["search"], "before": item["search"]["after"]}
    shown = {Path(item["file"]).name: item["search"] for item in found}
    assert shown["many.html"] == {"before": 200, "during": 67, "status": "67 / 200", "after": 200}
    assert shown["smoke.html"]["during"] == 1


@pytest.mark.slow
def test_a_real_report_is_a_page_too(tmp_path: Path):
    (tmp_path / "facts.json").write_text(json.dumps(facts_to_json(load_facts(HOST))))
    done = shell("doctor diagnose --facts facts.json --format html -o page.html", tmp_path)
    assert done.stderr == "ended 1\n"
    for item in browsed({"real": (tmp_path / "page.html").read_text("utf-8")}, tmp_path):
        assert (item["violations"], item["problems"], item["over"]) == ([], [], 0)
