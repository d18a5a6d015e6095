"""Limits of the host and of the process, made for real: each has exactly its code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

REFUSE_CODE = (
    "import ctypes, os, sys; assert ctypes.CDLL(None).prctl(65, 1, 0, 0, 0) == 0; os.execv(sys.argv[1], sys.argv[1:])"
)
"""prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN), then becomes the program."""
JOIN = "import os, sys; open(sys.argv[1], 'w').write(str(os.getpid())); os.execv(sys.argv[2], sys.argv[2:])"
"""Enters a control group, then becomes the program."""
HIDE_SHARED = """
mount --make-rprivate / || exit 99
mount -t tmpfs -o size=1m none /dev || exit 99
mknod -m 666 /dev/null c 1 3; mknod -m 666 /dev/zero c 1 5; mknod -m 666 /dev/random c 1 8
mknod -m 666 /dev/urandom c 1 9; mknod -m 666 /dev/tty c 5 0
exec "$@"
"""
"""A /dev of its own without shm; only in a mount namespace of its own."""
SMALL_SHARED = 'mount --make-rprivate / && mount -t tmpfs -o size="$SIZE" none /dev/shm || exit 99\nexec "$@"'
NOEXEC = """
mount --make-rprivate / && mount --bind "$HERE" "$HERE" && mount -o remount,bind,noexec "$HERE" || exit 99
exec "$@"
"""


def answer_of(words: list[str], *options: str, environ: dict[str, str] | None = None, python: Path) -> dict:
    """What diagnose says as JSON, started through these words."""
    argv = [
        *words,
        sys.executable,
        "-m",
        "ideepdoctor",
        "diagnose",
        "--python",
        str(python),
        "--format",
        "json",
        *options,
    ]
    whole = {**os.environ, **(environ or {})}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, env=whole, check=False)
    if done.returncode == 99:
        pytest.skip("mounts are not permitted here")
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def codes(document: dict, *severities: str) -> list[str]:
    """The codes of the findings of these severities; none given: of errors and warnings."""
    wanted = severities or ("error", "warning")
    return [finding["code"] for finding in document["findings"] if finding["severity"] in wanted]


def in_namespace(script: str) -> list[str]:
    """Words that run a program after the script, in a mount namespace of its own."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root makes mount namespaces here")
    return ["unshare", "-m", "sh", "-c", script, "sh"]


@pytest.fixture
def refused() -> list[str]:
    """Words that run a program which may not make code of what it wrote."""
    words = [sys.executable, "-c", REFUSE_CODE]
    if subprocess.run([*words, "/bin/true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this kernel has no PR_SET_MDWE")
    return words


@pytest.mark.parametrize(
    "version", ["3.7", pytest.param("3.6", marks=pytest.mark.slow), pytest.param("2.7", marks=pytest.mark.slow)]
)
def test_code_in_memory_is_refused(made, refused, version):
    env, _ = made(version)
    found = answer_of(refused, python=env)
    assert codes(found) == ["IDP114"]
    relu = "import numpy, ideep4py; ideep4py.relu.Forward(ideep4py.array(numpy.ones((2, 2), 'f')))"
    died = subprocess.run([*refused, str(env / "bin" / "python"), "-c", relu], capture_output=True, check=False)
    assert died.returncode == -6
    assert b"Xbyak::Error" in died.stderr
    assert b"can't protect" in died.stderr


def test_an_environment_on_a_file_system_without_code(made):
    env, _ = made("3.7")
    found = answer_of(in_namespace(NOEXEC), environ={"HERE": str(env)}, python=env)
    assert codes(found) == ["IDP116"]


ITERATE = """
import numpy
from chainer.iterators import MultiprocessIterator
class Data(object):
    def __len__(self):
        return 8
    def __getitem__(self, index):
        return numpy.ones((4, 1024, 256), "f")
iterator = MultiprocessIterator(Data(), 4, n_processes=2)
for _ in range(3):
    batch = iterator.next()
iterator.finalize()
print("done %d" % len(batch))
"""


@pytest.mark.parametrize(
    ("script", "size", "expected"),
    [
        pytest.param(HIDE_SHARED, "", ["IDP117"], id="none"),
        pytest.param(SMALL_SHARED, "4k", ["IDP117"], id="a page"),
        pytest.param(SMALL_SHARED, "16k", [], id="just enough", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    "version", ["3.7", pytest.param("3.6", marks=pytest.mark.slow), pytest.param("2.7", marks=pytest.mark.slow)]
)
def test_shared_memory(made, version, script, size, expected):
    """The rule says what Chainer's iterator does: batches of 16 MB need no room in /dev/shm, its semaphores do."""
    env, _ = made(version)
    words = in_namespace(script)
    assert codes(answer_of(words, environ={"SIZE": size}, python=env)) == expected
    iterate = [*words, str(env / "bin" / "python"), "-c", ITERATE]
    done = subprocess.run(
        iterate, capture_output=True, text=True, timeout=120, env={**os.environ, "SIZE": size}, check=False
    )
    assert ("done 4" in done.stdout) is not bool(expected), done.stderr
    assert not expected or "Errno" in done.stderr


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of processes."""
    own = {line.split(":")[1]: line.split(":")[2] for line in Path("/proc/self/cgroup").read_text().splitlines()}
    for parent in ("/sys/fs/cgroup/pids" + own.get("pids", "/"), "/sys/fs/cgroup" + own.get("", "/")):
        folder = Path(parent) / f"ideepdoctor-test-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            if (folder / "pids.max").exists():
                yield folder
                return
        finally:
            folder.rmdir()
    pytest.skip("no control group of processes can be made here")


def test_more_threads_than_processes(made, group):
    env, _ = made("3.7")
    (group / "pids.max").write_text("40")
    words = [sys.executable, "-c", JOIN, str(group / "cgroup.procs")]
    found = answer_of(words, python=env, environ={"OMP_NUM_THREADS": "64"})
    assert codes(found) == ["IDP707", "IDP504"]
    (finding,) = [one for one in found["findings"] if one["code"] == "IDP707"]
    assert finding["severity"] == "error"
    assert "64 threads of OpenMP" in finding["found"]
    assert codes(answer_of(words, python=env)) == []


def test_the_limit_of_address_space(made):
    env, _ = made("3.7")
    within = ["prlimit", f"--as={250 << 20}", str(env / "bin" / "python"), "-c", "import ideep4py"]
    failed = subprocess.run(within, capture_output=True, text=True, check=False)
    assert "failed to map segment" in failed.stderr or "MemoryError" in failed.stderr
    found = answer_of(["prlimit", f"--as={400 << 20}"], python=env, environ={"OMP_NUM_THREADS": "64"})
    assert codes(found) == ["IDP707", "IDP504"]
    assert found["findings"][0]["found"] == "400 MiB of address space, 64 threads"
