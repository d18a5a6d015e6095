"""Which packages of a target want ideep4py imported before them. Pure."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version

from ideepdoctor.model.facts import Facts

_FROM, _BEFORE = Version("1.0"), Version("1.5.dev0")
"""Releases of torch that contain a MKL-DNN whose symbols become visible to all; 1.1.0 and 1.4.0 were measured to kill
ideep4py when they are imported first, 1.7.1 not to."""


def packages_first(facts: Facts) -> tuple[str, ...]:
    """The modules whose import shall import ideep4py first, in the environment's start-up file.

    By the libraries where they were looked at (a torch that exports the symbols of MKL-DNN), else by version.
    """
    torch = facts.package("torch")
    if torch is None or facts.package("ideep4py") is None:
        return ()
    if facts.native is not None:
        contains = any(
            item.kind == "contained" and (item.owner or "").split(" ")[0] == "torch" for item in facts.native.files
        )
        return ("torch",) if contains else ()
    try:
        version = Version(torch.version)
    except InvalidVersion:
        return ()
    return ("torch",) if _FROM <= version < _BEFORE else ()
