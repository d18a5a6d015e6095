"""The command bench with canned workers: options, the history, verdicts, interruption, memory, the document."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ideepdoctor.commands import bench as module
from ideepdoctor.commands.bench import BenchOptions, bench
from ideepdoctor.commands.session import Session, TargetOptions
from ideepdoctor.errors import CouldNotCheck, Interrupted, UsageError
from ideepdoctor.model.facts import Limits
from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import summarize
from ideepdoctor.proof import bench_run
from ideepdoctor.proof.bench_file import read
from ideepdoctor.proof.bench_plan import NoRoom
from ideepdoctor.render.json import render
from ideepdoctor.system import RealSystem
from ideepdoctor.targets.target import Target
from ideepdoctor.treatment.progress import Quiet
from tests.doubles import Call, FakeSystem
from tests.proof.test_bench_run import Machine
from tests.rules.hosts import facts_on

SCHEMA = json.loads((files("ideepdoctor") / "render" / "report.schema.json").read_text("utf-8"))
GB = 10**9


class Computer(Machine):
    """A machine whose workers describe nets, too; NumPy is told apart by what it is asked to load."""

    def engine(self, call: Call) -> str:
        return "installed" if (call.env or {}).get("IDEEPDOCTOR_GUARD") == "off" else "tuned"

    def __call__(self, call: Call, request: Mapping[str, Any]) -> Mapping[str, Any] | int:
        if request["do"] == "describe":
            size = request["batch"] * GB // 10
            layer = {"layer": "conv1", "primitive": "convolution", "problem": "mb8_g1ic3", "flops": 1e9, "bytes": 1e6}
            return {"parameters": 10, "flops": [1e9, 2e9], "memory": {"ideep": size, "numpy": size}, "layers": [layer]}
        if request["do"] == "sgemm":
            return {"sgemm": [{"library": "MKLML 2018.0.3", "size": size, "gflops": 40.0} for size in request["sizes"]]}
        return super().__call__(call, request)


Run = Callable[..., Report]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """``run(machine, nets=("conv",), ...)``: the report; the history is kept from one call to the next."""
    monkeypatch.setattr(bench_run, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(module, "find_target", lambda *given: Target("python3.7"))
    limits = Limits(affinity_cpus=(0, 1), memory_available_bytes=16 * GB)

    def look(*_given: object) -> Any:
        import dataclasses

        return dataclasses.replace(facts_on("py37-healthy", {}), limits=limits)

    monkeypatch.setattr(module, "_look", look)

    class Both(FakeSystem):
        """Workers are canned, files are written."""

        def make_folder(self, path: str) -> None:
            RealSystem().make_folder(path)

        def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
            RealSystem().write_file(path, data, mode)

    def call(machine: Computer, **options: Any) -> Report:
        system = Both()
        system.workers.append(("python3.7", machine))
        environ = {"IDEEPDOCTOR_STATE_DIR": str(tmp_path / "state")}
        session = Session(system, environ, str(tmp_path), Quiet(), lambda report: True)
        given = {"nets": ("conv",), "batch": 8, "blocks": 5, "seconds": 0.5, "details": False, **options}
        return bench(session, BenchOptions(TargetOptions(), **given))

    return call


def machine(installed: float = 0.4, tuned: float = 0.1, **special: Any) -> Computer:
    return Computer({"installed": installed, "tuned": tuned}, **special)


def test_a_run_is_measured_kept_and_valid(run: Run) -> None:
    report = run(machine(), name="here")
    data = report.extra["bench"]
    assert summarize(report).exit_code == 0
    assert [row["engine"] for row in data["results"]] == ["ideep", "tuned", "numpy"]
    assert data["complete"] and data["machine"]["name"] == "here" and data["ceiling"]["gflops"] == 40.0
    assert data["results"][1]["of_ceiling"] == pytest.approx(3e9 / 0.1 / 1e9 / 40)
    assert f"bench chart {data['id']}" in report.extra["verdict"]
    assert "iDeep as installed 4.0" in report.extra["verdict"]
    jsonschema.validate(json.loads(render(report)), SCHEMA)


def test_the_batch_is_the_largest_that_fits(run: Run) -> None:
    data = run(machine(), batch=None).extra["bench"]
    # Three engines with 0.1 GB an image and 0.4 GB besides, in 80 % of 16 GB.
    assert data["nets"][0]["batch"] == 32
    with pytest.raises(NoRoom, match="conv at batch 512 takes about 154"):
        run(machine(), batch=512)


def test_slower_than_before_ends_with_1_and_names_the_run(run: Run) -> None:
    first = run(machine(), limit="10%")
    assert summarize(first).exit_code == 0
    assert any("Nothing to compare with" in line for line in first.body)
    same = run(machine(), limit="10%")
    assert summarize(same).exit_code == 0
    assert {row["verdict"] for row in same.extra["regressions"]} == {"same"}
    slower = run(machine(tuned=0.15), limit="10%")
    assert summarize(slower).exit_code == 1
    assert slower.judgement is not None
    (finding,) = slower.judgement.findings
    assert (finding.code, finding.found.split(":")[0]) == ("IDP709", "tuned, conv, batch 8")
    # Both were begun in this second.
    assert finding.needed.split()[-1] in {report.extra["bench"]["id"] for report in (first, same)}
    assert slower.extra["verdict"].startswith("SLOWER: 1 of ")
    jsonschema.validate(json.loads(render(slower)), SCHEMA)


def test_faster_is_no_fault(run: Run) -> None:
    run(machine(tuned=0.3))
    report = run(machine(tuned=0.1), limit="10%")
    assert summarize(report).exit_code == 0
    assert "faster" in {row["verdict"] for row in report.extra["regressions"]}


def test_a_run_that_is_not_to_be_kept_is_no_baseline(run: Run) -> None:
    run(machine(), keep=False)
    assert run(machine(), limit="5%").extra["regressions"] == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nets": ("lenet",)}, "no net lenet"),
        ({"engines": ("gpu",)}, "no engine gpu"),
        ({"limit": "much"}, "no percentage"),
        ({"model": "net.py"}, "is not FILE:FUNCTION"),
        ({"model": "missing.py:make"}, "there is no file"),
        ({"peers": ("caffe",)}, "Caffe"),
        ({"peers": ("abacus",)}, "no peer"),
        ({"chart": "chart.gif"}, "does not end in"),
        ({"limit": "5%", "baseline": "20200101T000000Z-000000"}, "no run of bench"),
    ],
)
def test_bad_words_cost_nothing(run: Run, options: dict[str, Any], words: str) -> None:
    asked = machine()
    with pytest.raises(UsageError, match=words):
        run(asked, **options)
    loads = [request for _, request in asked.asked if request["do"] == "load"]
    assert loads == [] or "baseline" in options


def test_an_interrupted_run_is_kept_as_far_as_it_came(run: Run, tmp_path: Path) -> None:
    turns = []

    def steps(request: Mapping[str, Any]) -> Any:
        turns.append(request)
        if len(turns) > 8:
            raise KeyboardInterrupt
        return {"forward": [0.1] * request["count"], "backward": [0.1] * request["count"]}

    with pytest.raises(Interrupted) as caught:
        run(machine(tuned_steps=steps, installed_steps=steps))
    assert caught.value.exit_code == 130
    name = caught.value.message.split()[-1]
    assert f"bench history {name}" in caught.value.hint
    from ideepdoctor.proof.bench_history import Store

    kept = Store(RealSystem(), str(tmp_path / "state")).get(name)
    assert not kept.complete
    assert [row.measured for row in kept.results] == [True, True, True]
    with pytest.raises(Interrupted, match="before anything was measured"):
        run(machine(installed_load=lambda _request: (_ for _ in ()).throw(KeyboardInterrupt)))


def test_nothing_measured_is_an_error_that_says_why(run: Run) -> None:
    refused = {"error": {"kind": "import", "message": "ImportError: No module named chainer"}}
    with pytest.raises(CouldNotCheck, match="nothing was measured; ideep: ImportError: No module named chainer"):
        run(machine(tuned_load=refused, installed_load=refused))


def test_ideep_that_is_not_used_ends_with_1(run: Run) -> None:
    told = {"versions": {"chainer": "7.8.1"}, "threads": 2, "flops": [1e9, 2e9], "used": False}
    report = run(machine(tuned_load=told))
    assert summarize(report).exit_code == 1
    assert report.extra["verdict"].startswith("NOT USED: tuned")


def test_details_are_layers_and_threads(run: Run) -> None:
    line = "mkldnn_verbose,exec,convolution,jit:avx2,forward_training,fsrc:nchw,alg:convolution_direct,mb8_g1ic3_ih,9.5"
    other = "mkldnn_verbose,exec,reorder,jit:uni,undef,in:f32_nchw out:f32_nChw16c,num:1,8x3,0.5"

    def steps(request: Mapping[str, Any]) -> Any:
        count = request["count"]
        return {"forward": [0.1] * count, "backward": [0.1] * count, "verbose": [line, other]}

    data = run(machine(tuned_steps=steps), details=True).extra["bench"]
    first = data["layers"][0]
    assert (first["layer"], first["kernel"], first["milliseconds"], first["flops"]) == ("conv1", "jit:avx2", 9.5, 1e9)
    assert data["reorders"][0]["share"] == pytest.approx(0.05)
    scaled = {(item["engine"], item["threads"]) for item in data["scaling"]}
    assert scaled == {("tuned", 1), ("tuned", 2), ("numpy", 1), ("numpy", 2)}


def test_a_chart_and_a_result_file(run: Run, tmp_path: Path) -> None:
    report = run(machine(), chart="speed.html")
    page = (tmp_path / "speed.html").read_text("utf-8")
    assert page.lower().startswith("<!doctype html>")
    assert report.extra["bench"]["id"] in page
    document = tmp_path / "result.json"
    document.write_text(render(report), "utf-8")
    assert read(str(document)).id == report.extra["bench"]["id"]
