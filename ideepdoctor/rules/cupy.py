"""The distributions that hold CuPy: all of them install the same folder. Pure."""

from __future__ import annotations

import re

from ideepdoctor.model.facts import Facts, Package

_NAME = re.compile(r"cupy(-(cuda|rocm)[-\w]*)?")


def cupys(facts: Facts) -> tuple[Package, ...]:
    """Every installed distribution of CuPy, also further ones of one name: built here, for a CUDA, for a ROCm."""
    return tuple(one for one in (*(facts.packages or ()), *facts.duplicates) if _NAME.fullmatch(one.name))
