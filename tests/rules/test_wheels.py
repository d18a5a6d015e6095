"""Discovery and rules know the same wheels: each has its own list, because discovery must not load every rule."""

from __future__ import annotations

from ideepdoctor.rules.compat import RELEASES, WHEEL_PYTHONS
from ideepdoctor.targets.advice import WHEEL_ABIS


def test_the_lists_agree():
    assert set(WHEEL_ABIS) == {abi for release in RELEASES.values() for abi in release.abis}
    assert set(WHEEL_ABIS.values()) == set(WHEEL_PYTHONS)
