"""The doctor's own folders and its lock."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ideepdoctor.errors import Busy, CouldNotCheck
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.state import cache_folder, existing_ancestor, is_locked, locked, state_folder

HOLDER = (
    "import sys; from ideepdoctor.system import RealSystem; from ideepdoctor.treatment.state import locked\n"
    "with locked(RealSystem(), sys.argv[1]): print('held', flush=True); sys.stdin.read()"
)


def test_where_the_folders_are(tmp_path):
    environ = {"XDG_STATE_HOME": f"{tmp_path}/s", "XDG_CACHE_HOME": f"{tmp_path}/c"}
    assert state_folder(environ) == f"{tmp_path}/s/ideepdoctor"
    assert cache_folder(environ) == f"{tmp_path}/c/ideepdoctor"
    named = {**environ, "IDEEPDOCTOR_STATE_DIR": f"{tmp_path}/x", "IDEEPDOCTOR_CACHE_DIR": f"{tmp_path}/y"}
    assert (state_folder(named), cache_folder(named)) == (f"{tmp_path}/x", f"{tmp_path}/y")
    assert list(tmp_path.iterdir()) == [], "asking makes nothing"


@pytest.mark.parametrize(
    ("ask", "variable"), [(state_folder, "IDEEPDOCTOR_STATE_DIR"), (cache_folder, "IDEEPDOCTOR_CACHE_DIR")]
)
def test_a_folder_that_cannot_be_made_names_its_variable(tmp_path, ask, variable):
    (tmp_path / "file").write_text("")
    with pytest.raises(CouldNotCheck) as caught:
        ask({variable: f"{tmp_path}/file/below"})
    assert (variable in caught.value.hint, f"{tmp_path}/file" in caught.value.message) == (True, True)


def test_existing_ancestor(tmp_path):
    assert existing_ancestor(f"{tmp_path}/a/b/c") == str(tmp_path)
    assert existing_ancestor(str(tmp_path)) == str(tmp_path)


@pytest.mark.parametrize("note", [None, b"", b'{"pid": ', b'{"pid": "x", "since": null}', b"[1]"])
def test_the_lock_is_the_truth_and_its_note_only_words(tmp_path, note):
    state = str(tmp_path / "state")
    assert not is_locked(state)
    other = subprocess.Popen([sys.executable, "-c", HOLDER, state], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert is_locked(state)
        if note is not None:
            Path(state, "lock.owner").write_bytes(note)
        with pytest.raises(Busy) as caught, locked(RealSystem(), state):
            pass
        assert (f"process {other.pid}" in caught.value.message) == (note is None)
    finally:
        other.kill()
        other.communicate()
    # Whoever was killed holds nothing, although its note is still there.
    assert not is_locked(state)
    with locked(RealSystem(), state):
        assert is_locked(state)
    assert not is_locked(state)
    assert not Path(state, "lock.owner").exists()


def test_a_full_disk_does_not_keep_anyone_from_the_lock(tmp_path):
    class Full(RealSystem):
        def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
            raise OSError(28, "No space left on device", path)

    with locked(Full(), str(tmp_path)):
        assert is_locked(str(tmp_path))
