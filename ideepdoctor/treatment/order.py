"""Which packages of a target want ideep4py imported before them. Pure."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version

from ideepdoctor.model.facts import Facts

_TORCH = ("torch", "pytorch")
"""What distributions (PyPI, conda) call it; the module is ``torch`` in both."""
_OLDEST, _FROM, _BEFORE = Version("0.dev0"), Version("1.0"), Version("1.5.dev0")
"""Releases of torch that contain a MKL-DNN whose symbols become visible to all; 1.1.0 and 1.4.0 were measured to kill
ideep4py when they are imported first, 1.7.1 not to (since 1.5 torch no longer makes its symbols visible to all)."""


def packages_first(facts: Facts) -> tuple[str, ...]:
    """The modules whose import shall import ideep4py first, in the environment's start-up file.

    Where the libraries were looked at, a torch that contains MKL-DNN and exports its symbols, but no release that was
    measured to need nothing; else the release alone decides. An ideep4py is not asked for: it may be about to come.
    """
    torch = next((found for name in _TORCH if (found := facts.package(name)) is not None), None)
    installed = None if torch is None else torch.version
    if facts.native is not None:
        owners = [item.owner for item in facts.native.files if item.kind == "contained"]
        contained = [version for owner in owners if (version := _release(owner, installed)) is not None]
        if contained or facts.native.complete:
            return ("torch",) if any(_is_between(version, _OLDEST, unknown=True) for version in contained) else ()
    return ("torch",) if installed is not None and _is_between(installed, _FROM, unknown=False) else ()


def _release(owner: str | None, installed: str | None) -> str | None:
    """The release of torch that a library belongs to: by its owner, or the installed one where nobody claims it."""
    if owner is None:
        return installed
    name, _, version = owner.removeprefix("conda ").partition(" ")
    return version if name in _TORCH else None


def _is_between(version: str, first: Version, *, unknown: bool) -> bool:
    """Whether a release of torch is one of those from the first on; ``unknown`` where it is no version."""
    try:
        return first <= Version(version) < _BEFORE
    except InvalidVersion:
        return unknown
