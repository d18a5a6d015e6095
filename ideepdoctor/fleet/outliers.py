"""Which of many alike is not like the others: by values that most share, and by speeds. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ideepdoctor.fleet.merge_features import UNSET, Value

FEWEST_ALIKE = 3
"""Hosts that a value is known of, before one of them can differ from the others."""
USUAL_SHARE = (2, 3)
"""Of those hosts, at least this part has what is then called usual."""
FEWEST_TIMED = 5
"""Hosts with a speed, before one of them can be called slow."""
LEAST_LOSS = 0.10
"""Part of the median that a slow host is at least below it: less is not worth a person's time."""
ROBUST_DEVIATIONS = 3.5
"""How many robust standard deviations a slow host is at least below the median (Iglewicz and Hoaglin, 1993)."""
MAD_TO_SIGMA = 1.4826
"""Median absolute deviation to standard deviation, for normal noise."""

Vector = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Usual:
    """What most of the twins have.

    Attributes:
        name: of the feature: ``threads``, ``variable OMP_NUM_THREADS``.
        value: most have.
        having: hosts that have it.
        known: hosts of which it is known.
    """

    name: str
    value: str
    having: int
    known: int


@dataclass(frozen=True, slots=True)
class Split:
    """What twins differ in without one value that most have: (value, hosts), most first."""

    name: str
    values: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """How fast the twins are in one thing.

    Attributes:
        count: hosts with a speed.
        median: of them.
        mad: median absolute deviation from it.
    """

    count: int
    median: float
    mad: float

    @property
    def limit(self) -> float | None:
        """A host below it is slow; None: too few hosts to say."""
        if self.count < FEWEST_TIMED:
            return None
        return self.median - max(ROBUST_DEVIATIONS * MAD_TO_SIGMA * self.mad, LEAST_LOSS * self.median)


class Tally:
    """Counts the values of one class of twins. What it keeps grows with the different values, not with the hosts."""

    def __init__(self) -> None:
        self._known: Counter[str] = Counter()
        self._values: dict[str, Counter[str]] = defaultdict(Counter)
        self._families: dict[str, set[str]] = defaultdict(set)

    def add(self, vector: Vector, hosts: int) -> None:
        """Count the hosts that have these values."""
        for name, value in vector.items():
            if value is None:
                continue
            self._known[name] += hosts
            if isinstance(value, str):
                self._values[name][value] += hosts
                continue
            for part, text in value.items():
                self._families[name].add(part)
                self._values[f"{name} {part}"][text] += hosts

    def usual(self) -> dict[str, Usual]:
        """What most have, by name; only where some have something else."""
        found = {}
        for name, counts, known in self._counted():
            value, having = _most(counts)
            part, whole = USUAL_SHARE
            if known >= FEWEST_ALIKE and having < known and having * whole >= known * part:
                found[name] = Usual(name, value, having, known)
        return found

    def splits(self) -> Iterator[Split]:
        """What several values have many hosts of each, and none has most."""
        usual = self.usual()
        for name, counts, known in self._counted():
            if known >= FEWEST_ALIKE and len(counts) > 1 and name not in usual:
                yield Split(name, tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0]))))

    def _counted(self) -> Iterator[tuple[str, Counter[str], int]]:
        for name, known in sorted(self._known.items()):
            if name not in self._families:
                if name in self._values:
                    yield name, self._values[name], known
                continue
            for part in sorted(self._families[name]):
                counts = self._values[f"{name} {part}"]
                without = known - counts.total()
                yield f"{name} {part}", counts + Counter({UNSET: without}), known


def differences(vector: Vector, usual: Mapping[str, Usual]) -> Iterator[tuple[Usual, str]]:
    """What a host has that is not what its twins usually have."""
    for name, item in usual.items():
        value = vector.get(name)
        if value is None:
            family, _, part = name.partition(" ")
            group = vector.get(family)
            if not isinstance(group, Mapping) or name in vector:
                continue
            value = group.get(part, UNSET)
        if isinstance(value, str) and value != item.value:
            yield item, value


def median(values: Iterable[float]) -> float:
    """The middle one, or the mean of the two in the middle. Raises ValueError where there is none."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def spread(values: Iterable[float]) -> Spread:
    """Median and median absolute deviation. Raises ValueError where there is no value."""
    known = list(values)
    middle = median(known)
    return Spread(len(known), middle, median(abs(value - middle) for value in known))


def listed_difference(value: str, usual: str) -> str:
    """How a list of words differs from another one: ``lacks avx512f; has avx2 more``."""
    have, should = value.split(), usual.split()
    lacks = [word for word in should if word not in have]
    more = [word for word in have if word not in should]
    parts = [("lacks", lacks), ("has more", more)]
    return "; ".join(f"{word} {' '.join(items)}" for word, items in parts if items)


def _most(counts: Counter[str]) -> tuple[str, int]:
    return min(counts.items(), key=lambda item: (-item[1], item[0]))
