"""How many compilers are started at once."""

from __future__ import annotations

import pytest

from ideepdoctor.builder.jobs import Jobs, cpus_of, jobs_for, memory_of
from ideepdoctor.model.facts import Limits

GIB = 1 << 30


@pytest.mark.parametrize(
    ("cpus", "memory", "asked", "jobs"),
    [
        (8, 64 * GIB, None, Jobs(8, "processors")),
        (56, 4 * GIB, None, Jobs(10, "memory")),
        (2, 300 << 20, None, Jobs(1, "memory")),
        (1, 300 << 20, None, Jobs(1, "processors")),
        (None, None, None, Jobs(1, "processors")),
        (4, None, None, Jobs(4, "processors")),
        (2, 1 * GIB, 16, Jobs(16, "asked")),
    ],
)
def test_by_processors_and_by_memory(cpus: int | None, memory: int | None, asked: int | None, jobs: Jobs) -> None:
    assert jobs_for(cpus, memory, asked) == jobs


def test_a_quota_counts_as_the_affinity_does() -> None:
    assert cpus_of(Limits(affinity_cpus=(0, 1, 2, 3))) == 4
    assert cpus_of(Limits(affinity_cpus=(0, 1, 2, 3), quota_cpus=1.5)) == 1
    assert cpus_of(Limits(affinity_cpus=(5,), quota_cpus=8.0)) == 1
    assert cpus_of(Limits(quota_cpus=0.2)) == 1
    assert cpus_of(Limits()) is None


def test_the_limit_of_a_container_counts_as_free_memory_does() -> None:
    assert memory_of(Limits(memory_available_bytes=5, memory_limit_bytes=3)) == 3
    assert memory_of(Limits(memory_available_bytes=5)) == 5
    assert memory_of(Limits()) is None
