"""Environments that are really broken, one fault each: exactly that code, nothing else that counts."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.e2e.environments import QEMU, doctor, pip_install, site_packages

pytestmark = pytest.mark.e2e


def diagnose(environment: Path, *options: str, environ: dict[str, str] | None = None):
    return doctor("diagnose", "--python", str(environment), "--format", "json", *options, environ=environ)


def needs_qemu() -> None:
    if shutil.which(QEMU) is None:
        if os.environ.get("IDEEPDOCTOR_REQUIRE_LEGACY") == "1":
            pytest.fail(f"{QEMU} is needed")
        pytest.skip(f"{QEMU} is not installed")


def on_amd() -> bool:
    return "AuthenticAMD" in Path("/proc/cpuinfo").read_text()


def test_numpy_too_old_for_the_cp37_wheel(broken_copy):
    env = broken_copy("3.7")
    pip_install(env, "numpy==1.15.4")
    answer = diagnose(env)
    assert (answer.codes(), answer.code) == (["IDP305"], 1)


def test_ideep4py_that_needs_a_library_it_does_not_ship(broken_copy):
    env = broken_copy("3.6", "--stack", "chainer4.5.0-ideep4py1.0.4")
    pip_install(env, "ideep4py==1.0.2")
    answer = diagnose(env)
    assert (answer.codes(), answer.code) == (["IDP302"], 1)


def test_ideep4py_without_its_libraries(broken_copy):
    env = broken_copy("3.6")
    pip_install(env, "ideep4py==2.0.0b1")
    answer = diagnose(env)
    assert (answer.codes(), answer.code) == (["IDP302"], 1)


def test_ideep4py_built_for_avx512_on_a_cpu_without(broken_copy):
    needs_qemu()
    env = broken_copy("3.6")
    pip_install(env, "ideep4py==2.0.0b1.post1")
    answer = diagnose(env, "--emulator", f"{QEMU} -cpu Haswell")
    assert (answer.codes(), answer.code) == (["IDP110"], 1)


def test_ideep4py_that_dies_on_amd(broken_copy):
    if not on_amd():
        pytest.skip("only an AMD CPU shows this")
    env = broken_copy("3.6", "--stack", "chainer4.5.0-ideep4py1.0.4")
    pip_install(env, "ideep4py==1.0.3")
    answer = diagnose(env)
    assert (answer.codes(), answer.code) == (["IDP111"], 1)


def test_ideep4py_1_with_chainer_7_is_silently_unused(broken_copy):
    env = broken_copy("3.6")
    pip_install(env, "ideep4py==1.0.4")
    answer = diagnose(env)
    assert (answer.codes(), answer.code) == (["IDP303"], 1)


def test_ideep4py_2_with_chainer_4_computes_garbage(broken_copy):
    env = broken_copy("3.6", "--stack", "chainer4.5.0-ideep4py1.0.4")
    pip_install(env, "ideep4py==2.0.0.post3")
    answer = diagnose(env)
    assert (answer.codes(), answer.code) == (["IDP304"], 1)


def test_a_wrong_word_in_the_variable(made):
    env, _ = made("3.7")
    answer = diagnose(env, environ={"CHAINER_USE_IDEEP": "1"})
    assert (answer.codes(), answer.code) == (["IDP502"], 1)


def test_a_library_that_was_emptied(broken_copy):
    env = broken_copy("3.7")
    library = site_packages(env) / "ideep4py" / "lib" / "libiomp5.so"
    library.write_bytes(b"")
    answer = diagnose(env)
    assert (answer.codes(), answer.code) == (["IDP309"], 1)


def test_libraries_that_were_removed(broken_copy):
    env = broken_copy("3.7")
    shutil.rmtree(site_packages(env) / "ideep4py" / "lib")
    answer = diagnose(env)
    assert (answer.codes(), answer.code) == (["IDP406"], 1)


def test_a_cpu_without_avx(made):
    needs_qemu()
    env, _ = made("3.7")
    answer = diagnose(env, "--emulator", f"{QEMU} -cpu Nehalem")
    assert (answer.codes(), answer.code) == (["IDP110"], 1)


def test_chainer_on_a_python_where_its_imports_are_broken(tmp_path):
    from tests.conftest import legacy_python
    from tests.e2e.environments import uv

    env = tmp_path / "env"
    uv("venv", "--python", legacy_python("3.11"), str(env))
    pip_install(env, "setuptools==80.9.0", "wheel", "numpy>=2,<2.3", "six", "filelock", "protobuf==3.20.3")
    pip_install(env, "typing_extensions")
    pip_install(env, "chainer==7.8.1", options=["--no-build-isolation"])
    answer = diagnose(env)
    assert (answer.codes("error"), answer.code) == (["IDP306"], 1)
