"""More faults made for real, each with exactly its code: variables, missing packages, a stranger's library."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import legacy_python
from tests.e2e.environments import doctor, pip_install, site_packages, uv

pytestmark = pytest.mark.e2e


def diagnose(environment: Path, **variables: str):
    return doctor("diagnose", "--python", str(environment), "--format", "json", environ=variables)


@pytest.mark.parametrize(
    ("variables", "code"),
    [
        ({"CHAINER_DTYPE": "float64"}, "IDP503"),
        ({"CHAINER_DTYPE": "mixed16"}, "IDP503"),
        ({"OMP_NUM_THREADS": "64"}, "IDP504"),
        ({"OMP_PROC_BIND": "true"}, "IDP505"),
        ({"OMP_PLACES": "cores"}, "IDP505"),
        ({"CHAINER_USE_IDEEP": "yes"}, "IDP502"),
    ],
)
def test_a_variable(made, variables, code):
    env, _ = made("3.7")
    assert diagnose(env, **variables).codes() == [code]


def test_variables_that_are_not_set(broken_copy):
    env = broken_copy("3.7")
    (site_packages(env) / "ideepdoctor.pth").unlink()
    amd = {"IDP701"} if "AuthenticAMD" in Path("/proc/cpuinfo").read_text() else set()
    assert set(diagnose(env).codes()) == {"IDP501", "IDP610"} | amd
    fixed = doctor("fix", "--python", str(env), "--yes", "--format", "json")
    assert fixed.document["applied"] is True
    assert diagnose(env).codes() == []


@pytest.mark.parametrize(("name", "code"), [("ideep4py", "IDP301"), ("chainer", "IDP308"), ("six", "IDP311")])
def test_a_package_that_is_missing_is_installed(broken_copy, name, code):
    env = broken_copy("3.7")
    python = str(env / "bin" / "python")
    uv("pip", "uninstall", "--python", python, name)
    assert diagnose(env).codes() == [code]
    fixed = doctor("fix", "--python", str(env), "--yes", "--format", "json")
    assert (fixed.code, fixed.document["applied"]) == (0, True), fixed.stdout
    assert diagnose(env).codes() == []


def test_a_protobuf_that_breaks_the_caffe_bridge_alone(broken_copy):
    env = broken_copy("3.7")
    pip_install(env, "protobuf==4.24.4")
    answer = diagnose(env)
    assert (answer.codes("warning"), answer.codes("error"), answer.code) == (["IDP307"], [], 0)


def test_a_strangers_library_kills_the_first_operation(made, broken_copy):
    env, _ = made("3.7")
    other = broken_copy("3.6", "--stack", "chainer4.5.0-ideep4py1.0.4")
    stranger = site_packages(other) / "ideep4py" / "lib" / "libmkldnn.so.0"
    answer = diagnose(env, LD_PRELOAD=str(stranger), LD_LIBRARY_PATH=str(stranger.parent))
    assert (answer.codes("error"), answer.code) == (["IDP401"], 1), answer.stdout


def test_an_older_libstdcxx_on_the_search_path(made, tmp_path):
    env, _ = made("3.7")
    (tmp_path / "old.c").write_text("int old(void) { return 0; }\n")
    (tmp_path / "old.map").write_text("GLIBCXX_3.4 { global: old; };\n")
    options = ["-Wl,-soname,libstdc++.so.6", f"-Wl,--version-script,{tmp_path}/old.map"]
    library = str(tmp_path / "libstdc++.so.6")
    subprocess.run(["gcc", "-shared", "-fPIC", *options, "-o", library, str(tmp_path / "old.c")], check=True)
    answer = diagnose(env, LD_LIBRARY_PATH=str(tmp_path))
    assert (answer.codes(), answer.code) == (["IDP406"], 1), answer.stdout
    [finding] = [item for item in answer.document["findings"] if item["code"] == "IDP406"]
    assert finding["found"].startswith("libstdc++.so.6: version `"), finding
    assert finding["treatment"]["next_step"] == "unset LD_LIBRARY_PATH"
    assert any(item["path"] == library for item in finding["evidence"])


def test_an_interpreter_without_a_wheel(tmp_path):
    env = tmp_path / "env"
    uv("venv", "--python", legacy_python("3.11"), str(env))
    answer = diagnose(env)
    assert (answer.codes(), answer.code) == (["IDP201"], 1)
    assert "--python" in answer.document["findings"][0]["treatment"]["next_step"]


def test_a_truncated_library_that_would_kill_with_sigbus(broken_copy):
    env = broken_copy("3.7")
    os.truncate(site_packages(env) / "ideep4py" / "lib" / "libmklml_intel.so", 1_000_000)
    assert diagnose(env).codes() == ["IDP309"]
