"""Blocks of the README that show a measured run are what its result file says."""

from __future__ import annotations

import pytest

from ideepdoctor.proof.bench_file import read
from tests.readme import MEASURED, README, RESULTS, measured

BLOCKS = {found.group(1): found.group(2) for found in MEASURED.finditer(README.read_text("utf-8"))}


def test_a_run_is_shown() -> None:
    assert BLOCKS


@pytest.mark.parametrize("name", sorted(BLOCKS))
def test_the_block_is_the_run_of_the_file(name: str) -> None:
    assert measured(name, BLOCKS[name]) == BLOCKS[name]


@pytest.mark.parametrize("name", sorted(BLOCKS))
def test_the_run_is_whole_quiet_and_has_what_it_claims(name: str) -> None:
    result = read(str(RESULTS / f"{name}.json"))
    assert result.complete and result.noise.quiet
    assert len([engine for engine in result.engines if not engine.forward_only]) >= 5
    assert {"alexnet", "googlenet", "vgga", "overfeat"} <= {net.net for net in result.nets}
    assert all(row.measured for row in result.results)
