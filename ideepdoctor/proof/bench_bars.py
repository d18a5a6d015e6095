"""What a chart of ``bench`` shows, as data: bars of ratios by net, and the names that they bear. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ideepdoctor.model.bench import Engine, Result, Row
from ideepdoctor.proof.statistics import Interval, Series, apart_ratio_interval, ratio_interval

SHORT = {
    "ideep": "iDeep as installed",
    "tuned": "iDeep tuned",
    "source": "iDeep built here",
    "numpy": "NumPy (OpenBLAS)",
    "mkl": "NumPy (MKL)",
    "torch": "PyTorch",
    "torch-channels-last": "PyTorch channels last",
    "opencv": "OpenCV DNN",
    "caffe": "Caffe",
    "cupy": "CuPy",
}
_GPU = re.compile(r"\b(gpu|cuda|[pva]100|h100|titan|tesla|geforce|rtx)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Bar:
    """One engine on one machine at a net: its time over the base's (None: not measured, and why)."""

    engine: str
    machine: str
    label: str
    seconds: float | None
    ratio: Interval | None
    why: str = ""
    is_base: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """The bars of one net."""

    net: str
    batch: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Mean:
    """The geometric mean of an engine's ratios over the nets that it was measured on."""

    label: str
    ratio: Interval
    nets: int


@dataclass(frozen=True, slots=True)
class Chart:
    """A set of bars with one base; ``axis`` names the unit, ``notes`` are what to know besides."""

    id: str
    title: str
    base: str
    axis: str
    groups: tuple[Group, ...]
    means: tuple[Mean, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """A run with a label that no other run of the comparison has."""

    label: str
    result: Result


@dataclass(frozen=True, slots=True)
class Comparison:
    """The runs and the charts that can be drawn of them; ``notes``: what could not, and why."""

    runs: tuple[Labelled, ...]
    charts: tuple[Chart, ...]
    notes: tuple[str, ...]


def short(engine: Engine) -> str:
    """A few words for an engine: ``iDeep tuned``; ``iDeep 1.0.4`` for ``ideep-1.0.4``."""
    if engine.id in SHORT:
        return SHORT[engine.id]
    if engine.kind == "ideep" and engine.id.startswith("ideep-"):
        return f"iDeep {engine.id.removeprefix('ideep-')}"
    return engine.label or engine.id


def is_gpu(engine: Engine) -> bool:
    """Whether an engine computes on a GPU: CuPy, or one whose label or versions say so."""
    return engine.kind == "cupy" or "cuda" in engine.versions or bool(_GPU.search(engine.label))


def labelled(results: Sequence[Result]) -> tuple[Labelled, ...]:
    """The runs with labels: the machine's name; the date with it, then a number, where two would have the same."""
    names = [result.machine.name or result.machine.cpu or "unnamed" for result in results]
    for part in (slice(0, 10), slice(11, 19)):
        twice = {name for name, count in Counter(names).items() if count > 1}
        names = [
            f"{name} {result.started[part]}".strip() if name in twice else name
            for name, result in zip(names, results, strict=True)
        ]
    seen: Counter[str] = Counter()
    found = []
    for name, result in zip(names, results, strict=True):
        seen[name] += 1
        found.append(Labelled(f"{name} #{seen[name]}" if names.count(name) > 1 else name, result))
    return tuple(found)


def ratio(over: Row, under: Row, *, seed: int = 0) -> Interval:
    """The time of one row over that of another of the same run, paired by block. See ``apart``."""
    return _ratio(over, under, lambda one, other: ratio_interval(one, other, seed=seed))


def apart(over: Row, under: Row, *, seed: int = 0) -> Interval:
    """The time of one row over that of a row of another run; from the rows' intervals where single steps are not kept.

    Both rows are measured. Without any interval the ends are the point itself.
    """
    return _ratio(over, under, lambda one, other: apart_ratio_interval(one, other, seed=seed))


def _ratio(over: Row, under: Row, between: Callable[[Series, Series], Interval]) -> Interval:
    series = [Series(row.steps, row.blocks) for row in (over, under) if row.steps and row.blocks]
    if len(series) == 2:
        try:
            return between(series[0], series[1])
        except ValueError:  # an interrupted run: no block in which both were measured
            return apart_ratio_interval(series[0], series[1])
    assert over.median is not None and under.median is not None
    point = over.median / under.median
    low = (over.low or over.median) / (under.high or under.median)
    return Interval(min(low, point), point, max((over.high or over.median) / (under.low or under.median), point))
