"""builder/verify.py without a real environment: what it asks for, what it refuses, what it leaves behind."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ideepdoctor.builder import verify as module
from ideepdoctor.builder.levels import flags_through
from ideepdoctor.builder.verify import VerifyFailed, verify
from ideepdoctor.commands.session import Session
from ideepdoctor.errors import Exit, NotPossibleHere
from ideepdoctor.model.build import BuiltWheel
from ideepdoctor.model.facts import OpCheck, Smoke
from ideepdoctor.model.plan import CreateEnv, Install, Requirement, WriteFile
from ideepdoctor.model.plan import Plan as Steps
from ideepdoctor.proof.certify_data import Case, Plan, Result
from ideepdoctor.stacks.data import Lock
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.progress import Quiet
from tests.builder.elves import needs_compiler, staging
from tests.builder.packed import packed
from tests.rules.hosts import facts_on

pytestmark = needs_compiler
PINS = {"chainer": "7.8.1", "numpy": "1.21.6", "six": "1.17.0"}
RIGHT = OpCheck("convolution", "(2,16,8,8)", 2, "right", True, 1e-7, 1e-5)
CASE = Case("a", "convolution_2d", "convolution", "(2,16,9,9)", 0.1, 0, {})
GUARD = {"active": True, "corrections": ["bn", "lrn"], "why_not": ""}


def lock(**changes: Any) -> Lock:
    pins = tuple(Requirement(name, version, ("0" * 64,)) for name, version in PINS.items())
    whole = Lock("chainer7.8.1-ideep4py2.0.0.post3", "3.7", ("cp37m",), pins, "uv", 1, 1, "smoke", ("ideep4py",))
    return replace(whole, **changes)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> BuiltWheel:
    folder = tmp_path_factory.mktemp("wheel")
    staging(folder / "staging")
    return packed(folder / "staging", folder)


class World:
    """What verify would start, answered from here; ``plan`` is the plan that it carried out."""

    def __init__(self, wheel: BuiltWheel, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cache = cache
        self.facts = facts_on("py37-healthy")
        packages = tuple(item for item in self.facts.packages if item.name != "ideep4py")
        own = next(item for item in self.facts.packages if item.name == "ideep4py")
        self.after = replace(self.facts, packages=(*packages, replace(own, version=wheel.version)), native=None)
        self.smoke = Smoke(2, True, "jit:avx2", (RIGHT, replace(RIGHT, op="relu")))
        self.catalogue = Plan(2, True, "", (CASE, replace(CASE, key="b", family="relu", op="relu")), (), GUARD)
        self.result: Callable[[str, str], Result] = lambda key, setting: Result(key, setting, "right")
        self.plan = Steps("", ())
        self.python = ""
        self.told: list[str] = []
        self.went: list[tuple[int, set[str], bool]] = []
        self.session = Session(
            RealSystem(), {"IDEEPDOCTOR_CACHE_DIR": str(cache)}, str(cache), Quiet(), lambda _report: True
        )
        monkeypatch.setattr(module, "examine", lambda _session, target, _scope: self.looked(target.python))
        monkeypatch.setattr(module, "prove", lambda _session, _target, timing: (self.after, self.smoke))
        monkeypatch.setattr(module, "make_plan", lambda _system, _target: self.catalogue)
        monkeypatch.setattr(module, "Run", self.run)
        monkeypatch.setattr("ideepdoctor.treatment.apply.apply_plan", self.carry_out)

    def looked(self, python: str) -> Any:
        self.python = python
        return self.facts

    def carry_out(self, _system: Any, plan: Steps, state: str, _sink: Any) -> str:
        self.plan, self.work = plan, str(Path(state).parent)
        assert Path(self.work).is_dir()
        (Path(self.work) / "env").mkdir()
        return "journal"

    def run(self, _system: Any, _target: Any, _store: Any, pairs: Any) -> Any:
        results: dict[tuple[str, str], Result] = {}

        def go() -> None:
            self.went.append((len(made.pairs), {at.name for _case, at in made.pairs}, made.deadline is None))
            results.update({(case.key, at.name): self.result(case.key, at.name) for case, at in made.pairs})

        made = SimpleNamespace(pairs=pairs, results=results, deadline=None, go=go)
        return made

    def verify(self, wheel: BuiltWheel, **changes: Any) -> tuple[str, ...]:
        return verify(self.session, wheel, lock(**changes), "/usr/bin/python3.7", self.told.append)

    def left(self) -> list[str]:
        return [path.name for path in (self.cache / "build").iterdir()] if (self.cache / "build").exists() else []


@pytest.fixture
def world(wheel: BuiltWheel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(wheel, tmp_path, monkeypatch)


def test_a_right_wheel_is_proved_in_lines(world: World, wheel: BuiltWheel):
    assert world.verify(wheel) == (
        "check: nothing is wrong with the file",
        "smoke: used (jit:avx2), 2 of 2 checks right",
        "guard: on, 2 corrections",
        "certify: 10 of 10 tries right, 2 families of operations",
    )
    assert world.left() == []
    assert world.python == "/usr/bin/python3.7"


def test_the_environment_is_that_of_setup_with_the_wheel_by_its_hash(world: World, wheel: BuiltWheel):
    world.verify(wheel)
    create, install, *written = world.plan.steps
    assert isinstance(create, CreateEnv) and isinstance(install, Install)
    assert (create.path, create.python, create.tool) == (f"{world.work}/env", "/usr/bin/python3.7", "uv")
    pins = {item.name: item for item in install.requirements}
    assert pins.pop("ideep4py") == Requirement("ideep4py", wheel.version, (wheel.sha256,))
    assert {name: item.version for name, item in pins.items()} == PINS
    assert install.source.find_links == (str(Path(wheel.path).parent),) and not install.source.no_index
    assert [item.name for item in install.requirements] == sorted([*PINS, "ideep4py"])
    files = {step.path.rpartition("/")[2]: step.content for step in written if isinstance(step, WriteFile)}
    assert set(files) == {"_ideepdoctor_guard.py", "_ideepdoctor_startup.py", "ideepdoctor.pth"}
    assert "GUARD = True" in files["_ideepdoctor_startup.py"]
    assert Path(world.work).parent == world.cache / "build"


def test_a_lock_with_an_ideep4py_of_the_index_gets_the_wheel_instead(world: World, wheel: BuiltWheel):
    index = Requirement("ideep4py", "2.0.0.post3", ("1" * 64,))
    world.verify(wheel, requirements=(*lock().requirements, index), built=())
    install = world.plan.steps[1]
    assert isinstance(install, Install)
    assert [item.version for item in install.requirements if item.name == "ideep4py"] == [wheel.version]


def test_a_wheel_that_is_wrong_is_not_installed(world: World, wheel: BuiltWheel, tmp_path: Path):
    broken = tmp_path / wheel.name
    broken.write_bytes(Path(wheel.path).read_bytes()[:-100])
    with pytest.raises(VerifyFailed, match="damaged zip"):
        world.verify(replace(wheel, path=str(broken)))
    with pytest.raises(VerifyFailed, match="was changed since it was packed"):
        world.verify(replace(wheel, sha256="0" * 64))
    with pytest.raises(VerifyFailed, match=r"compiled against NumPy 1\.22\.0, and chainer7.* has 1\.21\.6"):
        world.verify(replace(wheel, numpy="1.22.0"))
    assert world.plan.steps == () and world.left() == []
    assert issubclass(VerifyFailed, NotPossibleHere) and VerifyFailed.exit_code is Exit.FINDINGS


def test_a_processor_that_cannot_run_it_is_not_tried(world: World, wheel: BuiltWheel):
    with pytest.raises(VerifyFailed, match="this processor lacks avx512_fp16") as caught:
        world.verify(replace(wheel, cpu_flags=(*flags_through(3), "avx512_fp16")))
    assert "--march native" in caught.value.hint
    assert world.plan.steps == () and world.left() == []


@pytest.mark.parametrize(
    ("smoke", "said"),
    [
        (Smoke(2, None, None, failure="import of chainer: SIGILL"), "cannot be imported: import of chainer: SIGILL"),
        (
            Smoke(2, False, None, (replace(RIGHT, used_ideep=False, message="computed by NumPy: no iDeep"),)),
            r"computes nothing: NumPy did, kernel none \(computed by NumPy: no iDeep\)",
        ),
        (
            Smoke(2, True, "jit:avx2", (RIGHT, replace(RIGHT, op="relu", status="wrong", hazard="H18"))),
            r"smoke: 1 of 2 checks are not right: relu \(2,16,8,8\) \(H18\)",
        ),
        (
            Smoke(2, None, None, (replace(RIGHT, status="raised", message="AttributeError: relu"),)),
            r"computes nothing: none of 1 checks is right: convolution \(2,16,8,8\) \(AttributeError: relu\)",
        ),
        (Smoke(2, None, None, (replace(RIGHT, status="not-run"),)), "computes nothing"),
    ],
)
def test_a_smoke_test_that_fails_is_named(world: World, wheel: BuiltWheel, smoke: Smoke, said: str):
    world.smoke = smoke
    with pytest.raises(VerifyFailed, match=said):
        world.verify(wheel)
    assert world.left() == []


def test_a_wrong_operation_is_named(world: World, wheel: BuiltWheel):
    right = world.result
    world.result = lambda key, at: Result(key, at, "crashed", message="SIGSEGV") if key == "b" else right(key, at)
    with pytest.raises(VerifyFailed, match=r"certify: 5 of 10 tries are not right: relu .* threads 2 \(SIGSEGV\)"):
        world.verify(wheel)
    world.catalogue = replace(world.catalogue, available=False, reason="no __version__")
    with pytest.raises(VerifyFailed, match="Chainer does not use this wheel: no __version__"):
        world.verify(wheel)


def test_something_of_every_family_is_tried_however_long_it_takes(world: World, wheel: BuiltWheel):
    many = tuple(replace(CASE, key=f"a{number}") for number in range(10))
    world.catalogue = replace(world.catalogue, cases=(*many, replace(CASE, key="b", family="relu", op="relu")))
    world.verify(wheel)
    assert world.went == [(5, {"2"}, True), (55, {"2", "1", "3", "4", "1cpu"}, False)]


def test_the_guard_must_be_on(world: World, wheel: BuiltWheel):
    world.catalogue = replace(world.catalogue, guard={**GUARD, "active": False, "why_not": "another ideep4py"})
    with pytest.raises(VerifyFailed, match="the guard is not on with this wheel: another ideep4py"):
        world.verify(wheel)
    world.catalogue = replace(world.catalogue, guard=None)
    with pytest.raises(VerifyFailed, match="it is not there"):
        world.verify(wheel)


def test_another_ideep4py_does_not_pass_for_the_wheel(world: World, wheel: BuiltWheel):
    world.after = replace(world.after, native=facts_on("py37-healthy").native)
    with pytest.raises(VerifyFailed, match="another ideep4py comes before the wheel's"):
        world.verify(wheel)
    world.after = replace(world.facts, native=None)
    with pytest.raises(VerifyFailed, match=r"holds ideep4py 2\.0\.0\.post3, not 2\.0\.0\.post3\+doctor\.v3"):
        world.verify(wheel)


def test_what_a_person_has_set_does_not_decide(world: World, wheel: BuiltWheel, monkeypatch: pytest.MonkeyPatch):
    own = {"CHAINER_USE_IDEEP": "never", "IDEEPDOCTOR_GUARD": "off", "PYTHONPATH": "/elsewhere", "MY_OWN": "1"}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    world.session = replace(world.session, environ={**world.session.environ, **own})
    seen: list[dict[str, str]] = []

    def look(session: Session, _target: Any, **_options: Any) -> Any:
        seen.extend([dict(os.environ), dict(session.environ)])
        return world.after, world.smoke

    monkeypatch.setattr(module, "prove", look)
    world.verify(wheel)
    assert [{name for name in own if name in variables} for variables in seen] == [{"MY_OWN"}, {"MY_OWN"}]
    assert {name: os.environ[name] for name in own} == own


def test_ctrl_c_leaves_nothing(world: World, wheel: BuiltWheel, monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "make_plan", interrupted)
    with pytest.raises(KeyboardInterrupt):
        world.verify(wheel)
    assert world.left() == []


def test_what_a_killed_run_left_is_removed_and_a_running_one_is_not(world: World, wheel: BuiltWheel):
    dead = 2**22 + 1  # above the highest number that Linux gives to a process
    for number in (dead, os.getppid()):
        (world.cache / "build" / f"verify-{number}" / "env").mkdir(parents=True)
    world.verify(wheel)
    assert world.left() == [f"verify-{os.getppid()}"]
