"""Which interpreter a command is about, and which one a new environment is made from."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ideepdoctor.errors import CouldNotCheck, NotPossibleHere, UsageError
from ideepdoctor.targets.advice import ways_here
from ideepdoctor.targets.choose import base_for_new_environment, resolve
from tests.doubles import CountingSystem, completed, payload_answer
from tests.targets.trees import SHIM, Machine, identity


def chosen(machine: Machine, asked: str | None = None) -> tuple[str, str]:
    """Path below the machine's root, and reason."""
    target = resolve(machine.system, machine.environ, asked)
    return str(Path(target.python).relative_to(machine.root)), target.reason


def base(machine: Machine, asked: str | None = None, abis: list[str] | None = None) -> str:
    return str(
        Path(base_for_new_environment(machine.system, machine.environ, asked, abis).path).relative_to(machine.root)
    )


def with_package(machine: Machine, prefix: str, minor: str, name: str = "chainer", kind: str = "site-packages") -> None:
    (machine.root / prefix / f"lib/python{minor}" / kind / name).mkdir(parents=True)


def test_default_order(machine: Machine) -> None:
    """Everything is there; what was chosen is taken away, again and again."""
    good = machine.python("opt/bin/python3.7")
    machine.python("bin/python3.6", "3.6.15")
    machine.python("bin/python2.7", "2.7.18")
    machine.python("bin/python3.11", "3.11.2")
    machine.python("bin/python3.12", "3.12.1")
    machine.python("conda/bin/python", "3.9.1")
    machine.virtual("venv", good)
    machine.virtual("work/.ideep", good)
    with_package(machine, ".", "2.7")
    with_package(machine, ".", "3.11", "ideep4py")
    machine.environ |= {"VIRTUAL_ENV": str(machine.root / "venv"), "CONDA_PREFIX": str(machine.root / "conda")}
    assert chosen(machine) == ("venv/bin/python", "active virtual environment")
    del machine.environ["VIRTUAL_ENV"]
    assert chosen(machine) == ("conda/bin/python", "active conda environment")
    del machine.environ["CONDA_PREFIX"]
    assert chosen(machine) == ("work/.ideep/bin/python", "./.ideep in the current folder")
    (machine.root / "work/.ideep/pyvenv.cfg").unlink()
    (machine.root / "work/.ideep/bin/python").unlink()
    (machine.root / "work/.ideep/bin/python3").unlink()
    assert chosen(machine) == ("bin/python2.7", "first interpreter on PATH that has chainer")
    shutil.rmtree(machine.root / "lib/python2.7")
    assert chosen(machine) == ("bin/python3.11", "first interpreter on PATH that has ideep4py")
    shutil.rmtree(machine.root / "lib")
    path, reason = chosen(machine)
    assert path == "bin/python3.6" and reason.startswith("best interpreter for a new environment")
    (machine.root / "bin/python3.6").unlink()
    (machine.root / "bin/python2.7").unlink()
    path, reason = chosen(machine)
    assert path == "bin/python3.12" and reason.startswith("newest interpreter found")
    (machine.root / "bin/python3.12").unlink()
    (machine.root / "bin/python3.11").unlink()
    with pytest.raises(NotPossibleHere, match="there is none"):
        resolve(machine.system, machine.environ, None)


def test_the_doctors_own_environment_is_not_the_target(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    good = machine.python("bin/python3.7")
    machine.virtual("own", good)
    machine.python("conda/bin/python", "3.9.1")
    monkeypatch.setattr(sys, "prefix", str(machine.root / "own"))
    machine.environ["VIRTUAL_ENV"] = str(machine.root / "own")
    assert chosen(machine)[0] == "bin/python3.7"
    machine.environ["CONDA_PREFIX"] = str(machine.root / "conda")
    assert chosen(machine) == ("conda/bin/python", "active conda environment")


def test_an_active_environment_that_is_broken_is_said_in_the_reason(machine: Machine) -> None:
    machine.python("bin/python3.7")
    machine.link("env/bin/python", "/nowhere/python3.7")
    machine.environ["VIRTUAL_ENV"] = str(machine.root / "env")
    path, reason = chosen(machine)
    assert path == "bin/python3.7"
    assert reason.endswith(f"(VIRTUAL_ENV names {machine.root / 'env'}, which holds no working Python)")


@pytest.mark.parametrize(
    ("folder", "minor", "kind"),
    [
        ("home/.local", "3.6", "site-packages"),
        ("local", "3.6", "dist-packages"),
        (".", "3.6", "dist-packages"),
    ],
)
def test_where_packages_are_looked_for(machine: Machine, folder: str, minor: str, kind: str) -> None:
    machine.python("bin/python3.6", "3.6.15")
    machine.python("bin/python3.7")
    with_package(machine, folder, minor, kind=kind)
    assert chosen(machine) == ("bin/python3.6", "first interpreter on PATH that has chainer")


def test_looking_for_packages_starts_only_the_one_that_has_them(machine: Machine) -> None:
    for minor in ("3.6", "3.7", "3.8"):
        machine.python(f"bin/python{minor}", f"{minor}.1")
    with_package(machine, ".", "3.8")
    (machine.root / "lib/python3.8/site-packages/ideep4py").mkdir()
    assert chosen(machine) == ("bin/python3.8", "first interpreter on PATH that has chainer and ideep4py")
    assert machine.started() == {str(machine.root / "bin/python3.8")}


def test_one_with_chainer_that_does_not_answer_is_passed_over(machine: Machine) -> None:
    machine.file("bin/python3.6")
    with_package(machine, ".", "3.6")
    machine.python("home/.pyenv/versions/3.8.18/bin/python3.8", "3.8.18")
    python = machine.link("home/.pyenv/versions/3.8.18/bin/python", "python3.8")
    machine.system.on(str(python), payload_answer(identity(python, "3.8.18")))
    with_package(machine, "home/.pyenv/versions/3.8.18", "3.8")
    assert chosen(machine) == (
        "home/.pyenv/versions/3.8.18/bin/python",
        "first interpreter found (pyenv) that has chainer",
    )


def test_asked_by_path_folder_home_and_command(machine: Machine) -> None:
    good = machine.python("opt/bin/python3.7")
    machine.virtual("work/env", good)
    machine.python("home/py/bin/python", "3.6.15")
    machine.python("bin/mine", "3.6.15")
    machine.python("bin/python3", "3.9.1")
    machine.python("bin/python3.13", "3.13.0")
    assert chosen(machine, str(good)) == ("opt/bin/python3.7", f"asked for: {good}")
    assert chosen(machine, "../opt/bin/python3.7")[0] == "opt/bin/python3.7"
    assert chosen(machine, "env")[0] == chosen(machine, "./env/")[0] == "work/env/bin/python"
    assert chosen(machine, "env/bin/python3")[0] == "work/env/bin/python3"
    assert chosen(machine, "~/py")[0] == "home/py/bin/python"
    assert chosen(machine, "mine")[0] == "bin/mine"
    assert chosen(machine, "python3")[0] == "bin/python3"


def test_asked_by_version_takes_the_newest_match(machine: Machine) -> None:
    machine.python("bin/python3.7", "3.7.9")
    machine.python("home/.pyenv/versions/3.7.16/bin/python", "3.7.16")
    machine.python("home/.pyenv/versions/pypy/bin/python", "3.7.17", implementation="PyPy", abi="pp37")
    machine.python("home/.pyenv/versions/3.13.0rc1/bin/python", "3.13.0rc1")
    machine.python("home/.pyenv/versions/3.13.0t/bin/python", "3.13.0", abi="cp313t")
    for asked in ("3.7", "python3.7", "3.7.16", "cpython-3.7"):
        assert chosen(machine, asked)[0] == "home/.pyenv/versions/3.7.16/bin/python"
    assert chosen(machine, "3.7.9")[0] == "bin/python3.7"
    assert chosen(machine, "pypy3.7")[0] == "home/.pyenv/versions/pypy/bin/python"
    assert chosen(machine, "3")[0] == chosen(machine, "3.13.0rc1")[0] == "home/.pyenv/versions/3.13.0rc1/bin/python"
    assert chosen(machine, "3.13t")[0] == "home/.pyenv/versions/3.13.0t/bin/python"
    with pytest.raises(UsageError, match=r"no Python 3\.1 was found"):  # 3.13 is no 3.1
        resolve(machine.system, machine.environ, "3.1")


def test_of_equal_versions_the_active_environment_then_the_base(machine: Machine) -> None:
    good = machine.python("opt/bin/python3.7")
    machine.virtual("env", good)
    machine.environ["PATH"] = f"{machine.root / 'env/bin'}:{machine.root / 'opt/bin'}"
    assert chosen(machine, "3.7")[0] == "opt/bin/python3.7"
    machine.environ["VIRTUAL_ENV"] = str(machine.root / "env")
    assert chosen(machine, "3.7")[0] == "env/bin/python"


def test_a_shim_that_was_asked_for_is_followed_once(machine: Machine) -> None:
    real = machine.python("p/versions/3.7.16/bin/python3.7")
    shim = machine.file("p/shims/python3.7", SHIM)
    machine.system.on(str(shim), payload_answer(identity(real)))
    broken = machine.file("p/shims/python3.6", SHIM)
    machine.system.on(str(broken), completed(returncode=127, stderr="pyenv: python3.6: command not found\n"))
    assert chosen(machine, str(shim))[0] == "p/versions/3.7.16/bin/python3.7"
    with pytest.raises(UsageError, match=r"is not a Python: it printed 'pyenv: python3.6: command not found'"):
        resolve(machine.system, machine.environ, str(broken))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("nope", "'nope' is no file or folder here, no version and not on PATH"),
        ("", "no such interpreter: ''"),
        ("./nope", "/work/nope does not exist"),
        ("4.2", "no Python 4.2 was found (asked for: 4.2)"),
        ("pypy3.7", "no PyPy 3.7 was found"),
        ("../home", "/home is a folder but holds no bin/python: not an environment"),
        ("../dangling", "is a link to /nowhere/python, not there"),
        ("../broken", "/broken is a broken environment: its bin/python is a link to /nowhere/python3.7, not there"),
        ("../text", "/text is not an interpreter: it is not an executable file"),
        ("../talker", "/talker is not a Python: it printed 'hello'"),
        ("../mute", "/mute is not a Python: it printed nothing"),
        ("../crash", "/crash is not a Python: it printed 'libpython3.7m.so.1.0: cannot open'"),
        ("../elsewhere", "/elsewhere could not be started: Exec format error"),
        ("../text/bin/python", "cannot be looked at: Not a directory"),
    ],
)
def test_asked_for_what_is_no_python(machine: Machine, asked: str, message: str) -> None:
    machine.python("bin/python3.11", "3.11.2")
    machine.link("dangling", "/nowhere/python")
    machine.link("broken/bin/python", "/nowhere/python3.7")
    machine.file("text", mode=0o644)
    machine.system.on(str(machine.file("talker")), "\nhello\nworld\n")
    machine.system.on(str(machine.file("mute")), completed())
    machine.system.on(str(machine.file("crash")), completed(returncode=127, stderr="libpython3.7m.so.1.0: cannot open"))
    machine.system.on(str(machine.file("elsewhere")), OSError("Exec format error"))
    with pytest.raises(UsageError) as raised:
        resolve(machine.system, machine.environ, asked)
    assert message in raised.value.message
    assert raised.value.hint.splitlines() == [
        "interpreters found here:",
        f"  CPython 3.11.2 (cp311) {machine.root / 'bin/python3.11'}",
    ]


def test_asked_in_a_deleted_folder(machine: Machine) -> None:
    machine.python("bin/python3.7")
    (machine.root / "work").rmdir()
    assert chosen(machine, "3.7")[0] == chosen(machine)[0] == "bin/python3.7"
    with pytest.raises(UsageError, match="the current folder has been deleted"):
        resolve(machine.system, machine.environ, "./env")


def test_one_that_hangs_could_not_be_checked(machine: Machine) -> None:
    machine.system.on(str(machine.file("slow")), completed(timed_out=True, returncode=-9))
    with pytest.raises(CouldNotCheck, match="did not answer within"):
        resolve(machine.system, machine.environ, "../slow")


def test_under_an_emulator(machine: Machine) -> None:
    python = machine.python("bin/python3.7")
    words = ("qemu-x86_64", "-cpu", "Haswell")
    machine.system.on([*words, str(python)], payload_answer(identity(python)))
    for asked in (None, "3.7", str(python)):
        target = resolve(machine.system, machine.environ, asked, emulator=words)
        assert target.argv("-c", "pass") == [*words, str(python), "-c", "pass"]
        assert (*words, str(python)) in [argv[:4] for argv in machine.system.commands()]
        with pytest.raises(CouldNotCheck, match="could not be started"):
            resolve(machine.system, machine.environ, asked, emulator=["no-such-emulator"])


def test_best_base(machine: Machine) -> None:
    """3.7, 3.6, 2.7, 3.5: what was chosen is taken away, again and again."""
    machine.python("bin/python3.5", "3.5.10")
    machine.python("bin/python2.7", "2.7.18")
    machine.python("bin/python3.6", "3.6.15")
    machine.python("bin/python3.11", "3.11.2")
    machine.python("home/.pyenv/versions/3.7.9/bin/python", "3.7.9")
    machine.python("home/.pyenv/versions/3.7.16/bin/python", "3.7.16")
    machine.python("home/.pyenv/versions/32/bin/python", "3.7.17", bits=32)
    machine.python("home/.pyenv/versions/musl/bin/python", "3.7.17", libc="musl")
    machine.python("home/.pyenv/versions/arm/bin/python", "3.7.17", platform="linux-aarch64")
    machine.python("home/.pyenv/versions/pypy/bin/python", "3.7.17", implementation="PyPy", abi="pp37")
    machine.python("home/.pyenv/versions/debug/bin/python", "3.7.17", abi="cp37dm")
    order = []
    for _ in range(5):
        path = base(machine)
        order.append(path)
        (machine.root / path).unlink()
    assert order == [
        "home/.pyenv/versions/3.7.16/bin/python",
        "home/.pyenv/versions/3.7.9/bin/python",
        "bin/python3.6",
        "bin/python2.7",
        "bin/python3.5",
    ]
    with pytest.raises(NotPossibleHere, match="none of the 6 found has an ideep4py wheel"):
        base(machine)


def test_of_an_environment_the_base_is_taken(machine: Machine) -> None:
    good = machine.python("opt/bin/python3.7")
    machine.virtual("env", good)
    machine.environ["VIRTUAL_ENV"] = str(machine.root / "env")
    assert base(machine) == base(machine, "../env") == base(machine, "3.7") == "opt/bin/python3.7"
    machine.environ["PATH"] = f"{machine.root / 'opt/bin'}:{machine.environ['PATH']}"
    assert base(machine) == "opt/bin/python3.7"


def test_an_environment_whose_base_is_lost_is_taken_last(machine: Machine) -> None:
    lost = machine.python("env/bin/python", "3.7.17", base_prefix="/nowhere")
    machine.file("env/pyvenv.cfg", "", 0o644)
    machine.environ["VIRTUAL_ENV"] = str(machine.root / "env")
    assert base(machine) == base(machine, str(lost)) == "env/bin/python"
    machine.python("bin/python3.7", "3.7.9")
    assert base(machine) == "bin/python3.7"


def test_pypy_is_refused_for_what_it_is(machine: Machine) -> None:
    python = machine.python("bin/pypy3", "3.7.13", implementation="PyPy", abi="pp37")
    with pytest.raises(NotPossibleHere, match="it is PyPy, and the wheels are for CPython"):
        base(machine, str(python))


def test_wanted_abis_decide(machine: Machine) -> None:
    machine.python("bin/python3.7")
    machine.python("bin/python3.6", "3.6.15")
    machine.python("bin/python2.7", "2.7.18")
    assert base(machine, None, ["cp27mu", "cp36m"]) == "bin/python3.6"
    assert base(machine, None, ["cp27mu"]) == "bin/python2.7"
    with pytest.raises(NotPossibleHere) as raised:
        base(machine, "3.7", ["cp27mu", "cp36m"])
    assert "what was asked for is not known to work on it" in raised.value.message
    assert raised.value.hint.splitlines() == [
        "needed: CPython 2.7 or 3.6, 64-bit, with glibc, on Linux x86_64",
        f"nearest usable interpreter: Python 3.6.15 at {machine.root / 'bin/python3.6'}",
        "use it: ideepdoctor setup --python 3.6",
    ]


def test_a_suitable_match_wins_over_a_newer_one(machine: Machine) -> None:
    machine.python("bin/python3.7")
    machine.python("bin/python3.11", "3.11.2")
    assert base(machine, "3") == "bin/python3.7"
    assert chosen(machine, "3")[0] == "bin/python3.11"


def test_asked_for_a_python_without_a_wheel(machine: Machine) -> None:
    python = machine.python("bin/python3.11", "3.11.2")
    machine.python("bin/python3.7")
    for asked in ("3.11", str(python)):
        with pytest.raises(NotPossibleHere) as raised:
            base(machine, asked)
        expected = f"CPython 3.11.2 (cp311) at {python} cannot hold iDeep: no ideep4py wheel exists for cp311"
        assert raised.value.message == expected
        *_, use, without, build = raised.value.hint.splitlines()
        assert use == "use it: ideepdoctor setup --python 3.7"
        assert without == "or without another Python, ideep4py built for one that is here:"
        assert build.startswith("  ideepdoctor setup --build --python 3.11   (about ")


def advice(machine: Machine, asked: str | None = None) -> str:
    with pytest.raises((NotPossibleHere, UsageError)) as raised:
        base(machine, asked)
    return raised.value.hint


def test_ways_name_only_tools_that_are_there(machine: Machine) -> None:
    machine.python("bin/python3.11", "3.11.2")
    assert "ways to get" not in advice(machine)
    assert "to get Python 3.7, install one of these: micromamba, mamba or conda" in advice(machine)
    machine.file("bin/docker")
    machine.file("bin/pyenv")
    machine.file("bin/conda")
    shown = [line.partition("   (about")[0] for line in advice(machine).splitlines()]
    assert shown == [
        "needed: CPython 2.7, 3.5, 3.6 or 3.7, 64-bit, with glibc, on Linux x86_64",
        "interpreters found here:",
        f"  CPython 3.11.2 (cp311) {machine.root / 'bin/python3.11'}",
        "ways to get Python 3.7, least effort first:",
        "  ideepdoctor setup --get-python conda   (conda create python=3.7, a ready one: about 2 min, 60 MB to "
        "download, 250 MB on disk)",
        "  ideepdoctor setup --get-python pyenv   (pyenv install 3.7.17 compiles it: about 5 min, 20 MB to download, "
        "200 MB on disk)",
        "  docker run -it python:3.7 bash",
        "(uv cannot help: the oldest CPython that it offers is 3.8)",
        "or without another Python, ideep4py built for one that is here:",
        "  ideepdoctor setup --build --python 3.11",
    ]
    machine.file("bin/micromamba")
    assert "  ideepdoctor setup --get-python conda   (micromamba create python=3.7, " in advice(machine)
    machine.environ["PYENV_ROOT"] = str(machine.root / "p")
    for name in ("3.7.2", "3.7.16", "3.7-dev", "3.6.99"):
        machine.file(f"p/plugins/python-build/share/python-build/{name}")
    assert "(pyenv install 3.7.16 compiles it" in advice(machine)
    assert ways_here(machine.environ, "3.6")[1].release == "3.6.99"


def test_how_to_get_the_version_that_was_asked_for(machine: Machine) -> None:
    machine.python("bin/python3.7")
    machine.file("bin/pyenv")
    assert "pyenv install 3.6.15" in advice(machine, "3.6")
    assert "use it: ideepdoctor setup --python 3.7" in advice(machine, "3.6")
    assert "pyenv install" not in advice(machine, "3.14")
    assert "use it: ideepdoctor setup --python 3.7" in advice(machine, "3.14")


def test_the_build_is_for_what_chainer_needs_no_help_on(machine: Machine) -> None:
    machine.python("bin/python3.13", "3.13.0")
    assert "setup --build --python 3.13 " in advice(machine)
    machine.python("bin/python3.9", "3.9.18")
    machine.python("bin/python3.10", "3.10.13")
    assert "setup --build --python 3.10 " in advice(machine)
    assert "setup --build --python 3.9 " in advice(machine, "3.9"), "what was asked for comes first"
    assert "setup --build --python 3.10 " in advice(machine, "3.7"), "it is not here"


def test_no_build_for_a_python_that_chainer_is_not_locked_for(machine: Machine) -> None:
    machine.python("bin/python3.14", "3.14.0")
    machine.python("bin/pypy3.9", "3.9.18", implementation="PyPy")
    assert "--build" not in advice(machine)


def test_ways_where_no_build_for_glibc_would_run(machine: Machine) -> None:
    machine.python("bin/python3.11", "3.11.2", libc="musl")
    for tool in ("conda", "pyenv", "podman"):
        machine.file(f"bin/{tool}")
    text = advice(machine)
    assert "podman run -it python:3.7" in text and "--get-python" not in text and "pyenv install" not in text
    assert "--build" not in text


def test_no_way_on_another_processor(machine: Machine) -> None:
    machine.python("bin/python3.11", "3.11.2", platform="linux-aarch64")
    machine.file("bin/conda")
    text = advice(machine)
    assert "the wheels are for Linux x86_64, and this is linux-aarch64" in text and "--get-python" not in text
    assert "--build" not in text


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7"])
def test_real_interpreters_can_be_asked_for(legacy: Callable[[str], str], version: str) -> None:
    python = legacy(version)
    made = base_for_new_environment(CountingSystem(), os.environ, version)
    assert made.version.startswith(f"{version}.") and made.bits == 64
    assert base_for_new_environment(CountingSystem(), os.environ, python).path == python
    assert resolve(CountingSystem(), os.environ, str(Path(python).parent.parent)).python.startswith(
        str(Path(python).parent)
    )
