"""The search of tune: races between settings, dimension by dimension, within a budget. Pure but for its callbacks.

A race takes blocks of steps of each setting in turn. A setting leaves it when the interval of its time relative to the
fastest lies clearly above 1. What wins a race is only a candidate: the choice is made in a last race of fresh blocks
against the default, so that luck in the search gains nothing, and ties are the default's.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

from ideepdoctor.proof.statistics import Interval, Series, ratio_interval
from ideepdoctor.proof.tune_data import MARGIN, WIDE, Choice, Effort, Looked, Refused, Trial, clear
from ideepdoctor.proof.tune_space import DEFAULT, Dimension, Option, Setting, thread_option, threads_of

Measure = Callable[[Sequence[Setting], int], Mapping[Setting, Sequence[float] | str]]
"""One block of each setting in turn: the seconds of its steps, or why it could not be measured. The number is the
block's: in each block another setting begins."""
NEAR = 0.05
"""Settings that looked as fast as the fastest but for this are as good as that, until the last race tells more."""
LAST_SHARE = 0.35
"""Of the time for measuring: held back for the last race, without which nothing can be chosen."""
_LEAST_BLOCKS = 3
_CERTAIN_BLOCKS = 5
"""Fewer than that do not tell luck from speed: no setting is chosen by fewer."""


@dataclass
class Search:
    """One search.

    Attributes:
        dimensions: to look at, in this order.
        measure: takes a block.
        certified: why a setting is wrong, or "".
        left: seconds that are left for measuring.
        effort: how much is measured.
        told: told of what happens.
        failed: settings that could not be measured, and why.
    """

    dimensions: Sequence[Dimension]
    measure: Measure
    certified: Callable[[Setting], str]
    left: Callable[[], float]
    effort: Effort = field(default_factory=Effort)
    told: Callable[[str], None] = lambda _text: None
    failed: dict[Setting, str] = field(default_factory=dict)
    _cut: bool = False
    _held: float = 0.0
    _from_default: dict[Setting, Interval] = field(default_factory=dict)

    def go(self) -> Choice:
        """Search, race what was found against the default, certify, choose."""
        best, looked, complete = DEFAULT, [], True
        self._held = LAST_SHARE * self.left() if self.effort.last else 0.0
        ranked: dict[Setting, float] = {}
        for dimension in self.dimensions:
            if self._over():
                complete = False
                looked.append(Looked(dimension, (), None))
                continue
            self.told(dimension.title)
            seen, gains = self._look(dimension, best)
            looked.append(seen)
            base = ranked.get(best, 1.0)
            ranked.update((setting, base * gain.median) for setting, gain in gains.items())
            if seen.chosen is not None:
                best = best.with_option(seen.chosen)
        if self.effort.pairs and not self._over():
            for setting, gain in self._pairs(best, looked).items():
                ranked[setting] = ranked.get(best, 1.0) * gain.median
        elif self.effort.pairs:
            complete = False
        return self._choose(ranked, tuple(looked), complete)

    def _over(self) -> bool:
        """Whether the time is over, without what is held back for the last race."""
        return self.left() <= self._held

    def _look(self, dimension: Dimension, base: Setting) -> tuple[Looked, dict[Setting, Interval]]:
        """Race the options of a dimension; between two numbers of threads that are far apart look in the middle."""
        tried = {base.with_option(option): option for option in dimension.options}
        gains = self._race(base, list(tried))
        if dimension.ordered:
            more = {base.with_option(option): option for option in _between(dimension, base, gains)}
            if more and not self._over():
                gains |= self._race(base, list(more))
                tried |= more
        trials = [Trial(option, gains.get(setting), self.failed.get(setting, "")) for setting, option in tried.items()]
        chosen, _ = max(
            ((item.option, item.gain.median) for item in trials if item.gain is not None and clear(item.gain)),
            key=lambda pair: pair[1],
            default=(None, 1.0),
        )
        return Looked(dimension, tuple(trials), chosen), gains

    def _pairs(self, best: Setting, looked: Sequence[Looked]) -> dict[Setting, Interval]:
        """Settings that differ from the best in two dimensions that matter, as far as they were promising alone."""
        found: dict[Setting, Interval] = {}
        choices = {}
        for item in looked:
            if item.chosen is None:
                continue
            others = [trial for trial in item.trials if trial.gain is not None and trial.option != item.chosen]
            others.sort(key=lambda trial: -trial.gain.median if trial.gain is not None else 0.0)
            choices[item.dimension.name] = [trial.option for trial in others[:1]] + [None]
        for first, second in combinations(choices, 2):
            rivals = []
            for one, other in product(choices[first], choices[second]):
                setting = best.without(first).without(second)
                for option in (one, other):
                    setting = setting if option is None else setting.with_option(option)
                if setting != DEFAULT:
                    rivals.append(setting)
            if not self._over():
                self.told(f"{first} and {second} together")
                found |= self._race(best, rivals)
        return found

    def _choose(self, ranked: Mapping[Setting, float], looked: tuple[Looked, ...], complete: bool) -> Choice:
        """The last race: the promising against the default, with fresh blocks; then what is right among the clear."""
        promising = _promising(ranked)
        refused: list[Refused] = []
        gains: dict[Setting, Interval] = {}
        self._held = 0.0
        if not self.effort.last:
            gains = {item: self._from_default[item] for item in promising if item in self._from_default}
        elif promising:
            self.told("the last race")
            gains = self._race(DEFAULT, promising, self.effort.last, least=_CERTAIN_BLOCKS)
        order = _simple_first(gains)
        for setting in order:
            if not clear(gains[setting]):
                continue
            self.told(f"certifying {setting.label}")
            why = self.certified(setting)
            if not why:
                return Choice(setting, gains[setting], looked, tuple(refused), True, complete)
            refused.append(Refused(setting, gains[setting], why))
        left = [item for item in order if not clear(gains[item])]
        best = (left[0], gains[left[0]]) if left else None
        seen = [trial.gain for item in looked for trial in item.trials if trial.gain is not None]
        judged = list(gains.values()) or seen
        complete = complete and not self._cut
        telling = (
            bool(judged)
            and (bool(gains) or not promising)
            and all(gain.spread <= WIDE or gain.high < 1 + MARGIN for gain in judged)
        )
        return Choice(DEFAULT, None, looked, tuple(refused), telling, complete, best)

    def _race(
        self, base: Setting, rivals: Sequence[Setting], blocks: int = 0, least: int = _LEAST_BLOCKS
    ) -> dict[Setting, Interval]:
        """Time of the base / time of each rival, by interleaved blocks; without those that could not be measured.

        Empty where the time was over before the fewest blocks that tell anything.
        """
        running = [item for item in dict.fromkeys((base, *rivals)) if item not in self.failed]
        times: dict[Setting, tuple[list[float], list[int]]] = {item: ([], []) for item in running}
        if base not in times:
            return {}
        blocks = blocks or self.effort.blocks
        for block in range(blocks):
            if block and self._over():
                if block < least:
                    self._cut = True
                    return {}
                break
            for setting, answer in self.measure(running, block).items():
                if isinstance(answer, str):
                    self.failed[setting] = answer
                    continue
                times[setting][0].extend(answer)
                times[setting][1].extend([block] * len(answer))
            running = [item for item in running if item not in self.failed]
            if base not in running or len(running) < 2:
                break
            if block + 1 >= least:
                running = self._still(running, base, times)
                if len(running) < 2:
                    break
        found = {
            item: ratio_interval(Series(*times[base]), Series(*times[item]))
            for item in times
            if item != base and item not in self.failed and times[item][0] and times[base][0]
        }
        if base == DEFAULT:
            certain = {item: gain for item, gain in found.items() if len(set(times[item][1])) >= _CERTAIN_BLOCKS}
            self._from_default |= certain
        return found

    def _still(
        self, running: Sequence[Setting], base: Setting, times: Mapping[Setting, tuple[list[float], list[int]]]
    ) -> list[Setting]:
        """Those of a race that may still be the fastest; the base stays as long as another does."""
        fastest = min(running, key=lambda item: statistics.median(times[item][0]))
        kept = []
        for item in running:
            slower = ratio_interval(Series(*times[item]), Series(*times[fastest])) if item != fastest else None
            if item == base or slower is None or slower.low <= 1 + MARGIN:
                kept.append(item)
        return kept


def _promising(ranked: Mapping[Setting, float]) -> list[Setting]:
    """Up to three settings for the last race: the simplest of those that are about as fast as the fastest, then those
    that looked fastest."""
    found = sorted((item for item in ranked if ranked[item] > 1 + MARGIN), key=lambda item: -ranked[item])
    if not found:
        return []
    near = [item for item in found if ranked[item] >= (1 - NEAR) * ranked[found[0]]]
    simplest = min(near, key=lambda item: (len(item.options), -ranked[item]))
    return list(dict.fromkeys([simplest, *found]))[:3]


def _simple_first(gains: Mapping[Setting, Interval]) -> list[Setting]:
    """From the best to the worst; of those that are as good as the best within the margin, the simplest first."""
    order = sorted(gains, key=lambda item: -gains[item].median)
    near = [item for item in order if gains[item].median >= (1 - MARGIN) * gains[order[0]].median]
    near.sort(key=lambda item: len(item.options))
    return [*near, *(item for item in order if item not in near)]


def _between(dimension: Dimension, base: Setting, gains: Mapping[Setting, Interval]) -> list[Option]:
    """Numbers of threads between the best one and its neighbours, where there are any."""
    ratios = {threads_of(setting.option(dimension.name)): gain.median for setting, gain in gains.items()}
    words = dimension.default.split()
    own = int(words[0]) if words and words[0].isdecimal() else None
    known = sorted({count for count in (*ratios, own) if count is not None})
    if not known:
        return []
    best = max(known, key=lambda count: ratios.get(count, 1.0))
    place = known.index(best)
    middles = []
    for other in known[max(0, place - 1) : place + 2]:
        middle = (best + other) // 2
        if middle not in known:
            middles.append(middle)
    return [thread_option(count) for count in dict.fromkeys(middles)]
