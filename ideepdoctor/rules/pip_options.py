"""What pip's settings come to for ``pip install``. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ideepdoctor.model.facts import Facts, PipSetting
from ideepdoctor.rules.installed import python_command

_TRUE = frozenset({"y", "yes", "t", "true", "on", "1"})
_FALSE = frozenset({"n", "no", "f", "false", "off", "0"})
_EDITABLE = (
    ("/etc/", "--global"),
    ("/.config/pip/pip.conf", "--user"),
)
"""Where a file lies, and the option of ``pip config`` that edits it."""


def settings(facts: Facts, name: str) -> Iterator[PipSetting]:
    """The settings of an option that ``pip install`` reads, what counts more after what counts less."""
    return (one for one in facts.pip_settings or () if one.name == name and one.command in ("global", "install"))


def setting(facts: Facts, name: str) -> PipSetting | None:
    """The setting of an option that holds; None where nothing sets it."""
    return next(reversed([*settings(facts, name)]), None)


def switched_on(facts: Facts, name: str) -> PipSetting | None:
    """The setting that switches an option on; None where nothing does, or something that counts more says no."""
    found = setting(facts, name)
    return found if found is not None and found.value.strip().lower() in _TRUE else None


def switched_off(facts: Facts, name: str) -> PipSetting | None:
    """The setting that says no to an option.

    pip takes ``no-build-isolation = false`` for what ``--no-build-isolation`` means, and ``true`` for the opposite.
    """
    found = setting(facts, name)
    return found if found is not None and found.value.strip().lower() in _FALSE else None


def applied_to(facts: Facts, name: str, package: str) -> PipSetting | None:
    """The setting by which ``no-binary`` or ``only-binary`` holds for a distribution; None where it does not.

    Each setting adds to those before; ``:none:`` forgets them, and naming a distribution in the one option takes it
    out of the other (pip, ``FormatControl``).
    """
    other = "only-binary" if name == "no-binary" else "no-binary"
    by_all: dict[str, PipSetting | None] = {name: None, other: None}
    by_name: dict[str, PipSetting | None] = {name: None, other: None}
    for one in facts.pip_settings or ():
        if one.name not in by_all or one.command not in ("global", "install"):
            continue
        opposite = other if one.name == name else name
        for word in (word.strip() for word in one.value.split(",")):
            if word == ":all:":
                by_all[one.name], by_all[opposite], by_name[opposite] = one, None, None
            elif word == ":none:":
                by_all[one.name] = by_name[one.name] = None
            elif re.sub(r"[-_.]+", "-", word).lower() == package:
                by_name[one.name], by_name[opposite] = one, None
    return by_name[name] or (by_all[name] if by_name[other] is None else None)


def words(one: PipSetting) -> str:
    """A setting as it is told: the option, its value and where it is set."""
    section = "" if one.command == "global" or _is_variable(one) else f", section {one.command}"
    return f"{one.name} = {' '.join(one.value.split())} ({one.source}{section})"


def without(facts: Facts, one: PipSetting) -> str:
    """What a person does to be rid of a setting: a command where there is one."""
    if _is_variable(one):
        return f"unset {one.source}"
    kinds = [kind for mark, kind in _EDITABLE if one.source.startswith(mark) or one.source.endswith(mark)]
    if one.source == f"{facts.python.prefix}/pip.conf":
        kinds = ["--site"]
    if not kinds:
        return f"take {one.name} out of {one.source}"
    return python_command(facts, f"-m pip config {kinds[0]} unset {one.command}.{one.name}")


def _is_variable(one: PipSetting) -> bool:
    return one.source.startswith("PIP_")
