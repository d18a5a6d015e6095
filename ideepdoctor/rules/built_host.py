"""The examples' environment with an ideep4py that ``build`` made, to be laid over a healthy recorded host. Pure."""

from __future__ import annotations

from typing import Any

BUILT = {
    "march": "x86-64-v3",
    "cpu_flags": ["avx", "avx2", "fma"],
    "mkl": "wheel",
    "commit": "8800808",
    "mkldnn_commit": "c0095ec",
    "numpy": "1.23.2",
    "verified": True,
    "extra": {},
}
_VERSIONS = {"ideep4py": "2.0.0.post3+doctor.v3", "numpy": "1.23.5", "setuptools": "73.0.1"}


def built_host(**changes: str | None) -> dict[str, Any]:
    """The overlay: Python 3.11 with what ``setup --build`` installs.

    Args:
        changes: other versions of packages; None: the package is missing.
    """
    return {
        "python": {"version": "3.11.7", "abi": "cp311"},
        "packages": {**_VERSIONS, **changes},
        "built": BUILT,
    }
