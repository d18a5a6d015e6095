"""Which built wheel of a wheelhouse ``setup`` takes, and what it becomes of a lock."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.commands.setup_base import Base
from ideepdoctor.commands.setup_built import Ready, from_folder, provide_ideep4py
from ideepdoctor.commands.setup_wheels import built_abis, fitting_wheel, index_abis
from ideepdoctor.errors import CouldNotCheck, NotPossibleHere
from ideepdoctor.model.facts import Cpu, Interpreter
from ideepdoctor.model.plan import PackageSource
from ideepdoctor.stacks.catalog import all_stacks
from ideepdoctor.treatment.plan import setup_plan
from tests.commands.test_install_built import built
from tests.mirror import pin_of, tiny_wheel
from tests.rules.hosts import facts_on

CPU = Cpu(vendor="AuthenticAMD", cpuinfo_flags=("avx", "avx2", "fma"))
NEW = all_stacks()[0]
RELEASE = "2.0.0.post3"


def wheel(folder: Path, label: str, abi: str = "cp311", **info: Any) -> Path:
    return built(folder, f"{RELEASE}+doctor.{label}", abi, **info)


def base(abi: str = "cp311", version: str = "3.11.7") -> Base:
    return Base(Interpreter("/p", "/p", version, "CPython", abi, 64, "glibc 2.36", "pyenv"), built=True)


def provided(folders: list[Path], who: Base, *, offline: bool = False) -> Ready:
    found = provide_ideep4py(
        session=None,  # type: ignore[arg-type]
        base=who,
        facts=replace(facts_on("py311-nothing"), cpu=CPU),
        stack=NEW,
        folders=[str(folder) for folder in folders],
        asked=None,
        offline=offline,
    )
    assert isinstance(found, Ready)
    return found


def test_what_a_folder_holds(tmp_path):
    wheel(tmp_path, "v3")
    wheel(tmp_path, "v3", "cp39")
    tiny_wheel(tmp_path, "ideep4py", RELEASE, "cp37-cp37m-linux_x86_64")
    tiny_wheel(tmp_path, "ideep4py", f"{RELEASE}+mine", "cp38-cp38-linux_x86_64")
    tiny_wheel(tmp_path, "numpy", "1.23.5", "cp310-cp310-linux_x86_64")
    (tmp_path / "ideep4py-no-wheel.whl").write_text("x")
    assert set(built_abis([str(tmp_path)])) == {"cp311", "cp39"}
    assert set(index_abis([str(tmp_path)])) == {"cp37m", "cp38"}
    assert built_abis([]) == index_abis([str(tmp_path / "none")]) == ()


def test_the_one_that_makes_most_of_the_processor(tmp_path):
    wheel(tmp_path, "v3", cpu_flags=["avx", "avx2"])
    best = wheel(tmp_path, "v3a", cpu_flags=["avx", "avx2", "fma"])
    wheel(tmp_path, "v4", cpu_flags=["avx", "avx2", "fma", "avx512f"])
    wheel(tmp_path, "v3b", "cp39", cpu_flags=["avx", "avx2", "fma"])
    built(tmp_path, "1.0.4+doctor.v3", "cp311", cpu_flags=["avx", "avx2", "fma"])
    found = fitting_wheel([str(tmp_path)], "cp311", RELEASE, CPU)
    assert found is not None and found.path == str(best)
    assert fitting_wheel([str(tmp_path)], "cp38", RELEASE, CPU) is None
    assert fitting_wheel([str(tmp_path)], "cp311", "2.0.0b1", CPU) is None


def test_one_for_another_processor_is_refused_by_name(tmp_path):
    path = wheel(tmp_path, "v4", cpu_flags=["avx2", "avx512f", "avx512vl"])
    with pytest.raises(NotPossibleHere, match=r"avx512f, avx512vl.*SIGILL") as caught:
        fitting_wheel([str(tmp_path)], "cp311", RELEASE, CPU)
    assert path.name in caught.value.message
    assert "build --march x86-64-v3" in caught.value.hint
    with pytest.raises(NotPossibleHere, match="SIGILL"):
        provided([tmp_path], base())
    unknown = fitting_wheel([str(tmp_path)], "cp311", RELEASE, Cpu())
    assert unknown is not None, "what is not known is not judged"


def test_a_damaged_one_is_told(tmp_path):
    wheel(tmp_path, "v3").write_bytes(b"no zip")
    with pytest.raises(CouldNotCheck, match="damaged"):
        fitting_wheel([str(tmp_path)], "cp311", RELEASE, CPU)


def test_the_lock_becomes_whole_and_is_installed_from_the_folder(tmp_path):
    path = wheel(tmp_path, "v3")
    ready = provided([tmp_path], base())
    assert ready.lock.built == ()
    assert ready.lock.requirement("ideep4py") == pin_of(path)
    assert ready.folder == str(tmp_path)
    plan = setup_plan(facts_on("py311-nothing"), NEW, ready.lock, "/e", "/p", "/e/lib/python3.11/site-packages")
    found = from_folder(plan, ready.folder)
    assert [step.source for step in found.steps if step.kind == "install"] == [PackageSource((str(tmp_path),))]
    assert from_folder(found, ready.folder) == found
    assert from_folder(plan, None) is plan


def test_also_for_a_python_that_has_a_wheel_of_the_index(tmp_path):
    path = wheel(tmp_path, "v3", "cp37m")
    lock = provided([tmp_path], base("cp37m", "3.7.16")).lock
    assert lock.requirement("ideep4py") == pin_of(path)
    assert lock.python == "3.7"


@pytest.mark.parametrize("offline", [True, False])
def test_nothing_that_fits(tmp_path, offline):
    wheel(tmp_path, "v3", "cp39")
    with pytest.raises(
        CouldNotCheck, match=r"no ideep4py 2\.0\.0\.post3 built for Python 3\.11\.7 \(cp311\)"
    ) as caught:
        provided([tmp_path], base(), offline=offline)
    assert str(tmp_path) in caught.value.message
    assert ("--build" in caught.value.hint) is not offline
    assert "--offline --python 3.11 --wheelhouse DIR" in caught.value.hint


def test_a_stack_that_is_not_locked_for_the_interpreter(tmp_path):
    with pytest.raises(NotPossibleHere, match=r"not locked for Python 3\.14\.0 \(cp314\)"):
        provided([tmp_path], base("cp314", "3.14.0"))
