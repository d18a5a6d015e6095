"""The real system: what a program wrote is there when it has ended, however busy the machine is."""

from __future__ import annotations

import select
import sys
import time
from pathlib import Path

import pytest

from ideepdoctor.system import RealSystem, TreeEntry

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


def test_both_streams_come_line_by_line_in_the_order_of_writing() -> None:
    program = (
        "import sys, time\n"
        "for number in range(3):\n"
        "    sys.stdout.write(f'out {number}\\n'); sys.stdout.flush()\n"
        "    sys.stderr.write(f'err {number}\\n'); sys.stderr.flush()\n"
        "    time.sleep(0.3)\n"
        "sys.stdout.write('the end without a newline')\n"
    )
    seen: list[tuple[str, float]] = []
    nothing: list[str] = []
    done = RealSystem().run(
        [sys.executable, "-c", program],
        timeout_seconds=30,
        on_line=nothing.append,
        on_output=lambda line: seen.append((line, time.monotonic())),
    )
    wanted = [*(f"{name} {number}" for number in range(3) for name in ("out", "err")), "the end without a newline"]
    assert [line for line, _ in seen] == wanted
    assert done.text() == "\n".join(wanted)
    assert done.stderr == b"" and nothing == []
    # While it runs, not at its end.
    assert seen[-1][1] - seen[0][1] > 0.5


def test_a_program_whose_output_is_watched_is_killed_at_its_time_limit() -> None:
    seen: list[str] = []
    program = "import time\nprint('begun', flush=True)\ntime.sleep(60)"
    done = RealSystem().run([sys.executable, "-c", program], timeout_seconds=1, on_output=seen.append)
    assert done.timed_out and not done.ok
    assert seen == ["begun"]


def test_a_log_can_be_read_while_it_grows(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    RealSystem().append_text(str(log), "one\n")
    RealSystem().append_text(str(log), "two \udcff\n")
    assert log.read_text().splitlines()[0] == "one"
    assert log.read_text().splitlines()[1].startswith("two")


def test_a_tree_is_written_with_its_modes_and_links(tmp_path: Path):
    entries = [
        TreeEntry("bin/run", 0o755, b"#!/bin/sh\n"),
        TreeEntry("empty"),
        TreeEntry("bin/again", link="run"),
    ]
    RealSystem().write_tree(str(tmp_path / "new"), entries)
    assert (tmp_path / "new/bin/again").read_bytes() == b"#!/bin/sh\n"
    assert (tmp_path / "new/bin/again").is_symlink()
    assert (tmp_path / "new/bin/run").stat().st_mode & 0o777 == 0o755
    assert list((tmp_path / "new/empty").iterdir()) == []


def test_a_tree_never_replaces_a_file_and_never_writes_through_a_link(tmp_path: Path):
    (tmp_path / "mine").write_bytes(b"mine")
    (tmp_path / "link").symlink_to("mine")
    for name in ("mine", "link"):
        with pytest.raises(FileExistsError):
            RealSystem().write_tree(str(tmp_path), [TreeEntry(name, data=b"theirs")])
    assert (tmp_path / "mine").read_bytes() == b"mine"
