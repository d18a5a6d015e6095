"""The stages of a build in their order, what is kept, and what is handed out; every stage is a double."""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.builder import pipeline
from ideepdoctor.builder.log import BuildLog
from ideepdoctor.builder.pipeline import Build, Places
from ideepdoctor.builder.progress import Meter
from ideepdoctor.builder.recipe import RELEASES
from ideepdoctor.builder.toolchain import Compilers
from ideepdoctor.commands.session import Session
from ideepdoctor.errors import BuildFailed, NotPossibleHere
from ideepdoctor.model.build import BuildRequest, BuiltWheel, Layout, March, Mkl, SourceTree, Stage, Tools
from ideepdoctor.model.plan import PackageSource
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.progress import Quiet

NAME = "ideep4py-2.0.0.post3+doctor.v3-cp311-cp311-linux_x86_64.whl"
STAGES = tuple(Stage)


@dataclass
class World:
    """What the doubles of the stages did, and how they shall end."""

    folder: Path
    layout: Layout = Layout.CMAKE
    commit: str = "c" * 40
    mkl: str = "wheel"
    done: list[str] = field(default_factory=list)
    refuses: bool = False
    dies_at: str = ""
    sources: list[PackageSource] = field(default_factory=list)

    def say(self, what: str) -> None:
        self.done.append(what)
        if what == self.dies_at:
            raise BuildFailed(f"{what} failed")

    def tree(self, _system: Any, _request: Any, work: str, *_: Any) -> SourceTree:
        self.say("source")
        top = Path(work, "tree")
        (top / "python" / "ideep4py").mkdir(parents=True, exist_ok=True)
        (top / "python" / "setup.py").write_text("")
        (top / "python" / "ideep4py" / "own.py").write_text("")
        release = "2.0.0.post3" if self.layout is Layout.CMAKE else "1.0.3"
        return SourceTree(str(top), self.commit, str(top / "mkl-dnn"), "d" * 40, self.layout, release, release)

    def tools(self, _system: Any, request: BuildRequest, _abi: str, tree: SourceTree, *rest: Any) -> Tools:
        self.say("tools")
        assert rest[-2] == RELEASES[str(tree.release)].cxxflags
        self.sources.append(rest[-1])
        return Tools("/python", "/bin", "1.23.2", f"tools-{request.march}", {"CXXFLAGS": "-w", "PATH": "/bin"})

    def provide(self, *_: Any, source: PackageSource, **__: Any) -> Mkl:
        self.say("mkl")
        self.sources.append(source)
        return Mkl(self.mkl, "/include", ("/libmklml_intel.so",), f"of {self.mkl}")

    def library(self, _programs: Any, tree: SourceTree, _tools: Any) -> None:
        self.say("library")
        prefix = Path(tree.folder, "python", "ideep4py")
        (prefix / "lib").mkdir(exist_ok=True)
        (prefix / "lib" / "libmkldnn.so.0").write_text("MKL-DNN")
        (Path(tree.folder) / "build").mkdir(exist_ok=True)
        (Path(tree.folder) / "build" / "CMakeCache.txt").write_text("")

    def finish(self, _system: Any, _mkl: Mkl, prefix: str, layout: Layout = Layout.CMAKE) -> None:
        self.say(f"finish {layout}")
        Path(prefix, "lib").mkdir(parents=True, exist_ok=True)
        Path(prefix, "lib", "libmklml_intel.so").write_text("MKL")

    def stand(self, *_: Any) -> None:
        self.say("stand")

    def extension(self, _system: Any, _programs: Any, tree: SourceTree, _t: Any, prefix: str, staging: str) -> None:
        self.say("extension")
        if tree.layout is Layout.CMAKE:
            assert {path.name for path in Path(prefix, "lib").iterdir()} == {"libmklml_intel.so", "libmkldnn.so.0"}
        Path(staging, "ideep4py").mkdir(parents=True, exist_ok=True)
        Path(staging, "ideep4py", "__init__.py").write_text("")

    def pack(
        self,
        _s: Any,
        _staging: str,
        _abi: str,
        tree: SourceTree,
        _t: Any,
        mkl: Mkl,
        march: March,
        out: str,
        *_: Any,
        **__: Any,
    ):
        self.say("wheel")
        Path(out).mkdir(parents=True, exist_ok=True)
        Path(out, NAME).write_text("a wheel")
        return BuiltWheel(
            f"{out}/{NAME}", NAME, "2.0.0.post3+doctor.v3", "0" * 64, "tag", march.flags, "1.23.2", mkl.kind,
            tree.commit, tree.mkldnn_commit,
        )  # fmt: skip

    def verify(self, _session: Any, wheel: BuiltWheel, *_: Any, source: PackageSource) -> tuple[str, ...]:
        self.say("verify")
        self.sources.append(source)
        assert Path(wheel.path).read_text() == "a wheel"
        assert str(self.folder / "cache" / "build" / "wheel") not in wheel.path
        if self.refuses:
            raise NotPossibleHere("computes nothing")
        return ("smoke: right", "certify: right")


def _with_proof(_system: Any, wheel: BuiltWheel, proof: tuple[str, ...]) -> BuiltWheel:
    Path(wheel.path).write_text("a proved wheel")
    return replace(wheel, proof=proof, sha256="1" * 64)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    for name, double in {
        "provide_tree": made.tree,
        "make_tools": made.tools,
        "build_library": made.library,
        "stand_for_library": made.stand,
        "build_extension": made.extension,
        "pack": made.pack,
        "with_proof": _with_proof,
        "find_compilers": lambda *_: Compilers(None, "g++ 12"),  # type: ignore[arg-type]
    }.items():
        monkeypatch.setattr(pipeline, name, double)
    monkeypatch.setattr(pipeline.mkls, "provide", made.provide)
    monkeypatch.setattr(pipeline.mkls, "place", lambda *_: made.say("place"))
    monkeypatch.setattr(pipeline.mkls, "finish", made.finish)
    monkeypatch.setitem(sys.modules, "ideepdoctor.builder.verify", types.SimpleNamespace(verify=made.verify))  # type: ignore[arg-type]
    return made


def build(world: World, *, lock: Any = "a lock", march: str = "x86-64-v3", work: str = "one", **asked: Any) -> Build:
    system = RealSystem()
    folder = world.folder
    request = BuildRequest("/usr/bin/python3.11", str(folder / "out"), march=march, jobs=2, **asked)
    session = Session(system, {"PATH": "/bin"}, str(folder), Quiet(), lambda _: True, "ideepdoctor build")
    places = Places(str(folder / "cache"), str(folder / "work" / work))
    Path(places.work).mkdir(parents=True, exist_ok=True)
    log = BuildLog(system, str(folder / "logs"))
    return Build(session, request, "cp311", March(march, "v3", ("avx2",)), lock, places, log, Meter(Quiet(), STAGES))


FIRST = ["source", "tools", "mkl", "place", "library", "finish cmake", "extension", "wheel"]


def test_the_stages_in_their_order_and_a_wheel_that_says_that_it_was_proved(world: World) -> None:
    outcome = build(world).run()
    assert world.done == [*FIRST, "verify"]
    assert outcome.from_cache is False
    assert outcome.wheel.path == str(world.folder / "out" / NAME)
    assert Path(outcome.wheel.path).read_text() == "a proved wheel"
    assert outcome.wheel.proof == ("smoke: right", "certify: right") and outcome.wheel.sha256 == "1" * 64
    assert [str(stage) for stage in outcome.seconds] == [
        "source", "tools", "mkl", "library", "extension", "wheel", "verify",
    ]  # fmt: skip


def test_the_same_again_comes_from_the_cache_also_into_another_folder(world: World) -> None:
    first = build(world).run()
    world.done.clear()
    Path(first.wheel.path).unlink()
    again = build(world, work="two").run()
    assert world.done == ["source", "tools", "mkl"]
    assert again.from_cache is True
    assert again.wheel == first.wheel and Path(again.wheel.path).read_text() == "a proved wheel"


def test_fresh_builds_everything(world: World) -> None:
    build(world).run()
    world.done.clear()
    assert build(world, fresh=True).run().from_cache is False
    assert world.done == [*FIRST, "verify"]


def test_what_goes_in_decides_what_is_kept(world: World) -> None:
    build(world).run()
    for change in ({"commit": "e" * 40}, {"mkl": "none"}):
        world.done.clear()
        for name, value in change.items():
            setattr(world, name, value)
        assert build(world, work=str(change)).run().from_cache is False
        assert "library" in world.done
    world.done.clear()
    assert build(world, march="haswell", work="three").run().from_cache is False
    assert "library" in world.done


def test_another_tools_identity_takes_the_library_that_is_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    build(world).run()
    world.done.clear()

    def other(*given: Any) -> Tools:
        return replace(World.tools(world, *given), identity="of another Python")

    monkeypatch.setattr(pipeline, "make_tools", other)
    assert build(world, work="two").run().from_cache is False
    assert world.done == ["source", "tools", "mkl", "place", "stand", "extension", "wheel", "verify"]


def test_a_wheel_that_was_not_proved_is_proved_when_that_is_asked_for(world: World) -> None:
    plain = build(world, lock=None).run()
    assert plain.wheel.proof == () and "verify" not in world.done
    world.done.clear()
    proved = build(world).run()
    assert world.done == ["source", "tools", "mkl", "verify"]
    assert proved.wheel.proof and proved.from_cache is True
    world.done.clear()
    assert build(world, lock=None).run().wheel.proof  # what is proved stays proved
    assert world.done == ["source", "tools", "mkl"]


def test_a_refused_wheel_is_handed_to_nobody_and_kept_nowhere(world: World) -> None:
    world.refuses = True
    with pytest.raises(NotPossibleHere, match="computes nothing"):
        build(world).run()
    assert not (world.folder / "out").exists()
    assert list((world.folder / "cache" / "build" / "wheel").glob("*.json")) == []


@pytest.mark.parametrize("stage", ["source", "tools", "mkl", "library", "extension", "wheel"])
def test_a_stage_that_fails_leaves_no_wheel_and_the_log_has_its_name(world: World, stage: str) -> None:
    world.dies_at = stage
    made = build(world)
    with pytest.raises(BuildFailed, match=stage):
        made.run()
    assert str(made.meter.stage) == stage
    assert not (world.folder / "out").exists()
    assert f"UTC  {stage}\n" in Path(made.log.path).read_text()
    assert not list((world.folder / "cache" / "build").glob("library/*.json")) or stage in ("extension", "wheel")


def test_in_the_old_layout_setup_py_installs_and_without_mkl_finds_ours(world: World) -> None:
    world.layout, world.mkl = Layout.PREPARE, "none"
    build(world, lock=None).run()
    assert world.done[3:] == ["place", "library", "finish prepare", "extension", "finish prepare", "wheel"]
    assert list((world.folder / "cache" / "build").glob("library/*")) == []


def test_everything_that_is_installed_comes_from_where_it_was_asked_for(world: World) -> None:
    asked = PackageSource(find_links=("/wheelhouse",), no_index=True)
    replace(build(world), source=asked).run()
    assert world.sources == [asked, asked, asked]
