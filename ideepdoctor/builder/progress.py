"""How far a build is: its stages, the steps that make and the compilers print, and the time that is left."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from ideepdoctor.model.build import Stage
from ideepdoctor.treatment.progress import Progress

TITLES = {
    Stage.PREFLIGHT: "look at what a build needs",
    Stage.SOURCE: "fetch and check the source",
    Stage.TOOLS: "make the toolchain",
    Stage.MKL: "provide MKL",
    Stage.LIBRARY: "compile MKL-DNN",
    Stage.EXTENSION: "compile the extension",
    Stage.WHEEL: "pack and check the wheel",
    Stage.VERIFY: "prove the wheel in a fresh environment",
}
LIBRARY_CPU_SECONDS = 230.0
EXTENSION_SECONDS = (13.0, 38.0)
"""Measured on two processors of 2023: newer Pythons and compilers take longer."""
_SECONDS = {
    Stage.PREFLIGHT: 3.0,
    Stage.SOURCE: 20.0,
    Stage.TOOLS: 15.0,
    Stage.MKL: 10.0,
    Stage.EXTENSION: 25.0,
    Stage.WHEEL: 5.0,
    Stage.VERIFY: 60.0,
}

_MAKE = re.compile(r"^\[ *(\d{1,3})%\] *(.*)")
_SETUP = re.compile(r"(running|swigging|building) ")
_SHOWN = 80
_SPEAKS_AFTER_SECONDS = 5.0
"""Before, an estimate from what is done is a guess."""


def percent_of(line: str) -> tuple[int, str] | None:
    """The percentage and the rest of a line that CMake's make prints (``[ 37%] Building ...``); None: no such line."""
    found = _MAKE.match(line)
    if found is None or int(found[1]) > 100:
        return None
    return int(found[1]), found[2]


def seconds_of(stage: Stage, jobs: int) -> float:
    """How long a stage takes, about; with this many compilers at once."""
    return LIBRARY_CPU_SECONDS / max(1, jobs) if stage is Stage.LIBRARY else _SECONDS[stage]


def shown_time(seconds: float) -> str:
    """``40 s``, ``3 min``: rounded as an estimate should be."""
    if seconds < 90:
        return f"{max(5, round(seconds / 5) * 5)} s"
    return f"{round(seconds / 60)} min"


class Meter:
    """Tells a ``Progress`` how far a build is.

    Args:
        progress: shows it.
        stages: those of this build, in order.
        jobs: compilers at once.
        clock: seconds; for tests.
    """

    def __init__(
        self,
        progress: Progress,
        stages: tuple[Stage, ...],
        jobs: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._progress, self._stages, self._clock = progress, stages, clock
        self.jobs = jobs
        self._stage: Stage | None = None
        self._begun = clock()
        self._shown = ""
        self.seconds: dict[Stage, float] = {}
        """How long each finished stage took."""

    @property
    def stage(self) -> Stage | None:
        """The one that runs; None before the first."""
        return self._stage

    def begin(self, stage: Stage) -> None:
        """A stage begins, and the one before it has ended."""
        self.end()
        self._stage, self._begun = stage, self._clock()
        self._progress.step(self._stages.index(stage) + 1, len(self._stages), TITLES[stage])

    def end(self) -> None:
        """The stage that runs has ended."""
        if self._stage is not None:
            self.seconds[self._stage] = self._clock() - self._begun
        self._stage, self._shown = None, ""

    def line(self, text: str) -> None:
        """A line of the output of a program; those of make move the bar, those of setup.py say what it does."""
        if self._stage is Stage.EXTENSION and _SETUP.match(text):
            self._progress.detail(text[:_SHOWN])
        found = percent_of(text)
        if found is None or self._stage is not Stage.LIBRARY:
            return
        percent, what = found
        self._progress.share(percent / 100)
        shown = f"{percent} %{self._left(percent)}"
        if shown != self._shown:
            self._shown = shown
            self._progress.detail(f"{shown}  {what}".rstrip())

    def _left(self, percent: int) -> str:
        """What is left of this stage, and of those after it."""
        assert self._stage is not None
        spent = self._clock() - self._begun
        if percent == 0 or spent < _SPEAKS_AFTER_SECONDS:
            rest = seconds_of(self._stage, self.jobs) * (1 - percent / 100)
        else:
            rest = spent / percent * (100 - percent)
        after = self._stages[self._stages.index(self._stage) + 1 :]
        rest += sum(seconds_of(stage, self.jobs) for stage in after)
        return f", {shown_time(rest)} left"
