"""The verdict of a run of ``bench`` against an earlier one, for each engine and net."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ideepdoctor.errors import UsageError
from ideepdoctor.model.bench import Engine, Key, Result, Row
from ideepdoctor.proof.regression import Difference, Verdict, compare
from ideepdoctor.proof.statistics import Series


@dataclass(frozen=True, slots=True)
class Earlier:
    """What one row is held against: the earlier row, its engine, and the run that it is of."""

    run: str
    started: str
    quiet: bool
    engine: Engine
    row: Row


Baseline = Mapping[tuple[str, Key], Earlier]
"""Earlier rows by engine id, net and batch. They may be of several runs: not every run measures all."""


@dataclass(frozen=True, slots=True)
class Regression:
    """The verdict on one engine and net.

    Attributes:
        verdict: slower, faster, same or cannot tell.
        baseline: the run that it is held against.
        difference: the test; None where there are no steps to test.
        changed: what is not as it was then (versions, variables, threads), in words.
        why: one line.
    """

    engine: str
    net: str
    batch: int
    verdict: Verdict
    baseline: str
    difference: Difference | None
    changed: tuple[str, ...]
    why: str


def verdict(result: Result, baseline: Baseline, limit_percent: float) -> tuple[Regression, ...]:
    """Judge every engine and net that the baseline has too.

    Args:
        result: the later run.
        baseline: see ``Store.baseline``.
        limit_percent: the difference that matters; a run is slower where it is so by more than this.
    """
    return tuple(
        _judged(result, row, earlier, limit_percent)
        for row in result.results
        if row.measured and (earlier := baseline.get((row.engine, row.key))) is not None
    )


def parse_percent(text: str) -> float:
    """10.0 of ``10%``, ``10 %`` or ``10``. Raises UsageError: no number, below zero or above 1000."""
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1000:
        raise UsageError(f"{text!r} is no percentage", hint="a number from 0 to 1000, such as 10%")
    return value


def _judged(result: Result, row: Row, earlier: Earlier, limit_percent: float) -> Regression:
    changed = tuple(_changes(earlier.engine, result.engine(row.engine)))
    series = [Series(item.steps, item.blocks) for item in (earlier.row, row) if item.steps and item.blocks]
    if len(series) < 2 or bool(earlier.row.backward) != bool(row.backward):
        why = "one of the two has no times of single steps" if len(series) < 2 else "one of the two is forward alone"
        return Regression(
            row.engine, row.net, row.batch, Verdict.CANNOT_TELL, earlier.run, None, changed, f"cannot tell: {why}"
        )
    difference = compare(series[0], series[1], limit_percent / 100)
    noisy = [name for name, quiet in (("then", earlier.quiet), ("now", result.noise.quiet)) if not quiet]
    why = _why(difference, limit_percent)
    why += f"; the machine was not quiet {' and '.join(noisy)}" if noisy else ""
    return Regression(row.engine, row.net, row.batch, difference.verdict, earlier.run, difference, changed, why)


def _why(difference: Difference, limit_percent: float) -> str:
    ratio = difference.ratio
    span = f"{ratio.median:.2f} times the time of then ({ratio.low:.2f} to {ratio.high:.2f})"
    limit = f"{limit_percent:g} %"
    match difference.verdict:
        case Verdict.SLOWER:
            return f"slower by more than {limit}: {span}, p = {difference.p_slower:.2g}"
        case Verdict.FASTER:
            return f"faster by more than {limit}: {span}, p = {difference.p_faster:.2g}"
        case Verdict.SAME:
            return f"the same within {limit}: {span}"
    more = difference.more_blocks
    return f"no difference can be told: {span}; about {more} more block{'s' if more > 1 else ''} would tell {limit}"


def _changes(then: Engine, now: Engine) -> Iterator[str]:
    """What differs between two engines of one id; the numbers of two runs are then of two things."""
    pairs = [("Python", then.python, now.python), ("threads", then.threads, now.threads)]
    pairs += [(name, then.versions.get(name), now.versions.get(name)) for name in {**then.versions, **now.versions}]
    pairs += [(name, then.variables.get(name), now.variables.get(name)) for name in {**then.variables, **now.variables}]
    if then.guard != now.guard:
        yield f"guard {'on' if now.guard else 'off'}"
    for name, before, after in pairs:
        if before != after:
            yield f"{name} {'none' if before is None else before} to {'none' if after is None else after}"
