"""What limits each net, in words."""

from __future__ import annotations

from dataclasses import replace

from ideepdoctor.proof.bench_limits import limits
from tests.data.bench import make

SMALL = make.small()


def texts(result: object = SMALL) -> dict[str, str]:
    assert isinstance(result, type(SMALL))
    return {item.net: item.text for item in limits(result)}


def test_the_parts_of_a_step_add_up() -> None:
    row = SMALL.row("tuned", ("alexnet", 8))
    assert row is not None and row.median is not None
    convolutions = sum(layer.milliseconds for layer in SMALL.layers if layer.primitive == "convolution")
    inside = sum(layer.milliseconds for layer in SMALL.layers)
    whole = row.median * 1000
    told = texts()["alexnet"]
    assert f"of a step of {whole:.0f} ms: {100 * convolutions / whole:.0f} % convolutions" in told
    assert f"{100 * (whole - inside) / whole:.0f} % outside MKL-DNN" in told
    assert "2 % reorders" in told
    assert "slowest: conv1, backward weights, 215 GFLOP/s, 2 GB/s" in told


def test_the_ceiling_and_who_is_ahead() -> None:
    assert texts()["vgga"] == "386 GFLOP/s, 83 % of the best matrix product here (467)"
    assert texts()["resnet50"].endswith("PyTorch 2.13.0 is 1.35 times as fast")


def test_an_engine_within_the_intervals_is_not_ahead() -> None:
    rows = tuple(
        replace(row, low=0.5 * (row.median or 0), high=2 * (row.median or 0)) if row.measured else row
        for row in SMALL.results
    )
    assert "times as fast" not in texts(replace(SMALL, results=rows))["resnet50"]


def test_of_a_run_without_ideep_or_without_anything_nothing_is_said() -> None:
    assert limits(make.GPU) == ()
    assert limits(replace(SMALL, results=(), nets=())) == ()


def test_layers_that_take_longer_than_the_step_do_not_make_parts_above_the_whole() -> None:
    slow = replace(SMALL, layers=tuple(replace(layer, milliseconds=layer.milliseconds * 3) for layer in SMALL.layers))
    told = texts(slow)["alexnet"]
    assert "outside" not in told
    assert "93 % convolutions" in told


def test_linear_layers_are_a_part_of_their_own() -> None:
    linear = replace(
        SMALL.layers[0], primitive="inner_product", layer="fc6", milliseconds=20.0, flops=2.0e8, bytes=1.5e8
    )
    told = texts(replace(SMALL, layers=(*SMALL.layers, linear)))["alexnet"]
    assert "18 % linear layers at 10 GFLOP/s" in told
    assert "slowest: fc6, forward training, 10 GFLOP/s, 8 GB/s" in told
