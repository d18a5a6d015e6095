"""What a report has beside its findings, as tables of the page: plan, proof, processor, limits, libraries. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ideepdoctor.model.facts import Facts, Smoke
from ideepdoctor.model.plan import Plan
from ideepdoctor.model.report import Report
from ideepdoctor.model.words import counted
from ideepdoctor.render.bench_tables import Table, TableGroup
from ideepdoctor.rules.matters import in_use, why

_USED = {True: "iDeep is used", False: "iDeep is NOT used", None: "whether iDeep is used is not known"}
_FLAGS = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl")
"""Those that ideep4py and MKL choose their code by."""
_UNKNOWN = "not known"


def tables_of(report: Report) -> Iterator[tuple[str, Table]]:
    """Headings and tables, in the order of the page."""
    if report.plan is not None:
        yield "Plan", _plan(report.plan)
    if "diff" in report.extra:
        yield "Changes", _changes(report.extra["diff"])
    if "cpu" in report.extra:
        yield "Releases", _pairs("Releases of ideep4py on this processor", report.extra["cpu"]["releases"].items())
    if report.facts is None:
        return
    yield "Processor", _pairs("What the target sees, and what it may use of it", _processor(report.facts))
    libraries = _libraries(report.facts)
    if libraries is not None:
        yield "Libraries", libraries
    if report.facts.packages:
        there = [(item.name, item.version, item.location) for item in report.facts.packages]
        yield "Packages", _table("As Python would import them", ("name", "version", "where"), there)


def _table(
    caption: str, heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], numeric: tuple[int, ...] = ()
) -> Table:
    return Table(caption, heads, numeric, (TableGroup("", tuple(rows)),))


def _pairs(caption: str, rows: Any) -> Table:
    return _table(caption, ("what", "here"), tuple(rows))


def _plan(plan: Plan) -> Table:
    steps = [(str(number), step.title, str(step.reversible)) for number, step in enumerate(plan.steps, 1)]
    return _table(plan.title, ("step", "what", "undo"), steps)


def proof_tables(smoke: Smoke) -> list[Table]:
    """The numbers of ``chart_proof.of_smoke``: what was timed, where it was, and every check."""
    found = []
    if smoke.timing is not None:
        timing = smoke.timing
        rows = [
            ("NumPy", f"{timing.numpy_seconds * 1000:.3g}", ""),
            ("iDeep", f"{timing.ideep_seconds * 1000:.3g}", f"{timing.ideep_gflops:.0f}"),
        ]
        found.append(
            _table(
                f"{timing.case}, median of {counted(timing.repeats, 'repeat')}",
                ("engine", "ms", "GFLOP/s"),
                rows,
                (1, 2),
            )
        )
    return [*found, *([_checks(smoke)] if smoke.checks else [])]


def _checks(smoke: Smoke) -> Table:
    caption = f"{_USED[smoke.used]}, kernel {smoke.kernel or _UNKNOWN}, {counted(smoke.threads, 'thread')}"
    rows = [
        (item.op, item.case, item.status, _error(item.max_relative_error), _error(item.tolerance), item.message)
        for item in smoke.checks
    ]
    return _table(caption, ("operation", "case", "outcome", "error", "allowed", "note"), rows, (3, 4))


def operations(data: Mapping[str, Any]) -> Table:
    """The numbers of ``chart_proof.of_certify``."""
    caption = f"Against float64, threads: {', '.join(data['threads'])}"
    rows = [
        (
            row["op"],
            str(row["tried"]),
            str(row["right"]),
            row["used"],
            _error(row["worst_error"]),
            "; ".join(f"{fault['hazard'] or fault['code']}: {fault['status']}" for fault in row["faults"]),
        )
        for row in data["ops"]
    ]
    return _table(caption, ("operation", "tried", "right", "iDeep", "worst error", "faults"), rows, (1, 2, 4))


def lasting_effects(data: Mapping[str, Any]) -> Table:
    """What certify measured of memory and of forked children."""
    memory, fork = data["memory"], data["fork"]
    rows = []
    if memory is not None and memory["step_bytes"] is not None:
        rows.append(("steps with the same shapes", str(memory["steps"]), f"{memory['step_bytes'] / 1e6:.1f} MB more"))
    for name, engine in (("ideep_bytes", "iDeep"), ("numpy_bytes", "NumPy")):
        if memory is not None and memory[name] is not None:
            rows.append((f"new input shapes, {engine}", str(memory["shapes"]), f"{memory[name] / 1e6:.1f} MB more"))
    if fork is not None:
        rows.append(
            ("children forked after iDeep", "", "could compute" if fork["ok"] else fork["error_text"] or "failed")
        )
    return _table("Resident memory, and children", ("what", "number", "seen"), rows, (1,))


def settings(data: Mapping[str, Any]) -> Table:
    """The numbers of ``chart_proof.of_tune``."""
    groups = []
    for looked in data["dimensions"]:
        rows = tuple(
            (
                trial["label"],
                "" if trial["gain"] is None else f"{trial['gain']['ratio']:.2f}",
                "" if trial["gain"] is None else f"{trial['gain']['low']:.2f} to {trial['gain']['high']:.2f}",
                trial["why"],
            )
            for trial in looked["trials"]
        )
        groups.append(TableGroup(f"{looked['title']}: {looked['verdict']}", rows))
    heads = ("setting", "speed", "95 %", "note")
    return Table(f"Speed of {data['subject']}, the default is 1", heads, (1, 2), tuple(groups))


def _changes(data: Mapping[str, Any]) -> Table:
    rows = [(item["what"], _short(item["before"]), _short(item["after"])) for item in data["changes"]]
    return _table(f"From {data['first']} to {data['second']}", ("what", "before", "after"), rows)


def _processor(facts: Facts) -> Iterator[tuple[str, str]]:
    cpu, limits, platform = facts.cpu, facts.limits, facts.platform
    yield "processor", f"{cpu.model_name or _UNKNOWN} ({cpu.vendor or _UNKNOWN})"
    yield "instructions", " ".join(flag for flag in _FLAGS if flag in (cpu.flags or ())) or _UNKNOWN
    counts = [
        counted(number, noun)
        for number, noun in (
            (cpu.sockets, "socket"),
            (cpu.physical_cores, "core"),
            (cpu.logical_cpus, "logical CPU"),
        )
        if number is not None
    ]
    yield "has", ", ".join(counts) or _UNKNOWN
    usable = None if limits.affinity_cpus is None else counted(len(limits.affinity_cpus), "CPU")
    quota = "" if limits.quota_cpus is None else f", a quota of {counted(limits.quota_cpus, 'CPU')}"
    yield "may use", f"{usable or _UNKNOWN}{quota}"
    if cpu.hypervisor or cpu.emulated:
        yield "is behind", cpu.hypervisor or "an emulator"
    memory = [
        f"{value / 1e9:.1f} GB {word}"
        for value, word in (
            (limits.memory_total_bytes, "in all"),
            (limits.memory_available_bytes, "free"),
            (limits.memory_limit_bytes, "at most (limit)"),
        )
        if value is not None
    ]
    yield "memory", ", ".join(memory) or _UNKNOWN
    if limits.disk_free_bytes is not None:
        yield "disk", f"{limits.disk_free_bytes / 1e9:.1f} GB free"
    libc = f"{platform.libc or ''} {platform.libc_version or ''}".strip()
    system = [platform.os_name or platform.system, f"kernel {platform.kernel}" if platform.kernel else "", libc]
    yield "system", ", ".join(part for part in (*system, platform.container or "") if part)


def _libraries(facts: Facts) -> Table | None:
    found = facts.native
    if found is None or not found.files:
        return None
    once = {item.file.identity or item.file.real_path: item for item in found.files}
    order = sorted(once.values(), key=lambda item: (not in_use(found, item), item.name, item.file.path))
    rows = [
        (
            "yes" if in_use(found, item) else "no",
            item.name,
            why(found, item),
            item.owner or "nobody claims it",
            item.file.path,
        )
        for item in order
    ]
    heads = ("used", "library", "why", "from", "file")
    return _table("MKL, MKL-DNN and OpenMP that this target can meet", heads, rows)


def _error(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}" if value else "0"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:197]}..."
