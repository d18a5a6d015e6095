"""What a search of tune comes to. Data only."""

from __future__ import annotations

from dataclasses import dataclass

from ideepdoctor.proof.statistics import Interval
from ideepdoctor.proof.tune_space import Dimension, Option, Setting

MARGIN = 0.02
"""A gain below this is none: it is not worth a variable."""
WIDE = 0.10
"""An interval of a ratio wider than this tells little."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured.

    Attributes:
        blocks: of a race.
        last: of the last race, against the default; 0: there is none, and the races from the default decide.
        pairs: whether pairs of what helped are tried together in other ways, too.
    """

    blocks: int = 6
    last: int = 10
    pairs: bool = True


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of one option in its race.

    Attributes:
        option: None: the default of its dimension.
        gain: time of the default (with the other options as they stood) / time with this one; None: not measured.
        why: why it was not measured, or "".
    """

    option: Option | None
    gain: Interval | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Looked:
    """A dimension that was looked at: its trials, and how it is to be called."""

    dimension: Dimension
    trials: tuple[Trial, ...]
    chosen: Option | None

    @property
    def verdict(self) -> str:
        """``gain``, ``noise`` (none is faster), ``default`` (the others are slower), ``unknown`` or ``skipped``."""
        if self.chosen is not None:
            return "gain"
        if not self.trials:
            return "skipped"
        known = [trial.gain for trial in self.trials if trial.gain is not None]
        if not known:
            return "unknown"
        best = max(known, key=lambda gain: gain.median)
        if best.spread > WIDE and best.high > 1 + MARGIN:
            return "unknown"
        return "default" if best.high < 1 + MARGIN and best.median < 1 - MARGIN else "noise"


@dataclass(frozen=True, slots=True)
class Refused:
    """A setting that was faster and is not taken, and why."""

    setting: Setting
    gain: Interval
    why: str


@dataclass(frozen=True, slots=True)
class Choice:
    """The outcome.

    Attributes:
        setting: what is taken; the default where nothing else is clearly faster and right.
        gain: time of the default / its time, by blocks that the search did not see; None for the default.
        looked: the dimensions.
        refused: what was faster, and wrong.
        telling: whether the intervals are narrow enough to say that nothing is faster.
        complete: whether there was time for all.
        best: the fastest of the others in the last race, where the default is kept in spite of it.
    """

    setting: Setting
    gain: Interval | None
    looked: tuple[Looked, ...]
    refused: tuple[Refused, ...]
    telling: bool
    complete: bool
    best: tuple[Setting, Interval] | None = None


def clear(gain: Interval) -> bool:
    """Whether a gain is more than noise and margin."""
    return gain.low > 1 + MARGIN
