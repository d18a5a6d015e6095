"""The real system: what a program wrote is there when it has ended, however busy the machine is."""

from __future__ import annotations

import select
import sys
import time

import pytest

from ideepdoctor.system import RealSystem

LINES = [f"line {number}" for number in range(200)]
PROGRAM = f"import sys\nfor line in {LINES!r}:\n    sys.stderr.write(line + chr(10))\n"


def held_up(*_arguments: object) -> tuple[list[int], list[int], list[int]]:
    """A select that saw nothing, after which the process was not given the processor for a while."""
    time.sleep(0.3)
    return [], [], []


def test_what_was_written_just_before_the_end_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "select", held_up)
    seen: list[str] = []
    done = RealSystem().run([sys.executable, "-c", PROGRAM], timeout_seconds=30, on_line=seen.append)
    assert done.ok
    assert done.stderr.decode().splitlines() == LINES
    assert seen == LINES


def test_a_grandchild_that_holds_the_pipe_and_writes_does_not_keep_it_waiting() -> None:
    talker = "import sys, time\nfor _ in range(200):\n    sys.stderr.write('x' * 70000)\n    time.sleep(0.02)\n"
    program = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {talker!r}])\n"
    started = time.monotonic()
    done = RealSystem().run([sys.executable, "-c", program], timeout_seconds=30)
    assert done.ok
    assert not done.timed_out
    assert time.monotonic() - started < 30
