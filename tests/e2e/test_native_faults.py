"""Faults of native libraries and of variables, made for real: each gives its code, and does what its rule says."""

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

from tests.e2e.environments import Answer, doctor, pip_install, site_packages, uv
from tests.e2e.loader_rows import patchelf
from tests.e2e.strangers import Stranger, fetch

pytestmark = pytest.mark.e2e

OPENMP_2021 = Stranger(
    "intel-openmp==2021.4.0",
    "e2240ab8d01472fed04f3544a878cda5da16c26232b7ea1b59132dbfb48b186e",
    "lib",
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


@pytest.mark.slow
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


def runtime(strangers_folder: Path, folder: Path, name: str) -> Path:
    """Intel's OpenMP runtime of 2021, which is LLVM's, with a SONAME that makes it another library for the loader."""
    copy = folder / name
    shutil.copy2(fetch(OPENMP_2021, strangers_folder) / "libiomp5.so", copy)
    patchelf(copy, "--set-soname", name)
    return copy


@pytest.mark.slow
@pytest.mark.parametrize("name", ["libiomp5-other.so.1", "libomp.so.5"])
def test_a_second_openmp_runtime_is_silent_and_is_reported(made, tmp_path, name):
    env, _ = made("3.7")
    other = runtime(tmp_path / "fetched", tmp_path, name)
    argv = [str(env / "bin" / "python"), "-c", BACKWARD]
    done = subprocess.run(
        argv, env={**os.environ, "LD_PRELOAD": str(other)}, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, "OMP: Error" in done.stderr) == (0, False), done.stderr
    answer = diagnose(env, LD_PRELOAD=str(other))
    assert answer.codes() == ["IDP408"], answer.stdout
    assert str(other) in str(finding(answer, "IDP408")["found"])
    hidden = diagnose(env, LD_PRELOAD=str(other), KMP_DUPLICATE_LIB_OK="TRUE")
    assert every_code(hidden) == ["IDP408"], hidden.stdout
    assert "hides the clash" in str(finding(hidden, "IDP408")["found"])


@pytest.mark.slow
def test_a_runtime_of_the_same_age_ends_the_process(broken_copy, tmp_path):
    env = broken_copy("3.7")
    other = tmp_path / "libother.so.1"
    shutil.copy2(site_packages(env) / "ideep4py" / "lib" / "libiomp5.so", other)
    patchelf(other, "--set-soname", other.name)
    # Mapped alone it does nothing; the first call registers it.
    line = f"import ctypes; ctypes.CDLL({str(other)!r}).omp_get_max_threads()\n"
    (site_packages(env) / "another.pth").write_text(line)
    answer = diagnose(env)
    assert (answer.codes("error"), answer.code) == (["IDP408"], 1), answer.stdout
    assert "OMP: Error #15" in str(finding(answer, "IDP408")["consequence"]), answer.stdout
    goes_on = diagnose(env, KMP_DUPLICATE_LIB_OK="TRUE")
    assert (goes_on.codes(), goes_on.code) == (["IDP408"], 0), goes_on.stdout


@pytest.mark.slow
def test_a_threading_layer_that_mkl_service_refuses(broken_copy):
    env = broken_copy("3.7")
    pip_install(env, "mkl-service==2.4.0")
    gomp = next(path for path in mapped_by(env) if "/libgomp" in path)
    assert diagnose(env, LD_PRELOAD=gomp, MKL_THREADING_LAYER="INTEL").codes() == ["IDP506"]
    assert diagnose(env, MKL_THREADING_LAYER="INTEL").codes() == []


@pytest.mark.slow
def test_what_mkl_service_does(broken_copy):
    env = broken_copy("3.7")
    pip_install(env, "mkl-service==2.4.0", "mkl==2022.1.0", "intel-openmp==2022.1.0")
    gomp = next(path for path in mapped_by(env) if "/libgomp" in path)
    for program, variables, code in (
        ("import mkl", {"LD_PRELOAD": gomp, "MKL_THREADING_LAYER": "INTEL"}, 1),
        ("import numpy, mkl", {"LD_PRELOAD": gomp, "MKL_THREADING_LAYER": "intel"}, 1),
        ("import mkl", {"LD_PRELOAD": gomp, "MKL_THREADING_LAYER": "GNU"}, 0),
        ("import mkl", {"LD_PRELOAD": gomp, "MKL_THREADING_LAYER": "INTEL", "MKL_SERVICE_FORCE_INTEL": "1"}, 0),
        ("import ideep4py, mkl", {"MKL_THREADING_LAYER": "INTEL"}, 0),
    ):
        argv = [str(env / "bin" / "python"), "-c", program]
        done = subprocess.run(argv, env={**os.environ, **variables}, capture_output=True, text=True, timeout=60)
        assert done.returncode == code, (program, variables, done.stderr)
        if code:
            # It is named as the loader found it: by the file's own name, here.
            refused = f"MKL_THREADING_LAYER=INTEL is incompatible with {Path(gomp).name} library."
            assert refused in done.stderr


def mapped_by(environment: Path) -> list[str]:
    """Shared objects of a process that has imported ideep4py."""
    program = "import ideep4py; print(open('/proc/self/maps').read())"
    done = subprocess.run([str(environment / "bin" / "python"), "-c", program], capture_output=True, text=True)
    return sorted({line.split()[-1] for line in done.stdout.splitlines() if ".so" in line})


def test_numpy_with_the_reference_blas(broken_copy, tmp_path):
    env = broken_copy("3.7")
    packages = site_packages(env)
    [fast] = packages.glob("numpy.libs/libopenblas*")
    modules = [*packages.glob("numpy/core/_multiarray_umath*.so"), *packages.glob("numpy/linalg/*.so")]
    listed = subprocess.run(["nm", "-D", "--undefined-only", *map(str, modules)], capture_output=True, text=True)
    names = {line.split()[-1] for line in listed.stdout.splitlines() if re.search(r" U (cblas_\w+|\w+_)$", line)}
    names -= {"cblas_sdot"}
    source = tmp_path / "blas.c"
    source.write_text(
        "float cblas_sdot(int n, const float *x, int a, const float *y, int b)"
        "{ float sum = 0; for (int i = 0; i < n; i++) sum += x[i * a] * y[i * b]; return sum; }\n"
        + "".join(f"void {name}(void) {{ __builtin_trap(); }}\n" for name in sorted(names))
    )
    standin = tmp_path / "blas" / "libblas.so.3.11.0"
    standin.parent.mkdir()
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", "-o", str(standin), str(source)], check=True)
    fast.unlink()
    fast.symlink_to(standin)
    answer = diagnose(env)
    assert answer.codes() == ["IDP706"], answer.stdout
    assert str(standin) in str(finding(answer, "IDP706")["found"])


@pytest.mark.slow
def test_numpy_built_without_blas(broken_copy, monkeypatch):
    env = broken_copy("3.7")
    for name in ("BLAS", "LAPACK", "ATLAS", "OPENBLAS", "MKL"):
        monkeypatch.setenv(name, "None")
    monkeypatch.setenv("NPY_BLAS_ORDER", "")
    monkeypatch.setenv("NPY_LAPACK_ORDER", "")
    python = str(env / "bin" / "python")
    words = ["-m", "pip", "install", "--no-binary", "numpy", "--no-deps", "--force-reinstall", "--no-cache-dir"]
    subprocess.run([python, *words, "numpy==1.16.6"], check=True, capture_output=True, timeout=1200)
    answer = diagnose(env)
    assert answer.codes() == ["IDP706"], answer.stdout
    command = str(finding(answer, "IDP706")["treatment"]["next_step"]).split()
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    assert diagnose(env).codes() == []


@pytest.mark.slow
def test_numpy_with_the_mkl_of_intel(broken_copy, tmp_path):
    env = broken_copy("3.6")
    uv("pip", "uninstall", "--python", str(env / "bin" / "python"), "numpy")
    pip_install(env, "intel-numpy==1.15.1", "mkl==2019.0", "mkl_fft==1.0.6", "mkl_random==1.0.1.1")
    pip_install(env, "icc_rt==2020.0.133", "intel-openmp==2019.0")
    other = tmp_path / "other"
    uv("pip", "install", "--python", str(env / "bin" / "python"), "--target", str(other), "--no-deps", "mkl==2018.0.3")
    [core] = other.rglob("libmkl_core.so")
    assert beside_needs(diagnose(env)) == []
    # Another MKL on the search path changes nothing: NumPy's own has been found by its RPATH, and finds its parts.
    assert beside_needs(diagnose(env, LD_LIBRARY_PATH=str(core.parent))) == []
    assert product(env, LD_LIBRARY_PATH=str(core.parent)) == 0
    answer = diagnose(env, LD_PRELOAD=str(core))
    assert beside_needs(answer) == ["IDP411"], answer.stdout
    assert finding(answer, "IDP411")["treatment"]["next_step"] == "unset LD_PRELOAD"
    assert (product(env, LD_PRELOAD=str(core)), fourier(env, LD_PRELOAD=str(core))) == (0, -11)
    for name in ("libmkl_core.so", "libmkl_intel_thread.so"):
        part = env / "lib" / name
        part.rename(tmp_path / name)
        answer = diagnose(env)
        assert (beside_needs(answer), answer.code) == (["IDP411"], 1), answer.stdout
        assert (name == "libmkl_core.so") == ("libmkl_core missing" in str(finding(answer, "IDP411")["found"]))
        assert product(env) == 2
        (tmp_path / name).rename(part)
    assert beside_needs(diagnose(env)) == []


def beside_needs(answer: Answer) -> list[str]:
    """The codes without IDP316: what else Intel's NumPy asks for is not installed here, and not used."""
    return [code for code in every_code(answer) if code != "IDP316"]


def product(environment: Path, **variables: str) -> int:
    """Exit code of a process that multiplies two matrices with NumPy."""
    return ended(environment, "assert n.ones((300, 300), 'f').dot(n.ones((300, 300), 'f'))[0, 0] == 300", variables)


def fourier(environment: Path, **variables: str) -> int:
    """Exit code of a process that computes a Fourier transform with NumPy."""
    return ended(environment, "assert n.fft.fft(n.ones(64))[0] == 64", variables)


def ended(environment: Path, program: str, variables: dict[str, str]) -> int:
    argv = [str(environment / "bin" / "python"), "-c", f"import numpy as n; {program}"]
    return subprocess.run(argv, env={**os.environ, **variables}, capture_output=True, timeout=60).returncode
