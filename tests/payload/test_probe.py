"""The probe, really run: under every interpreter found, and where the user's folders and modules are hostile."""

from __future__ import annotations

import ast
import base64
import functools
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ideepdoctor.facts.collect import BARE, collect, read_facts
from ideepdoctor.facts.cpu import parse_cpuid, parse_cpuinfo
from ideepdoctor.model.facts import Facts
from ideepdoctor.system import RealSystem
from ideepdoctor.targets.target import Target, payload_source, run_payload
from tests.conftest import installed_interpreters, legacy_python

SOURCE = payload_source("probe").decode("ascii")
ABIS = {
    "2.7": ("cp27mu", "cp27m"),
    "3.6": ("cp36m",),
    "3.7": ("cp37m",),
    "3.8": ("cp38",),
    "3.9": ("cp39",),
    "3.10": ("cp310",),
    "3.11": ("cp311",),
    "3.12": ("cp312",),
    "3.13": ("cp313", "cp313t"),
}


def plain_environ(**more: str) -> dict[str, str]:
    """The environment of a user who has set nothing but this."""
    return {"PATH": os.defpath, "HOME": "/nonexistent", "LANG": "C.UTF-8", **more}


def probed(
    python: str | Path,
    *,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    emulator: tuple[str, ...] = (),
    quick: bool = False,
    child_seconds: float | None = None,
) -> Facts:
    """The facts of an interpreter."""
    return collect(
        RealSystem(),
        Target(str(python), emulator=emulator),
        environ or plain_environ(),
        BARE if quick else replace(BARE, imports=True),
        cwd="/" if cwd is None else str(cwd),
        child_seconds=child_seconds,
    )


class Environment:
    """A virtual environment of this very Python with made-up packages."""

    def __init__(self, folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        self.folder = folder
        self.python = folder / "bin" / "python"
        self.scripts = folder / "bin"
        self.packages = next(folder.glob("lib/python*/site-packages"))

    def module(self, name: str, source: str) -> Path:
        """Put a module there."""
        path = self.packages / f"{name}.py"
        path.write_text(textwrap.dedent(source))
        return path


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """See ``Environment``."""
    return Environment(tmp_path / "environment")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """An empty folder to start Python in."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def probe() -> Iterator[ModuleType]:
    """The payload as a module, for its pure functions."""
    before = list(sys.path)
    spec = importlib.util.spec_from_loader("probe_under_test", loader=None)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    exec(compile(SOURCE, "probe.py", "exec"), module.__dict__)
    yield module
    sys.path[:] = before


def modules(facts: Facts) -> dict[str, str]:
    """Source by name of the shadowing modules."""
    return {shadow.module: shadow.source for shadow in facts.shadows}


# Every interpreter


@pytest.mark.parametrize("version", ABIS)
def test_every_interpreter_answers(version: str, tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('taken')")
    python = legacy_python(version)
    facts = probed(python, cwd=tmp_path)
    assert facts.python.abi in ABIS[version]
    assert facts.python.minor == version
    assert facts.python.bits == 64
    assert facts.python.implementation == "CPython"
    assert facts.python.real_path == os.path.realpath(python)
    assert facts.python.prefix == facts.python.base_prefix
    assert facts.python.purelib and facts.python.purelib.startswith(facts.python.prefix)
    assert facts.cpu.cpuid_flags and facts.cpu.emulated is False
    assert facts.platform.libc in ("glibc", "musl")
    assert facts.limits.affinity_cpus == tuple(sorted(os.sched_getaffinity(0)))
    assert facts.imports is not None and set(facts.imports) >= {"numpy", "ideep4py", "chainer"}
    assert facts.imports["ideep4py"].error_type in ("ImportError", "ModuleNotFoundError")
    assert facts.first_op is None


@pytest.mark.parametrize("version", ["2.7", "3.7", "3.13"])
def test_the_probe_itself_takes_nothing_from_the_current_folder(
    version: str, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(elsewhere)
    for name in ("json", "ast", "base64", "csv", "re", "struct", "subprocess", "ctypes", "mmap", "resource"):
        (elsewhere / f"{name}.py").write_text("raise SystemExit('taken')")
    facts = probed(legacy_python(version), cwd=elsewhere, quick=True)
    assert facts.python.minor == version
    assert facts.cpu.cpuid_flags, "the child that reads CPUID needs ctypes and mmap"


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7"])
def test_deaths_are_told_apart_on_old_interpreters(version: str, tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("import os; os.abort()")
    (tmp_path / "ideep4py.py").write_text("import os; os._exit(0)")
    (tmp_path / "chainer.py").write_text("# coding: utf-8\nraise ValueError(u'caf\\xe9')")
    facts = probed(legacy_python(version), environ=plain_environ(PYTHONPATH=str(tmp_path)))
    assert facts.imports is not None
    assert facts.imports["numpy"].signal == "SIGABRT"
    assert (facts.imports["ideep4py"].ok, facts.imports["ideep4py"].exit_code) == (False, 0)
    assert facts.imports["chainer"].error_type == "ValueError"
    assert "caf" in (facts.imports["chainer"].error_text or "")
    assert facts.imports["chainer"].signal is None


@pytest.mark.parametrize(
    ("model", "has", "lacks"),
    [("Haswell", {"avx", "avx2", "fma"}, {"avx512f", "sse4a"}), ("Nehalem", {"sse4_2"}, {"avx", "avx2", "aes"})],
)
def test_emulated_processor_is_seen_from_inside(model: str, has: set[str], lacks: set[str]) -> None:
    qemu = shutil.which("qemu-x86_64")
    if qemu is None:
        pytest.skip("qemu-x86_64 is not installed")
    emulator = (qemu, "-cpu", model)
    target = Target(legacy_python("3.7"), emulator=emulator)
    answer = run_payload(RealSystem(), target, "probe", {"phase": "static"}, timeout_seconds=120, env=plain_environ())
    host = parse_cpuid(answer["host_cpuid"])
    assert host is not None and host.vendor == parse_cpuinfo(answer["machine"]["cpuinfo"]).vendor
    assert host.hypervisor != "TCGTCGTCGTCG", "read outside the emulator"
    facts = read_facts(answer, target, quick=True)
    assert facts.cpu.emulated is True
    assert facts.cpu.cpuid_vendor == "GenuineIntel"
    assert facts.cpu.model_name and model in facts.cpu.model_name
    assert facts.cpu.flags is not None
    assert has <= facts.cpu.flags and not lacks & facts.cpu.flags
    assert facts.cpu.hypervisor == "TCGTCGTCGTCG"


# The user's folders


def test_modules_of_the_current_folder_shadow(environment: Environment, elsewhere: Path) -> None:
    environment.module("numpy", "__version__ = '1'")
    environment.module("chainer", "import json")
    (elsewhere / "numpy.py").write_text("__version__ = '0.evil'")
    (elsewhere / "json.py").write_text("print('garbage ' * 1000)")
    (elsewhere / "turtle.py").write_text("")  # of the standard library, but nobody imports it
    (elsewhere / "helper.py").write_text("")
    facts = probed(environment.python, cwd=elsewhere)
    assert facts.imports is not None
    assert facts.imports["numpy"].version == "0.evil"
    assert modules(facts) == {"numpy": "current folder", "json": "current folder"}
    assert {shadow.path for shadow in facts.shadows} == {str(elsewhere / "numpy.py"), str(elsewhere / "json.py")}


@pytest.mark.parametrize("text", ["raise RuntimeError('no')", "this is no Python", "import os; os._exit(3)"])
def test_a_shadow_that_fails_is_named(environment: Environment, elsewhere: Path, text: str) -> None:
    environment.module("chainer", "import json")
    (elsewhere / "json.py").write_text(text)
    facts = probed(environment.python, cwd=elsewhere)
    assert facts.imports is not None and not facts.imports["chainer"].ok
    assert modules(facts) == {"json": "current folder"}


def test_the_current_folder_counts_only_where_python_looks_there(environment: Environment, elsewhere: Path) -> None:
    (elsewhere / "numpy.py").write_text("")
    assert modules(probed(environment.python, cwd=elsewhere)) == {"numpy": "current folder"}
    facts = probed(environment.python, cwd=elsewhere, environ=plain_environ(PYTHONSAFEPATH="1"))
    assert modules(facts) == {}


@pytest.mark.parametrize("quick", [True, False])
def test_numpy_on_pythonpath_shadows_one_of_the_environment_alone(
    environment: Environment, elsewhere: Path, quick: bool
) -> None:
    (elsewhere / "numpy").mkdir()
    (elsewhere / "numpy" / "__init__.py").write_text("__version__ = '9'")
    environ = plain_environ(PYTHONPATH=str(elsewhere))
    assert modules(probed(environment.python, environ=environ, quick=quick)) == {}
    environment.module("numpy", "__version__ = '1'")
    facts = probed(environment.python, environ=environ, quick=quick)
    assert modules(facts) == {"numpy": "PYTHONPATH"}
    assert facts.shadows[0].path == str(elsewhere / "numpy" / "__init__.py")


def test_user_site_shadows_what_the_installation_has(tmp_path: Path) -> None:
    for found in installed_interpreters():
        base = probed(found.place.path, quick=True)
        if base.python.kind != "venv" and base.package("numpy") and base.python.purelib:
            break
    else:
        pytest.skip("no interpreter here has a numpy of its own")
    user = tmp_path / "lib" / f"python{base.python.minor}" / "site-packages"
    user.mkdir(parents=True)
    (user / "numpy.py").write_text("__version__ = 'user'")
    (user / "other.py").write_text("")
    facts = probed(base.python.executable, environ=plain_environ(PYTHONUSERBASE=str(tmp_path)))
    assert facts.python.user_site == str(user)
    assert facts.imports is not None and facts.imports["numpy"].version == "user"
    assert modules(facts) == {"numpy": "user site"}


def test_user_site_may_have_what_the_installation_lacks(tmp_path: Path) -> None:
    user = tmp_path / "lib" / "python3.7" / "site-packages"
    user.mkdir(parents=True)
    (user / "ideep4py.py").write_text("__version__ = 'user'")
    facts = probed(legacy_python("3.7"), environ=plain_environ(PYTHONUSERBASE=str(tmp_path)))
    assert facts.imports is not None and facts.imports["ideep4py"].version == "user"
    assert modules(facts) == {}


@pytest.mark.parametrize("way", ["cwd", "PYTHONPATH"])
def test_the_installations_own_folders_hide_nothing(environment: Environment, way: str) -> None:
    environment.module("numpy", "import json")
    stdlib = Path(os.__file__).parent
    for folder in (environment.packages, stdlib):
        environ = plain_environ(PYTHONPATH=str(folder)) if way == "PYTHONPATH" else None
        assert modules(probed(environment.python, cwd=folder, environ=environ)) == {}


def test_a_folder_that_is_gone(environment: Environment, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(elsewhere)
    elsewhere.rmdir()
    facts = probed(environment.python, cwd=elsewhere)
    assert facts.imports is not None
    assert facts.imports["numpy"].error_type == "ModuleNotFoundError"
    assert facts.shadows == ()


# Hostile modules


def test_a_talkative_start_up_file_cannot_corrupt_the_answer(environment: Environment) -> None:
    environment.module("sitecustomize", "print('{\"probe\": 1}' * 100, flush=True)")
    environment.module("numpy", "import sys; sys.stdout.write('x' * 3000000); __version__ = '7'")
    facts = probed(environment.python)
    assert facts.imports is not None
    assert (facts.imports["numpy"].ok, facts.imports["numpy"].version) == (True, "7")


def test_a_hang_is_cut_short_and_harms_no_other(environment: Environment) -> None:
    environment.module("numpy", "import time; time.sleep(600)")
    environment.module("chainer", "__version__ = '7'")
    facts = probed(environment.python, child_seconds=4)
    assert facts.imports is not None
    assert facts.imports["numpy"].timed_out and not facts.imports["numpy"].ok
    assert facts.imports["numpy"].signal is None
    assert facts.imports["chainer"].ok


def test_a_hang_in_a_grandchild_that_holds_the_pipe(environment: Environment) -> None:
    environment.module("numpy", "import subprocess; subprocess.Popen(['sleep', '20'])")
    answer = run_payload(
        RealSystem(),
        Target(str(environment.python)),
        "probe",
        {"phase": "full", "timeout_seconds": 15},
        timeout_seconds=90,
        env=plain_environ(),
    )
    assert answer["imports"]["numpy"]["told"]["import"]["ok"]
    assert answer["imports"]["numpy"]["ended"] | {"seconds": 0} == {
        "code": 0,
        "timed_out": False,
        "problem": None,
        "seconds": 0,
    }


def test_module_that_exits_closes_or_replaces(environment: Environment) -> None:
    environment.module("numpy", "import sys; sys.exit('bye')")
    environment.module("ideep4py", "import os, sys; os.close(1); os.close(2); sys.stderr = None; __version__ = '2'")
    environment.module("chainer", "import warnings; warnings.warn('beware'); __version__ = '7'")
    facts = probed(environment.python)
    assert facts.imports is not None
    assert (facts.imports["numpy"].error_type, facts.imports["numpy"].error_text) == ("SystemExit", "bye")
    assert facts.imports["ideep4py"].ok
    assert facts.imports["chainer"].warnings == ("UserWarning: beware",)
    assert facts.chainer is not None and "chainer.backends" in (facts.chainer.ideep_reason or "")


def test_standard_error_holds_the_users_frames_alone(environment: Environment) -> None:
    path = environment.module("numpy", "def inner():\n    raise KeyError('x')\ninner()")
    facts = probed(environment.python)
    assert facts.imports is not None
    tail = facts.imports["numpy"].stderr_tail
    assert str(path) in tail and "in inner" in tail and "<string>" not in tail


@pytest.mark.parametrize(
    ("forward", "ok", "signal", "error"),
    [
        ("os.abort()", False, "SIGABRT", None),
        ("os.kill(os.getpid(), 4)", False, "SIGILL", None),
        ("return [1]", False, None, "WrongNumbers"),
        ("return [0]", True, None, None),
    ],
)
def test_death_in_the_first_op_is_not_the_imports(
    environment: Environment, forward: str, ok: bool, signal: str | None, error: str | None
) -> None:
    numpy = """
        class Array(list):
            def astype(self, kind): return self
            def reshape(self, *shape): return self
            def __eq__(self, other): return Answer(list(self) == list(other))
        class Answer(int):
            def all(self): return bool(self)
        def linspace(*ends): return Array([-1])
        def array(given): return Array(given)
        def maximum(given, zero): return Array([max(one, zero) for one in given])
    """
    environment.module("numpy", numpy)
    environment.module(
        "ideep4py",
        f"""
        import os, sys
        sys.stderr.write("loading")
        def array(given): return given
        class relu:
            @staticmethod
            def Forward(given):
                sys.stderr.write("working\\n")
                {forward}
        """,
    )
    facts = probed(environment.python)
    assert facts.imports is not None and facts.imports["ideep4py"].ok
    assert facts.first_op is not None
    assert (facts.first_op.ok, facts.first_op.signal, facts.first_op.error_type) == (ok, signal, error)
    assert facts.imports["ideep4py"].stderr_tail == "loading"
    assert facts.first_op.stderr_tail == "working\n"


def test_nothing_is_written(environment: Environment, elsewhere: Path) -> None:
    environment.module("numpy", "import resource\nraise ValueError(resource.getrlimit(resource.RLIMIT_CORE)[0])")
    environment.module("ideep4py", "import os; os.abort()")
    before = sorted(environment.folder.rglob("*"))
    facts = probed(environment.python, cwd=elsewhere)
    assert facts.imports is not None and facts.imports["ideep4py"].signal == "SIGABRT"
    assert facts.imports["numpy"].error_text == "0", "a core file would land in the user's folder"
    assert sorted(environment.folder.rglob("*")) == before
    assert list(elsewhere.iterdir()) == []


# The installation


def test_what_an_old_virtualenv_stands_on(environment: Environment) -> None:
    environment.module("sitecustomize", "import sys; sys.real_prefix = '/old/python'")
    facts = probed(environment.python, quick=True)
    assert (facts.python.base_prefix, facts.python.kind) == ("/old/python", "venv")


def test_pep_668_marker_does_not_apply_to_environments(tmp_path: Path) -> None:
    for found in installed_interpreters():
        base = probed(found.place.path, quick=True).python
        if base.externally_managed:
            break
    else:
        pytest.skip("no interpreter here is externally managed")
    assert Path(base.externally_managed).name == "EXTERNALLY-MANAGED"
    subprocess.run([base.executable, "-m", "venv", "--without-pip", str(tmp_path / "e")], check=True)
    inside = probed(tmp_path / "e" / "bin" / "python", quick=True).python
    assert (inside.externally_managed, inside.kind) == (None, "venv")
    assert inside.executable == str(tmp_path / "e" / "bin" / "python")


# Variables, scripts, distributions


def test_what_a_start_up_file_sets_is_not_the_users(environment: Environment) -> None:
    line = "import os; os.environ.setdefault('CHAINER_USE_IDEEP', 'auto'); os.environ['OMP_NUM_THREADS'] = '3'; "
    (environment.packages / "a.pth").write_text(line + "os.environ['IDEEPDOCTOR_SET'] = 'CHAINER_USE_IDEEP,GONE'\n")
    environment.module("numpy", "import os; raise ValueError(os.environ.get('SECRET'))")
    facts = probed(environment.python, environ=plain_environ(OMP_NUM_THREADS="2", SECRET="s3cret"))
    assert facts.variables.inherited == {"OMP_NUM_THREADS": "2"}
    assert facts.variables.effective == {
        "OMP_NUM_THREADS": "3",
        "CHAINER_USE_IDEEP": "auto",
        "IDEEPDOCTOR_SET": "CHAINER_USE_IDEEP,GONE",
    }
    assert facts.variables.set_by_doctor == ("CHAINER_USE_IDEEP",)
    assert facts.imports is not None and facts.imports["numpy"].error_text == "s3cret", "children get everything"


def test_whose_pip_it_is(environment: Environment, tmp_path: Path) -> None:
    own = environment.python
    other = Environment(tmp_path / "other").python
    exec_line = "'''exec' {} \"$0\" \"$@\"\n' '''\n"
    scripts = {
        "pip": f"#!{own}\n",
        "pip3": f"#!{other}\n",
        "pip3.7": "#!/bin/sh\n" + exec_line.format(own),
        "pip3.8": "#!/bin/sh\n" + exec_line.format(f'"{other}"'),
        "pip2": "#!/usr/bin/env python\n",
        "pip2.7": "#!/nonexistent/python\n",
        "pip4": '#!/bin/sh\n\'\'\'exec\' "$(dirname -- "$0")"/python "$0" "$@"\n',
        "pipx": "#!/bin/sh\n",
        "pip3.9": "\x7fELF",
    }
    for name, text in scripts.items():
        (environment.scripts / name).write_text(text)
    facts = probed(environment.python, quick=True)
    found = {Path(one.path).name: (one.interpreter, one.same_environment) for one in facts.python.pip_scripts}
    assert found == {
        "pip": (str(own), True),
        "pip3": (str(other), False),
        "pip3.7": (str(own), True),
        "pip3.8": (str(other), False),
        "pip2": (None, None),
        "pip2.7": ("/nonexistent/python", False),
        "pip4": (None, None),
        "pip3.9": (None, None),
    }


def install(folder: Path, name: str, version: str, files: Mapping[str, bytes], extra: str = "") -> None:
    """Put a distribution with a RECORD there."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{extra}\nRequires-Dist: not-this\n"
    )
    rows = [f"{info.name}/RECORD,,"]
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        rows.append(f"{path},sha256={digest},{len(data)}")
    (info / "RECORD").write_text("\n".join(rows) + "\n")


def test_what_a_built_ideep4py_says_of_itself(environment: Environment) -> None:
    info = {"march": "haswell", "cpu_flags": ["avx2"], "mkl": "none", "commit": "8", "mkldnn_commit": "c"}
    said = json.dumps({**info, "numpy": "1.16.6", "verified": False, "extra": {}}).encode()
    version = "2.0.0.post3+doctor.haswell"
    name = f"ideep4py-{version}.dist-info/ideepdoctor-build.json"
    install(environment.packages, "other", "1", {"other-1.dist-info/ideepdoctor-build.json": said})
    assert probed(environment.python, quick=True).built is None
    (environment.packages / f"ideep4py-{version}.dist-info").mkdir()
    (environment.packages / name).write_bytes(said)
    (environment.packages / name).with_name("METADATA").write_text(f"Name: ideep4py\nVersion: {version}\n")
    built = probed(environment.python, quick=True).built
    assert built is not None
    assert (built.march, built.cpu_flags, built.verified) == ("haswell", ("avx2",), False)


def test_altered_files_of_ideep4py(environment: Environment) -> None:
    files = {f"ideep4py/{name}": b"0123456789" for name in ("whole.py", "gone.py", "short.py", "same_size.py")}
    install(environment.packages, "ideep4py", "2.0.0.post3", files)
    (environment.packages / "ideep4py" / "gone.py").unlink()
    (environment.packages / "ideep4py" / "short.py").write_bytes(b"")
    (environment.packages / "ideep4py" / "same_size.py").write_bytes(b"9876543210")
    for quick, by, problems in (
        (True, "size", {"gone.py": "missing", "short.py": "size"}),
        (False, "sha256", {"gone.py": "missing", "short.py": "size", "same_size.py": "sha256"}),
    ):
        package = probed(environment.python, quick=quick).package("ideep4py")
        assert package is not None
        assert package.integrity == by
        assert {Path(one.path).name: one.problem for one in package.altered} == problems


def test_the_first_distribution_on_the_path_wins(environment: Environment, elsewhere: Path) -> None:
    install(environment.packages, "Some_Thing", "1", {}, "Requires-Dist: six >=1.9\n")
    install(elsewhere, "some.thing", "2", {})
    egg = environment.packages / "old-3.egg-info"
    egg.mkdir()
    (egg / "PKG-INFO").write_text("Name: old\nVersion: 3\n")
    (egg / "requires.txt").write_text("six\n\n[extra]\nmock\n")
    inside = probed(environment.python, quick=True)
    assert [(one.name, one.version, one.requires) for one in inside.packages or ()] == [
        ("some-thing", "1", ("six >=1.9",)),
        ("old", "3", ("six", 'mock; extra == "extra"')),
    ]
    outside = probed(environment.python, environ=plain_environ(PYTHONPATH=str(elsewhere)), quick=True)
    assert [one.name for one in outside.packages or ()].count("some-thing") == 1
    package = outside.package("some-thing")
    assert package is not None
    assert (package.version, package.location) == ("2", str(elsewhere))


def test_who_installed_it_and_for_which_python(environment: Environment) -> None:
    for name in ("ideep4py", "numpy", "six"):
        install(environment.packages, name, "2", {})
        info = environment.packages / f"{name}-2.dist-info"
        (info / "INSTALLER").write_text("conda\n")
        (info / "WHEEL").write_text("Wheel-Version: 1.0\nTag: cp37-cp37m-x\nTag: cp37-cp37m-y\n")
    facts = probed(environment.python, quick=True)
    found = {one.name: (one.tags, one.installer) for one in facts.packages or ()}
    assert found == {
        "ideep4py": (("cp37-cp37m-x", "cp37-cp37m-y"), "conda"),
        "numpy": (None, "conda"),
        "six": (None, None),
    }


def test_doubled_distributions(environment: Environment, elsewhere: Path) -> None:
    install(environment.packages, "numpy", "1.16.6", {})
    install(environment.packages, "numpy", "1.21.6", {})
    install(environment.packages, "~umpy", "1.9", {}, "")  # what an interrupted pip leaves; it is called numpy inside
    (environment.packages / "~umpy-1.9.dist-info" / "METADATA").write_text("Name: numpy\nVersion: 1.9\n")
    install(elsewhere, "NumPy", "1.13.3", {})
    twice = f"{environment.packages}{os.pathsep}{elsewhere}"  # lib and lib64 are one folder too
    facts = probed(environment.python, environ=plain_environ(PYTHONPATH=twice), quick=True)
    assert [(one.version, one.location) for one in facts.packages or () if one.name == "numpy"] == [
        ("1.16.6", str(environment.packages))
    ]
    assert [(one.name, one.version, one.location) for one in facts.duplicates] == [
        ("numpy", "1.21.6", str(environment.packages)),
        ("numpy", "1.13.3", str(elsewhere)),
    ]


def test_what_conda_believes_to_be_there(environment: Environment) -> None:
    install(environment.packages, "numpy", "1.21.6", {})
    (environment.packages / "numpy-1.21.6.dist-info" / "INSTALLER").write_text("pip\n")
    listed = environment.folder / "conda-meta"
    listed.mkdir()
    for name in ("numpy-1.21.5-py37h_0.json", "numpy-base-1.21.5-py37h_0.json", "history", "odd.json"):
        (listed / name).write_text("")
    facts = probed(environment.python, quick=True)
    assert [(one.name, one.version, one.location, one.installer) for one in facts.duplicates] == [
        ("numpy", "1.21.5", str(listed), "conda")
    ]


# Pure functions of the payload


def cgroup(probe: ModuleType, groups: str, mounts: str) -> list[Any]:
    """What the payload makes of the two files."""
    return probe.cgroup_folders(groups, mounts)  # type: ignore[no-any-return]


def test_cgroup_folders(probe: ModuleType, tmp_path: Path) -> None:
    for folder in ("cpu,cpuacct/slurm/job 1", "memory/inner", "unified/user.slice/a", "pids/x"):
        (tmp_path / folder).mkdir(parents=True)
    root = str(tmp_path)
    mounts = (
        "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        f"31 23 0:28 / {root}/cpu,cpuacct rw shared:1 - cgroup cgroup rw,cpu,cpuacct\n"
        f"32 23 0:29 /docker/ab {root}/memory rw - cgroup cgroup rw,memory\n"
        f"33 23 0:30 / {root}/unified rw - cgroup2 cgroup2 rw\n"
        f"34 23 0:31 / {root}/pids rw - cgroup cgroup rw,pids\n35 23 0:32 / {root}/blkio rw - cgroup cgroup rw,blkio\n"
    )
    groups = "4:memory:/docker/ab/inner\n3:cpuacct,cpu:/slurm/job 1\n2:pids:/x\n0::/user.slice/a\n"
    assert cgroup(probe, groups, mounts) == [
        (1, "cpu", f"{root}/cpu,cpuacct/slurm/job 1", f"{root}/cpu,cpuacct"),
        (1, "memory", f"{root}/memory/inner", f"{root}/memory"),
        (2, "", f"{root}/unified/user.slice/a", f"{root}/unified"),
        (1, "pids", f"{root}/pids/x", f"{root}/pids"),
    ]
    # A container that sees the host's path, and one that looks out of its own namespace.
    for path in ("/kubepods/pod/x", "/../../other"):
        assert cgroup(probe, f"0::{path}\n", mounts)[2] == (2, "", f"{root}/unified", f"{root}/unified")
    assert cgroup(probe, "", "") == []
    escaped = f"33 23 0:30 / {root}/a\\040b rw - cgroup2 cgroup2 rw\n"
    assert cgroup(probe, "0::/\n", escaped) == [(2, "", f"{root}/a b", f"{root}/a b")]


def test_loader_of_a_program(probe: ModuleType, tmp_path: Path) -> None:
    loader = probe.elf_loader(os.path.realpath(sys.executable))
    assert loader and Path(loader).exists() and "ld-" in loader
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    assert probe.elf_loader(str(script)) is None
    script.write_bytes(b"\x7fELF\x02\x01" + b"\xff" * 58)
    assert probe.elf_loader(str(script)) is None


def test_texts_are_always_json(probe: ModuleType) -> None:
    assert probe.text(b"caf\xe9") == "caf\ufffd"
    assert probe.text("caf\udce9") == "caf\ufffd"
    assert probe.text("\ud800x") == "?x"
    assert probe.text(None) is None


# The file itself


def test_valid_on_every_python(tmp_path: Path) -> None:
    children = [
        node.value
        for node in ast.walk(ast.parse(SOURCE))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and "\n" in node.value
        and "def " in node.value
    ]
    assert len(children) == 6, "the pieces of the children's sources"
    run = "import sys, vermin; sys.exit(vermin.main())"
    path = tmp_path / "piece.py"
    for text in (SOURCE, *children):
        path.write_text(text, "ascii")
        checked = subprocess.run(
            [sys.executable, "-c", run, "-q", "--no-tips", "-t=2.7-", "-t=3.5-", str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert checked.returncode == 0, checked.stdout


def test_answer_is_the_only_thing_between_the_cookies() -> None:
    answer = run_payload(
        RealSystem(), Target(sys.executable), "probe", {"phase": "static"}, timeout_seconds=60, env=plain_environ()
    )
    assert answer["probe"] == 1
    assert "imports" not in answer


def test_what_a_child_told_just_before_its_end_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may hold the probe up between looking for output and looking whether the child has ended."""
    names: dict[str, Any] = {"__name__": "probe"}
    exec(compile(SOURCE, "probe.py", "exec"), names)
    program = "import sys; sys.stdout.write('C' + repr(('answer', 'x' * 50000)) + 'C'); sys.stderr.write('said')"

    read = os.read

    def held_up(descriptor: int, size: int) -> bytes:
        time.sleep(0.1)
        return read(descriptor, size)

    monkeypatch.setattr(os, "read", held_up)
    job = functools.partial(names["Child"], [sys.executable, "-c", program], "C", dict(os.environ))
    child = names["wait_all"]([("one", job)], 1, 30.0)["one"]
    assert child.code == 0
    assert child.told() == {"answer": "x" * 50000}
    assert child.output[2] == b"said"
