"""``trace`` around the program: what it is given, where the report goes, how it ends."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ideepdoctor.commands import run as run_command
from ideepdoctor.commands import trace as command
from ideepdoctor.commands.run import Prepared
from ideepdoctor.commands.session import Session, TargetOptions
from ideepdoctor.commands.trace import TraceOptions, trace
from ideepdoctor.errors import CouldNotCheck, UsageError
from ideepdoctor.options import Format
from ideepdoctor.treatment.progress import Quiet
from tests.doubles import Call, EndedAs, FakeSystem, completed
from tests.formats import READ
from tests.rules.hosts import facts_on

SCHEMA = json.loads((files("ideepdoctor") / "render" / "report.schema.json").read_text("utf-8"))
FACTS = facts_on("py37-healthy")


class Traced(FakeSystem):
    """A system whose temporary folder is a real one, into which the program writes what the test says."""

    def __init__(self, folder: Path, text: str = "", returncode: int = 0) -> None:
        super().__init__()
        self.folder, self.text = folder / "records", text
        self.on(lambda call: call.kind == "attend", lambda call: self.program(call, returncode))

    def make_temporary_folder(self) -> str:
        super().make_temporary_folder()
        self.folder.mkdir()
        return str(self.folder)

    def program(self, call: Call, returncode: int) -> Any:
        assert call.env is not None
        if self.text:
            (Path(call.env["IDEEPDOCTOR_TRACE"]) / "7-00000001.txt").write_text(self.text)
        return completed(returncode=returncode)

    @property
    def given(self) -> dict[str, str]:
        """The environment that the program was given."""
        [call] = [call for call in self.calls if call.kind == "attend"]
        return dict(call.env or {})


START = (
    "'process', {'pid': 7, 'python': '3.7.16'}\n'chainer', {'version': '7.8.1', 'available': True}\n'watching', True\n"
)


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What the program's Python is asked to load; preparing is what ``run`` is tested for."""
    asked: list[list[str]] = []

    def prepare(session: Session, target: Any, words: Any, name: str, scope: Any, loaded: list[str]) -> Prepared:
        asked.append(loaded)
        return Prepared(list(words), {"PATH": "/bin"}, FACTS)

    monkeypatch.setattr(command, "prepare", prepare)
    return asked


def run(system: FakeSystem, cwd: Path, *, environ: dict[str, str] | None = None, **options: Any) -> int:
    session = Session(system, environ or {"CHAINER_USE_IDEEP": "auto"}, str(cwd), Quiet(), lambda report: True)
    with pytest.raises(EndedAs) as ended:
        trace(session, replace(TraceOptions(TargetOptions(), ("train.py",)), **options))
    return ended.value.returncode


@pytest.mark.parametrize("returncode", [0, 7, -11])
def test_it_ends_as_the_program_and_the_report_goes_to_standard_error(
    tmp_path: Path, modules: list[list[str]], capsys: pytest.CaptureFixture[str], returncode: int
):
    system = Traced(tmp_path, START, returncode)
    assert run(system, tmp_path) == returncode
    out, errors = capsys.readouterr()
    assert out == ""
    assert errors.startswith("trace of train.py\n")
    assert "Chainer was imported, and none of its functions was called" in errors
    kinds = [call.kind for call in system.calls]
    assert kinds == ["make_temporary_folder", "attend", "remove_tree", "end_as"]


def test_by_default_the_program_is_shown_as_it_is(tmp_path: Path, modules: list[list[str]]):
    system = Traced(tmp_path)
    run(system, tmp_path)
    assert modules == [["trace"]]
    assert system.given == {"PATH": "/bin", "IDEEPDOCTOR_TRACE": str(system.folder)}


@pytest.mark.parametrize(
    ("options", "loaded", "variables"),
    [
        ({"auto": True}, ["trace", "guard", "auto"], {}),
        ({"guard": False}, ["trace"], {"IDEEPDOCTOR_GUARD": "off"}),
        ({"auto": True, "guard": False}, ["trace"], {"IDEEPDOCTOR_GUARD": "off"}),
        ({"chrome": "calls.json"}, ["trace"], {"IDEEPDOCTOR_TRACE_EVENTS": str(command.EVENTS)}),
    ],
)
def test_what_it_is_given_when_asked(
    tmp_path: Path,
    modules: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    loaded: list[str],
    variables: dict[str, str],
):
    monkeypatch.chdir(tmp_path)
    system = Traced(tmp_path)
    run(system, tmp_path, **options)
    assert modules == [loaded]
    given = system.given
    assert {name: given[name] for name in given if name not in ("PATH", "IDEEPDOCTOR_TRACE")} == variables


def test_files(tmp_path: Path, modules: list[list[str]], capsys: pytest.CaptureFixture[str]):
    system = Traced(tmp_path, START)
    assert run(system, tmp_path, output=str(tmp_path / "out"), chrome=str(tmp_path / "calls")) == 0
    assert capsys.readouterr() == ("", "")
    assert system.files[str(tmp_path / "out")].startswith(b"trace of train.py\n")
    assert json.loads(system.files[str(tmp_path / "calls")])["traceEvents"][0]["ph"] == "M"


def test_the_document(tmp_path: Path, modules: list[list[str]], capsys: pytest.CaptureFixture[str]):
    system = Traced(tmp_path, START, 3)
    assert run(system, tmp_path, output=str(tmp_path / "out"), form=Format.JSON) == 3
    assert capsys.readouterr() == ("", "")
    document = json.loads(system.files[str(tmp_path / "out")])
    jsonschema.validate(document, SCHEMA)
    assert document["tool"]["command"] == "trace"
    assert document["target"]["packages"]["chainer"] == "7.8.1"
    assert document["trace"]["program"]["exit_code"] == 3


@pytest.mark.parametrize("form", [item for item in Format if item.for_machines])
def test_every_format_goes_to_the_file(tmp_path: Path, modules: list[list[str]], form: Format):
    system = Traced(tmp_path, START)
    assert run(system, tmp_path, output=str(tmp_path / "out"), form=form) == 0
    READ[form](system.files[str(tmp_path / "out")].decode("utf-8"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"form": Format.JSON}, "--format json needs -o"),
        ({"output": "none/such/out"}, "-o none/such/out cannot be written"),
        ({"output": "/"}, "-o / cannot be written"),
        ({"chrome": "none/such/out"}, "--chrome none/such/out cannot be written"),
    ],
)
def test_what_cannot_be_written_is_said_before_the_program_runs(
    tmp_path: Path, modules: list[list[str]], monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], said: str
):
    monkeypatch.chdir(tmp_path)
    system = Traced(tmp_path)
    session = Session(system, {}, str(tmp_path), Quiet(), lambda report: True)
    with pytest.raises(UsageError, match=said) as caught:
        trace(session, replace(TraceOptions(TargetOptions(), ("train.py",)), **options))
    assert caught.value.hint
    assert system.calls == []


def test_an_output_that_cannot_be_written_after_all_is_shown_instead(
    tmp_path: Path, modules: list[list[str]], capsys: pytest.CaptureFixture[str]
):
    system = Traced(tmp_path, START)
    system.write_file = broken(OSError(28, "No space left on device"))  # type: ignore[method-assign]
    assert run(system, tmp_path, output=str(tmp_path / "out"), chrome=str(tmp_path / "calls")) == 0
    errors = capsys.readouterr().err
    assert "out could not be written: No space left on device\ntrace of train.py" in errors
    assert "calls could not be written" in errors


def broken(error: BaseException) -> Callable[..., Any]:
    def fail(*_arguments: object, **_options: object) -> Any:
        raise error

    return fail


def test_a_fault_of_ours_does_not_hide_how_the_program_ended(
    tmp_path: Path,
    modules: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setattr(command, "_report", broken(KeyError("x")))
    system = Traced(tmp_path, START, 5)
    assert run(system, tmp_path) == 5
    assert capsys.readouterr().err == "trace could not report: KeyError: 'x'\n"
    assert [call.kind for call in system.calls][-2:] == ["remove_tree", "end_as"]


def test_a_closed_standard_error_is_no_fault(tmp_path: Path, modules: list[list[str]], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert run(Traced(tmp_path, START), tmp_path) == 0


def test_what_cannot_be_started_leaves_nothing_behind(tmp_path: Path, modules: list[list[str]]):
    system = FakeSystem()
    session = Session(system, {}, str(tmp_path), Quiet(), lambda report: True)
    with pytest.raises(UsageError, match=r"train\.py cannot be started: No such file"):
        trace(session, TraceOptions(TargetOptions(), ("train.py",)))
    assert [call.kind for call in system.calls] == ["make_temporary_folder", "attend", "remove_tree"]
    system = FakeSystem(fail_writes=OSError(28, "No space left on device"))
    session = replace(session, system=system)
    with pytest.raises(CouldNotCheck, match="no room for the records: No space"):
        trace(session, TraceOptions(TargetOptions(), ("train.py",)))


@pytest.mark.parametrize(
    ("environ", "effective", "said"),
    [
        ({}, {}, True),
        ({"CHAINER_USE_IDEEP": "auto"}, {}, False),
        ({}, {"CHAINER_USE_IDEEP": "auto"}, False),  # by the start-up file of the environment
    ],
)
def test_a_variable_that_trace_alone_sets_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], effective: dict[str, str], said: bool
):
    facts = replace(FACTS, variables=replace(FACTS.variables, effective=effective))
    monkeypatch.setattr(command, "prepare", lambda *_: Prepared(["train.py"], {}, facts))
    system = Traced(tmp_path, START + "'row', 8, {'function': 'ReLU', 'inputs': [['n', 'float32', [2, 3], False]]}\n")
    numbers = bytearray(16 * 512 * 8)
    numbers[8 * 16 * 8 : 8 * 16 * 8 + 8] = b"\0\0\0\0\0\0\xf0\x3f"  # one call

    def write(call: Call) -> Any:
        (system.folder / "7-00000001.rows0").write_bytes(numbers)
        return system.program(call, 0)

    system.answers = [(lambda call: call.kind == "attend", write)]
    run(system, tmp_path, environ=environ or {"PATH": "/bin"}, output=str(tmp_path / "out"))
    assert (b"trace set it to auto for this run" in system.files[str(tmp_path / "out")]) is said


def test_programs_are_prepared_as_run_does():
    assert command.prepare is run_command.prepare
