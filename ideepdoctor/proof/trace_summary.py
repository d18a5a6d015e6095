"""Sums what was recorded of a program's processes and threads: by line and function, with what to change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce

from ideepdoctor.model.trace import Engine, Line, Pass, Trace, TracedProcess, Work
from ideepdoctor.proof.trace_changes import Shown, changes, line_of
from ideepdoctor.proof.trace_judge import Judged, judge, outermost, outside
from ideepdoctor.proof.trace_records import Counts, Records, Row
from ideepdoctor.proof.trace_source import Sources
from ideepdoctor.proof.trace_why import inputs_of
from ideepdoctor.proof.verbose import parse_line


def summarize(
    records: Sequence[Records],
    command: tuple[str, ...],
    returncode: int,
    seconds: float,
    *,
    shown: Shown,
    content: Callable[[str], bytes | None],
    set_here: bool,
) -> Trace:
    """Say what a program computed where, and what to change.

    Args:
        records: of its processes.
        command: its words.
        returncode: its exit code; negative: the signal that ended it.
        seconds: its wall time.
        shown: gives a path as the reader shall see it.
        content: gives the bytes of a source file, None where it cannot be read.
        set_here: whether CHAINER_USE_IDEEP is set for this run alone.
    """
    judged = [item for one in records for item in judge(one)]
    work = _work(judged, shown)
    return Trace(
        command=command,
        returncode=returncode,
        seconds=seconds,
        processes=tuple(_process(one, shown) for one in records),
        work=work,
        changes=changes(judged, Sources(content), shown, set_here=set_here),
        notes=_notes(records, returncode),
        problems=tuple(dict.fromkeys(text for one in records for text in one.problems)),
        outside=_pass([(outside(one), Engine.NONE) for one in records]),
    )


def _work(judged: Iterable[Judged], shown: Shown) -> tuple[Work, ...]:
    groups: dict[tuple[str, Line], list[Judged]] = {}
    for item in judged:
        groups.setdefault((item.row.text("function"), line_of(item, shown)), []).append(item)
    found = [_one(function, line, items) for (function, line), items in groups.items()]
    return tuple(sorted(found, key=lambda item: -item.seconds))


def _one(function: str, line: Line, items: Sequence[Judged]) -> Work:
    # The kind of input that took the longest speaks for the line.
    items = sorted(items, key=lambda item: -(item.forward.seconds + item.backward.seconds))
    row = items[0].row
    reasons = {why.text: why for item in items for why in item.why}
    heads = [head for item in items for head in _heads(item)]
    return Work(
        function=function,
        line=line,
        within=row.text("in"),
        forward=_pass([(item.forward, item.forward_engine) for item in items]),
        backward=_pass([(item.backward, item.backward_engine) for item in items]),
        why=tuple(reasons.values()),
        movable_seconds=sum(item.movable_seconds for item in items),
        inputs=_inputs(row),
        kernels=tuple(dict.fromkeys(name for head in heads if (name := _kernel(head)))),
        layouts=tuple(dict.fromkeys(name for head in heads if (name := _layout(head)))),
        optimizer=row.facts.get("optimizer") is True,
    )


def _pass(parts: Sequence[tuple[Counts, Engine]]) -> Pass:
    total = reduce(Counts.__add__, (counts for counts, _ in parts), Counts())
    engines = {engine for _, engine in parts if engine is not Engine.NONE}
    engine = Engine.BOTH if len(engines) > 1 else next(iter(engines), Engine.NONE)
    return Pass(
        calls=total.calls,
        seconds=total.seconds,
        engine=engine,
        reorders=total.reorders,
        reorder_seconds=total.reorder_seconds,
        weight_reorders=total.weight_reorders,
        weight_reorder_seconds=total.weight_reorder_seconds,
    )


def _heads(item: Judged) -> list[str]:
    """MKL-DNN's lines of a row and of what was applied within its backward passes."""
    return [head for row in (item.row, *item.inner) for _, head in row.heads]


def _kernel(head: str) -> str:
    line = parse_line(f"{head},0")
    return f"{line.primitive} {line.implementation}" if line is not None and line.primitive != "reorder" else ""


def _layout(head: str) -> str:
    line = parse_line(f"{head},0")
    if line is None or line.primitive != "reorder":
        return ""
    formats = [word.split(":")[-1].removeprefix("f32_") for word in line.formats.split()]
    return ">".join(formats) if len(set(formats)) == 2 else ""


def _inputs(row: Row) -> str:
    given = inputs_of(row)
    if not given:
        return ""
    return f"{given[0].dtype} {'x'.join(map(str, given[0].shape))}".strip()


def _process(records: Records, shown: Shown) -> TracedProcess:
    rows = {row.number: row for row in records.rows}
    busy = [_busy(number, rows, shown) for number in records.busy]
    words = records.process.get("command")
    return TracedProcess(
        pid=records.pid,
        command=" ".join(map(str, words)) if isinstance(words, list) else "",
        python=str(records.process.get("python", "")),
        chainer=str(records.chainer.get("version", "")),
        ideep=str(records.chainer.get("ideep", "")),
        ended=records.ended,
        forked=records.process.get("forked_from") is not None,
        busy=tuple(text for text in busy if text) if not records.ended else (),
        own_seconds=records.own_seconds,
        calls=sum(row.forward.calls + row.backward.calls for row in records.rows),
        guard=_guard(records),
    )


def _guard(records: Records) -> dict[str, int] | None:
    applied = records.guard.get("applied")
    if not records.guard.get("active") or not isinstance(applied, dict):
        return None
    return {str(name): number for name, number in applied.items() if isinstance(number, int)}


def _busy(number: int, rows: dict[int, Row], shown: Shown) -> str:
    """What a thread was computing, in words."""
    row = outermost(rows.get(abs(number)), rows)
    if row is None:
        return ""
    number = number if row.number == number else -1
    direction = "" if row.facts.get("optimizer") else ", backward" if number < 0 else ", forward"
    return f"{row.text('function')} at {Line(shown(row.text('file')), row.count('line'))}{direction}"


def _notes(records: Sequence[Records], returncode: int) -> tuple[str, ...]:
    """What a reader must know to read the numbers right."""
    found = []
    if not records:
        found.append("no Python was started that loads trace (-E, -I and -S keep it out): there is nothing to tell")
    elif not any(one.chainer for one in records):
        found.append("no process imported Chainer: there is nothing to tell")
    elif not any(row.forward.calls for one in records for row in one.rows):
        found.append("Chainer was imported, and none of its functions was called")
    for reason in dict.fromkeys(one.no_lines for one in records if one.no_lines):
        found.append(f"layouts were not measured: {reason}")
    lost = sum(one.lost_lines for one in records)
    if lost:
        found.append(f"{lost} lines of MKL-DNN were lost: layouts are counted too low")
    if returncode >= 0:
        # Of a process that was forked nobody expects an ordinary end.
        cut = [one for one in records if one.chainer and not one.ended and one.process.get("forked_from") is None]
        if cut:
            found.append(f"process {cut[0].pid} did not end in the ordinary way, or is still running")
    return tuple(found)
