"""The double must behave as the real System does where tests rely on it."""

from __future__ import annotations

import pytest

from ideepdoctor.system import System
from ideepdoctor.targets.target import Target, run_payload
from tests.doubles import FakeSystem, completed, payload_answer


def test_first_fitting_pattern_answers_and_the_rest_cannot_start() -> None:
    system: System = FakeSystem([(["uv", "--version"], "uv 1"), ("uv", completed(returncode=2, stderr="a\nb"))])
    seen: list[str] = []
    assert system.run(["uv", "--version"], timeout_seconds=1).text() == "uv 1"
    failed = system.run(["uv", "pip"], timeout_seconds=1, on_line=seen.append)
    assert (failed.returncode, seen, failed.argv) == (2, ["a", "b"], ("uv", "pip"))
    missing = system.run(["conda"], timeout_seconds=1)
    assert missing.returncode == 127 and "conda" in missing.error


def test_payload_answer_reaches_run_payload() -> None:
    system = FakeSystem().on("/py", payload_answer({"version": "3.7.16"}))
    assert run_payload(system, Target("/py"), "__init__", {}, timeout_seconds=1) == {"version": "3.7.16"}


def test_files_follow_the_writes_and_a_failing_disk_is_recorded() -> None:
    system = FakeSystem()
    system.write_file("/e/a", b"1")
    system.copy_tree("/e", "/f")
    system.rename("/f/a", "/f/b")
    system.remove_tree("/e")
    assert system.files == {"/f/b": b"1"}
    system.fail_writes = OSError(28, "No space left on device")
    with pytest.raises(OSError, match="No space"):
        system.write_file("/g", b"")
    assert "/g" not in system.files
    assert [call.kind for call in system.writes()] == [
        "write_file", "copy_tree", "rename", "remove_tree", "write_file",
    ]  # fmt: skip
