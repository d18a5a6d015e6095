"""Every lock is installed by hash as it stands in the product, checked, and made to work."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ideepdoctor.stacks.catalog import Lock, all_stacks
from tests.conftest import legacy_python
from tests.stacks.lock import install, prove
from tests.stacks.wanted import WANTED

LOCKS = [
    # Those without ideep4py are many; one of them is installed by test_setup_modern.py in every run.
    pytest.param(lock, id=f"{lock.stack}-{lock.python}", marks=[pytest.mark.slow] if lock.built else [])
    for stack in all_stacks()
    for lock in stack.locks
    if lock.tried
]


@pytest.mark.e2e
@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_is_closed_and_works(lock: Lock, tmp_path: Path) -> None:
    (wanted,) = (item for item in WANTED if item.name == lock.stack)
    if wanted.emulator and shutil.which(wanted.emulator[0]) is None:
        pytest.skip(f"no {wanted.emulator[0]} on this machine")
    target, grown = install(tmp_path, legacy_python(lock.python), lock.python, lock.requirements)
    seen = prove(target, wanted, lock.python)
    assert "pip check" in seen and "10 ops" in seen
    assert ("without ideep4py" in seen) == bool(lock.built)
    assert abs(grown - lock.installed_bytes) < 0.02 * lock.installed_bytes
