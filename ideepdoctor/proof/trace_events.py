"""The calls that were recorded one by one, as timelines of processes and threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ideepdoctor.model.trace import Event, Line, Timeline
from ideepdoctor.proof.trace_changes import Shown
from ideepdoctor.proof.trace_judge import judge, outermost
from ideepdoctor.proof.trace_records import Records, Row, read_events
from ideepdoctor.proof.trace_why import inputs_of


def timelines(records: Sequence[Records], *, shown: Shown) -> tuple[Timeline, ...]:
    """One timeline for each process that recorded calls; their times begin with the first of them.

    Args:
        records: of the processes.
        shown: gives a path as the reader shall see it.
    """
    begun = [one for one in records if one.watching or one.rows]
    zero = min((one.started for one in begun), default=0.0)
    return tuple(
        Timeline(
            pid=one.pid,
            name=" ".join(map(str, words)) if isinstance(words := one.process.get("command"), list) else "",
            events=_events(one, (one.started - zero) * 1e6, shown),
        )
        for one in begun
    )


def _events(records: Records, offset: float, shown: Shown) -> Iterator[Event]:
    rows = {row.number: row for row in records.rows}
    judged = {item.row.number: item for item in judge(records)}
    known: dict[tuple[int, int], tuple[str, dict[str, Any]]] = {}
    for number, backward, start, duration in read_events(records):
        row = rows.get(number)
        if row is None:
            continue
        if (number, backward) not in known:
            arguments = _arguments(row, rows, shown)
            item = judged.get(number)
            if item is not None:
                arguments["by"] = str(item.backward_engine if backward else item.forward_engine)
                arguments["why"] = "; ".join(why.text for why in item.why)
            if not row.facts.get("optimizer"):
                arguments["pass"] = "backward" if backward else "forward"
            known[number, backward] = (row.text("function"), {key: value for key, value in arguments.items() if value})
        name, arguments = known[number, backward]
        yield Event(name, row.count("thread"), max(0.0, start + offset), max(0.0, duration), arguments)


def _arguments(row: Row, rows: dict[int, Row], shown: Shown) -> dict[str, Any]:
    """The line, that of the outer function for what was applied within it, and the inputs."""
    outer = outermost(row, rows) or row
    place = Line(shown(outer.text("file")), outer.count("line"))
    given = [f"{item.dtype} {'x'.join(map(str, item.shape))}".strip() for item in inputs_of(row)]
    return {"line": str(place), "inputs": ", ".join(given)}
