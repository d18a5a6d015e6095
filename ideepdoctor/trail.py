"""What happens in a run, told as it happens to whoever listens: the log file, and standard error with ``-v``.

Who does something says so here and need not know who listens; where nobody does, it costs next to nothing. Listeners
are those of the whole process, since parts of a run work in threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Listener = Callable[[str, str, dict[str, Any]], None]
"""Called with a level (debug, info, warning, error), the name of an event, and what belongs to it."""

_LISTENERS: list[Listener] = []


@contextmanager
def listening(*listeners: Listener) -> Iterator[None]:
    """Let listeners hear what is told until the end of the block."""
    _LISTENERS.extend(listeners)
    try:
        yield
    finally:
        for listener in listeners:
            _LISTENERS.remove(listener)


def tell(level: str, event: str, **data: Any) -> None:
    """Say that something has happened."""
    for listener in tuple(_LISTENERS):
        listener(level, event, data)


@contextmanager
def timed(event: str, name: str) -> Iterator[None]:
    """Tell, when the block has ended, how long it took: ``event`` is "stage" or "rule"."""
    if not _LISTENERS:
        yield
        return
    started = time.perf_counter()
    try:
        yield
    finally:
        tell("debug", event, name=name, seconds=time.perf_counter() - started)
