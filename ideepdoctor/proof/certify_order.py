"""What certify tries, and in which order: something of everything first, the cheap and the telling before the rest."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from ideepdoctor.errors import UsageError
from ideepdoctor.proof.certify_data import ONE_CPU, Case, Setting

ALIASES = {
    "conv": ("convolution",),
    "deconv": ("deconvolution",),
    "bn": ("batch_norm", "fixed_batch_norm"),
    "fc": ("linear",),
    "pool": ("max_pooling", "average_pooling"),
    "pooling": ("max_pooling", "average_pooling"),
    "split": ("split_axis",),
    "mul": ("products",),
    "div": ("products",),
    "optimizer": ("optimizers",),
    "pickle": ("keep",),
    "mdarray": ("arrays",),
}
"""Other words for families."""

_ROUNDS = (0, 4, 9, 20, 50)
"""Cases of a family that make up a tier: the first four, the next five, ... A tier is tried in every setting before the
next one begins, so that a short budget sees every family in every setting."""
ONCE = ("memory", "fork")
"""Families for which the number of threads changes nothing as long as there is more than one: tried in one setting."""
BATCH_SECONDS = 10.0
"""What a batch is to take, by the estimates: lost where the run is killed."""
BATCH_CASES = 60
_UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}


def seconds_of(text: str) -> float:
    """``60s``, ``5m``, ``1h`` or a number of seconds. Raises UsageError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    if match is None or match[2] not in _UNITS or not float(match[1]):
        raise UsageError(f"{text!r} is no length of time", hint="such as --budget 60s, 5m or 1h")
    return float(match[1]) * _UNITS[match[2]]


def settings_of(words: Sequence[str], own: int | None) -> tuple[Setting, ...]:
    """Settings by name.

    Args:
        words: numbers of threads, and ``1cpu``; empty: what the user has first, then 1 to 4 threads and one processor.
        own: threads that the user's programs have.

    Raises:
        UsageError: another word.
    """
    if not words:
        counts = dict.fromkeys([own or 1, 2, 1, 3, 4])
        words = [*map(str, counts), ONE_CPU]
    found = []
    for word in dict.fromkeys(word.lower() for word in words):
        if word == ONE_CPU:
            found.append(Setting(ONE_CPU, one_cpu=True))
        elif word.isascii() and word.isdigit() and 0 < int(word) <= 1024:
            found.append(Setting(str(int(word)), threads=int(word)))
        else:
            raise UsageError(
                f"{word!r} is no number of threads", hint=f"such as --threads 1,2,4 or --threads {ONE_CPU}"
            )
    return tuple(found)


def selected(cases: Iterable[Case], words: Sequence[str]) -> tuple[Case, ...]:
    """The cases of these operations: families, functions of Chainer or their short names; all where none is named.

    Raises:
        UsageError: a word that fits no operation.
    """
    known = tuple(cases)
    if not words:
        return known
    families = list(dict.fromkeys(case.family for case in known))
    wanted: set[str] = set()
    for word in words:
        name = word.strip().lower()
        fitting = {case.key for case in known if name in (case.family, case.op.lower())}
        fitting |= {case.key for case in known if case.family in ALIASES.get(name, ())}
        if not fitting:
            raise UsageError(f"no operation is called {word!r}", hint=f"known: {', '.join(families)}")
        wanted |= fitting
    return tuple(case for case in known if case.key in wanted)


def ordered(cases: Sequence[Case], settings: Sequence[Setting]) -> list[tuple[Case, Setting]]:
    """Every case in every setting, or in one of them (see ``ONCE``), in the order in which they are tried."""
    ranks: dict[str, int] = {}
    placed = []
    for case in cases:
        rank = ranks[case.family] = ranks.get(case.family, -1) + 1
        tier = max(number for number, first in enumerate(_ROUNDS) if first <= rank)
        placed.append((tier, rank, case))
    families = {family: number for number, family in enumerate(ranks)}
    of_several = next((number for number, item in enumerate(settings) if _several(item)), 0)
    pairs = [
        (tier, position, case.risk == 2, rank, families[case.family], case, setting)
        for tier, rank, case in placed
        for position, setting in enumerate(settings)
        if case.family not in ONCE or position == of_several
    ]
    pairs.sort(key=lambda row: row[:5])
    return [(row[5], row[6]) for row in pairs]


def _several(setting: Setting) -> bool:
    """Whether it has more than one thread."""
    return setting.threads is not None and setting.threads > 1


def batches(pairs: Sequence[tuple[Case, Setting]], pace: float = 1.0) -> Iterator[tuple[Setting, tuple[Case, ...]]]:
    """Cut the pairs into batches of one setting each; those that may end their process come last in a batch.

    Args:
        pairs: in order.
        pace: seconds that a case takes for each second of its estimate.
    """
    held: list[Case] = []
    before: Setting | None = None
    spent = 0.0
    for case, setting in pairs:
        full = spent + case.seconds * pace > BATCH_SECONDS or len(held) == BATCH_CASES
        alone = case.risk == 2 or (held and held[-1].risk == 2)
        if held and before is not None and (full or alone or setting != before):
            yield before, _risky_last(held)
            held, spent = [], 0.0
        held.append(case)
        before, spent = setting, spent + case.seconds * pace
    if held and before is not None:
        yield before, _risky_last(held)


def _risky_last(cases: Sequence[Case]) -> tuple[Case, ...]:
    return tuple(sorted(cases, key=lambda case: case.risk))


def left(pairs: Iterable[tuple[Case, Setting]], done: Collection[tuple[str, str]]) -> list[tuple[Case, Setting]]:
    """The pairs that have no result yet; ``done`` are keys and names of settings."""
    return [(case, setting) for case, setting in pairs if (case.key, setting.name) not in done]
