"""Nets by name, and the batch that fits in memory."""

from __future__ import annotations

import pytest

from ideepdoctor.errors import UsageError
from ideepdoctor.model.facts import Limits
from ideepdoctor.proof.bench_engines import own_engines
from ideepdoctor.proof.bench_plan import BATCHES, NETS, USUAL, Need, NoRoom, choose_batch, free_bytes, needed, nets_from
from ideepdoctor.targets.target import Target
from tests.payload.joined import load

GB = 10**9
ENGINES = own_engines(Target("python3.7"))
# A net of 1 GB and 0.1 GB an image; NumPy's convolutions take twice as much for an image.
NEEDS = {("vgga", batch): Need("vgga", batch, GB + batch * GB // 10, GB + batch * GB // 5) for batch in (*BATCHES, 12)}
NEEDS |= {("conv", batch): Need("conv", batch, GB // 10, GB // 10) for batch in (*BATCHES, 12)}


def test_the_names_are_those_of_the_tables() -> None:
    assert sorted(NETS) == sorted(load("nets")["NETS"])
    assert nets_from(()) == USUAL
    assert nets_from(("VGGA,conv", "vgga")) == ("vgga", "conv")
    assert nets_from(("all",)) == NETS
    with pytest.raises(UsageError, match="no net lenet") as caught:
        nets_from(("alexnet,lenet",))
    assert "alexnet, googlenet" in caught.value.hint


def test_memory_is_what_is_free_and_allowed() -> None:
    assert free_bytes(Limits()) is None
    assert free_bytes(Limits(memory_available_bytes=8 * GB, memory_limit_bytes=2 * GB)) == 2 * GB
    assert free_bytes(Limits(memory_available_bytes=3 * GB)) == 3 * GB


@pytest.mark.parametrize(
    ("free", "asked", "batch"), [(1000 * GB, None, 128), (12 * GB, None, 8), (12 * GB, 4, 4), (None, None, 128)]
)
def test_the_largest_batch_that_fits(free: int | None, asked: int | None, batch: int) -> None:
    assert choose_batch(NEEDS, ("conv", "vgga"), ENGINES, free, asked) == batch
    if free is not None and asked is None and batch < 128:
        assert needed(NEEDS["vgga", batch], ENGINES) <= 0.8 * free < needed(NEEDS["vgga", 2 * batch], ENGINES)


def test_a_batch_that_does_not_fit_is_refused_before_anything_is_killed() -> None:
    with pytest.raises(NoRoom) as caught:
        choose_batch(NEEDS, ("conv", "vgga"), ENGINES, 12 * GB, 128)
    assert caught.value.message.startswith("vgga at batch 128 takes about 55.5 GB with 3 engines in turn; 12.0 GB are")
    assert caught.value.hint.startswith("--batch 8 fits")
    assert caught.value.exit_code == 3
    with pytest.raises(NoRoom) as caught:
        choose_batch(NEEDS, ("vgga",), ENGINES, GB, None)
    assert caught.value.hint == "name smaller nets: --net"
