"""What the README shows is what the commands print today."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import legacy_python
from tests.e2e.environments import doctor, pip_install
from tests.readme import BLOCK, README, blocks, comparable

pytestmark = pytest.mark.e2e


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose name does not have to be broken in a line of 80 columns."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def test_the_output_blocks_are_todays(short_folder):
    legacy_python("3.7")
    shown = {found.group(1): found.group(2) for found in BLOCK.finditer(README.read_text("utf-8"))}
    kernel = doctor("cpu", "--format", "json", cwd=short_folder).document["cpu"]
    same_machine = kernel["convolution_kernel"] in shown["setup"] and str(kernel["model"]) in shown["setup"]
    fresh = blocks(short_folder, lambda env: pip_install(env, "numpy==1.15.4"))
    assert set(fresh) == set(shown)
    if not same_machine or f"{kernel['usable_cpus']} CPUs usable" not in shown["setup"]:
        pytest.skip("the README was written on another kind of CPU: other shapes and kernels")
    for name, text in fresh.items():
        assert comparable(shown[name]) == comparable(text)
