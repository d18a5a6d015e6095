"""The command ``build``: what it is asked, what it refuses before it starts, and what it says afterwards."""

from __future__ import annotations

import errno
import json
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ideepdoctor.builder import compare
from ideepdoctor.builder.failure import of_system
from ideepdoctor.builder.pipeline import Build, Outcome
from ideepdoctor.commands import build as command
from ideepdoctor.commands import build_run, build_target
from ideepdoctor.commands.build import BuildOptions
from ideepdoctor.commands.session import Session
from ideepdoctor.commands.source import SourceOptions
from ideepdoctor.errors import BuildFailed, Busy, CouldNotCheck, DoctorError, Interrupted, NotPossibleHere, UsageError
from ideepdoctor.facts import build as looking
from ideepdoctor.model.build import BuildFacts, BuildRequest, BuiltWheel, Layout, March, SourceTree, Stage
from ideepdoctor.model.facts import Interpreter
from ideepdoctor.model.plan import PackageSource
from ideepdoctor.model.summary import summarize
from ideepdoctor.render.json import envelope
from ideepdoctor.stacks import catalog
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.progress import Quiet
from ideepdoctor.treatment.state import locked
from tests.rules.hosts import facts_on

SCHEMA = json.loads((files("ideepdoctor") / "render" / "report.schema.json").read_text("utf-8"))
PYTHON = Interpreter("/py/bin/python", "/py/bin/python3.11", "3.11.7", "CPython", "cp311", 64, "glibc 2.36", "pyenv")
MARCH = March("native", "v4.znver4", ("avx2", "avx512f"))
FINE = BuildFacts(
    compiler="g++ (Debian) 12.2.0",
    compiler_version=(12, 2, 0),
    compiler_works="",
    headers="/py/include",
    git="2.39.5",
    make="4.3",
    cmake="3.18.4.post1",
    swig="3.0.12",
    network="",
    disk_free_bytes=50 << 30,
    memory_bytes=16 << 30,
    jobs=2,
    python_minor="3.11",
    march=MARCH,
    cpu_vendor="AuthenticAMD",
    ref="8800808",
    release="2.0.0.post3",
)


@dataclass
class Scene:
    """What the doubles answer, and what they were asked."""

    folder: Path
    facts: BuildFacts = FINE
    ends: BaseException | None = None
    asked: list[BuildRequest] = field(default_factory=list)
    builds: list[Build] = field(default_factory=list)
    environ: Any = None

    @property
    def session(self) -> Session:
        environ = {
            "PATH": os.environ["PATH"],
            "IDEEPDOCTOR_CACHE_DIR": str(self.folder / "cache"),
            "IDEEPDOCTOR_STATE_DIR": str(self.folder / "state"),
        }
        return Session(
            RealSystem(), environ, str(self.folder), Quiet(), lambda _: True, "ideepdoctor build --fresh --mkl none"
        )

    @property
    def works(self) -> list[Path]:
        return list((self.folder / "cache" / "build" / "work").glob("*"))

    def collected(self, _system: Any, environ: Any, request: BuildRequest, *, facts: Any) -> BuildFacts:
        self.asked.append(request)
        self.environ = environ
        return replace(self.facts, request=request)

    def run(self, made: Build) -> Outcome:
        self.builds.append(made)
        made.meter.begin(Stage.LIBRARY)
        Path(made.places.work, "object.o").write_text("")
        if self.ends is not None:
            raise self.ends
        name = "ideep4py-2.0.0.post3+doctor.v4.znver4-cp311-cp311-linux_x86_64.whl"
        path = Path(made.request.output, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made.request.mkl)
        proof = ("smoke: right",) if made.lock else ()
        wheel = BuiltWheel(
            str(path), name, "2.0.0.post3+doctor.v4.znver4", "0" * 64, "cp311-cp311-linux_x86_64", MARCH.flags,
            "1.23.2", made.request.mkl, "c" * 40, "d" * 40, proof,
        )  # fmt: skip
        tree = SourceTree("/t", "c" * 40, "/t/mkl-dnn", "d" * 40, Layout.CMAKE, "2.0.0.post3", "2.0.0.post3")
        return Outcome(wheel, False, tree, {Stage.LIBRARY: 1.25})


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    made = Scene(tmp_path)
    bare = facts_on("py311-nothing")
    monkeypatch.setattr(command, "interpreter_for", lambda *_: PYTHON)
    monkeypatch.setattr(command, "examine", lambda *_: bare)
    monkeypatch.setattr(looking, "collect_build", made.collected)
    monkeypatch.setattr(Build, "run", lambda self: made.run(self))
    monkeypatch.setattr(catalog, "lock_for_build", lambda *_: ("a stack", "a lock"))
    return made


def build(scene: Scene, **options: Any) -> Any:
    report = command.build(scene.session, BuildOptions(**options))
    jsonschema.validate(json.loads(json.dumps(envelope(report))), SCHEMA)
    return report


def test_a_wheel_is_reported_with_all_that_is_true_of_it(scene: Scene) -> None:
    report = build(scene)
    data = report.extra["build"]
    assert data["wheel"]["path"] == str(scene.folder / "wheelhouse" / data["wheel"]["name"])
    assert data["seconds"] == {"library": 1.2}
    assert data["source"].endswith("/ideep.git") and data["ref"] == "8800808"
    assert Path(data["log"]).is_file() and "ideepdoctor build --fresh --mkl none" in Path(data["log"]).read_text()
    assert report.extra["verdict"].startswith("BUILT: ideep4py-2.0.0.post3+doctor.v4.znver4")
    use = f"use it: ideepdoctor setup --python 3.11 --wheelhouse {scene.folder / 'wheelhouse'}"
    assert report.extra["next"][0] == use
    assert summarize(report).exit_code == 0 and scene.works == []
    assert scene.builds[0].request.jobs == len(facts_on("py311-nothing").limits.affinity_cpus or ())


def test_what_is_not_proved_says_so(scene: Scene) -> None:
    report = build(scene, verify=False)
    assert "NOT PROVED" in report.extra["verdict"] and scene.builds[0].lock is None


def test_a_dry_run_tells_and_makes_nothing(scene: Scene) -> None:
    report = build(scene, dry_run=True, march="x86-64-v3", mkl="none", jobs=5)
    told = "\n".join(report.body)
    for word in ("8800808", "230 processor seconds", "1.5 GB", "x86-64-v3", "5 (by asked)", "wheelhouse"):
        assert word in told
    assert scene.builds == [] and "dry-run" in report.extra["verdict"]
    assert not (scene.folder / "state").exists() and not (scene.folder / "wheelhouse").exists()


def test_what_is_found_before_ends_it_before(scene: Scene) -> None:
    scene.facts = replace(FINE, compiler="", compiler_version=(), compiler_works=None, march=None)
    report = build(scene)
    assert [item.code for item in report.judgement.findings if item.severity == "error"] == ["IDP801"]
    assert summarize(report).exit_code == 1 and report.extra["verdict"] == "nothing was changed"
    assert scene.builds == []


def test_a_source_that_is_kept_needs_no_network(scene: Scene) -> None:
    from ideepdoctor.builder.cache import Store
    from ideepdoctor.builder.trees import source_key

    scene.facts = replace(FINE, network="Could not resolve host")
    assert summarize(build(scene)).exit_code == 3
    store = Store(RealSystem(), str(scene.folder / "cache" / "build"), lambda _: None)
    store.provide("source", str(source_key(scene.asked[0])), lambda _: {})
    assert summarize(build(scene)).exit_code == 0
    assert summarize(build(scene, fresh=True)).exit_code == 3


def test_without_a_network_it_takes_an_archive_and_a_wheelhouse(scene: Scene) -> None:
    scene.facts = replace(FINE, network="the package index cannot be reached", cmake="", swig="")
    for name in ("house", "ideep"):
        (scene.folder / name).mkdir()
    files = SourceOptions(offline=True, wheelhouse="house")
    with pytest.raises(CouldNotCheck, match="was not fetched before"):
        build(scene, files=files)
    assert scene.asked == []  # not even tried
    assert summarize(build(scene, files=files, source="ideep")).exit_code == 1  # no cmake, no swig
    for name in ("cmake-3.18.4.post1-py3-none-any.whl", "swig-3.0.12-py2.py3-none-any.whl"):
        (scene.folder / "house" / name).write_text("")
    report = build(scene, files=files, source="ideep")
    assert summarize(report).exit_code == 0 and scene.environ["UV_OFFLINE"] == "1"
    assert scene.builds[0].source == PackageSource(find_links=(str(scene.folder / "house"),), no_index=True)
    with pytest.raises(CouldNotCheck, match="no wheelhouse"):
        build(scene, files=SourceOptions(wheelhouse="nowhere"))
    # With a network an unreachable index ends it before it begins.
    assert summarize(build(scene, source="ideep")).exit_code == 3


def test_folders_are_those_of_the_person(scene: Scene) -> None:
    (scene.folder / "mine").mkdir()
    build(scene, source="mine", mkl="mine", output="deep/wheels")
    request = scene.asked[0]
    assert request.source == request.mkl == str(scene.folder / "mine")
    assert request.output == str(scene.folder / "deep" / "wheels")
    build(scene, source="https://example.invalid/ideep.git", ref="v1.0.4")
    assert scene.asked[1].source == "https://example.invalid/ideep.git"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mkl": "no/such/folder"}, "there is no folder"),
        ({"mkl": "auto", "verify": False}, "measures what is proved"),
        ({"output": "a-file/out"}, "cannot write to"),
    ],
)
def test_what_cannot_be_is_a_usage_error(scene: Scene, options: dict[str, Any], said: str) -> None:
    (scene.folder / "a-file").write_text("")
    with pytest.raises(UsageError, match=said):
        build(scene, **options)
    assert scene.builds == []


@pytest.mark.parametrize(("name", "odd"), [("my files", "' '"), ("it's", '"\'"'), ("a:b", "':'"), ("$HOME", "'$'")])
def test_a_cache_that_upstream_cannot_work_in_is_refused_at_once(scene: Scene, name: str, odd: str) -> None:
    scene.folder /= name
    scene.folder.mkdir()
    with pytest.raises(UsageError, match="cannot work in") as caught:
        build(scene)
    assert odd in caught.value.message and "IDEEPDOCTOR_CACHE_DIR" in caught.value.hint
    assert scene.asked == [] and list(scene.folder.iterdir()) == []


def test_an_interpreter_without_chainer_is_refused_before_anything_is_built(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise NotPossibleHere("Chainer is not known to run there", hint="use another")

    monkeypatch.setattr(catalog, "lock_for_build", refuse)
    with pytest.raises(NotPossibleHere) as raised:
        build(scene)
    assert "--no-verify" in raised.value.hint and "use another" in raised.value.hint
    assert scene.builds == []
    build(scene, verify=False)


def test_an_interrupted_build_keeps_its_work(scene: Scene) -> None:
    scene.ends = KeyboardInterrupt()
    with pytest.raises(Interrupted) as raised:
        build(scene)
    assert (
        "ideepdoctor build --mkl none" in raised.value.hint
        and "--fresh" not in raised.value.hint
        and raised.value.exit_code == 130
    )
    assert raised.value.context["log"] in raised.value.hint
    [work] = scene.works
    assert (work / "object.o").exists()
    # The same command goes on in the same folder; other jobs and another output are the same build.
    scene.ends = None
    build(scene, jobs=7, output="elsewhere")
    assert scene.builds[1].places.work == str(work) and scene.works == []
    scene.ends = KeyboardInterrupt()
    with pytest.raises(Interrupted):
        build(scene, march="haswell")
    assert scene.works != [work]


@pytest.mark.parametrize(
    ("ends", "kind", "code"),
    [
        (BuildFailed("make: ended with 2"), BuildFailed, 4),
        (OSError(errno.ENOSPC, "No space left on device", "/w/file"), BuildFailed, 4),
        (CouldNotCheck("no network"), CouldNotCheck, 3),
        (NotPossibleHere("computes nothing"), NotPossibleHere, 1),
    ],
)
def test_a_failed_build_leaves_its_log(scene: Scene, ends: Exception, kind: type[DoctorError], code: int) -> None:
    scene.ends = ends
    with pytest.raises(kind) as raised:
        build(scene)
    assert raised.value.exit_code == code and type(raised.value) is kind
    assert Path(raised.value.context["log"]).is_file() and raised.value.context["log"] in raised.value.hint
    assert scene.works == [] and not (scene.folder / "wheelhouse").exists()


def test_a_known_signature_is_named_with_its_cure(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "g++: fatal error: Killed signal terminated program cc1plus"

    def run(made: Build) -> Outcome:
        made._begin(Stage.LIBRARY)
        made.log.write("[ 50%] Building CXX object a.o")
        made.log.write(line)
        raise BuildFailed("MKL-DNN could not be compiled: ended with 2")

    monkeypatch.setattr(Build, "run", run)
    with pytest.raises(BuildFailed) as raised:
        build(scene)
    error = raised.value
    assert line in error.message and "(library)" in error.message
    assert error.context["codes"].split(",")[0] == "IDP811" and "IDP811" in error.hint
    assert "explain --log" in error.hint


def test_without_a_known_signature_the_last_lines_are_shown(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(made: Build) -> Outcome:
        made._begin(Stage.EXTENSION)
        made.log.write("a.cc:3:1: error: 'frobnicate' was not declared in this scope")
        raise BuildFailed("setup.py build_ext failed: ended with 1")

    monkeypatch.setattr(Build, "run", run)
    with pytest.raises(BuildFailed, match="frobnicate") as raised:
        build(scene)
    assert "codes" not in raised.value.context


def test_a_full_disk_and_another_trouble() -> None:
    assert "IDP810" in of_system(OSError(errno.ENOSPC, "No space left on device")).hint
    assert "IDP810" in of_system(OSError(errno.EDQUOT, "Disk quota exceeded")).hint
    assert "IDP810" not in of_system(OSError(errno.EACCES, "Permission denied", "/x")).hint


def test_the_same_build_is_not_run_twice_at_once(scene: Scene) -> None:
    scene.ends = KeyboardInterrupt()
    with pytest.raises(Interrupted):
        build(scene)
    [work] = scene.works
    scene.ends = None
    with locked(RealSystem(), str(scene.folder / "cache" / "build" / "locks" / work.name)):
        with pytest.raises(Busy, match="the same build is running already") as raised:
            build(scene)
        assert raised.value.exit_code == 6 and (work / "object.o").exists()
    build(scene)


def test_a_terminal_that_is_closed_interrupts(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_made: Build) -> Outcome:
        os.kill(os.getpid(), signal.SIGHUP)
        raise AssertionError("it went on")

    monkeypatch.setattr(Build, "run", run)
    before = signal.getsignal(signal.SIGHUP)
    with pytest.raises(Interrupted):
        build(scene)
    assert signal.getsignal(signal.SIGHUP) == before


@pytest.mark.parametrize("better", ["wheel", "none"])
def test_of_both_ways_the_better_one_is_handed_out(scene: Scene, monkeypatch: pytest.MonkeyPatch, better: str) -> None:
    def choose(_session: Any, wheels: dict[str, BuiltWheel], *_: Any, **__: Any) -> tuple[str, str]:
        assert {kind: Path(wheel.path).read_text() for kind, wheel in wheels.items()} == {
            "wheel": "wheel",
            "none": "none",
        }
        return better, "it is better"

    monkeypatch.setattr(compare, "choose", choose)
    data = build(scene, mkl="auto").extra["build"]
    assert Path(data["wheel"]["path"]).read_text() == better
    assert Path(data["wheel"]["path"]).parent == scene.folder / "wheelhouse"
    assert data["choice"] == f"{better}: it is better"
    assert [made.request.mkl for made in scene.builds] == ["wheel", "none"]
    assert list((scene.folder / "cache" / "build" / "auto").glob("*")) == []


def test_of_both_ways_one_may_be_refused_but_not_both(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = scene.run

    def run(made: Build) -> Outcome:
        if made.request.mkl == "wheel":
            raise NotPossibleHere("wrong here")
        return whole(made)

    monkeypatch.setattr(Build, "run", run)
    assert build(scene, mkl="auto").extra["build"]["choice"].startswith("none: the wheel with MKL was not right")
    scene.ends = NotPossibleHere("computes nothing")
    with pytest.raises(NotPossibleHere, match="wrong here"):
        build(scene, mkl="auto")


def test_the_best_interpreter_here_is_one_without_a_ready_wheel(
    scene: Scene, legacy: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = replace(scene.session, environ=os.environ)
    legacy("3.11")
    assert build_target.interpreter_for(session, None).abi == "cp311"
    assert build_target.interpreter_for(session, legacy("3.8")).abi == "cp38"
    assert build_target.interpreter_for(session, legacy("2.7")).abi in ("cp27mu", "cp27m")
    monkeypatch.setattr(build_target, "MINORS", {"cp999": "9.99"})
    with pytest.raises(NotPossibleHere, match="cannot be built for"):
        build_target.interpreter_for(session, legacy("3.8"))
    with pytest.raises(NotPossibleHere, match="no interpreter here"):
        build_target.interpreter_for(session, None)


def test_the_codes_of_builds_are_there() -> None:
    assert {"IDP801", "IDP811"} <= build_run.build_codes()
    assert all(code.startswith("IDP8") for code in build_run.build_codes())
