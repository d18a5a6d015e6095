"""What the rules about lasting effects ask: growth of memory by step and by shape, and examples of such facts."""

from __future__ import annotations

from typing import Any

from ideepdoctor.model.facts import Lasting

LEAK_BYTES = 8192
"""Growth with every training step that is a leak. iDeep 2.0.0.post3 with Chainer 4 to 7 showed at most 300 bytes for
each of 400 steps, NumPy none; the smallest array of the step that is measured takes 1 kB, its activations 64 kB."""
SHAPE_BYTES = 16384
"""Growth with every new input shape that is worth a word: of 200 small shapes each took 330 kB with iDeep, 6 kB with
NumPy."""


def leaks(lasting: Lasting | None) -> bool:
    """Whether resident memory grows with every training step although no shape changes."""
    if lasting is None or lasting.fixed_growth_bytes is None or not lasting.fixed_calls:
        return False
    return lasting.fixed_growth_bytes >= LEAK_BYTES * lasting.fixed_calls


def grows_with_shapes(lasting: Lasting | None) -> bool:
    """Whether every new input shape takes memory that NumPy does not take."""
    if lasting is None or lasting.varying_growth_bytes is None or not lasting.varying_shapes:
        return False
    more = lasting.varying_growth_bytes - (lasting.numpy_growth_bytes or 0)
    return more >= SHAPE_BYTES * lasting.varying_shapes


def megabytes(size: int) -> str:
    """``66 MB``, ``1.2 MB``."""
    return f"{size / 1e6:.0f} MB" if size >= 10e6 else f"{max(0, size) / 1e6:.1f} MB"


def lasting(fork: dict[str, Any] | None = None, **measured: int | None) -> dict[str, Any]:
    """Facts for an example: those of a clean install, with some of them changed."""
    facts: dict[str, Any] = {
        "fixed_calls": 240,
        "fixed_growth_bytes": 16384,
        "varying_shapes": 200,
        "varying_growth_bytes": 1500000,
        "numpy_growth_bytes": 1228800,
    }
    return {"lasting": {**facts, **measured, "fork": fork}}


def child(ok: bool, **how: Any) -> dict[str, Any]:
    """How a forked child ended, for an example."""
    return {"ok": ok, "seconds": 8.0, **how}
