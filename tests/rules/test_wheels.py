"""Discovery and rules know the same wheels: each has its own list, because discovery must not load every rule."""

from __future__ import annotations

from ideepdoctor.rules.compat import RELEASES, WHEEL_PYTHONS
from ideepdoctor.stacks.catalog import all_stacks
from ideepdoctor.targets.advice import WHEEL_ABIS


def test_the_lists_agree():
    assert set(WHEEL_ABIS) == {abi for release in RELEASES.values() for abi in release.abis}
    assert set(WHEEL_ABIS.values()) == set(WHEEL_PYTHONS)


def test_stacks_need_of_the_cpu_what_their_release_needs():
    for stack in all_stacks():
        release = RELEASES[stack.ideep4py]
        # SSE2 is part of x86-64: the stacks name it, the releases do not.
        assert set(stack.cpu_flags) - {"sse2"} == set(release.cpu_flags), stack.name
        assert (stack.cpu_vendor == "GenuineIntel") == release.intel_only, stack.name
