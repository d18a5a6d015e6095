"""Results set against each other: what is 1, who is how many times slower, what is left out and why."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest

from ideepdoctor.model.bench import Engine, Result, Row
from ideepdoctor.proof.bench_bars import Chart, apart, is_gpu, labelled, ratio, short
from ideepdoctor.proof.bench_compare import compare, side_by_side
from tests.data.bench import make

SMALL = make.small()
EVERY = [SMALL, make.BIG, make.MIDDLE, make.GPU]


@functools.cache
def every() -> dict[str, Chart]:
    return charts(*EVERY)


def charts(*results: Result) -> dict[str, Chart]:
    return {chart.id: chart for chart in compare(results).charts}


def values(chart: Chart, net: str) -> dict[str, float | None]:
    [group] = [group for group in chart.groups if group.net == net]
    return {bar.label: None if bar.ratio is None else bar.ratio.median for bar in group.bars}


def median(result: Result, engine: str, net: str) -> float:
    row = result.row(engine, (net, 8))
    assert row is not None and row.median is not None
    return row.median


def test_the_best_ideep_of_the_first_machine_is_one_against_numpy_everywhere() -> None:
    seen = values(every()["numpy"], "alexnet")
    base = median(SMALL, "tuned", "alexnet")
    assert seen["iDeep tuned, two-cores"] == 1.0
    assert seen["NumPy (MKL), 28-cores"] == pytest.approx(median(make.BIG, "mkl", "alexnet") / base)
    assert seen["iDeep tuned, 18-cores"] == pytest.approx(median(make.MIDDLE, "tuned", "alexnet") / base)
    assert seen["NumPy (OpenBLAS), two-cores"] == pytest.approx(median(SMALL, "numpy", "alexnet") / base)
    assert not any(label.startswith(("PyTorch", "Caffe", "CuPy", "OpenCV")) for label in seen)


def test_each_machines_peer_is_one_against_its_ideep() -> None:
    chart = every()["peer"]
    seen = values(chart, "vgga")
    assert (seen["Caffe, 28-cores"], seen["PyTorch, two-cores"]) == (1.0, 1.0)
    assert seen["iDeep tuned, 28-cores"] == pytest.approx(
        median(make.BIG, "tuned", "vgga") / median(make.BIG, "caffe", "vgga")
    )
    assert "no peer was measured on 18-cores" in chart.notes


def test_caffe_is_the_peer_where_both_were_measured() -> None:
    caffe = replace(make.BIG, engines=(*make.BIG.engines, make.ENGINES["torch"]))
    rows = tuple(replace(row, engine="torch") for row in caffe.results if row.engine == "tuned")
    seen = values(charts(replace(caffe, results=(*caffe.results, *rows)))["peer"], "vgga")
    assert set(seen) == {"iDeep tuned", "Caffe"}


def test_the_gpu_is_one_against_every_cpu() -> None:
    seen = values(every()["gpu"], "googlenet")
    gpu = median(make.GPU, "cupy", "googlenet")
    assert seen["CuPy, gpu-server"] == 1.0
    assert seen["PyTorch, two-cores"] == pytest.approx(median(SMALL, "torch", "googlenet") / gpu)
    assert seen["Caffe, 28-cores"] == pytest.approx(median(make.BIG, "caffe", "googlenet") / gpu)


def test_numpy_that_is_slower_on_the_bigger_machine_is_said() -> None:
    notes = every()["numpy"].notes
    assert any(
        note.startswith("NumPy (MKL) is slower on the bigger machine: 28-cores (28 cores) against 18-cores (18 cores)")
        for note in notes
    )
    faster = make.scaled(make.BIG, 0.1, "x", make.BIG.started)
    assert not any("bigger" in note for note in charts(SMALL, faster)["numpy"].notes)


def test_geometric_means_are_over_the_nets_that_were_measured() -> None:
    means = {mean.label: mean for mean in every()["numpy"].means}
    seen = means["NumPy (MKL), two-cores"]
    product = 1.0
    for net in ("alexnet", "googlenet", "vgga", "overfeat"):
        product *= median(SMALL, "mkl", net) / median(SMALL, "tuned", net)
    assert (seen.nets, seen.ratio.median) == (4, pytest.approx(product**0.25))
    assert seen.ratio.low < seen.ratio.median < seen.ratio.high


def test_all_engines_of_one_run_are_set_side_by_side_and_what_is_missing_is_said() -> None:
    chart = side_by_side(SMALL)
    assert chart is not None
    assert chart.base == "iDeep tuned"
    seen = values(chart, "vgga")
    assert seen["OpenCV DNN"] is None
    [failed] = [bar for group in chart.groups for bar in group.bars if bar.label == "OpenCV DNN"]
    assert failed.why == "failed: needs 9.1 GB, 7.8 GB are free"
    assert "OpenCV DNN computes forward alone: see its times in the table" in chart.notes
    assert "OpenCV DNN" not in values(chart, "alexnet")


def test_a_run_without_ideep_has_another_base_and_one_without_times_none() -> None:
    chart = side_by_side(make.GPU)
    assert chart is None or not chart.groups
    no_ideep = replace(SMALL, results=tuple(row for row in SMALL.results if row.engine in ("torch", "numpy")))
    other = side_by_side(no_ideep)
    assert other is not None
    assert other.base == "NumPy (OpenBLAS)"
    assert side_by_side(replace(SMALL, results=())) is None


def test_pairs_within_a_run_are_sharper_than_across_runs() -> None:
    over, under = SMALL.row("mkl", ("vgga", 8)), SMALL.row("tuned", ("vgga", 8))
    assert over is not None and under is not None
    assert ratio(over, under).spread < apart(over, under).spread
    bare = [replace(row, forward=(), backward=(), blocks=()) for row in (over, under)]
    seen = ratio(*bare)
    assert seen.median == pytest.approx(ratio(over, under).median, rel=0.02)
    assert seen.low < seen.median < seen.high
    no_ends = [replace(row, low=None, high=None) for row in bare]
    assert ratio(*no_ends).low == ratio(*no_ends).high


def test_rows_without_a_common_block_are_compared_all_the_same() -> None:
    one = Row("a", "n", 1, forward=(1.0, 1.0), blocks=(0, 1), median=1.0)
    two = replace(one, engine="b", forward=(2.0, 2.0), blocks=(2, 3), median=2.0)
    assert ratio(two, one).median == 2.0


def test_other_batches_are_not_compared_and_it_is_said() -> None:
    other = replace(make.GPU, results=tuple(replace(row, batch=128) for row in make.GPU.results), nets=())
    comparison = compare([SMALL, other])
    gpu = [chart for chart in comparison.charts if chart.id == "gpu"]
    assert gpu == []
    assert any("no net was measured at the same batch" in note for note in comparison.notes)
    half = replace(
        make.BIG, results=tuple(replace(row, batch=16) if row.net == "vgga" else row for row in make.BIG.results)
    )
    notes = charts(SMALL, half)["numpy"].notes
    assert "NumPy (MKL), 28-cores: vgga at batch 16 is not compared with batch 8" in notes


def test_what_cannot_be_drawn_is_said() -> None:
    comparison = compare([make.GPU])
    assert comparison.charts == ()
    assert len(comparison.notes) == 3
    assert compare([make.interrupted(SMALL)]).charts[0].notes[-1].startswith("the run on two-cores was interrupted")


def test_machines_of_one_name_are_told_apart() -> None:
    def named(*starts: str) -> list[str]:
        return [run.label for run in labelled([replace(SMALL, started=start) for start in starts])]

    assert named("2026-11-30T16:22:33Z") == ["two-cores"]
    assert named("2026-11-29T16:22:33Z", "2026-11-30T16:22:33Z") == ["two-cores 2026-11-29", "two-cores 2026-11-30"]
    assert named("2026-11-30T16:22:33Z", "2026-11-30T17:00:00Z") == [
        "two-cores 2026-11-30 16:22:33",
        "two-cores 2026-11-30 17:00:00",
    ]
    twice = named("2026-11-30T16:22:33Z", "2026-11-30T16:22:33Z")
    assert twice == ["two-cores 2026-11-30 16:22:33 #1", "two-cores 2026-11-30 16:22:33 #2"]
    chart = charts(SMALL, make.scaled(SMALL, 1.2, "x", "2026-12-01T00:00:00Z"))["numpy"]
    assert values(chart, "vgga")["iDeep tuned, two-cores 2026-12-01"] == pytest.approx(1.2)


@pytest.mark.parametrize(
    ("engine", "name", "gpu"),
    [
        (Engine("ideep-1.0.4", "x", "ideep"), "iDeep 1.0.4", False),
        (Engine("tuned"), "iDeep tuned", False),
        (Engine("strange", "Something else"), "Something else", False),
        (Engine("torch", "PyTorch 2.13.0", "torch", versions={"cuda": "12"}), "PyTorch", True),
        (Engine("p", "PyTorch on A100", "torch"), "PyTorch on A100", True),
        (Engine("cupy", kind="cupy"), "CuPy", True),
    ],
)
def test_names_and_kinds_of_engines(engine: Engine, name: str, gpu: bool) -> None:
    assert (short(engine), is_gpu(engine)) == (name, gpu)
