"""Faults of pip and of packages made for real: each environment is really broken, and has exactly that code."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.conftest import legacy_python
from tests.e2e.environments import Answer, doctor, pip_install, site_packages, uv

pytestmark = pytest.mark.e2e
INDEX_FREE = ("PIP_NO_BINARY", "PIP_ONLY_BINARY", "PIP_CONFIG_FILE", "PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT")


def diagnose(environment: Path, *options: str, **variables: str) -> Answer:
    words = ("diagnose", "--python", str(environment), "--format", "json", *options)
    return doctor(*words, environ=variables, unset=[name for name in INDEX_FREE if name not in variables])


def finding(answer: Answer, code: str) -> dict[str, object]:
    [found] = [item for item in answer.document["findings"] if item["code"] == code]
    return found


def test_two_numpys_in_one_folder(broken_copy):
    env = broken_copy("3.7")
    folder = site_packages(env)
    [real] = folder.glob("numpy-*.dist-info")
    other = folder / "numpy-1.16.6.dist-info"
    shutil.copytree(real, other)
    text = (real / "METADATA").read_text("utf-8").replace("Version: 1.21.6", "Version: 1.16.6", 1)
    (other / "METADATA").write_text(text, "utf-8")
    assert diagnose(env).codes() == ["IDP315"]
    assert diagnose(env, "--quick").codes() == ["IDP315"]


def test_pip_that_may_take_no_wheel(made, broken_copy):
    env, _ = made("3.7")
    told = diagnose(env, "--quick", PIP_NO_BINARY=":all:")
    assert (told.codes(), told.codes("info")) == ([], ["IDP205"]), "what is installed goes on working"
    assert finding(told, "IDP205")["treatment"]["next_step"] == "unset PIP_NO_BINARY"
    bare = broken_copy("3.7")
    uv("pip", "uninstall", "--python", str(bare / "bin" / "python"), "ideep4py")
    (bare / "pip.conf").write_text("[global]\nno-binary = :all:\n")
    missing = diagnose(bare, "--quick")
    assert missing.codes() == ["IDP205", "IDP301"]
    words = finding(missing, "IDP205")["treatment"]["next_step"].split()
    assert words[1:] == ["-m", "pip", "config", "--site", "unset", "global.no-binary"]
    subprocess.run(words, check=True, capture_output=True)
    assert diagnose(bare, "--quick").codes() == ["IDP301"], "the command that was told takes it away"


def stand_in(folder: Path, name: str, version: str) -> None:
    """A CuPy whose import succeeds without a GPU: it has every name that is asked for."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    anything = "def __getattr__(name):\n    return type(name, (Warning,), {})\n"
    for module in (
        "cupy",
        "cupy/cuda",
        "cupy/_util",
        "cupyx",
        "cupyx/scipy",
        "cupyx/scipy/linalg",
        "cupyx/scipy/special",
    ):
        (folder / module).mkdir()
        own = f"__version__ = {version!r}\n" if module == "cupy" else ""
        (folder / module / "__init__.py").write_text(own + anything)


def test_two_cupys(broken_copy):
    env = broken_copy("3.7")
    for name in ("cupy-cuda102", "cupy-cuda113"):
        info = site_packages(env) / f"{name.replace('-', '_')}-9.6.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.6.0\n")
    answer = diagnose(env)
    assert (answer.codes("warning"), answer.codes("error")) == (["IDP318"], [])


@pytest.mark.slow
def test_chainer_7_8_0_dies_of_cupy_10(broken_copy):
    env = broken_copy("3.7")
    pip_install(env, "chainer==7.8.0", "numpy==1.20.3")
    stand_in(site_packages(env), "cupy", "10.0.0")
    answer = diagnose(env)
    assert answer.codes("error") == ["IDP317"], answer.stdout
    fixed = doctor("fix", "--python", str(env), "--yes", "--format", "json")
    assert fixed.document["applied"] is True
    assert "IDP317" not in diagnose(env).codes()


@pytest.mark.slow
def test_the_wheel_of_a_narrow_python_2_7_in_a_wide_one(broken_copy, tmp_path):
    env = broken_copy("2.7")
    words = ["--no-deps", "--only-binary=:all:", "--python-version=27", "--implementation=cp", "--abi=cp27m"]
    words += ["--platform=manylinux1_x86_64", "--dest", str(tmp_path), "ideep4py==2.0.0.post3"]
    subprocess.run([legacy_python("3.11"), "-m", "pip", "download", *words], check=True, capture_output=True)
    folder = site_packages(env)
    shutil.rmtree(folder / "ideep4py")
    [info] = folder.glob("ideep4py-*.dist-info")
    shutil.rmtree(info)
    [wheel] = tmp_path.glob("*cp27m-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    answer = diagnose(env)
    # Measured: the extension module of this very wheel needs no name of either width, so its import succeeds.
    assert answer.codes() == [], answer.stdout
    quick = diagnose(env, "--quick")
    assert quick.codes() == ["IDP314"], "what was not tried goes by its tags"
    assert finding(quick, "IDP314")["found"].endswith("for cp27m (UCS2) in a Python of cp27mu (UCS4)")


@pytest.mark.slow
def test_ideep4py_1_0_4_beside_chainer_7_is_a_pair_and_not_a_pin(broken_copy):
    env = broken_copy("3.6")
    pip_install(env, "ideep4py==1.0.4")
    assert diagnose(env).codes() == ["IDP303"]
    pip_install(env, "chainer==4.5.0")
    answer = diagnose(env, "--quick")
    pin = finding(answer, "IDP316")
    assert (pin["severity"], pin["found"]) == ("info", "numpy 1.19.5")
    assert {"IDP316", "IDP319"} <= set(answer.codes("info"))


@pytest.mark.slow
def test_pip_cannot_build_chainer_and_the_step_can(tmp_path):
    env = tmp_path / "env"
    subprocess.run([legacy_python("3.10"), "-m", "venv", str(env)], check=True)
    python = str(env / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", "--upgrade", "pip"], check=True, capture_output=True)
    install = [python, "-m", "pip", "install", "--no-cache-dir", "--no-deps", "chainer==7.8.1"]
    assert subprocess.run(install, capture_output=True, check=False).returncode != 0
    note = finding(diagnose(env, "--quick"), "IDP206")
    for command in note["treatment"]["next_step"].split(" && "):
        subprocess.run(command, shell=True, check=True, capture_output=True)
    done = subprocess.run([python, "-W", "ignore", "-c", "import chainer"], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "IDP206" not in diagnose(env, "--quick").codes("info", "warning", "error")
