"""``run`` keeps every program's ways: each is started without it and with it, and nothing may differ.

The target is a plain Python without Chainer: what is started, and how it ends, has nothing to do with that.
"""

from __future__ import annotations

import os
import pty
import resource
import shutil
import signal
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import legacy_python
from tests.e2e.running import DOCTOR, program, run_words, start

pytestmark = pytest.mark.e2e


@pytest.fixture
def python() -> str:
    return legacy_python("3.7")


def same(python: str, *words: str | bytes, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Start a program by its path and by ``run``; assert that both do the same; return what they did."""
    environ = options.get("env", os.environ)
    first = {**environ, "PATH": f"{Path(python).parent}:{environ['PATH']}"}
    plain = start(list(words), **{**options, "env": first})
    ours = start(run_words(python, *words), **options)
    assert (ours.returncode, ours.stdout, ours.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    return ours


CRASHES = {
    "an exception": ("def f():\n    raise ValueError('of mine')\nf()\n", 1),
    "a syntax error": ("print 'of Python 2'\n", 1),
    "no Python at all": ("{{{ \0 }}}\n", 1),
    "sys.exit with a text": ("import sys; print('out'); sys.exit('of mine')\n", 1),
    "os._exit": ("import os, sys; sys.stdout.write('lost'); os.write(1, b'kept'); os._exit(5)\n", 5),
    "os.abort": ("import os; os.abort()\n", -signal.SIGABRT),
    "a segmentation fault": ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)\n", -signal.SIGSEGV),
    "too deep a recursion": ("def f():\n    f()\ntry:\n    f()\nexcept RuntimeError:\n    print('deep')\n", 0),
    "a fork": ("import os\nchild = os.fork()\nif child:\n    os._exit(os.waitpid(child, 0)[1] >> 8)\nos._exit(9)\n", 9),
    "output elsewhere": ("import os\nos.dup2(os.open('file', os.O_CREAT | os.O_WRONLY), 1)\nprint('x')\n", 0),
    "closed streams": ("import os\nfor stream in (0, 1, 2):\n    os.close(stream)\nos._exit(4)\n", 4),
    "a fault at its end": ("import atexit\natexit.register(lambda: 1 / 0)\n", 0),
    "threads that go on": ("import threading as t\nt.Timer(0.2, lambda: print('late')).start()\n", 0),
}  # fmt: skip


@pytest.mark.parametrize("kind", CRASHES)
def test_however_it_ends(python: str, tmp_path: Path, kind: str):
    text, code = CRASHES[kind]
    path = program(tmp_path, text)
    assert same(python, "python", path, cwd=tmp_path).returncode == code


def test_however_it_is_named(python: str, tmp_path: Path):
    (tmp_path / "package").mkdir()
    program(tmp_path, "import sys; print(__name__, sys.argv, sys.path[0])\n", "package/__main__.py")
    (tmp_path / "package" / "__init__.py").touch()
    path = program(tmp_path, "#!/usr/bin/env python\nimport sys; print(sys.version, sys.argv, sys.path[0])\n", "script")
    shutil.make_archive(str(tmp_path / "archive"), "zip", tmp_path / "package")
    for words in (
        ("python", "-m", "package", "--python", "-v"),
        ("python", "package", "x"),
        ("python", "archive.zip", "x"),
        (path, "--", "-h"),
        ("sh", "-c", 'python -c "print(1)"; exit 6'),
        ("env", "-i", python, "-c", "import os; print(os.environ)"),
        ("python", "-c", "import sys; print(sys.flags, sys.warnoptions)", "-W", "x"),
        ("python", "missing.py"),
        ("python", "-m", "missing"),
        ("python", "--no-such-option"),
    ):
        same(python, *words, cwd=tmp_path)
    for words, plain in (
        (("-m", "package", "x"), ("-m", "package", "x")),
        (("package", "x"), ("package", "x")),
        (("package/__main__.py",), ("package/__main__.py",)),
    ):
        ours = start(run_words(python, *words), cwd=tmp_path)
        assert ours.stdout == start([python, *plain], cwd=tmp_path).stdout != b""
    text = b"import sys; print(sys.stdin.read(), sys.argv)"
    assert same(python, "python", "-", "x", input=text, stdin=None).returncode == 0


def test_words_are_bytes(python: str):
    code = "import os, sys; os.write(1, repr([os.fsencode(word) for word in sys.argv]).encode())"
    done = same(python, "python", "-c", code, b"", b"\xff\xfe", "ä".encode(), b" ", b"a\nb", b"--", b"", b"*")
    assert done.stdout.startswith(b"[b'-c', b'', b'\\xff\\xfe'")
    plain = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    same(python, "python", "-c", code, b"\xff", "ä".encode(), env=plain)


SURROUNDINGS = """
import os, resource, signal, sys
told = {
    "cwd": os.getcwd(), "umask": os.umask(0), "nice": os.nice(0), "files": resource.getrlimit(resource.RLIMIT_NOFILE),
    "affinity": sorted(os.sched_getaffinity(0)), "group": os.getpgrp() == int(sys.argv[1]),
    "blocked": sorted(int(n) for n in signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "signals": [str(signal.getsignal(n)) for n in (1, 2, 3, 12, 15, 17, 18, 20, 21, 22)],
    "open": [n for n in range(3, 64) if os.path.exists("/proc/self/fd/%d" % n)],
    "timer": signal.getitimer(signal.ITIMER_REAL), "read": os.read(int(sys.argv[2]), 9),
    "environment": sorted(set(os.environ) - {"PATH", "PYTHONPATH", "OMP_NUM_THREADS", "CHAINER_USE_IDEEP", "_"})
}
print(sorted(told.items()))
"""  # fmt: skip


def test_its_surroundings_are_those_of_the_caller(python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("IDEEPDOCTOR_SET", raising=False)  # another test of this process may have left it
    ignored = (signal.SIGHUP, signal.SIGTERM, signal.SIGUSR2, signal.SIGINT)

    def before() -> None:
        os.umask(0o027)
        os.nice(3)
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300))
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})

    found = []
    for words in ([python], run_words(python, "python")):
        reading, writing = os.pipe()
        os.write(writing, b"inherited")
        words = [*words, "-c", SURROUNDINGS, str(os.getpgrp()), str(reading)]
        done = start(words, cwd=tmp_path, pass_fds=(reading,), preexec_fn=before)
        assert (done.returncode, done.stderr) == (0, b"")
        found.append(done.stdout.decode().replace("IDEEPDOCTOR_", "").replace(str([reading]), "[]"))
        os.close(reading)
        os.close(writing)
    plain, ours = (eval(text) for text in found)
    differs = {key: (before, after) for (key, before), (_, after) in zip(plain, ours, strict=True) if before != after}
    added = set(differs.pop("environment")[1]) - set(dict(plain)["environment"])
    assert differs == {}
    assert added <= {"RUN", "SET", "MKL_DEBUG_CPU_TYPE"} and {"RUN", "SET"} <= added
    assert dict(ours)["read"] == b"inherited" and dict(ours)["nice"] == os.nice(0) + 3


def started(python: str, code: str, *words: str, **options: Any) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(run_words(python, "python", "-uc", code, *words), stdout=pipe, stderr=pipe, **options)


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_it_has_the_process_number_and_takes_every_signal(python: str):
    code = """
import os, signal, time
def told(number, frame): print('got', number)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP): signal.signal(number, told)
print(os.getpid())
while True: time.sleep(0.02)
"""
    # In a group of its own: the kernel stops no process of a group that nobody looks after, as CI's may be.
    process = started(python, code, process_group=0)
    assert process.stdout is not None
    assert int(process.stdout.readline()) == process.pid
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
        process.send_signal(number)
        assert process.stdout.readline() == b"got %d\n" % number
    process.send_signal(signal.SIGTSTP)
    wait_until(lambda: state(process.pid) == "T")
    process.send_signal(signal.SIGCONT)
    wait_until(lambda: state(process.pid) in "SR")
    process.send_signal(signal.SIGUSR1)
    assert process.stdout.readline() == b"got %d\n" % signal.SIGUSR1
    process.send_signal(signal.SIGQUIT)
    assert process.wait(30) == -signal.SIGQUIT
    assert process.communicate() == (b"", b"")


def test_one_that_hangs_is_killed_like_any_other_and_leaves_nothing(python: str):
    process = started(python, "import time; print('here'); time.sleep(600)", start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"here\n"
    process.kill()
    assert process.wait(30) == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    process.communicate()


def test_a_pipe_that_nobody_reads_ends_it_quietly(python: str):
    done = start(["sh", "-c", f"{DOCTOR} run --python {python} -- sh -c 'kill -PIPE $$'; echo $?"])
    assert (done.stdout, done.stderr) == (b"141\n", b"")


def on_terminal(words: list[Any], *typed: tuple[bytes, bytes]) -> tuple[int, bytes, bool]:
    """Start a program on a terminal of its own.

    Each of ``typed`` is what to wait for, and what to type then. Returned are its exit code, all that was shown, and
    whether it left the terminal's modes as they were.
    """
    ours, theirs = pty.openpty()
    modes = termios.tcgetattr(theirs)

    def take_terminal() -> None:
        os.close(os.open(os.ttyname(0), os.O_RDWR))

    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    process = subprocess.Popen(words, **streams, start_new_session=True, preexec_fn=take_terminal)
    shown = b""
    try:
        for awaited, text in typed:
            while awaited not in shown:
                shown += os.read(ours, 1024)
            os.write(ours, text)
        code = process.wait(30)
        kept = termios.tcgetattr(theirs) == modes
        os.close(theirs)
        while True:
            try:
                shown += os.read(ours, 1024)
            except OSError:  # nobody has it open any more
                return code, shown, kept
    finally:
        process.kill()
        os.close(ours)


def test_on_a_terminal(python: str):
    code = """
import os, sys
print([os.isatty(n) for n in (0, 1, 2)], os.getpgrp() == os.getpid() == os.tcgetpgrp(0))
try:
    print(repr(sys.stdin.readline()))
    sys.stdin.readline()
except KeyboardInterrupt:
    print('interrupted')
    sys.exit(42)
"""
    typed = (b"] True\r\n", b"word\n"), (b"word\\n'\r\n", b"\x03")
    ours = on_terminal(run_words(python, "python", "-c", code), *typed)
    plain = on_terminal([python, "-c", code], *typed)
    assert plain[0] == ours[0] == 42 and ours[2] and plain[1].endswith(b"interrupted\r\n")
    before, found, _ = ours[1].rpartition(plain[1])
    # What the doctor shows until then is wiped away, and its cursor is back.
    assert found and (not before or before.endswith(b"\x1b[?25h\r\x1b[1A\x1b[2K")), (ours, plain)
