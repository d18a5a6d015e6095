"""What to change in a program: one change for each thing to write, the largest gain first. Pure but for ``Sources``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ideepdoctor.model.trace import Cause, Change, Line
from ideepdoctor.proof.trace_judge import Judged
from ideepdoctor.proof.trace_source import Assigned, Sources
from ideepdoctor.proof.trace_why import inputs_of

Shown = Callable[[str], str]
"""Gives a path as the reader shall see it."""

_EXPORT = "export CHAINER_USE_IDEEP=auto (ideepdoctor run sets it, too)"


@dataclass(slots=True)
class _Group:
    """Rows that one change cures."""

    rows: list[Judged] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def first(self) -> Judged:
        return self.rows[0]

    def line(self, shown: Shown) -> Line:
        """The line of the first row."""
        return line_of(self.first, shown)

    def what(self, shown: Shown) -> str:
        """Function and line of the first row, and how many more."""
        more = len({(item.row.text("function"), line_of(item, shown)) for item in self.rows}) - 1
        return f"{self.first.row.text('function')} at {self.line(shown)}{f' and {more} more' if more else ''}"


@dataclass(frozen=True, slots=True)
class _Context:
    """What the texts need: the sources, and how paths are shown."""

    sources: Sources
    shown: Shown


def line_of(item: Judged, shown: Shown) -> Line:
    """The line of a row, as the reader shall see it."""
    return Line(shown(item.row.text("file")), item.row.count("line"))


def changes(judged: Sequence[Judged], sources: Sources, shown: Shown, *, set_here: bool) -> tuple[Change, ...]:
    """What to write, the largest gain first.

    Args:
        judged: rows of all processes.
        sources: the user's files.
        shown: gives a path as the reader shall see it.
        set_here: whether CHAINER_USE_IDEEP is not set in the user's environment, and trace has set it for this run.
    """
    context = _Context(sources, shown)
    groups: dict[tuple[Any, ...], _Group] = {}
    for item in judged:
        key = _key(item)
        if key is not None:
            group = groups.setdefault(key, _Group())
            group.rows.append(item)
            group.seconds += item.movable_seconds
    made = [change for key, group in groups.items() for change in _WRITERS[key[0]](group, context)]
    if set_here and judged:
        made.append(_set_variable(judged))
    return tuple(sorted(made, key=lambda change: -change.seconds))


def _key(item: Judged) -> tuple[Any, ...] | None:
    """What rows have in common that one change cures; None for a row that no change cures."""
    if not item.why or not item.why[0].curable:
        return None
    cause, row, pid = item.why[0].cause, item.row, item.records.pid
    place = row.text("file"), row.count("line")
    if cause in (Cause.UNAVAILABLE, Cause.UNSET, Cause.PLAIN_WEIGHTS):
        return (cause,)
    if cause in (Cause.NEVER, Cause.DEFAULT_WIDTH):
        made = row.table("set" if cause is Cause.NEVER else "dtype")
        return cause, made.get("file"), made.get("line")
    if cause is Cause.WIDTH and row.count("origin"):
        first = next((other for other in item.records.rows if other.number == row.count("origin")), row)
        return cause, first.text("file"), first.count("line"), first.text("function")
    if cause is Cause.WIDTH:
        return cause, pid, row.number
    return cause, *place, row.text("function")


def _reaches(group: _Group, context: _Context, own: Line) -> tuple[Line, ...]:
    found = dict.fromkeys(line_of(item, context.shown) for item in group.rows)
    return tuple(line for line in found if line != own)


def _set_variable(judged: Iterable[Judged]) -> Change:
    seconds = sum(item.forward.seconds + item.backward.seconds for item in judged if item.forward.executed)
    return Change(
        Cause.UNSET,
        Line("", 0),
        seconds,
        "CHAINER_USE_IDEEP is not set; trace set it to auto for this run alone. Without it NumPy computes everything",
        _EXPORT,
        where="your environment",
        done_here=True,
    )


def _unavailable(group: _Group, context: _Context) -> list[Change]:
    python = str(group.first.records.process.get("executable", "python"))
    text = group.first.why[0].text
    write = f"ideepdoctor fix --python {context.shown(python)}"
    return [Change(Cause.UNAVAILABLE, Line("", 0), group.seconds, text, write, where="the environment")]


def _unset(group: _Group, context: _Context) -> list[Change]:
    found = f"{group.first.why[0].text}, and Chainer's default is never"
    return [Change(Cause.UNSET, Line("", 0), group.seconds, found, _EXPORT, where="your environment")]


def _never(group: _Group, context: _Context) -> list[Change]:
    made = group.first.row.table("set")
    found = f"{group.first.why[0].text}: {group.what(context.shown)}"
    if not made.get("line"):
        write = "set it to auto, or take it away"
        return [Change(Cause.NEVER, Line("", 0), group.seconds, found, write, where="your environment")]
    line = Line(context.shown(str(made.get("file"))), int(made["line"]))
    write = "take this 'with' away" if made.get("context") else "set it to 'auto', or take the line away"
    return [Change(Cause.NEVER, line, group.seconds, found, write, reaches=_reaches(group, context, line))]


def _default_width(group: _Group, context: _Context) -> list[Change]:
    made, chainer = group.first.row.table("dtype"), group.first.records.chainer
    line, where, write = group.line(context.shown), "", "give the link float32 initial values (initialW, initial_bias)"
    found = f"{group.first.why[0].text}: {group.what(context.shown)}"
    if made.get("line"):
        line = Line(context.shown(str(made.get("file"))), int(made["line"]))
        write = "leave chainer.config.dtype at float32"
    elif "CHAINER_DTYPE" in chainer.get("variables", {}):
        found = f"CHAINER_DTYPE is {chainer['variables']['CHAINER_DTYPE']}: {found}"
        line, where, write = Line("", 0), "your environment", "unset CHAINER_DTYPE"
    reaches = _reaches(group, context, line)
    return [Change(Cause.DEFAULT_WIDTH, line, group.seconds, found, write, where=where, reaches=reaches)]


def _width(group: _Group, context: _Context) -> list[Change]:
    item = group.first
    origin = next((row for row in item.records.rows if row.number == item.row.count("origin")), item.row)
    first = Line(context.shown(origin.text("file")), origin.count("line"))
    kind = next((given.dtype for given in inputs_of(origin) if given.kind == "n" and given.dtype != "float32"), "")
    arrives = f"{kind or 'not float32'} into {origin.text('function')} at {first}"
    more = len({(one.row.text("function"), line_of(one, context.shown)) for one in group.rows}) - 1
    if more > 0:
        arrives += f" and {more} after it"
    made = _made(origin.rows("names"), origin.rows("stack"), context.sources)
    if made is not None:
        file, assigned = made
        line = Line(context.shown(file), assigned.line)
        found, write = f"{assigned.name} is {arrives}", assigned.narrowed()
    elif origin.facts.get("dataset"):
        line, found = first, f"the dataset gives {arrives}"
        write = "make the dataset's arrays float32: x.astype('float32')"
    else:
        line, found, write = first, arrives, "give it float32: x.astype('float32'); F.cast(x, 'float32') for a Variable"
    return [Change(Cause.WIDTH, line, group.seconds, found, write, reaches=_reaches(group, context, line))]


def _made(names: Sequence[Any], stack: Sequence[Any], sources: Sources) -> tuple[str, Assigned] | None:
    """File and statement where an array came into the user's hands: of the outermost frame that gives it a name."""
    found: dict[int, list[tuple[str, Assigned]]] = {}
    for item in names:
        if not (isinstance(item, list) and len(item) == 2 and isinstance(item[0], int) and item[0] < len(stack)):
            continue
        depth, name = item[0], str(item[1])
        frame = stack[depth]
        if not (isinstance(frame, list) and len(frame) == 4):
            continue
        file, line, function, first_line = str(frame[0]), int(frame[1]), str(frame[2]), int(frame[3])
        assigned = sources.assigned(file, function, first_line, name, line)
        if assigned is not None:
            found.setdefault(depth, []).append((file, assigned))
    if not found:
        return None
    outermost = found[max(found)]
    there = {assigned.name for _, assigned in outermost}
    # Of two names the one counts that the other was made from: x = Variable(array).
    roots = [pair for pair in outermost if not pair[1].mentions & (there - {pair[1].name})]
    return (roots or outermost)[0]


def _empty(group: _Group, context: _Context) -> list[Change]:
    found = f"{group.first.why[0].text} into {group.what(context.shown)}"
    line = group.line(context.shown)
    return [Change(Cause.EMPTY, line, group.seconds, found, "skip empty batches: if len(x): ...")]


def _general(group: _Group, context: _Context) -> list[Change]:
    text = group.first.why[0].text
    write = f"{text.split('; ')[-1].split(' ')[0]} in its place, with the same weights"
    return [Change(Cause.GENERAL, group.line(context.shown), group.seconds, text, write)]


def _groups(group: _Group, context: _Context) -> list[Change]:
    found = f"{group.first.row.text('function')}: {group.first.why[0].text}"
    # Not by split_axis, which ends the process where it cuts through a block of channels (H8).
    write = "two convolutions without groups, of x[:, :c] and x[:, c:], joined by F.concat(..., 1)"
    return [Change(Cause.GROUPS, group.line(context.shown), group.seconds, found, write)]


def _plain_weights(group: _Group, context: _Context) -> list[Change]:
    """The model has NumPy's arrays: weights are laid out anew, and updates are NumPy's."""
    updates = [item for item in group.rows if item.row.facts.get("optimizer") is True]
    layouts = sum(item.forward.weight_reorders + item.backward.weight_reorders for item in group.rows)
    times = "once" if layouts == 1 else f"{layouts} times"
    parts = [f"its weights were laid out anew {times}"] if layouts else []
    parts += [f"{sorted(item.row.text('function') for item in updates)[0]} was computed by NumPy"] if updates else []
    found = "the model is not in iDeep's layout" + (f": {', '.join(parts)}" if parts else "")
    setup = next((facts for item in group.rows for facts in item.records.setups if facts.get("line")), None)
    if setup is not None:
        file, number = str(setup["file"]), int(setup["line"])
        model = context.sources.argument(file, number, "setup") or "model"
        write = f"{model}.to_intel64()  before this line, and after weights were loaded"
    else:
        file, number = _called(group.first)
        write = "model.to_intel64()  before this line, and after weights were loaded"
    line = Line(context.shown(file), number)
    return [Change(Cause.PLAIN_WEIGHTS, line, group.seconds, found, write, reaches=_reaches(group, context, line))]


def _called(item: Judged) -> tuple[str, int]:
    """Where the user calls the model: the first frame that is none of its own methods."""
    frames = [frame for frame in item.row.rows("stack") if isinstance(frame, list) and len(frame) == 4]
    for frame in frames:
        if frame[2] not in ("__call__", "forward"):
            return str(frame[0]), int(frame[1])
    return item.row.text("file"), item.row.count("line")


_WRITERS: dict[Cause, Callable[[_Group, _Context], list[Change]]] = {
    Cause.UNAVAILABLE: _unavailable,
    Cause.UNSET: _unset,
    Cause.NEVER: _never,
    Cause.DEFAULT_WIDTH: _default_width,
    Cause.WIDTH: _width,
    Cause.EMPTY: _empty,
    Cause.GENERAL: _general,
    Cause.GROUPS: _groups,
    Cause.PLAIN_WEIGHTS: _plain_weights,
}
