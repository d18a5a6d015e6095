"""The command certify: options, resuming, interruption, exit codes and the document, with a payload that is canned."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ideepdoctor.commands import certify as module
from ideepdoctor.commands.certify import CertifyOptions, certify
from ideepdoctor.commands.session import Session, TargetOptions
from ideepdoctor.errors import CouldNotCheck, Interrupted, UsageError
from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import summarize
from ideepdoctor.render.json import render
from ideepdoctor.system import RealSystem
from ideepdoctor.targets.target import Target
from ideepdoctor.treatment.progress import Quiet
from tests.doubles import Call, FakeSystem, payload_answer
from tests.proof.test_certify import READY, item, model_answer, plan_answer, request_of, told
from tests.rules.hosts import facts_on

SCHEMA = json.loads((files("ideepdoctor") / "render" / "report.schema.json").read_text("utf-8"))
CASES = [item(f"{op} {number}", op) for op in ("convolution", "relu", "concat") for number in range(3)]
GUARD = {"file": "/g.py", "digest": "1", "active": True, "why_not": "", "corrections": ["bn"]}


class Both(FakeSystem):
    """Programs are answered from a table, files are written."""

    def make_folder(self, path: str) -> None:
        RealSystem().make_folder(path)

    def append_line(self, path: str, line: str) -> None:
        RealSystem().append_line(path, line)

    def remove_file(self, path: str) -> None:
        RealSystem().remove_file(path)


class Payload:
    """Answers every action; ``bad`` changes results by key, ``stop_after`` batches it is interrupted."""

    def __init__(self, bad: Mapping[str, dict[str, Any]] | None = None, stop_after: int | None = None, **plan: Any):
        self.bad, self.stop_after, self.plan, self.tried = bad or {}, stop_after, plan, 0
        self.batches = 0
        self.model = model_answer(cases=[item("m", "concat", source="2 times")])

    def __call__(self, call: Call) -> Any:
        request = request_of(call)
        if request["action"] == "plan":
            return payload_answer(plan_answer(**{"cases": CASES, **self.plan}))
        if request["action"] == "model":
            return payload_answer(self.model)
        if self.batches == self.stop_after:
            raise KeyboardInterrupt
        self.batches += 1
        keys = [case["key"] for case in request["cases"]]
        self.tried += len(keys)
        results = [told(key, **self.bad.get(key, {})) for key in keys]
        return payload_answer({"failure": "", "ready": READY, "results": results})


Certify = Callable[..., Report]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Certify:
    """``run(payload, budget="60s", ...)``: the report; results are kept from one call to the next."""
    monkeypatch.setattr(module, "find_target", lambda *given: Target("python3.7"))
    monkeypatch.setattr(module, "examine", lambda *given: facts_on("py37-healthy", {}))

    def call(payload: Payload, **options: Any) -> Report:
        system = Both().on("python3.7", payload)
        environ = {"IDEEPDOCTOR_STATE_DIR": str(tmp_path / "state")}
        session = Session(system, environ, str(tmp_path), Quiet(), lambda report: True)
        return certify(session, CertifyOptions(TargetOptions(), **options))

    return call


def exit_code(report: Report) -> int:
    return summarize(report).exit_code


def test_all_right_is_certified_and_ends_with_0(run: Certify) -> None:
    report = run(Payload())
    data = report.extra["certify"]
    assert exit_code(report) == 0
    assert (data["complete"], data["tries"], data["tried"], data["right"]) == (True, 45, 45, 45)
    assert data["threads"] == ["2", "1", "3", "4", "1cpu"]
    assert report.extra["verdict"].startswith("CERTIFIED: Python 3.7.16, Chainer 7.8.1")
    assert "--model FILE:FUNCTION" in report.extra["verdict"]


def test_a_fault_ends_with_1_and_says_what_to_do(run: Certify) -> None:
    report = run(Payload({"concat 1": {"status": "crashed", "hazard": "H7", "message": "SIGABRT", "error": None}}))
    assert exit_code(report) == 1
    assert report.judgement is not None
    assert [finding.code for finding in report.judgement.findings] == ["IDP605"]
    assert report.extra["verdict"].startswith("WRONG: 5 of 45 tries on ")
    assert "(H7). Next: ideepdoctor fix" in report.extra["verdict"]
    assert any("H7 IDP605" in line for line in report.body)


def test_with_the_guard_there_is_nothing_to_fix_with_it(run: Certify) -> None:
    bad = {"relu 0": {"status": "wrong", "error": 0.5}}
    verdict = run(Payload(bad, guard=GUARD)).extra["verdict"]
    assert "(new). Next: ideepdoctor explain" in verdict


def test_numpy_alone_is_not_used_and_ends_with_1(run: Certify) -> None:
    unused = {"forward": False, "backward": False, "kernels": [], "why": "no wheel"}
    report = run(Payload({case["key"]: unused for case in CASES}))
    assert exit_code(report) == 1
    assert report.extra["verdict"].startswith("NOT USED")


def test_a_second_run_tries_nothing_again(run: Certify) -> None:
    run(Payload())
    payload = Payload()
    data = run(payload).extra["certify"]
    assert (payload.tried, data["kept_from_before"], data["complete"]) == (0, 45, True)
    fresh = Payload()
    assert run(fresh, fresh=True).extra["certify"]["kept_from_before"] == 0
    assert fresh.tried == 45


def test_another_guard_or_catalogue_is_tried_anew(run: Certify, monkeypatch: pytest.MonkeyPatch) -> None:
    run(Payload())
    guarded = Payload(guard=GUARD)
    run(guarded)
    assert guarded.tried == 45
    other = Payload(guard={**GUARD, "digest": "2"})
    run(other)
    assert other.tried == 45
    monkeypatch.setattr(module, "payload_source", lambda name: b"another")
    newer = Payload()
    run(newer)
    assert newer.tried == 45


def test_an_interrupted_run_keeps_what_it_did_and_goes_on(run: Certify) -> None:
    with pytest.raises(Interrupted, match=r"interrupted; \d+ of 45 tries are kept") as caught:
        run(Payload(stop_after=2))
    assert int(caught.value.exit_code) == 130
    assert "goes on" in caught.value.hint
    payload = Payload()
    data = run(payload).extra["certify"]
    assert 0 < data["kept_from_before"] == 45 - payload.tried < 45


def test_a_budget_gives_what_is_known_so_far(run: Certify) -> None:
    with pytest.raises(CouldNotCheck, match="budget was too short"):
        run(Payload(), budget="1s")
    with pytest.raises(Interrupted):
        run(Payload(stop_after=2))
    report = run(Payload(), budget="1s")
    data = report.extra["certify"]
    assert not data["complete"] and data["tried"] == data["kept_from_before"] > 0
    assert report.extra["verdict"].startswith("SO FAR RIGHT: ")
    assert report.extra["verdict"].endswith("goes on")
    assert exit_code(report) == 0


def test_operations_and_threads_are_chosen(run: Certify) -> None:
    payload = Payload()
    data = run(payload, ops=("relu", "concat"), threads=("1", "1cpu")).extra["certify"]
    assert (payload.tried, data["threads"]) == (12, ["1", "1cpu"])
    assert [row["op"] for row in data["ops"]] == ["relu", "concat"]


@pytest.mark.parametrize(
    "options",
    [
        {"ops": ("nonsense",)},
        {"threads": ("many",)},
        {"budget": "soon"},
        {"model": "net.py"},
        {"model": "missing.py:make"},
        {"model": "net.py:not a name"},
        {"model": ":make"},
    ],
)
def test_an_option_that_cannot_be_is_refused_before_anything_runs(run: Certify, options: dict[str, Any]) -> None:
    payload = Payload()
    with pytest.raises(UsageError):
        run(payload, **options)
    assert payload.tried == 0


def test_chainer_that_cannot_be_imported_is_no_result(run: Certify) -> None:
    with pytest.raises(CouldNotCheck, match="import of chainer: SIGILL"):
        run(Payload(failure="import of chainer: SIGILL", ready=None))


def test_a_model_is_certified_in_its_own_shapes(run: Certify, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("def make(): pass\n")
    payload = Payload()
    report = run(payload, model="net.py:make")
    data = report.extra["certify"]
    assert payload.tried == 5 and [row["op"] for row in data["ops"]] == ["concat"]
    assert data["model"]["file"] == str(tmp_path / "net.py")
    assert data["model"]["cases"] == [{"op": "concat", "case": "text of m, 2 times"}]
    assert exit_code(report) == 0


def test_wrong_gradients_of_the_whole_model_are_a_fault(run: Certify, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("def make(): pass\n")
    payload = Payload()
    payload.model["gradients"] = [{"name": "/l/W", "error": 0.5, "tolerance": 1e-4, "right": False}]
    report = run(payload, model="net.py:make")
    assert exit_code(report) == 1 and report.extra["verdict"].startswith("WRONG")
    assert any("/l/W: off by 0.5" in line for line in report.body)


def test_a_model_that_died_is_a_fault_although_its_cases_are_right(run: Certify, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("def make(): pass\n")
    payload = Payload()
    payload.model["ended"] = "crashed: SIGSEGV (the last function that was begun: Concat)"
    report = run(payload, model="net.py:make")
    assert exit_code(report) == 1 and report.extra["verdict"].startswith("WRONG")


def test_a_model_that_gives_nothing_to_ideep_is_refused(run: Certify, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("def make(): pass\n")
    payload = Payload()
    payload.model["cases"] = []
    with pytest.raises(UsageError, match="gives nothing to iDeep; it ran: Reshape"):
        run(payload, model="net.py:make")


@pytest.mark.parametrize("kind", ["right", "wrong", "model", "memory"])
def test_every_document_is_valid(run: Certify, tmp_path: Path, kind: str) -> None:
    (tmp_path / "net.py").write_text("def make(): pass\n")
    bad = {
        "relu 0": {"status": "wrong", "error": None},
        "concat 0": {"status": "crashed", "hazard": "H7", "error": None},
    }
    measured = {"relu 1": {"measured": {"count": 200, "ideep_bytes": 6e7}}}
    payload = Payload(bad if kind == "wrong" else measured, guard=GUARD if kind == "right" else None)
    payload.model["gradients"] = [{"name": "/l/W", "error": float("inf"), "tolerance": 1e-4, "right": False}]
    report = run(payload, model="net.py:make" if kind == "model" else None)
    document = json.loads(render(report), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    jsonschema.validate(document, SCHEMA)
    assert document["tool"]["command"] == "certify" and document["proof"] is None
    del document["certify"]["ops"][0]["faults"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SCHEMA)


def test_the_request_holds_what_the_catalogue_gave(run: Certify) -> None:
    seen: list[dict[str, Any]] = []

    class Spy(Payload):
        def __call__(self, call: Call) -> Any:
            seen.append(json.loads(base64.urlsafe_b64decode(call.argv[-1])))
            return super().__call__(call)

    run(Spy(), ops=("relu",), threads=("3",))
    assert [request["action"] for request in seen] == ["plan", "run"]
    assert seen[1]["cases"] == [case for case in CASES if case["op"] == "relu"]
    assert (seen[1]["threads"], seen[1]["one_cpu"]) == (3, False)
