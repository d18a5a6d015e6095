"""What limits each net: where the time of a step goes, in sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ideepdoctor.model.bench import Layer, Net, Result, Row

_COMPUTING = {"convolutions": ("convolution", "deconvolution"), "linear layers": ("inner_product",)}
"""Primitives that multiply: bound by arithmetic where their operations are many for each byte. Others move memory."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A net and what limits its best iDeep engine, in words."""

    net: str
    batch: int
    engine: str
    text: str


def limits(result: Result) -> tuple[Limit, ...]:
    """One sentence for each net that an iDeep engine was measured at; the fastest such engine is spoken of.

    From the layers where they were recorded, else from the fraction of the ceiling alone.
    """
    found = []
    for net in _nets(result):
        rows = [row for row in result.results if row.key == net.key and row.measured]
        own = [row for row in rows if result.engine(row.engine).kind == "ideep"]
        if own:
            best = min(own, key=lambda row: row.median or 0.0)
            parts = [*_of_ceiling(result, best), *_of_layers(result, best), *_ahead(result, best, rows)]
            if parts:
                found.append(Limit(net.net, net.batch, best.engine, "; ".join(parts)))
    return tuple(found)


def share_of(layers: tuple[Layer, ...], primitives: tuple[str, ...]) -> float:
    """Milliseconds of these primitives together."""
    return sum(layer.milliseconds for layer in layers if layer.primitive in primitives)


def layers_of(result: Result, engine: str, net: str) -> tuple[Layer, ...]:
    """The layers of one engine at one net, in the order of the file."""
    return tuple(layer for layer in result.layers if (layer.engine, layer.net) == (engine, net))


def _nets(result: Result) -> list[Net]:
    known = {net.key: net for net in result.nets}
    return [known.get(key, Net(*key)) for key in result.keys()]  # noqa: SIM118 (a method, not a mapping)


def _of_ceiling(result: Result, row: Row) -> Iterator[str]:
    if row.of_ceiling is not None and row.gflops is not None:
        yield (
            f"{row.gflops:.0f} GFLOP/s, {row.of_ceiling * 100:.0f} % of the best matrix product here "
            f"({result.ceiling.gflops or 0:.0f})"
        )


def _of_layers(result: Result, row: Row) -> Iterator[str]:
    """The parts of a step by what they do, largest first, and what is outside MKL-DNN."""
    layers = layers_of(result, row.engine, row.net)
    if not layers or row.median is None:
        return
    whole = row.median * 1000
    computing = {name: share_of(layers, primitives) for name, primitives in _COMPUTING.items()}
    reorders = share_of(layers, ("reorder",))
    inside = sum(layer.milliseconds for layer in layers)
    parts = [(part, f"{name}{_rate_of(layers, _COMPUTING[name])}") for name, part in computing.items()]
    parts += [
        (inside - sum(computing.values()) - reorders, "pooling, normalization and other primitives"),
        (reorders, "reorders into other layouts"),
        (whole - inside, "outside MKL-DNN (Python, NumPy)"),
    ]
    least = 0.005 * max(whole, inside)
    shown = [
        f"{100 * part / max(whole, inside):.0f} % {name}" for part, name in sorted(parts, reverse=True) if part > least
    ]
    yield f"of a step of {whole:.0f} ms: {', '.join(shown)}"
    multiplying = [layer for layer in layers if any(layer.primitive in names for names in _COMPUTING.values())]
    slow = [layer for layer in multiplying if layer.flops and layer.milliseconds >= 0.05 * inside]
    if slow:
        worst = min(slow, key=lambda layer: (layer.flops or 0.0) / layer.milliseconds)
        rate = f"{(worst.flops or 0.0) / worst.milliseconds / 1e6:.0f} GFLOP/s"
        moved = "" if not worst.bytes else f", {worst.bytes / worst.milliseconds / 1e6:.0f} GB/s"
        yield f"slowest: {worst.layer or worst.problem}, {worst.propagation.replace('_', ' ')}, {rate}{moved}"


def _rate_of(layers: tuple[Layer, ...], primitives: tuple[str, ...]) -> str:
    known = [layer for layer in layers if layer.primitive in primitives and layer.flops]
    milliseconds = sum(layer.milliseconds for layer in known)
    flops = sum(layer.flops or 0.0 for layer in known)
    return f" at {flops / milliseconds / 1e6:.0f} GFLOP/s" if milliseconds > 0 else ""


def _ahead(result: Result, best: Row, rows: list[Row]) -> Iterator[str]:
    """An engine of another kind that is faster beyond the intervals."""
    for row in rows:
        other = result.engine(row.engine)
        if other.kind == "ideep" or other.forward_only or row.median is None or best.median is None:
            continue
        if (row.high or row.median) < (best.low or best.median):
            yield f"{other.label or other.id} is {best.median / row.median:.2f} times as fast"
