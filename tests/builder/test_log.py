"""The log of a build: all that was started and said, nobody's password, and no error of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ideepdoctor.builder.log import BuildLog
from ideepdoctor.builder.programs import Programs
from ideepdoctor.errors import BuildFailed, CouldNotCheck
from ideepdoctor.system import RealSystem
from tests.doubles import FakeSystem


def test_every_command_with_what_it_said_and_how_it_ended(tmp_path: Path) -> None:
    log = BuildLog(RealSystem(), str(tmp_path / "logs"))
    system, heard = log.watching(), list[str]()
    program = "import sys; print('out'); sys.stdout.flush(); sys.stderr.write('err\\n'); sys.exit(3)"
    log.begin("library")
    done = system.run([sys.executable, "-c", program], timeout_seconds=20, cwd=str(tmp_path), on_output=heard.append)
    assert done.returncode == 3 and heard == ["out", "err"]
    system.run([sys.executable, "-c", program], timeout_seconds=20, on_line=heard.append)
    text = Path(log.path).read_text()
    assert text.count("$ ") == 2 and f"(in {tmp_path})" in text and text.count("# ended with 3") == 2
    assert heard == ["out", "err", "err"]
    assert text.count("\nout\n") == text.count("\nerr\n") == 2
    assert "UTC  library" in text
    assert log.lines[0].startswith("===")
    log.begin("extension")
    assert len(log.lines) == 1


def test_a_password_in_an_address_is_not_written_down(tmp_path: Path) -> None:
    log = BuildLog(RealSystem(), str(tmp_path))
    log.write("$ git fetch https://me:secret@example.invalid/ideep.git")
    assert "secret" not in Path(log.path).read_text() and "example.invalid" in Path(log.path).read_text()


def test_a_full_disk_does_not_hide_what_filled_it(tmp_path: Path) -> None:
    system = FakeSystem()
    log = BuildLog(system, str(tmp_path))
    system.fail_writes = OSError(28, "No space left on device")
    log.write("c++: fatal error: No space left on device")
    assert list(log.lines) == ["c++: fatal error: No space left on device"]
    with pytest.raises(CouldNotCheck, match="cannot write the log"):
        BuildLog(system, str(tmp_path))


def test_two_logs_of_one_second_are_two_files(tmp_path: Path) -> None:
    assert len({BuildLog(RealSystem(), str(tmp_path)).path for _ in range(3)}) == 3


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; sys.exit(2)", "ended with 2"),
        ("import os; os.kill(os.getpid(), 9)", "killed by signal 9"),
        ("import time; time.sleep(60)", "no end within"),
    ],
)
def test_how_a_program_failed(tmp_path: Path, program: str, said: str) -> None:
    programs = Programs(RealSystem(), {"PATH": "/usr/bin:/bin"}, lambda _: None)
    with pytest.raises(BuildFailed, match=said):
        programs.run([sys.executable, "-c", program], cwd=str(tmp_path), what="it", timeout_seconds=1.5)
    with pytest.raises(BuildFailed, match="No such file"):
        programs.run(["/no/such/program"], cwd=str(tmp_path), what="it")


def test_a_program_of_a_build_has_its_variables_and_no_others(tmp_path: Path) -> None:
    heard: list[str] = []
    programs = Programs(RealSystem(), {"ONLY": "this", "PATH": "/usr/bin:/bin"}, heard.append)
    assert programs.run(["env"], cwd=str(tmp_path), what="env") == "".join(f"{line}\n" for line in heard)
    assert {"ONLY=this", "PATH=/usr/bin:/bin"} <= set(heard) and not any(line.startswith("HOME=") for line in heard)
