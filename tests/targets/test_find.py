"""The search on fake machines, and on this one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ideepdoctor.targets import find
from ideepdoctor.targets.find import Found, discover, find_interpreters
from tests.conftest import installed_interpreters
from tests.doubles import CountingSystem, payload_answer
from tests.targets.trees import SHIM, Machine, identity


def paths(machine: Machine, **options: list[str]) -> list[str]:
    found = find_interpreters(machine.system, machine.environ, **options)
    return [str(Path(each.path).relative_to(machine.root)) for each in found]


def test_names_of_one_file_are_one_interpreter(machine: Machine) -> None:
    real = machine.python("opt/bin/python3.7")
    machine.link("bin/python3.7", real)
    machine.link("bin/python3", "python3.7")
    machine.link("bin/python", "python3")
    machine.system.on(str(machine.root / "bin/python"), payload_answer(identity(real)))
    (found,) = find_interpreters(machine.system, machine.environ)
    assert (found.path, found.real_path) == (str(machine.root / "bin/python"), str(real))
    assert (found.version, found.abi, found.bits, found.implementation) == ("3.7.16", "cp37m", 64, "CPython")
    assert (found.libc, found.source) == ("glibc 2.36", "PATH")


def test_a_virtual_environment_is_an_interpreter_of_its_own(machine: Machine) -> None:
    base = machine.python("bin/python3.7")
    machine.virtual("env", base)
    machine.environ["PATH"] += f":{machine.root / 'env/bin'}"
    assert paths(machine) == ["bin/python3.7", "env/bin/python"]


def test_an_environment_reached_by_a_linked_folder_is_found_once(machine: Machine) -> None:
    base = machine.python("bin/python3.7")
    machine.virtual("env", base)
    machine.link("same", "env")
    machine.system.on(str(machine.root / "same/bin/python"), payload_answer(identity(machine.root / "env/bin/python")))
    machine.environ["PATH"] = ":".join(str(machine.root / name) for name in ("env/bin", "same/bin"))
    assert paths(machine) == ["env/bin/python"]


def test_active_environment_first_then_newest_of_each_source(machine: Machine) -> None:
    machine.python("bin/python2.7", "2.7.18")
    machine.python("bin/python3.9", "3.9.1")
    machine.python("bin/python3.10", "3.10.1")
    machine.python("conda/bin/python", "3.6.1")
    machine.python("home/.pyenv/versions/3.13.0/bin/python", "3.13.0")
    machine.virtual("env", machine.root / "bin/python2.7", "2.7.18")
    machine.environ |= {"VIRTUAL_ENV": str(machine.root / "env"), "CONDA_PREFIX": str(machine.root / "conda")}
    assert paths(machine) == [
        "env/bin/python",
        "conda/bin/python",
        "bin/python3.10",
        "bin/python3.9",
        "bin/python2.7",
        "home/.pyenv/versions/3.13.0/bin/python",
    ]


def test_shims_are_never_started_but_looked_through(machine: Machine) -> None:
    shim = machine.file("p/shims/python3.7", SHIM)
    machine.system.on(str(shim), payload_answer(identity(shim)))
    machine.python("p/versions/3.7.16/bin/python")
    machine.python("p/versions/3.6.15/bin/python", "3.6.15")
    machine.python("p/versions/3.7.16/envs/work/bin/python")
    machine.environ |= {"PATH": str(machine.root / "p/shims"), "HOME": ""}
    assert paths(machine) == [
        "p/versions/3.7.16/bin/python",
        "p/versions/3.7.16/envs/work/bin/python",
        "p/versions/3.6.15/bin/python",
    ]
    assert str(shim) not in machine.started()


def test_a_program_in_a_shims_folder_is_a_shim_too(machine: Machine) -> None:
    tool = machine.file("tools/mise")
    shim = machine.link("m/shims/python3", tool)
    machine.system.on(str(shim), payload_answer(identity(shim)))
    machine.python("m/installs/python/3.7.16/bin/python")
    machine.environ |= {"PATH": str(machine.root / "m/shims"), "HOME": ""}
    assert paths(machine) == ["m/installs/python/3.7.16/bin/python"]
    assert str(shim) not in machine.started()


def test_a_shim_outside_its_folder_is_known_by_its_text(machine: Machine) -> None:
    shim = machine.file("bin/python3", SHIM)
    machine.system.on(str(shim), payload_answer(identity(shim)))
    assert paths(machine) == [] and machine.started() == set()


def test_pyenv_root_alone_is_enough(machine: Machine) -> None:
    machine.python("p/versions/3.6.15/bin/python", "3.6.15")
    machine.environ |= {"PYENV_ROOT": str(machine.root / "p"), "HOME": ""}
    assert paths(machine) == ["p/versions/3.6.15/bin/python"]


def test_pyenv_is_asked_for_its_root_only_where_nothing_else_tells(machine: Machine) -> None:
    program = machine.file("bin/pyenv", "#!/bin/sh\n")
    machine.python("elsewhere/versions/3.6.15/bin/python", "3.6.15")
    machine.system.on([str(program), "root"], f"{machine.root / 'elsewhere'}\n")
    assert paths(machine) == ["elsewhere/versions/3.6.15/bin/python"]
    machine.environ["PYENV_ROOT"] = str(machine.root / "elsewhere")
    before = machine.system.commands().count((str(program), "root"))
    assert before == 1 and paths(machine) and machine.system.commands().count((str(program), "root")) == before


def test_a_pyenv_that_fails_is_no_trouble(machine: Machine) -> None:
    machine.file("bin/pyenv", "#!/bin/sh\n")
    machine.python("bin/python3", "3.11.2")
    assert paths(machine) == ["bin/python3"]


def test_conda_by_every_sign_of_it(machine: Machine) -> None:
    for name in ("a/bin", "a/envs/one/bin", "b/bin", "c/envs/two/bin", "home/miniforge3/envs/three/bin", "listed/bin"):
        machine.python(f"{name}/python")
    conda = machine.file("a/condabin/conda")
    machine.link("bin/conda", conda)
    machine.file("b/bin/conda")
    machine.file("home/.conda/environments.txt", f"{machine.root / 'listed'}\n/not/there\n\nnonsense\n", 0o644)
    machine.environ |= {"CONDA_EXE": str(machine.root / "b/bin/conda"), "MAMBA_ROOT_PREFIX": str(machine.root / "c")}
    assert sorted(paths(machine)) == [
        "a/bin/python",
        "a/envs/one/bin/python",
        "b/bin/python",
        "c/envs/two/bin/python",
        "home/miniforge3/envs/three/bin/python",
        "listed/bin/python",
    ]
    assert {each.source for each in find_interpreters(machine.system, machine.environ)} == {"conda"}


@pytest.mark.parametrize(
    ("folder", "variable"),
    [("u", "UV_PYTHON_INSTALL_DIR"), ("x/uv/python", "XDG_DATA_HOME"), ("home/.local/share/uv/python", "")],
)
def test_uv_folders(machine: Machine, folder: str, variable: str) -> None:
    machine.python(f"{folder}/cpython-3.8.20-linux-x86_64-gnu/bin/python3.8", "3.8.20")
    machine.link(f"{folder}/cpython-3.8.20-linux-x86_64-gnu/bin/python3", "python3.8")
    machine.link(f"{folder}/cpython-3.8", "cpython-3.8.20-linux-x86_64-gnu")
    for name in ("cpython-3.8", "cpython-3.8.20-linux-x86_64-gnu"):
        path = machine.root / folder / name / "bin/python3"
        machine.system.on(str(path), payload_answer(identity(path, "3.8.20")))
    if variable:
        machine.environ[variable] = str(machine.root / folder.split("/")[0])
    (found,) = find_interpreters(machine.system, machine.environ)
    assert (found.version, found.source) == ("3.8.20", "uv")


def test_current_folder_and_extra(machine: Machine) -> None:
    base = machine.python("opt/bin/python3.7")
    machine.virtual("work/.ideep", base)
    machine.virtual("work/.venv", base)
    machine.virtual("named", base)
    expected = ["named/bin/python", "opt/bin/python3.7", "work/.ideep/bin/python", "work/.venv/bin/python"]
    assert sorted(paths(machine, extra=[str(machine.root / "named"), str(base)])) == expected


def test_what_is_no_python_is_left_out(machine: Machine) -> None:
    good = machine.python("bin/python3", "3.11.2")
    machine.link("bin/python2", "/nowhere/python2.7")
    machine.file("bin/python3.6", mode=0o644)
    machine.file("bin/python3.5")
    (machine.root / "bin/python3.7").mkdir()
    liar = machine.file("bin/python3.9")
    machine.system.on(str(liar), payload_answer({"version": "3.9.1"}))
    echo = machine.file("bin/python3.8")
    machine.system.on(str(echo), lambda call: f"{call.argv[-2]} {call.argv[-1]} {call.argv[-2]}")
    machine.file("bin/python3-config")
    machine.file("a-file")
    machine.environ["PATH"] = f"/nowhere:{machine.root / 'a-file'}:{machine.environ['PATH']}::"
    assert paths(machine) == ["bin/python3"]
    assert machine.started() == {str(good), str(liar), str(echo), str(machine.root / "bin/python3.5")}


def test_a_folder_without_permission_is_passed_over(machine: Machine) -> None:
    machine.python("closed/python3")
    machine.python("closed/sub/bin/python")
    machine.python("bin/python3", "3.11.2")
    machine.environ["PATH"] = f"{machine.root / 'closed'}:{machine.environ['PATH']}"
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "UV_PYTHON_INSTALL_DIR", "MAMBA_ROOT_PREFIX"):
        machine.environ[name] = str(machine.root / "closed" / "sub")
    (machine.root / "closed").chmod(0)
    if os.access(machine.root / "closed", os.R_OK):
        pytest.skip("this user may read every folder")
    try:
        assert paths(machine, extra=[machine.environ["VIRTUAL_ENV"]]) == ["bin/python3"]
    finally:
        (machine.root / "closed").chmod(0o755)


def test_nothing_is_started_from_relative_entries_of_path(machine: Machine) -> None:
    machine.python("work/python3")
    machine.python("work/sub/python3")
    machine.environ["PATH"] = ":.:sub"
    assert paths(machine) == [] and machine.started() == set()


def test_a_deleted_working_folder_is_no_trouble(machine: Machine) -> None:
    machine.python("bin/python3", "3.11.2")
    (machine.root / "work").rmdir()
    assert paths(machine) == ["bin/python3"]


def test_a_preloaded_library_is_kept_from_interpreters(machine: Machine) -> None:
    machine.python("bin/python3", "3.11.2")
    machine.environ |= {"LD_PRELOAD": "/nowhere/libmkldnn.so.0", "LD_LIBRARY_PATH": "/needed"}
    assert paths(machine) == ["bin/python3"]
    (call,) = [call for call in machine.system.calls if call.kind == "run"]
    assert call.env is not None and "LD_PRELOAD" not in call.env and call.env["LD_LIBRARY_PATH"] == "/needed"


def test_scripts_that_hang_cost_their_time_once(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "IDENTIFY_TIMEOUT_SECONDS", 0.5)
    sleep = shutil.which("sleep")
    machine.file("bin/python2", f"#!/bin/sh\nexec {sleep} 60\n")
    machine.file("bin/python3", f"#!/bin/sh\n{sleep} 60 & wait\n")
    machine.file("bin/python3.5", "#!/no/such/program\n")
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info[1]}"
    machine.link("bin/python3.99", base)
    system = CountingSystem()
    found = find_interpreters(system, machine.environ)
    assert [each.version for each in found if each.path.startswith(str(machine.root))] == [sys.version.split()[0]]
    asked = [argv[0] for argv in system.commands if argv[0].startswith(str(machine.root))]
    assert len(asked) == 4
    assert sorted(Path(done.argv[0]).name for done in system.ended if done.timed_out) == ["python2", "python3"]
    system.commands.clear()
    assert find_interpreters(system, machine.environ) == found
    assert system.commands == []


def test_a_script_around_an_interpreter_that_was_found_is_not_a_second_one(machine: Machine) -> None:
    real = machine.python("bin/python3.7")
    hidden = machine.python("opt/bin/python3.6", "3.6.15")
    wrapper = machine.file("bin/python3", f'#!/bin/sh\nexec {real} "$@"\n')
    machine.system.on(str(wrapper), payload_answer(identity(real)))
    other = machine.file("bin/python3.6", f'#!/bin/sh\nLD_LIBRARY_PATH=/x exec {hidden} "$@"\n')
    machine.system.on(str(other), payload_answer(identity(hidden, "3.6.15")))
    assert paths(machine) == ["bin/python3.7", "bin/python3.6"]


def test_this_machine(tmp_path: Path) -> None:
    found = installed_interpreters()
    assert found and len({each.place.key for each in found}) == len(found)
    for each in found:
        assert _independent(each) == (each.identity.version, each.identity.bits, each.identity.abi), each.place.path


def _independent(each: Found) -> tuple[str, int, str]:
    """Version, bits and ABI by other means than the payload's: platform, struct, the name of extension modules."""
    program = (
        "import json, platform, struct, sys, sysconfig\n"
        "print(json.dumps([platform.python_version(), 8 * struct.calcsize('P'), sysconfig.get_config_var('SOABI'),"
        " sys.version_info[:2], sys.maxunicode > 65535]))"
    )
    out = subprocess.run([each.place.path, "-S", "-c", program], capture_output=True, check=True, timeout=30).stdout
    version, bits, soabi, pair, wide = json.loads(out)
    if each.identity.implementation == "PyPy":
        return version, bits, f"pp{pair[0]}{pair[1]}"
    if pair[0] == 2:
        return version, bits, "cp27mu" if wide else "cp27m"
    return version, bits, "cp" + soabi.split("-")[1]


def test_a_real_virtual_environment_and_its_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info[1]}"
    subprocess.run([base, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    environ = {
        "PATH": f"{tmp_path / 'env/bin'}:{base.parent}",
        "IDEEPDOCTOR_CACHE_DIR": str(tmp_path / "cache"),
    }
    found = discover(CountingSystem(), environ)
    (inside,) = [each for each in found if each.place.path.startswith(str(tmp_path))]
    outside = [each for each in found if each.place.real_path == os.path.realpath(base)]
    assert inside.identity.is_virtual and inside.identity.base_prefix == sys.base_prefix
    assert [each.identity.is_virtual for each in outside] == [True, False]
