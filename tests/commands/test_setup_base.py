"""Which interpreter ``setup`` takes, and how it gets one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ideepdoctor.commands import setup_base
from ideepdoctor.commands.session import Session, TargetOptions
from ideepdoctor.commands.setup import SetupOptions, setup
from ideepdoctor.commands.setup_base import Base, find_base
from ideepdoctor.commands.source import SourceOptions
from ideepdoctor.errors import NotPossibleHere, UsageError
from ideepdoctor.model.plan import CreateEnv, Plan
from ideepdoctor.model.report import Report
from ideepdoctor.treatment.progress import Quiet
from tests.commands.test_setup_wheels import wheel
from tests.mirror import tiny_wheel
from tests.rules.hosts import facts_on
from tests.targets.trees import Machine


class Person:
    """Says yes or no, and remembers what was asked."""

    def __init__(self, answer: bool = True) -> None:
        self.answer, self.asked = answer, list[Report]()

    def __call__(self, report: Report) -> bool:
        self.asked.append(report)
        return self.answer


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    made.environ["IDEEPDOCTOR_STATE_DIR"] = str(tmp_path / "state")
    return made


def session(machine: Machine, agrees: Person | None = None) -> Session:
    work = str(machine.root / "work")
    return Session(machine.system, machine.environ, work, Quiet(), agrees or Person(False), "ideepdoctor setup")


def options(python: str | None = None, **more: object) -> SetupOptions:
    return replace(SetupOptions(TargetOptions(python)), **more)  # type: ignore[arg-type]


def found(machine: Machine, asked: SetupOptions, *folders: Path) -> Base:
    base = find_base(session(machine), asked, None, [str(folder) for folder in folders])
    assert isinstance(base, Base)
    return base


@pytest.fixture
def carried(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> list[Plan]:
    """Plans that were carried out; a Python is where they say."""
    plans: list[Plan] = []

    def carry_out(_session: Session, plan: Plan) -> str:
        plans.append(plan)
        (step,) = plan.steps
        assert isinstance(step, CreateEnv)
        machine.python(str(Path(step.path).relative_to(machine.root) / "bin/python"), "3.7.17")
        return "RUN"

    monkeypatch.setattr(setup_base, "carry_out", carry_out)
    return plans


def test_what_is_here_is_taken(machine):
    machine.python("bin/python3.11", "3.11.7")
    machine.python("bin/python3.7")
    base = found(machine, options())
    assert (base.interpreter.abi, base.built, base.journal) == ("cp37m", False, None)


def test_to_build_it_is_the_present_python(machine):
    machine.python("bin/python3.13", "3.13.0")
    machine.python("bin/python3.11", "3.11.7")
    machine.python("bin/python3.7")
    base = found(machine, options(build=True))
    assert (base.interpreter.abi, base.built) == ("cp311", True)
    assert found(machine, options("3.7", build=True)).interpreter.abi == "cp37m"
    assert found(machine, options("3.13", build=True)).interpreter.abi == "cp313"


class TestWheelhouse:
    def test_a_built_wheel_makes_a_new_python_usable(self, machine, tmp_path):
        machine.python("bin/python3.11", "3.11.7")
        house = tmp_path / "house"
        house.mkdir()
        with pytest.raises(NotPossibleHere):
            found(machine, options(), house)
        wheel(house, "v3")
        for asked in (None, "3.11"):
            base = found(machine, options(asked), house)
            assert (base.interpreter.abi, base.built) == ("cp311", True)

    def test_an_older_python_comes_first_where_an_index_serves_it(self, machine, tmp_path):
        machine.python("bin/python3.11", "3.11.7")
        machine.python("bin/python3.7")
        wheel(tmp_path, "v3")
        assert found(machine, options(), tmp_path).interpreter.abi == "cp37m"
        assert found(machine, options("3.11"), tmp_path).built

    def test_without_a_network_what_the_folder_holds_decides(self, machine, tmp_path):
        machine.python("bin/python3.11", "3.11.7")
        machine.python("bin/python3.7")
        wheel(tmp_path, "v3")
        asked = options(source=SourceOptions(offline=True, wheelhouse=str(tmp_path)))
        assert found(machine, asked, tmp_path).interpreter.abi == "cp311"
        for_37 = tmp_path / "37"
        for_37.mkdir()
        wheel(for_37, "v3", "cp37m")
        assert found(machine, replace(asked, target=TargetOptions("3.7")), for_37).built
        tiny_wheel(tmp_path, "ideep4py", "2.0.0.post3", "cp37-cp37m-linux_x86_64")
        assert found(machine, asked, tmp_path).interpreter.abi == "cp37m"

    def test_what_the_folder_has_is_told_where_it_does_not_help(self, machine, tmp_path):
        machine.python("bin/python3.10", "3.10.13")
        wheel(tmp_path, "v3")
        with pytest.raises(NotPossibleHere) as caught:
            found(machine, options("3.10"), tmp_path)
        assert "has ideep4py built for cp311" in caught.value.hint
        assert "no ideep4py wheel exists for cp310" in caught.value.message


class TestGettingOne:
    def test_after_asking_the_tool_makes_it_and_it_is_taken(self, machine, carried):
        machine.python("bin/python3.11", "3.11.7")
        machine.file("bin/conda")
        person = Person()
        base = find_base(session(machine, person), options(get_python="conda"), None, [])
        folder = machine.root / "state/pythons/conda-3.7"
        step = CreateEnv(str(folder), str(machine.root / "bin/conda"), "conda", release="3.7")
        assert [plan.steps for plan in carried] == [(step,)]
        assert [report.plan for report in person.asked] == carried
        assert isinstance(base, Base) and base.journal == "RUN"
        assert base.interpreter.path == str(folder / "bin/python")

    def test_pyenv_puts_it_where_its_own_are(self, machine, carried):
        machine.environ["PYENV_ROOT"] = str(machine.root / "p")
        machine.file("bin/pyenv")
        machine.file("p/plugins/python-build/share/python-build/3.7.16")
        find_base(session(machine, Person()), options(get_python="pyenv"), None, [])
        (step,) = carried[0].steps
        assert (step.path, step.release, step.tool) == (str(machine.root / "p/versions/3.7.16"), "3.7.16", "pyenv")

    def test_what_an_earlier_run_got_is_taken_without_asking(self, machine, carried):
        machine.file("bin/conda")
        machine.python("state/pythons/conda-3.7/bin/python")
        person = Person()
        base = find_base(session(machine, person), options(get_python="conda"), None, [])
        assert isinstance(base, Base) and (base.journal, person.asked, carried) == (None, [], [])

    def test_no_is_no(self, machine, carried):
        machine.file("bin/conda")
        report = find_base(session(machine, Person(False)), options(get_python="conda"), None, [])
        assert isinstance(report, Report) and report.extra["applied"] is False and carried == []

    def test_a_dry_run_shows_it_and_asks_nobody(self, machine, carried):
        machine.file("bin/conda")
        person = Person()
        report = find_base(session(machine, person), options(get_python="conda", dry_run=True), None, [])
        assert isinstance(report, Report) and report.plan is not None
        assert "get Python 3.7 with conda" in report.plan.steps[0].title
        assert any("to download" in line for line in report.body)
        assert person.asked == carried == []

    def test_a_tool_that_is_not_here(self, machine):
        machine.file("bin/pyenv")
        with pytest.raises(NotPossibleHere, match="no micromamba, mamba or conda on PATH") as caught:
            find_base(session(machine), options(get_python="conda"), None, [])
        assert "--get-python pyenv" in caught.value.hint

    @pytest.mark.parametrize("python", ["3.11", "3.14", "/usr/bin/python3"])
    def test_only_a_python_that_a_wheel_exists_for(self, machine, python):
        machine.file("bin/conda")
        with pytest.raises(UsageError, match=f"{python} is none"):
            find_base(session(machine), options(python, get_python="conda"), None, [])

    def test_of_the_asked_version(self, machine, carried):
        machine.file("bin/conda")
        with pytest.raises(NotPossibleHere) as caught:  # the stand-in makes a 3.7 whatever it is asked for
            find_base(session(machine, Person()), options("3.6", get_python="conda"), ("cp36m",), [])
        assert carried[0].steps[0].release == "3.6"
        assert "the Python that was got stays; take it back: ideepdoctor undo RUN" in caught.value.hint

    def test_not_without_a_network(self, machine):
        machine.file("bin/conda")
        asked = options(get_python="conda", source=SourceOptions(offline=True))
        with pytest.raises(UsageError, match="exclude each other"):
            find_base(session(machine), asked, None, [])


@pytest.mark.parametrize(
    "more",
    [
        {"build": True, "in_place": True},
        {"build": True, "get_python": "conda"},
        {"in_place": True, "get_python": "pyenv"},
    ],
)
def test_options_that_exclude_each_other(machine, more):
    with pytest.raises(UsageError, match="exclude each other"):
        setup(session(machine), options(**more))


@pytest.mark.parametrize(("asked", "refused"), [("3.11", True), ("2", True), ("3.7", False), ("3", False)])
def test_an_environment_of_another_python_is_not_what_was_asked_for(machine, monkeypatch, asked, refused):
    machine.python("work/.ideep/bin/python")
    monkeypatch.setattr("ideepdoctor.commands.setup.examine", lambda *_: facts_on("py37-healthy"))
    proved = Report("setup")
    monkeypatch.setattr("ideepdoctor.commands.setup._proved", lambda *_: proved)
    if refused:
        with pytest.raises(UsageError, match=f"has Python 3.7, not {asked}"):
            setup(session(machine), options(asked))
    else:
        assert setup(session(machine), options(asked, tune=False)) is proved


def test_an_emulator_is_no_machine_to_build_for(machine):
    asked = replace(options(build=True), target=TargetOptions(emulator=("qemu-x86_64",)))
    with pytest.raises(UsageError, match="--emulator"):
        setup(session(machine), asked)
