"""A trace as the data under the key ``trace`` of the JSON envelope. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ideepdoctor.model.trace import Change, Engine, Line, Pass, Trace, Why, Work


def as_data(trace: Trace) -> dict[str, Any]:
    """JSON-ready: see ``$defs/trace`` of report.schema.json. Times are seconds."""
    return {
        "program": {
            "command": list(trace.command),
            "exit_code": trace.returncode if trace.returncode >= 0 else None,
            "signal": -trace.returncode if trace.returncode < 0 else None,
            "seconds": trace.seconds,
        },
        "processes": [{**asdict(process), "busy": list(process.busy)} for process in trace.processes],
        "totals": {
            "seconds": sum(item.seconds for item in trace.work),
            "by": {str(engine) or "none": trace.spent(engine) for engine in Engine if engine is not Engine.NONE},
            "movable_seconds": trace.movable_seconds,
            "movable_share": trace.movable_seconds / trace.seconds if trace.seconds > 0 else None,
        },
        "work": [_work(item) for item in trace.work],
        "outside": _pass(trace.outside),
        "changes": [_change(item) for item in trace.changes],
        "notes": list(trace.notes),
        "problems": list(trace.problems),
    }


def _line(line: Line) -> dict[str, Any]:
    return {"file": line.file or None, "line": line.number or None}


def _work(item: Work) -> dict[str, Any]:
    return {
        "function": item.function,
        **_line(item.line),
        "within": item.within,
        "optimizer": item.optimizer,
        "forward": _pass(item.forward),
        "backward": _pass(item.backward),
        "why": [_why(why) for why in item.why],
        "movable_seconds": item.movable_seconds,
        "inputs": item.inputs,
        "kernels": list(item.kernels),
        "layouts": list(item.layouts),
    }


def _pass(one: Pass) -> dict[str, Any]:
    return {**asdict(one), "engine": str(one.engine) or None}


def _why(why: Why) -> dict[str, Any]:
    return {"cause": str(why.cause), "text": why.text, "curable": why.curable}


def _change(change: Change) -> dict[str, Any]:
    return {
        "cause": str(change.cause),
        **_line(change.line),
        "where": change.where or str(change.line),
        "seconds": change.seconds,
        "found": change.found,
        "write": change.write,
        "reaches": [_line(line) for line in change.reaches],
        "done_here": change.done_here,
    }
