"""Timelines in the Trace Event Format that chrome://tracing and Perfetto read: complete events ("X"). Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ideepdoctor.model.trace import Timeline


def render(timelines: Sequence[Timeline]) -> str:
    """One JSON document, ASCII; ``ts`` and ``dur`` are microseconds."""
    lines: list[str] = []
    for timeline in timelines:
        name = {"name": timeline.name or f"process {timeline.pid}"}
        lines.append(_line({"name": "process_name", "ph": "M", "pid": timeline.pid, "tid": 0, "args": name}))
        threads: set[int] = set()
        for event in timeline.events:
            if event.thread not in threads:
                threads.add(event.thread)
                lines.append(_thread(timeline.pid, event.thread))
            lines.append(
                _line(
                    {
                        "name": event.name,
                        "cat": event.arguments.get("pass", "update"),
                        "ph": "X",
                        "ts": round(event.start, 1),
                        "dur": round(event.duration, 1),
                        "pid": timeline.pid,
                        "tid": event.thread,
                        "args": event.arguments,
                    }
                )
            )
    return '{"displayTimeUnit": "ms", "traceEvents": [\n' + ",\n".join(lines) + "\n]}\n"


def _thread(pid: int, thread: int) -> str:
    name = {"name": "main thread" if thread == 0 else f"thread {thread}"}
    return _line({"name": "thread_name", "ph": "M", "pid": pid, "tid": thread, "args": name})


def _line(event: dict[str, Any]) -> str:
    return json.dumps(event, ensure_ascii=True, separators=(",", ":"))
