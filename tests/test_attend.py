"""A program that has the doctor's own streams and terminal: its signals, its end."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ideepdoctor.signals import handed_on
from ideepdoctor.system import RealSystem

# Attends the program in argv[1:], says how it ended, and ends like it.
DOCTOR = """
import os, sys
from ideepdoctor.system import RealSystem
system = RealSystem()
ended = system.attend(sys.argv[1:], os.environ)
sys.stderr.write("ended %d\\n" % ended.returncode)
system.end_as(ended.returncode)
"""

# Counts what it gets, until a line comes on standard input (or its end).
PROGRAM = """
import os, signal, sys
counts = {}
def count(number, frame):
    counts[number] = counts.get(number, 0) + 1
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGWINCH", "SIGQUIT"):
    signal.signal(getattr(signal, name), count)
sys.stdout.write("ready %d\\n" % os.getpid())
sys.stdout.flush()
while not sys.stdin.readline():
    pass
print(sorted((signal.Signals(number).name, times) for number, times in counts.items()))
"""


def doctor(*words: str, code: str = PROGRAM) -> list[str]:
    return [sys.executable, "-c", DOCTOR, *(words or (sys.executable, "-u", "-c", code))]


def started(*words: str, **options: object) -> subprocess.Popen[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(doctor(*words), text=True, start_new_session=True, **{**pipes, **options})  # type: ignore[call-overload, no-any-return]


def ready(process: subprocess.Popen[str]) -> int:
    """Wait for the program; its number."""
    assert process.stdout is not None
    return int(process.stdout.readline().split()[1])


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGQUIT"])
def test_a_signal_to_the_doctor_reaches_the_program_once(name: str):
    with started() as process:
        ready(process)
        process.send_signal(getattr(signal, name))
        time.sleep(0.3)
        out, errors = process.communicate("go on\n", timeout=20)
    assert (process.returncode, out, errors) == (0, f"[('{name}', 1)]\n", "ended 0\n")


def test_ctrl_c_in_a_terminal_reaches_the_program_once():
    # The terminal itself sends it to both.
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, doctor())
    try:
        assert "ready" in until(terminal, "ready")
        time.sleep(0.3)
        os.write(terminal, b"\x03")
        time.sleep(0.5)
        os.write(terminal, b"go on\n")
        said = until(terminal, "ended")
    finally:
        os.close(terminal)
        _, status = os.waitpid(child, 0)
    assert "[('SIGINT', 1)]" in said
    assert os.waitstatus_to_exitcode(status) == 0


def until(descriptor: int, word: str) -> str:
    """What comes until a word has come, or for twenty seconds."""
    said, deadline = "", time.monotonic() + 20
    while word not in said and time.monotonic() < deadline:
        if select.select([descriptor], [], [], 0.5)[0]:
            try:
                said += os.read(descriptor, 4096).decode()
            except OSError:
                break
    return said


def test_a_signal_that_the_program_sends_to_its_whole_group_comes_once():
    code = PROGRAM.replace("while not", "os.killpg(0, signal.SIGTERM)\nwhile not")
    with started(sys.executable, "-u", "-c", code) as process:
        ready(process)
        out, errors = process.communicate("go on\n", timeout=20)
    assert (out, errors) == ("[('SIGTERM', 1)]\n", "ended 0\n")


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGABRT", "SIGTERM", "SIGPIPE", "SIGINT"])
def test_death_by_a_signal_is_seen_outside(name: str):
    code = f"import os, signal; signal.signal(signal.SIGINT, signal.SIG_DFL); os.kill(os.getpid(), signal.{name})"
    if name == "SIGPIPE":
        code = "import signal; signal.signal(13, signal.SIG_DFL);" + code
    with started(sys.executable, "-c", code) as process:
        _, errors = process.communicate(timeout=20)
    number = int(getattr(signal, name))
    assert (process.returncode, errors) == (-number, f"ended {-number}\n")


def test_no_core_is_left_by_the_second_death(tmp_path: Path):
    limits = "import resource, sys, os; resource.setrlimit(resource.RLIMIT_CORE, (0, -1)); "
    limits += "os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-c", limits, *doctor("/bin/sh", "-c", "kill -SEGV $$")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=30)
    assert done.returncode == -signal.SIGSEGV
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_the_exit_code_is_the_programs(code: int):
    with started("/bin/sh", "-c", f"exit {code}") as process:
        process.communicate(timeout=20)
    assert process.returncode == code


def test_the_streams_are_the_programs():
    with started("/bin/sh", "-c", "cat; echo error >&2") as process:
        out, errors = process.communicate("over standard input", timeout=20)
    assert (out, errors) == ("over standard input", "error\nended 0\n")


def test_the_program_gets_the_signals_as_a_shell_gives_them():
    tell = "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []))\n"
    tell += "print(open('/proc/self/status').read().split('SigIgn:')[1].split()[0])"
    plain = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -S -c "$1"', sys.executable, tell], capture_output=True, text=True
    )
    with started(sys.executable, "-S", "-c", tell) as process:
        out, _ = process.communicate(timeout=20)
    assert out == plain.stdout


def test_what_cannot_be_started_is_an_error_and_nothing_stays_blocked(tmp_path: Path):
    (tmp_path / "none").write_text("no program")
    (tmp_path / "none").chmod(0o755)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    for word, error in (("no-such-program", FileNotFoundError), (str(tmp_path / "none"), OSError)):
        with pytest.raises(error):
            RealSystem().attend([word], {"PATH": os.defpath})
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_the_path_of_the_programs_environment_is_searched(tmp_path: Path):
    (tmp_path / "mine").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "mine").chmod(0o755)
    code = DOCTOR.replace("os.environ)", f"{{'PATH': {str(tmp_path)!r}}})")
    assert subprocess.run([sys.executable, "-c", code, "mine"], timeout=20, capture_output=True).returncode == 3


def test_job_control_and_faults_are_not_handed_on():
    kept = {signal.SIGTSTP, signal.SIGCONT, signal.SIGSTOP, signal.SIGKILL, signal.SIGSEGV}
    assert not kept & handed_on()
    assert {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2, signal.SIGWINCH} <= handed_on()
