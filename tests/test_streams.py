"""Conversations with real programs: marks, rests, ends, errors."""

from __future__ import annotations

import signal
import sys
import time

import pytest

from ideepdoctor.streams import Conversation
from ideepdoctor.system import RealSystem

ECHO = "import sys\nfor line in sys.stdin: sys.stdout.write('<' + line.strip() + '>'); sys.stdout.flush()"


def talk(program: str) -> Conversation:
    dialogue = RealSystem().converse([sys.executable, "-c", program])
    assert isinstance(dialogue, Conversation)
    return dialogue


def test_each_answer_ends_at_its_mark_and_the_rest_is_the_next_one() -> None:
    dialogue = talk(ECHO)
    dialogue.send(b"one\ntwo\nthree\n")
    assert dialogue.receive(b">", 1, 10) == b"<one>"
    assert dialogue.receive(b">", 2, 10) == b"<two><three>"
    assert dialogue.ended() is None
    assert dialogue.close() == 0


def test_time_runs_out_and_what_came_is_not_lost() -> None:
    dialogue = talk(ECHO)
    dialogue.send(b"half\n")
    assert dialogue.receive(b">", 2, 0.5) is None
    dialogue.send(b"whole\n")
    assert dialogue.receive(b">", 2, 10) == b"<half><whole>"
    dialogue.close()


def test_a_program_that_ends_says_what_it_wrote_and_how_it_ended() -> None:
    dialogue = talk("import sys, os; sys.stderr.write('last words'); sys.stderr.flush(); os.abort()")
    assert dialogue.receive(b">", 1, 20) is None
    assert dialogue.close() == -signal.SIGABRT
    assert "last words" in dialogue.errors()


def test_a_program_that_does_not_end_is_ended() -> None:
    dialogue = talk("import time, sys\nsys.stdin.close()\ntime.sleep(600)")
    started = time.monotonic()
    assert dialogue.close(0.2) == -signal.SIGKILL
    assert time.monotonic() - started < 30


def test_writing_to_a_program_that_is_gone() -> None:
    dialogue = talk("pass")
    assert dialogue.receive(b">", 1, 20) is None
    with pytest.raises(OSError):
        for _ in range(100):
            dialogue.send(b"x" * 65536)
    dialogue.close()


def test_no_such_program() -> None:
    with pytest.raises(FileNotFoundError):
        RealSystem().converse(["/no/such/program"])
