"""A small world to change, a state folder, and installers that need no network."""

from __future__ import annotations

from pathlib import Path

import pytest

from ideepdoctor.treatment import installers, native_steps
from tests.treatment.elf import as_patchelf
from tests.treatment.killed import fake_create, fake_install, prepare


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Environments and packages are made by functions that write a few files; patchelf is played on tiny libraries."""
    monkeypatch.setattr(installers, "create_environment", fake_create)
    monkeypatch.setattr(installers, "install", fake_install)
    monkeypatch.setattr(native_steps.ChangeRpath, "_patchelf", lambda _, *words: as_patchelf(["patchelf", *words]))
    monkeypatch.setenv("IDEEPDOCTOR_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A home and an environment."""
    prepare(tmp_path / "world")
    return tmp_path / "world"


@pytest.fixture
def state(tmp_path: Path) -> str:
    """The state folder of this test."""
    return str(tmp_path / "state")
