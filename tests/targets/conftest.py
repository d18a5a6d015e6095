"""A fake machine in a temporary folder, which is also the working folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.targets.trees import Machine


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return made
