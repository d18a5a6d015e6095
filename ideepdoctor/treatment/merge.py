"""Treatments of several findings as one plan: what goes together, what undoes what, and in which order. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ideepdoctor.model.findings import Finding
from ideepdoctor.model.plan import (
    CreateEnv,
    DisableLine,
    EditBlock,
    Install,
    Plan,
    RenameFile,
    Requirement,
    SetRpath,
    Step,
    WriteFile,
    changed_files,
)


def merge(title: str, treatments: Iterable[tuple[Finding, Sequence[Step]]]) -> Plan:
    """Merge the treatments of findings into one plan: environments, one Install per interpreter, libraries, files.

    Args:
        title: of the plan.
        treatments: findings with their steps, the most important finding first.
    """
    planned: dict[_Key, Step] = {}
    treats: list[str] = []
    for finding, steps in treatments:
        if not steps or any(_conflicts(step, planned) for step in steps):
            continue
        for step in steps:
            there = planned.setdefault(_key(step), step)
            if isinstance(there, Install) and isinstance(step, Install) and there is not step:
                planned[_key(step)] = _joined(there, step)
        treats += [] if finding.code in treats else [finding.code]
    ordered = sorted(planned.values(), key=lambda step: ORDER.index(type(step)))
    return Plan(title, tuple(ordered), tuple(treats))


_Key = tuple[type[Step], str, int]

ORDER: tuple[type[Step], ...] = (CreateEnv, Install, RenameFile, SetRpath, WriteFile, DisableLine, EditBlock)
"""Packages first, as they bring files; then what libraries are called and where they search; then the user's files."""

_TOGETHER = {frozenset({DisableLine}), frozenset({DisableLine, EditBlock})}
"""The kinds of steps that may change one file in one plan: none would undo a part of another."""


def _key(step: Step) -> _Key:
    """What a plan has one step for."""
    match step:
        case Install():
            return Install, step.python, 0
        case DisableLine():
            return DisableLine, step.path, step.line_number
        case CreateEnv() | RenameFile() | SetRpath() | WriteFile() | EditBlock():
            return type(step), step.path, 0


def _conflicts(step: Step, planned: Mapping[_Key, Step]) -> bool:
    """Whether a step would undo a part of what was planned before it."""
    same = planned.get(_key(step))
    if same is not None and _deed(same) != _deed(step):
        return True
    if isinstance(step, Install) and isinstance(same, Install):
        versions = {item.name: item.version for item in same.requirements}
        return any(versions.get(item.name, item.version) != item.version for item in step.requirements)
    mine = set(changed_files(step))
    return any(
        mine.intersection(changed_files(other))
        and other is not same
        and frozenset({type(step), type(other)}) not in _TOGETHER
        for other in planned.values()
    )


def _deed(step: Step) -> object:
    """What a step does to its place, without why; two that differ cannot both be done."""
    match step:
        case CreateEnv() | Install():
            return None
        case RenameFile():
            return step.suffix
        case SetRpath():
            return step.rpath
        case WriteFile():
            return step.content
        case DisableLine():
            return step.line
        case EditBlock():
            return step.block


def _joined(one: Install, other: Install) -> Install:
    """Both as one installation, which a resolver sees whole."""
    pins: dict[str, Requirement] = {}
    for item in (*one.requirements, *other.requirements):
        before = pins.get(item.name, item)
        pins[item.name] = replace(item, sha256=tuple(dict.fromkeys((*before.sha256, *item.sha256))))
    return replace(
        one,
        requirements=tuple(pins[name] for name in sorted(pins)),
        first=tuple(dict.fromkeys((*one.first, *other.first))),
        snapshot=tuple(dict.fromkeys((*one.snapshot, *other.snapshot))),
        reinstall=tuple(dict.fromkeys((*one.reinstall, *other.reinstall))),
        size_bytes=one.size_bytes + other.size_bytes,
        remove=tuple(dict.fromkeys((*one.remove, *other.remove))),
    )
