"""What ``trace`` saw of a program: which lines computed with iDeep, which with NumPy, why, and what to change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Engine(StrEnum):
    """What computed."""

    IDEEP = "iDeep"
    NUMPY = "NumPy"
    BOTH = "both"
    OTHER = "GPU"
    NONE = ""
    """Nothing did: there was no such pass."""


class Cause(StrEnum):
    """Why a function was not computed by iDeep, or not as well as it could be."""

    UNAVAILABLE = "not-available"
    UNSET = "not-set"
    """CHAINER_USE_IDEEP is not set: Chainer's default is never."""
    NEVER = "never"
    WIDTH = "dtype"
    """An input that is not float32."""
    DEFAULT_WIDTH = "default-dtype"
    """Parameters that are not float32, by CHAINER_DTYPE, ``config.dtype`` or their initial values."""
    EMPTY = "zero-size"
    DIMENSIONS = "dimensions"
    GROUPS = "groups"
    DEPTHWISE = "depthwise"
    GENERAL = "nd-function"
    """A function for any number of dimensions, where iDeep has the one for two."""
    UNSERVED = "not-served"
    GPU = "gpu"
    PLAIN_WEIGHTS = "not-to-intel64"
    GUARD = "guard"
    """The guard does it with NumPy, where iDeep is wrong."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the user's source; file 0-length: none of theirs."""

    file: str
    number: int

    def __str__(self) -> str:
        return f"{self.file}:{self.number}" if self.file else "(no line of yours)"


@dataclass(frozen=True, slots=True)
class Why:
    """A reason, in words for a person."""

    cause: Cause
    text: str
    curable: bool
    """Whether a change of the program moves it to iDeep."""


@dataclass(frozen=True, slots=True)
class Pass:
    """The forward or the backward passes of a function at a line, together.

    Attributes:
        calls: how many.
        seconds: wall time of all.
        engine: what computed them.
        reorders: changes of the layout of data, by MKL-DNN.
        reorder_seconds: their wall time, part of ``seconds``.
        weight_reorders: the same of weights.
        weight_reorder_seconds: their wall time, part of ``seconds``.
    """

    calls: int = 0
    seconds: float = 0.0
    engine: Engine = Engine.NONE
    reorders: int = 0
    reorder_seconds: float = 0.0
    weight_reorders: int = 0
    weight_reorder_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Work:
    """A function, or an optimizer's updates, at a line.

    Attributes:
        function: class of Chainer.
        line: the user's line.
        within: name of the user's function there.
        forward: the passes (for an optimizer: the updates).
        backward: the same, backward.
        why: reasons for what NumPy computed, the first of them decisive.
        movable_seconds: what NumPy computed, or spent on layouts, and a change would move or save.
        inputs: one sample of its inputs, ``float32 8x3x32x32``.
        kernels: MKL-DNN's implementations, ``convolution jit:avx512_common``.
        layouts: changes of layout, ``nchw>nChw16c``.
        optimizer: whether it is an optimizer.
    """

    function: str
    line: Line
    within: str = ""
    forward: Pass = Pass()
    backward: Pass = Pass()
    why: tuple[Why, ...] = ()
    movable_seconds: float = 0.0
    inputs: str = ""
    kernels: tuple[str, ...] = ()
    layouts: tuple[str, ...] = ()
    optimizer: bool = False

    @property
    def seconds(self) -> float:
        """Forward and backward."""
        return self.forward.seconds + self.backward.seconds


@dataclass(frozen=True, slots=True)
class Change:
    """What to write, where, and what it would gain.

    Attributes:
        cause: why.
        line: where; no file: outside the source.
        where: in words where there is no line.
        seconds: of NumPy's, or of layouts, that it moves or saves.
        found: what is there now.
        write: what to write.
        reaches: other lines that gain from it.
        done_here: whether trace itself did it, for this run alone.
    """

    cause: Cause
    line: Line
    seconds: float
    found: str
    write: str
    where: str = ""
    reaches: tuple[Line, ...] = ()
    done_here: bool = False


@dataclass(frozen=True, slots=True)
class TracedProcess:
    """One process that recorded something.

    Attributes:
        pid: its number.
        command: the words that started it.
        python: version.
        chainer: version; empty: it did not import it.
        ideep: version; empty: none.
        ended: whether it came to its end in the ordinary way.
        forked: whether another one of these forked it.
        busy: what its threads were computing when it ended, where they did not finish.
        own_seconds: what tracing itself took.
        calls: of functions.
        guard: what the guard corrected, how often; None: it was not active, or did not come to tell.
    """

    pid: int
    command: str
    python: str
    chainer: str
    ideep: str
    ended: bool
    forked: bool
    busy: tuple[str, ...]
    own_seconds: float
    calls: int
    guard: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """A traced run of a program.

    Attributes:
        command: the program's words.
        returncode: exit code; negative: the signal that ended it.
        seconds: wall time of the program.
        processes: that recorded something.
        work: by line and function, the longest first.
        changes: the largest gain first.
        notes: what a reader must know to read the numbers right.
        problems: what could not be recorded or read.
        outside: layouts that were changed outside functions, as by to_intel64().
    """

    command: tuple[str, ...]
    returncode: int
    seconds: float
    processes: tuple[TracedProcess, ...] = ()
    work: tuple[Work, ...] = ()
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    outside: Pass = field(default=Pass())

    @property
    def movable_seconds(self) -> float:
        """What the changes would move to iDeep, or save."""
        return sum(change.seconds for change in self.changes if not change.done_here)

    def spent(self, engine: Engine) -> float:
        """Seconds of the passes that this engine computed."""
        passes = [one for item in self.work for one in (item.forward, item.backward)]
        return sum(one.seconds for one in passes if one.engine is engine)


@dataclass(frozen=True, slots=True)
class Event:
    """One call: times are microseconds from the start of the first timeline."""

    name: str
    thread: int
    start: float
    duration: float
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The calls of a process, in the order of their ends; can be walked once."""

    pid: int
    name: str
    events: Iterator[Event]
