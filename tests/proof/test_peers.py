"""Which peers there are, what is asked before much is downloaded, and that no half environment is left."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ideepdoctor.commands.session import Session
from ideepdoctor.errors import ApplyFailed, Busy, CouldNotCheck, DoctorError, NotPossibleHere, UsageError
from ideepdoctor.model.facts import Interpreter
from ideepdoctor.model.plan import CreateEnv, Install, Plan
from ideepdoctor.proof import peer_environments
from ideepdoctor.proof.peer_environments import Recipe, made, make, megabytes, version_of
from ideepdoctor.proof.peers import KINDS, asked_peers, engines, find_peer, recipe_for
from ideepdoctor.stacks.peer_catalog import StandIns, all_peers
from ideepdoctor.system import Completed, RealSystem
from ideepdoctor.treatment.progress import Quiet
from ideepdoctor.treatment.state import locked
from tests.doubles import Call, FakeSystem, completed

MKL = all_peers()["mkl"]


def recipe(peer: str = "mkl", size: int = 50_000_000) -> Recipe:
    lock = replace(MKL.locks[0], download_bytes=size, installed_bytes=1000)
    return Recipe(peer, f"the peer {peer}", lock, sys.executable, "print('checked')")


def is_uv(call: Call) -> bool:
    return "uv" in Path(call.argv[0]).name


@pytest.fixture
def cache(tmp_path: Path) -> str:
    (tmp_path / "peers").mkdir()  # the lock is a real file
    return str(tmp_path)


@pytest.fixture
def system(cache: str) -> FakeSystem:
    """uv succeeds, and what it installed can be imported."""
    checked = f"{recipe().folder(cache)}/bin/python"
    return FakeSystem().on(is_uv, "").on(lambda call: call.argv[0] == checked, "the peer 1.0\n")


def yes(_plan: Plan) -> bool:
    return True


def never(_plan: Plan) -> bool:
    raise AssertionError("asked")


def quiet(_text: str) -> None:
    pass


# ----------------------------------------------------------------------------------------- what the words mean


def test_names_and_interpreters_in_their_order() -> None:
    words = ["mkl", "torch=/some/python", "OPENCV"]
    assert list(asked_peers(words).items()) == [("mkl", None), ("torch", "/some/python"), ("opencv", None)]


@pytest.mark.parametrize(
    ("word", "said", "hint"),
    [
        ("caffe", "Caffe cannot be had here", "bench compare"),
        ("caffe=/some/python", "Caffe cannot be had here", "bench compare"),
        ("tensorflow", "no peer 'tensorflow'", "torch, torch-channels-last, opencv, mkl, ideep-1.0.4"),
        ("", "no peer ''", "torch"),
        ("torch=", "names no interpreter", "torch=/path/to/python"),
    ],
)
def test_what_is_no_peer(word: str, said: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        asked_peers(["mkl", word])
    assert (said in caught.value.message, hint in caught.value.hint) == (True, True)
    assert caught.value.exit_code == 2


def test_a_wrong_name_is_told_before_anything_is_made(tmp_path: Path) -> None:
    system = FakeSystem()
    session = Session(system, {"IDEEPDOCTOR_CACHE_DIR": str(tmp_path)}, "/", Quiet(), lambda _report: True)
    with pytest.raises(UsageError):
        engines(session, ["torch", "nonsense"], "3.7")
    assert system.calls == []


# ----------------------------------------------------------------------------------------- making environments


def test_an_environment_is_made_by_hash_checked_and_marked(system: FakeSystem, cache: str) -> None:
    wanted = recipe()
    found = make(system, [wanted], cache, quiet, never)
    folder = wanted.folder(cache)
    assert found == {"mkl": f"{folder}/bin/python"}
    create, *installs, check = system.commands()
    assert create[-1] == folder and create[create.index("--python") + 1] == sys.executable
    assert installs and all("--require-hashes" in words and "--no-deps" in words for words in installs)
    assert check == (f"{folder}/bin/python", "-B", "-c", "print('checked')")
    listed = system.files[f"{folder}/requirements/all.txt"].decode()
    assert all(item.line() in listed for item in wanted.lock.requirements)
    kinds = [call.kind for call in system.calls if call.path.startswith(folder)]
    # What a killed run has left goes first; the mark comes last.
    assert kinds[0] == "remove_tree"
    assert [call.path for call in system.writes()][-2] == f"{folder}/complete"  # then the note of who holds the lock


def test_one_that_is_there_is_taken_as_it_is(cache: str) -> None:
    wanted, system = recipe(), FakeSystem()
    python = Path(wanted.folder(cache)) / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    assert made(wanted, cache) is None  # not marked: a run that was killed
    (python.parent.parent / "complete").touch()
    assert make(system, [wanted], cache, quiet, never) == {"mkl": str(python)}
    assert system.calls == []
    python.unlink()
    python.symlink_to("/nowhere/python")  # its interpreter was removed since
    assert made(wanted, cache) is None


def test_another_lock_or_interpreter_is_another_environment(cache: str) -> None:
    one = recipe()
    others = [
        replace(one, lock=MKL.locks[1]),
        replace(one, base="/other/python"),
        replace(one, peer="other"),
        replace(one, stand_ins=StandIns("x", "y", (), ("liba.so",))),
    ]
    assert len({each.folder(cache) for each in (one, *others)}) == 5


def failing(call: Call) -> Completed:
    return completed(returncode=1, stderr="ImportError: libfoo.so: cannot open shared object file")


def interrupted(_call: Call) -> Completed:
    raise KeyboardInterrupt


def dying(_call: Call) -> Completed:
    return completed(returncode=-4)


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (failing, ApplyFailed, "cannot open shared object"),
        (interrupted, KeyboardInterrupt, None),
        (dying, ApplyFailed, "signal 4"),
        ("", ApplyFailed, "it says nothing"),
        (completed("late", timed_out=True), ApplyFailed, "no end within"),
    ],
)
def test_what_cannot_be_imported_is_taken_away_again(
    answer: object, error: type[BaseException], said: str | None, cache: str
) -> None:
    folder = recipe().folder(cache)
    system = FakeSystem().on(is_uv, "").on(lambda call: call.argv[0].startswith(folder), answer)
    with pytest.raises(error, match=said):
        make(system, [recipe()], cache, quiet, yes)
    assert [name for name in system.files if name.startswith(folder)] == []
    assert f"{folder}/complete" not in [call.path for call in system.calls]


@pytest.mark.parametrize("step", ["venv", "install"])
@pytest.mark.parametrize("answer", [completed(returncode=2, stderr="error: dns error"), interrupted])
def test_an_installation_that_fails_leaves_nothing(step: str, answer: object, cache: str) -> None:
    folder, error = recipe().folder(cache), KeyboardInterrupt if callable(answer) else CouldNotCheck
    system = FakeSystem().on(lambda call: step in call.argv, answer).on(is_uv, "")
    with pytest.raises(error):
        make(system, [recipe()], cache, quiet, yes)
    assert [name for name in system.files if name.startswith(folder)] == []
    kinds = [(call.kind, call.path) for call in system.writes()]
    assert kinds.count(("remove_tree", folder)) == 2


def test_an_installer_that_outlived_its_doctor_is_waited_for(
    system: FakeSystem, cache: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr("time.sleep", waited.append)
    remove, refusals = system.remove_tree, iter([OSError("not empty"), FileNotFoundError("gone")])

    def refuse(path: str) -> None:
        for error in refusals:
            raise error
        remove(path)

    monkeypatch.setattr(system, "remove_tree", refuse)
    assert make(system, [recipe()], cache, quiet, yes)
    assert len(waited) == 2


def test_a_folder_that_cannot_be_taken_away_is_an_error(cache: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    system = FakeSystem()

    def refuse(_path: str) -> None:
        raise PermissionError("not yours")

    monkeypatch.setattr(system, "remove_tree", refuse)
    with pytest.raises(PermissionError):
        make(system, [recipe()], cache, quiet, yes)
    assert system.commands() == []


def test_a_full_disk_is_told_before_anything_is_fetched(cache: str) -> None:
    system, much = FakeSystem(), recipe()
    much = replace(much, lock=replace(much.lock, installed_bytes=10**18))
    with pytest.raises(CouldNotCheck) as caught:
        make(system, [much], cache, quiet, yes)
    assert "IDEEPDOCTOR_CACHE_DIR" in caught.value.hint
    assert system.commands() == []


def test_two_doctors_do_not_make_one_at_the_same_time(system: FakeSystem, cache: str) -> None:
    with locked(RealSystem(), f"{cache}/peers"), pytest.raises(Busy):
        make(system, [recipe()], cache, quiet, yes)
    assert system.commands() == []


# ----------------------------------------------------------------------------------------- asking


def test_much_is_asked_about_once_with_its_size(cache: str) -> None:
    asked: list[Plan] = []

    def agree(plan: Plan) -> bool:
        asked.append(plan)
        return False

    system = FakeSystem()
    with pytest.raises(UsageError, match="you did not agree") as caught:
        make(system, [recipe("one", 60_000_000), recipe("two", 40_000_000)], cache, quiet, agree)
    assert "--peer one=PYTHON" in caught.value.hint
    assert (len(asked), system.calls) == (1, [])
    assert "downloads 60 MB" in asked[0].title and "downloads 40 MB" in asked[0].title
    assert [type(step) for step in asked[0].steps] == [CreateEnv, Install] * 2


def test_where_nobody_can_be_asked_the_size_is_told(cache: str) -> None:
    def agree(_plan: Plan) -> bool:
        raise UsageError("nobody")

    much = recipe("torch", 536_000_000)
    much = replace(much, lock=replace(much.lock, installed_bytes=1_131_000_000))
    with pytest.raises(UsageError) as caught:
        make(FakeSystem(), [much], cache, quiet, agree)
    assert "536 MB, 1.1 GB installed" in caught.value.message
    assert "--yes" in caught.value.hint and "--peer torch=PYTHON" in caught.value.hint


def test_sizes_for_the_reader() -> None:
    assert [megabytes(size) for size in (88_000_000, 949_000_000, 1_131_000_000)] == ["88 MB", "949 MB", "1.1 GB"]


# ----------------------------------------------------------------------------------------- stand-ins


def test_stand_ins_are_libraries_of_that_name_without_needs(tmp_path: Path) -> None:
    from elftools.elf.elffile import ELFFile

    real = next(
        path
        for path in map(str, Path("/proc/self/maps").read_text().split())
        if "/libc.so" in path or "/libm.so" in path
    )
    folder = tmp_path / "lib" / "python3.11" / "site-packages" / "pack" / "lib"
    folder.mkdir(parents=True)
    needed = tags(ELFFile, Path(real))[1]
    (folder / "model.so").write_bytes(Path(real).read_bytes())
    wanted = StandIns("pack/lib", "model.so", tuple(needed), ("libone.so.1", "libtwo.so.2"))
    peer_environments._put_stand_ins(RealSystem(), wanted, str(tmp_path))
    for name in wanted.names:
        assert tags(ELFFile, folder / name) == ([name], [])
    assert tags(ELFFile, folder / "model.so")[1] == needed


def tags(reader: Callable[..., object], path: Path) -> tuple[list[str], list[str]]:
    """DT_SONAME and DT_NEEDED of a library."""
    with path.open("rb") as stream:
        section = reader(stream).get_section_by_name(".dynamic")  # type: ignore[attr-defined]
        found = list(section.iter_tags())
        names = [tag.soname for tag in found if tag.entry.d_tag == "DT_SONAME"]
        return names, [tag.needed for tag in found if tag.entry.d_tag == "DT_NEEDED"]


# ----------------------------------------------------------------------------------------- which interpreter


def test_an_interpreter_that_was_named_must_have_the_peer() -> None:
    with pytest.raises(UsageError, match="No module named 'torch'") as caught:
        find_peer(RealSystem(), os.environ, "torch", sys.executable)
    assert sys.executable in caught.value.hint
    with pytest.raises(UsageError, match="no such interpreter"):
        find_peer(RealSystem(), os.environ, "torch", "nothing-of-that-name")


def test_one_that_was_named_is_used_and_nothing_is_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(KINDS, "torch", replace(KINDS["torch"], check="print('PyTorch 9.9')"))  # type: ignore[arg-type]
    environ = {**os.environ, "IDEEPDOCTOR_CACHE_DIR": str(tmp_path)}
    session = Session(RealSystem(), environ, "/", Quiet(), lambda _report: False)
    [spec] = engines(session, [f"torch={sys.executable}"])
    assert (spec.id, spec.label, spec.kind, spec.payload) == ("torch", "PyTorch 9.9", "torch", "bench_torch")
    assert spec.target.python == sys.executable
    assert not (tmp_path / "peers").exists()


def interpreter(abi: str) -> Interpreter:
    return Interpreter("/py", "/py", "3", "CPython", abi, 64, "glibc 2.36", "PATH")


@pytest.mark.parametrize(
    ("minor", "there", "python"),
    [
        ("3.7", "cp37m", "3.7"),
        ("2.7", "cp27mu", "2.7"),
        ("3.5", "cp36m", "3.6"),  # nothing for 3.5: the best that there is
        ("3.7", "cp27mu", "2.7"),  # 3.7 was removed since, but its environment is there
        (None, "cp37m", "3.7"),
    ],
)
def test_the_targets_version_is_taken_else_the_best_there_is(
    minor: str | None, there: str, python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def base(_system: object, _environ: object, asked: str | None, abis: list[str]) -> Interpreter:
        assert set(abis) == {abi for lock in MKL.locks for abi in lock.abis}
        if asked is not None and asked.replace(".", "") not in there:
            raise NotPossibleHere("none")
        return interpreter(there)

    monkeypatch.setattr("ideepdoctor.targets.choose.base_for_new_environment", base)
    found = recipe_for(FakeSystem(), {}, "mkl", minor)
    assert (found.lock.python, found.base, found.peer) == (python, "/py", "mkl")
    assert "MKL" in found.label


def test_where_no_python_is_fit_it_says_which_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    def base(*_: object) -> Interpreter:
        raise NotPossibleHere("none", hint="pyenv install 3.7")

    monkeypatch.setattr("ideepdoctor.targets.choose.base_for_new_environment", base)
    with pytest.raises(UsageError, match=r"--peer mkl needs Python 3\.7 or 3\.6 or 2\.7") as caught:
        recipe_for(FakeSystem(), {}, "mkl", "3.7")
    assert caught.value.hint == "pyenv install 3.7"


def test_the_old_ideep_is_the_known_good_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ideepdoctor.targets.choose.base_for_new_environment", lambda *_: interpreter("cp36m"))
    found = recipe_for(FakeSystem(), {}, "ideep-1.0.4", "3.7")
    pins = {item.name: item.version for item in found.lock.requirements}
    assert (pins["ideep4py"], pins["chainer"], found.lock.python) == ("1.0.4", "4.5.0", "3.6")


def test_another_machine_has_no_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(UsageError, match="aarch64") as caught:
        recipe_for(FakeSystem(), {}, "torch", None)
    assert "--peer torch=PYTHON" in caught.value.hint


def test_both_orders_of_pytorch_share_an_environment() -> None:
    one, other = (recipe_for(FakeSystem(), {}, name, None) for name in ("torch", "torch-channels-last"))
    assert one == other
    assert one.stand_ins is not None


def test_versions_are_the_last_line() -> None:
    system = FakeSystem().on("/py", "a banner\nPyTorch 1.4.0\n")
    assert version_of(system, "PyTorch", "/py", "print(1)") == "PyTorch 1.4.0"
    with pytest.raises(DoctorError):
        version_of(FakeSystem(), "PyTorch", "/py", "print(1)")
