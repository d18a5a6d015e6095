"""Faults of native libraries and of variables, made for real: each gives its code, and what the rules say of it is so."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.environments import Answer, doctor, site_packages
from tests.e2e.loader_rows import patchelf
from tests.e2e.strangers import Stranger

pytestmark = pytest.mark.e2e

OPENMP_2021 = Stranger(
    "intel-openmp==2021.4.0",
    "e2240ab8d01472fed04f3544a878cda5da16c26232b7ea1b59132dbfb48b186e",
    "intel_openmp-2021.4.0.data/data/lib",
)
BACKWARD = """
import numpy, chainer, chainer.functions as F
x = chainer.Variable(numpy.ones((4, 16, 28, 28), "f"))
w = chainer.Variable(numpy.ones((32, 16, 3, 3), "f"))
y = F.convolution_2d(x, w, pad=1)
y.grad = numpy.ones(y.shape, "f")
y.backward()
print(type(y.array).__name__, len([1 for _ in open("/proc/self/maps")]) > 0)
"""


def diagnose(environment: Path, *options: str, **variables: str) -> Answer:
    words = ("diagnose", "--python", str(environment), "--format", "json", *options)
    return doctor(*words, environ={"IDEEPDOCTOR_LOG_FILE": "", **variables})


def finding(answer: Answer, code: str) -> dict[str, object]:
    [found] = [item for item in answer.document["findings"] if item["code"] == code]
    return found


def every_code(answer: Answer) -> list[str]:
    return answer.codes("error", "warning", "info")


def recorded_anew(environment: Path, file: Path) -> None:
    """Write a changed file's size and sha256 into its RECORD, as a package built so would have them."""
    packages = site_packages(environment)
    digest = base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest()).rstrip(b"=").decode()
    name = file.relative_to(packages).as_posix()
    [record] = packages.glob("ideep4py-*.dist-info/RECORD")
    line = re.compile(rf"^{re.escape(name)},.*$", re.MULTILINE)
    text, count = line.subn(f"{name},sha256={digest},{file.stat().st_size}", record.read_text())
    assert count == 1
    record.write_text(text)


@pytest.mark.parametrize(
    ("variables", "codes"),
    [
        ({"OMP_THREAD_LIMIT": "1", "CHAINER_USE_IDEEEP": "auto"}, ["IDP507", "IDP509"]),
        ({"CHAINER_DEBUG": "true"}, ["IDP509"]),
        ({"KMP_DUPLICATE_LIB_OK": "TRUE", "DNNL_VERBOSE": "1", "MKLDNN_VERBOSE": "0"}, ["IDP507", "IDP508"]),
        ({"OMP_STACKSIZE": "1k", "OMP_SCHEDULE": "junk", "MKL_NUM_THREADS": "junk", "KMP_AFFINITY": "junk"}, []),
    ],
    ids=["a limit and a slip", "a word for Chainer", "nothing reads them", "no harm"],
)
def test_variables(made, variables, codes):
    env, _ = made("3.7")
    assert every_code(diagnose(env, **variables)) == codes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "codes"),
    [
        ({"OMP_DYNAMIC": "true"}, ["IDP509"]),
        ({"OMP_MAX_ACTIVE_LEVELS": "0"}, ["IDP509"]),
        ({"KMP_LIBRARY": "serial"}, ["IDP509"]),
        ({"OMP_STACKSIZE": "1000g"}, ["IDP509"]),
        ({"OMP_NUM_THREADS": "abc"}, ["IDP509"]),
        ({"KMP_BLOCKTIME": "0"}, ["IDP509"]),
        ({"CHAINER_LAZY_GRAD_SUM": ""}, ["IDP509"]),
        ({"OMP_NUM_THREAD": "1"}, ["IDP507"]),
        ({"GOMP_CPU_AFFINITY": "0-1"}, ["IDP505"]),
        ({"OMP_DYNAMIC": "true", "OMP_NUM_THREADS": "1"}, []),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
@pytest.mark.parametrize("version", ["3.6", "3.7"])
def test_more_variables(made, version, variables, codes):
    if codes == ["IDP505"] and version == "3.6":
        codes = []
    env, _ = made(version)
    assert every_code(diagnose(env, **variables)) == codes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "ends"),
    [
        ({}, True),
        ({"OMP_MAX_ACTIVE_LEVELS": "0"}, False),
        ({"KMP_LIBRARY": "serial"}, False),
        ({"OMP_THREAD_LIMIT": "1"}, False),
        ({"KMP_DEVICE_THREAD_LIMIT": "1"}, False),
        ({"OMP_THREAD_LIMIT": "1", "OMP_NUM_THREADS": "1"}, True),
        ({"OMP_THREAD_LIMIT": "4", "OMP_NUM_THREADS": "4"}, True),
        ({"OMP_THREAD_LIMIT": "4", "OMP_NUM_THREADS": "8"}, False),
        ({"OMP_STACKSIZE": "1k"}, True),
        ({"OMP_NUM_THREADS": "junk", "OMP_WAIT_POLICY": "junk", "OMP_SCHEDULE": "junk"}, True),
    ],
    ids=lambda value: "-".join(f"{name}={what}" for name, what in value.items()) if isinstance(value, dict) else None,
)
@pytest.mark.parametrize("version", ["3.6", "3.7"])
def test_what_these_variables_do(made, version, variables, ends):
    env, _ = made(version)
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU: OpenMP gives all threads that it counts")
    argv = [str(env / "bin" / "python"), "-c", BACKWARD]
    try:
        done = subprocess.run(argv, env={**os.environ, **variables}, capture_output=True, text=True, timeout=15)
    except subprocess.TimeoutExpired:
        assert not ends
    else:
        assert ends, done.stdout + done.stderr
        assert done.stdout.startswith("mdarray"), done.stderr


def test_a_library_that_asks_for_an_executable_stack(broken_copy):
    env = broken_copy("3.7")
    library = site_packages(env) / "ideep4py" / "lib" / "libmkldnn.so.0"
    patchelf(library, "--set-execstack")
    recorded_anew(env, library)
    answer = diagnose(env)
    assert every_code(answer) == ["IDP409"], answer.stdout
    told = finding(answer, "IDP409")
    assert f"{library} asks" in str(told["found"]) or "libmkldnn.so.0) asks" in str(told["found"])
    command = str(told["treatment"]["next_step"]).split()
    assert command[:2] == ["patchelf", "--clear-execstack"]
    patchelf(Path(command[2]), command[1])
    recorded_anew(env, library)
    assert every_code(diagnose(env)) == []


def test_ideep4py_in_the_cache_of_the_loader(made, tmp_path):
    env, _ = made("3.7")
    private = ["unshare", "--mount", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*private, "true"], capture_output=True).returncode:
        pytest.skip("no mount namespace of one's own")
    (tmp_path / "ld.so.conf").write_text(f"{site_packages(env) / 'ideep4py' / 'lib'}\n")
    cache = tmp_path / "ld.so.cache"
    words = ["ldconfig", "-C", str(cache), "-f", str(tmp_path / "ld.so.conf"), "-X"]
    path = f"{os.environ.get('PATH', '')}:/sbin:/usr/sbin"
    subprocess.run(words, check=True, capture_output=True, env={**os.environ, "PATH": path})
    script = 'mount --bind "$1" /etc/ld.so.cache && shift && exec "$@"'
    command = [str(Path(sys.executable).with_name("ideepdoctor")), "diagnose", "--python", str(env), "--format", "json"]
    done = subprocess.run([*private, script, "sh", str(cache), *command], capture_output=True, text=True, timeout=120)
    answer = Answer(done.returncode, done.stdout, done.stderr)
    assert every_code(answer) == ["IDP410"], done.stderr
    assert "ldconfig" in str(finding(answer, "IDP410")["treatment"]["next_step"])
