"""Result files set against each other, across machines: one engine is 1, the others are so many times slower. Pure.

Three charts: iDeep is 1 against NumPy, here and elsewhere; the peer (Caffe or PyTorch) is 1 against Chainer with iDeep
on the same machine; the GPU is 1 against CPUs. A fourth sets all engines of one run side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ideepdoctor.model.bench import Engine, Key, Result, Row
from ideepdoctor.proof.bench_bars import (
    Bar,
    Chart,
    Comparison,
    Group,
    Labelled,
    Mean,
    apart,
    is_gpu,
    labelled,
    ratio,
    short,
)
from ideepdoctor.proof.statistics import Interval, geometric_mean

_BEST = ("tuned", "ideep", "source")
"""Which of a machine's iDeep engines stands for it, where they are there."""
_PEERS = ("caffe", "torch")


@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """An engine of a run."""

    run: Labelled
    engine: Engine

    def row(self, key: Key) -> Row | None:
        return self.run.result.row(self.engine.id, key)


def side_by_side(result: Result) -> Chart | None:
    """All engines of one run, forward and backward; the best iDeep engine is 1 (else the first engine that has times).

    None where nothing was measured.
    """
    run = labelled([result])[0]
    sources = [_Source(run, result.engine(name)) for name in _engine_ids(result)]
    base = _best(sources) or next((item for item in sources if _complete_keys(item)), None)
    if base is None:
        return None
    title = f"A training step on {run.label}: {short(base.engine)} is 1"
    return _chart("engines", title, sources, lambda _: base, many=False)


def compare(results: Sequence[Result]) -> Comparison:
    """The talk's three charts of these runs, as far as they hold what is needed.

    Args:
        results: of any machines; the first that has iDeep is "this machine".
    """
    runs = labelled(results)
    sources = [_Source(run, run.result.engine(name)) for run in runs for name in _engine_ids(run.result)]
    made = [_against_numpy(sources), _against_peer(sources), _against_gpu(sources)]
    charts = tuple(item for item in made if isinstance(item, Chart) and item.groups)
    empty = [
        f"{item.title}: no net was measured at the same batch"
        for item in made
        if isinstance(item, Chart) and not item.groups
    ]
    return Comparison(runs, charts, (*(item for item in made if isinstance(item, str)), *empty))


def _against_numpy(sources: Sequence[_Source]) -> Chart | str:
    base = _best(sources)
    shown = [item for item in sources if item.engine.kind in ("ideep", "numpy") and not is_gpu(item.engine)]
    if base is None or not any(item.engine.kind == "numpy" for item in shown):
        return "iDeep against NumPy: no file with iDeep, or none with NumPy"
    many = len({item.run.label for item in shown}) > 1
    title = f"NumPy against iDeep: {_name(base, many)} is 1"
    chart = _chart("numpy", title, shown, lambda _: base, many)
    return _with(chart, _bigger_is_slower(shown))


def _against_peer(sources: Sequence[_Source]) -> Chart | str:
    peers: dict[str, _Source] = {}
    for kind in reversed(_PEERS):
        for item in sources:
            if item.engine.kind == kind and not is_gpu(item.engine) and _complete_keys(item):
                peers[item.run.label] = item
    machines = [item.run.label for item in sources if item.engine.kind == "ideep"]
    peers = {label: item for label, item in peers.items() if label in machines}
    if not peers:
        return "Chainer with iDeep against a peer: no file with both iDeep and Caffe or PyTorch on one machine"
    shown = [
        item
        for item in sources
        if item.run.label in peers and (item.engine.kind == "ideep" or item is peers[item.run.label])
    ]
    names = " or ".join(dict.fromkeys(short(item.engine) for item in peers.values()))
    title = f"Chainer with iDeep against {names}, which is 1 on each machine"
    chart = _chart("peer", title, shown, lambda item: peers[item.run.label], many=len(peers) > 1)
    without = [label for label in dict.fromkeys(machines) if label not in peers]
    return _with(chart, [f"no peer was measured on {label}" for label in without])


def _against_gpu(sources: Sequence[_Source]) -> Chart | str:
    base = next((item for item in sources if is_gpu(item.engine) and _complete_keys(item)), None)
    if base is None:
        return "CPUs against a GPU: no file with a GPU's times"
    shown = [base, *(item for item in sources if not is_gpu(item.engine))]
    return _chart("gpu", f"CPUs against a GPU: {_name(base, True)} is 1", shown, lambda _: base, many=True)


def _chart(
    name: str, title: str, sources: Sequence[_Source], base_of: Callable[[_Source], _Source], many: bool
) -> Chart:
    """Bars of these engines at every net that a base was measured at."""
    bases = list(dict.fromkeys(base_of(item) for item in sources))
    keys = list(dict.fromkeys(key for base in bases for key in _complete_keys(base)))
    groups = []
    for key in keys:
        bars = [_bar(item, base_of(item), key, many) for item in sources]
        found = tuple(bar for bar in bars if bar is not None)
        if any(not bar.is_base for bar in found):
            groups.append(Group(*key, found))
    labels = dict.fromkeys(bar.label for group in groups for bar in group.bars if not bar.is_base)
    base = " or ".join(dict.fromkeys(_name(item, many) for item in bases))
    notes = tuple(dict.fromkeys(_left_out(sources, bases, keys, many)))
    axis = f"times the time of {base}: forward + backward, shorter is faster"
    return Chart(name, title, base, axis, tuple(groups), tuple(_means(groups, labels)), notes)


def _bar(source: _Source, base: _Source, key: Key, many: bool) -> Bar | None:
    row, under = source.row(key), base.row(key)
    if row is None or under is None or not under.measured:
        return None
    label = _name(source, many)
    if not row.measured:
        return Bar(source.engine.id, source.run.label, label, None, None, f"{row.status}: {row.why}".rstrip(": "))
    if not _both_ways(source, row):
        return None
    if source is base:
        return Bar(source.engine.id, source.run.label, label, row.median, Interval(1.0, 1.0, 1.0), is_base=True)
    of = ratio if source.run is base.run else apart
    return Bar(source.engine.id, source.run.label, label, row.median, of(row, under))


def _means(groups: Sequence[Group], labels: Iterable[str]) -> Iterator[Mean]:
    for label in labels:
        found = [bar.ratio for group in groups for bar in group.bars if bar.label == label and bar.ratio is not None]
        if found:
            yield Mean(label, geometric_mean(found), len(found))


def _left_out(sources: Sequence[_Source], bases: Sequence[_Source], keys: Sequence[Key], many: bool) -> Iterator[str]:
    """What was measured and stands in no bar, with the reason."""
    nets = dict(keys)
    for item in sources:
        if item.engine.forward_only:
            yield f"{_name(item, many)} computes forward alone: see its times in the table"
            continue
        for net, batch in _complete_keys(item):
            if (net, batch) in keys or item in bases:
                continue
            if net in nets:
                yield f"{_name(item, many)}: {net} at batch {batch} is not compared with batch {nets[net]}"
    for run in dict.fromkeys(item.run for item in sources):
        if not run.result.complete:
            yield f"the run on {run.label} was interrupted: some rows are missing"
        if not run.result.noise.quiet:
            yield f"{run.label} was not quiet while it was measured"


def _bigger_is_slower(sources: Sequence[_Source]) -> Iterator[str]:
    """The puzzle of NumPy that is slower on the machine with more cores, where the intervals can tell."""
    found = [item for item in sources if item.engine.kind == "numpy"]
    for big in found:
        for small in found:
            cores, fewer = _cores(big.run.result), _cores(small.run.result)
            if big.engine.id != small.engine.id or cores is None or fewer is None or cores <= fewer:
                continue
            slower = []
            for key in _complete_keys(big):
                row, other = big.row(key), small.row(key)
                if row is not None and other is not None and other.measured:
                    times = apart(row, other)
                    if times.low > 1:
                        slower.append(f"{key[0]} {times.median:.1f} times")
            if slower:
                yield (
                    f"{short(big.engine)} is slower on the bigger machine: {big.run.label} ({cores} cores) against "
                    f"{small.run.label} ({fewer} cores): {', '.join(slower)}"
                )


def _cores(result: Result) -> int | None:
    return result.machine.cpus_used or result.machine.physical_cores


def _best(sources: Sequence[_Source]) -> _Source | None:
    """The first machine's best iDeep engine that has times, of the first machine that has one."""
    candidates = [item for item in sources if item.engine.kind == "ideep" and _complete_keys(item)]
    if not candidates:
        return None
    here = [item for item in candidates if item.run is candidates[0].run]
    return min(here, key=lambda item: _BEST.index(item.engine.id) if item.engine.id in _BEST else len(_BEST))


def _complete_keys(source: _Source) -> list[Key]:
    """Nets that the engine was measured at, forward and backward."""
    rows = [row for row in source.run.result.results if row.engine == source.engine.id and row.measured]
    return [row.key for row in rows if _both_ways(source, row)]


def _both_ways(source: _Source, row: Row) -> bool:
    return not source.engine.forward_only and (bool(row.backward) or not row.forward)


def _engine_ids(result: Result) -> list[str]:
    return list(dict.fromkeys([*(item.id for item in result.engines), *(row.engine for row in result.results)]))


def _name(source: _Source, many: bool) -> str:
    return f"{short(source.engine)}, {source.run.label}" if many else short(source.engine)


def _with(chart: Chart, notes: Iterable[str]) -> Chart:
    return replace(chart, notes=(*notes, *chart.notes))
