"""A trace as text for a person: 80 columns, no colour. Pure: it is written to standard error or to a file."""

from __future__ import annotations

import signal
import textwrap
from collections import Counter
from collections.abc import Iterable

from ideepdoctor.locale import columns, tr
from ideepdoctor.model.trace import Cause, Change, Engine, Trace, Work

WIDTH = 80
CHANGES = 3
"""Changes that are shown in full; the others get a line each."""
_LINES = 20
_FUNCTIONS = 8
_LEAST_SHARE = 0.01
"""Of the time of all functions: lines below it are only counted, unless something can be done about them."""
_LABEL = 10
_STAYS = frozenset({Cause.DIMENSIONS, Cause.DEPTHWISE, Cause.GROUPS, Cause.UNKNOWN})
_PLACE, _NAME = 22, 23


def render(trace: Trace, width: int = WIDTH) -> str:
    """The report, with a newline at its end."""
    lines = [*_head(trace, width), *_changes(trace, width), *_by_line(trace, width), *_by_function(trace)]
    notes = [*trace.notes, *(f"trace left something out: {text}" for text in trace.problems)]
    for note in notes:
        lines += _wrapped("note", note, width)
    return "\n".join(lines) + "\n"


def ending(trace: Trace) -> str:
    """How the program ended, and what it was computing then."""
    if trace.returncode >= 0:
        text = f"exit code {trace.returncode} after {_seconds(trace.seconds)} s"
    else:
        text = f"{signal_name(-trace.returncode)} after {_seconds(trace.seconds)} s"
    # After an exit in order nobody asks what a daemon's thread was doing.
    busy = [what for process in trace.processes for what in process.busy] if trace.returncode else []
    return f"{text}, in {'; '.join(busy[:3])}" if busy else text


def signal_name(number: int) -> str:
    """SIGSEGV for 11; signals without a name by their number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _head(trace: Trace, width: int) -> list[str]:
    lines = textwrap.wrap(f"trace of {' '.join(trace.command)}", width, subsequent_indent="  ", max_lines=2)
    lines += _wrapped("ended", ending(trace), width)
    seen = next((process for process in trace.processes if process.chainer), None)
    if seen is None:
        return lines
    ideep = f"ideep4py {seen.ideep}" if seen.ideep else "no ideep4py"
    count = sum(bool(process.calls) for process in trace.processes)
    more = f", in {count} processes" if count > 1 else ""
    lines += _wrapped("with", f"Python {seen.python}, Chainer {seen.chainer}, {ideep}{more}", width)
    if not trace.work:
        return lines
    total = sum(item.seconds for item in trace.work)
    spent = [(engine, trace.spent(engine)) for engine in (Engine.IDEEP, Engine.NUMPY, Engine.BOTH, Engine.OTHER)]
    names = {Engine.BOTH: "by both", Engine.OTHER: "on a GPU"}
    shares = ", ".join(f"{_seconds(time)} s {names.get(engine, f'by {engine}')}" for engine, time in spent if time)
    rest = trace.seconds - total
    other = f"; the other {_seconds(rest)} s are imports, data and your own code" if rest > 0 and count == 1 else ""
    lines += _wrapped("functions", f"{_seconds(total)} s: {shares}{other}", width)
    own = sum(process.own_seconds for process in trace.processes)
    lines += _wrapped("", f"(trace itself took about {_seconds(own)} s)", width)
    layouts = [one for item in trace.work for one in (item.forward, item.backward)] + [trace.outside]
    times = sum(one.reorders + one.weight_reorders for one in layouts)
    if times:
        spent_on = sum(one.reorder_seconds + one.weight_reorder_seconds for one in layouts)
        weights = sum(one.weight_reorder_seconds for one in layouts)
        of_weights = f", {_seconds(weights)} s of it for weights" if weights >= 0.001 else ""
        lines += _wrapped("layouts", f"changed {_times(times)}, {_seconds(spent_on)} s{of_weights}", width)
    corrected = Counter[str]()
    for process in trace.processes:
        corrected.update(process.guard or {})
    if any(process.guard is not None for process in trace.processes):
        done = ", ".join(f"{name} {_times(number)}" for name, number in corrected.most_common())
        lines += _wrapped(
            "guard", f"active; it corrected {done}" if done else "active; it had nothing to correct", width
        )
    return lines


def _changes(trace: Trace, width: int) -> list[str]:
    if not trace.work:
        return []
    if not trace.changes:
        return ["", "nothing to change: iDeep computed all that it can", *_staying(trace, width)]
    share = trace.movable_seconds / trace.seconds if trace.seconds > 0 else 0.0
    part = f"{share:.0%}" if share >= 0.005 else "less than 1%"
    start = f"what to change, the largest gain first: {_seconds(trace.movable_seconds)} s could move, {part} of the run"
    # What trace has done itself is moved already.
    lines = ["", *_indented(start if trace.movable_seconds > 0 else "what to change", width, 0, 2)]
    for number, change in enumerate(trace.changes[:CHANGES], 1):
        lines.append(f"{number}. {_where(change)}  {_seconds(change.seconds)} s")
        lines += _wrapped(" found", change.found, width)
        lines += _wrapped(" write", change.write, width)
    if trace.changes[CHANGES:]:
        lines.append("also")
    for change in trace.changes[CHANGES:]:
        lines += _indented(f"{_where(change)}  {_seconds(change.seconds)} s  {change.found}", width, 3, 5)
        lines += _indented(f"write {change.write}", width, 5, 5)
    return [*lines, *_staying(trace, width)]


def _staying(trace: Trace, width: int) -> list[str]:
    """What iDeep would compute if it were smaller, or another kind of it: worth knowing, and nothing to be done."""
    least = _LEAST_SHARE * sum(item.seconds for item in trace.work)
    found = [
        f"{item.function} at {item.line}, {_seconds(item.seconds)} s: {item.why[0].text}"
        for item in trace.work
        if item.why and not item.why[0].curable and item.why[0].cause in _STAYS and item.seconds >= least
    ]
    return [line for text in found[:3] for line in _indented(f"stays with NumPy: {text}", width, 0, 2)]


def _indented(text: str, width: int, first: int, rest: int) -> list[str]:
    return columns.wrap(text, width, first=" " * first, rest=" " * rest)


def _where(change: Change) -> str:
    return change.where or str(change.line)


def _by_line(trace: Trace, width: int) -> list[str]:
    if not trace.work:
        return []
    total = sum(item.seconds for item in trace.work)
    worth = [item for item in trace.work if item.seconds >= total * _LEAST_SHARE or _curable(item)]
    shown = worth[:_LINES] + [item for item in worth[_LINES:] if _curable(item)]
    lines = ["", _row("line", "function", "calls", "forward", "backward", "by")]
    for item in shown:
        lines.append(
            _row(
                str(item.line),
                item.function,
                str(item.forward.calls or item.backward.calls),
                _seconds(item.forward.seconds) if item.forward.calls else "",
                _seconds(item.backward.seconds) if item.backward.calls else "",
                _by(item),
            )
        )
        for text in _details(item):
            lines += _indented(text, width, 4, 4)
    rest = [item for item in trace.work if item not in shown]
    if rest:
        lines.append(f"  and {len(rest)} more, {_seconds(sum(item.seconds for item in rest))} s")
    return lines


def _by_function(trace: Trace) -> list[str]:
    groups: dict[str, list[Work]] = {}
    for item in trace.work:
        groups.setdefault(item.function, []).append(item)
    if len(groups) < 2:
        return []
    ordered = sorted(groups.items(), key=lambda pair: -sum(item.seconds for item in pair[1]))
    lines = ["", _row("all lines", "function", "calls", "forward", "backward", "by")]
    for name, items in ordered[:_FUNCTIONS]:
        passes = [one for item in items for one in (item.forward, item.backward)]
        engines = {one.engine for one in passes} - {Engine.NONE}
        forward, backward = (sum(one.seconds for one in passes[start::2]) for start in (0, 1))
        calls = sum(item.forward.calls or item.backward.calls for item in items)
        by = str(next(iter(engines))) if len(engines) == 1 else "both"
        lines.append(_row("", name, str(calls), _seconds(forward), _seconds(backward) if backward else "", by))
    return lines


def _row(place: str, name: str, calls: str, forward: str, backward: str, by: str) -> str:
    columns = f"{_cut_left(place, _PLACE):<{_PLACE}} {_cut(name, _NAME):<{_NAME}}"
    return f"  {columns} {calls:>6} {forward:>7} {backward:>8} {by}".rstrip()


def _by(item: Work) -> str:
    engines = {item.forward.engine, item.backward.engine} - {Engine.NONE}
    return str(next(iter(engines))) if len(engines) == 1 else "both" if engines else ""


def _curable(item: Work) -> bool:
    return any(why.curable for why in item.why)


def _details(item: Work) -> Iterable[str]:
    """Why not iDeep, and what layouts cost."""
    forward, backward = item.forward.engine, item.backward.engine
    if item.why:
        start = ""
        if Engine.NONE not in (forward, backward) and forward is not backward:
            halves = [("forward", forward), ("backward", backward)]
            start = ", ".join(f"{name} by {engine}" for name, engine in halves if engine is not Engine.IDEEP) + ": "
        yield start + "; also ".join(why.text for why in item.why if why.cause is not Cause.UNSERVED or item.seconds)
    passes = (item.forward, item.backward)
    seconds = sum(one.reorder_seconds + one.weight_reorder_seconds for one in passes)
    if seconds >= 0.001 and seconds >= item.seconds * 0.05:
        changed = sum(one.reorders + one.weight_reorders for one in passes)
        yield f"layouts changed {_times(changed)}, {_seconds(seconds)} s: {', '.join(item.layouts[:3])}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _wrapped(label: str, text: str, width: int) -> list[str]:
    start = f"  {columns.ljust(tr(label), _LABEL)}"
    return columns.wrap(text, width, first=start, rest=" " * columns.width(start))


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 2]}.."


def _cut_left(text: str, length: int) -> str:
    return text if len(text) <= length else f"..{text[len(text) - length + 2 :]}"


def _seconds(value: float) -> str:
    """Three digits, and no more than three behind the point."""
    if 0 < value < 0.0005:
        return "<0.001"
    if value >= 99.95:
        return f"{value:.0f}"
    if value >= 9.995:
        return f"{value:.1f}"
    if value >= 0.9995:
        return f"{value:.2f}"
    return f"{value:.3f}"
