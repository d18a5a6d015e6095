"""``libs``: every MKL, MKL-DNN and OpenMP library that a target can meet, what it really is, who wins and why."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

from ideepdoctor.commands.session import Session, TargetOptions, examine, find_target, judge_all, wanted_codes
from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.native import LibraryFile, Loaded, Native
from ideepdoctor.model.report import Report
from ideepdoctor.rules.deaths import how_it_ended
from ideepdoctor.rules.matters import in_use, short_step, why

_OPENMP_KINDS = ("iomp", "omp", "gomp")
_SETTINGS = ("OMP_", "KMP_", "GOMP_", "MKL_THREADING_LAYER", "MKL_NUM_THREADS", "MKL_DYNAMIC")
_SHOWN = 40
"""Rows of the text; the rest is counted, and whole in JSON."""


@dataclass(frozen=True, slots=True)
class LibsOptions:
    """What ``libs`` was asked.

    Attributes:
        target: which Python.
        deep: walk whole disks, and try every package that ships a library in both orders of import.
        tree: show what the extension module needs, as a tree.
    """

    target: TargetOptions
    deep: bool = False
    tree: bool = False


def libs(session: Session, options: LibsOptions) -> Report:
    """Describe the shared libraries of a target; changes nothing.

    Raises:
        UsageError: a target that is no Python.
        CouldNotCheck: the target does not answer.
    """
    from ideepdoctor.facts.collect import Scope

    target = find_target(session, options.target)
    facts = examine(session, target, Scope(imports=False, interpreters=False, deep=options.deep))
    if facts.native is None:
        raise CouldNotCheck(f"the libraries of {target.python} could not be looked at")
    text = _tree(facts.native) if options.tree else _table(facts, facts.native)
    return Report(
        "libs",
        facts=facts,
        judgement=judge_all(facts, wanted_codes(("IDP4",), ())),
        body=tuple(text),
        extra={"libs": data(facts, facts.native)},
    )


def data(facts: Facts, found: Native) -> dict[str, Any]:
    """What the command knows, JSON-ready."""
    return {
        "binding": found.binding,
        "entries": found.entries,
        "complete": found.complete,
        "libraries": [_row(found, item) for item in ordered(found)],
        "loading": [
            {
                "name": item.name,
                "path": item.path,
                "by": item.by,
                "step": item.step,
                "problem": item.problem,
                "passed_over": list(item.passed_over),
            }
            for item in found.predicted
        ],
        "disagreements": list(found.disagreements),
        "openmp": openmp(facts, found),
        "pairs": [
            {"package": pair.package, "module": pair.module, "before": pair.before.ok, "after": pair.after.ok}
            for pair in found.pairs or ()
        ],
    }


def _row(found: Native, item: LibraryFile) -> dict[str, Any]:
    return {
        "path": item.file.path,
        "real_path": item.file.real_path,
        "kind": item.kind,
        "is": item.name,
        "version": item.file.version,
        "soname": item.file.soname,
        "build_id": item.file.build_id,
        "size_bytes": item.file.size_bytes,
        "problem": item.file.problem,
        "owner": item.owner,
        "own": item.own,
        "places": list(item.places),
        "used": in_use(found, item),
        "why": why(found, item),
    }


def openmp(facts: Facts, found: Native) -> dict[str, Any]:
    """The OpenMP runtimes that are mapped, what MKL-DNN is bound to, and the settings in force."""
    variables = facts.variables.effective or facts.variables.inherited
    after = () if found.started is None else found.started.after
    runtimes = {item.file.real_path: item.name for item in found.files if item.kind in _OPENMP_KINDS}
    return {
        "runtimes": [{"path": path, "is": name} for path, name in sorted(runtimes.items()) if path in after],
        "bound": {} if found.started is None else dict(found.started.bound),
        "settings": {name: variables[name] for name in sorted(variables) if name.startswith(_SETTINGS)},
    }


def ordered(found: Native) -> list[LibraryFile]:
    """Each real file once: those in use, then the other MKL-DNNs, then what is left; by path within each."""
    once: dict[str, LibraryFile] = {}
    for item in found.files:
        once.setdefault(item.file.identity or item.file.real_path, item)
    rank = {"mkldnn": 0, "contained": 0, "mklml": 1, "iomp": 1}
    return sorted(
        once.values(), key=lambda item: (not in_use(found, item), rank.get(item.kind, 2), item.file.real_path)
    )


def _table(facts: Facts, found: Native) -> list[str]:
    rows = ordered(found)
    lines = ["libraries (> is used by a Python that imports ideep4py)"]
    folders = {facts.python.prefix: "PREFIX"} if facts.python.prefix not in ("/", "/usr") else {}
    for item in rows[:_SHOWN]:
        mark = ">" if in_use(found, item) else "!" if why(found, item).startswith("matters") else " "
        owner = item.owner or "nobody claims it"
        lines += [f"{mark} {item.name}, {owner}", f"    {_short(item.file.path, folders)}", f"    {why(found, item)}"]
    if len(rows) > _SHOWN:
        lines.append(f"  and {len(rows) - _SHOWN} more: --format json has all")
    if not rows:
        lines.append("  none")
    if folders:
        lines.append(f"PREFIX is {facts.python.prefix}")
    return [*lines, *_openmp_lines(openmp(facts, found)), *_pair_lines(found), *_counted(found)]


def _pair_lines(found: Native) -> list[str]:
    """What was measured of other packages in one process with ideep4py."""
    lines = []
    for pair in found.pairs or ():
        before, after = (
            "works" if side.ok else textwrap.shorten(how_it_ended(side), 90, placeholder="...")
            for side in (pair.before, pair.after)
        )
        lines.append(f"  {pair.package}: imported before ideep4py: {before}; after it: {after}")
    return ["in one process, an operation in both", *lines] if lines else []


def _openmp_lines(told: dict[str, Any]) -> list[str]:
    if not told["runtimes"]:
        return []
    lines = ["OpenMP"]
    for runtime in told["runtimes"]:
        is_bound = runtime["path"] in told["bound"].values()
        what = "MKL-DNN is bound to it" if is_bound else "mapped, nothing of MKL-DNN is bound to it"
        lines.append(f"  {runtime['is']}: {what}")
    settings = " ".join(f"{name}={value}" for name, value in told["settings"].items())
    return [*lines, f"  settings: {settings or 'none'}"]


def _counted(found: Native) -> list[str]:
    if found.complete:
        return []
    return [f"the walk was cut short after {found.entries} entries: the list may lack files"]


def _tree(found: Native) -> list[str]:
    """What the extension module needs, each name below the first file that needs it."""
    if found.binding is None:
        return ["no ideep4py here"]
    lines = [found.binding]
    children: dict[str, list[Loaded]] = {}
    for item in found.predicted:
        children.setdefault(item.by, []).append(item)
    preloads = children.get("LD_PRELOAD", [])
    lines += [f"  {item.name}: before everything else, by LD_PRELOAD" for item in preloads]
    seen: set[str] = set()

    def walk(path: str, depth: int) -> None:
        for item in children.get(path, []):
            place = item.path or "NOT FOUND"
            problem = f" ({item.problem})" if item.problem and item.path else ""
            lines.append(f"{'  ' * depth}{item.name} => {place}{problem}  [{short_step(item.step)}]")
            lines.extend(f"{'  ' * depth}    passed over: {other}" for other in item.passed_over)
            if item.path is not None and item.path not in seen:
                seen.add(item.path)
                walk(item.path, depth + 1)

    walk(found.binding, 1)
    return lines


def _short(path: str, folders: dict[str, str]) -> str:
    """The path with the environment's folder as a word, so that it fits a line."""
    for folder, word in folders.items():
        if path.startswith(f"{folder}/"):
            return word + path[len(folder) :]
    return path
