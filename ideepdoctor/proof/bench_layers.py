"""Where the time of a step goes: from the lines of MKLDNN_VERBOSE, primitive by primitive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ideepdoctor.model.bench import Layer, Reorder
from ideepdoctor.proof.bench_engines import EngineSpec
from ideepdoctor.proof.bench_run import LOAD_SECONDS
from ideepdoctor.proof.verbose import Execution, parse
from ideepdoctor.proof.worker import Refusal, Worker, WorkerDied
from ideepdoctor.system import System

STEPS = 3


def record_layers(
    system: System, spec: EngineSpec, net: str, batch: int, affinity: Sequence[int] | None = None
) -> tuple[tuple[Layer, ...], Reorder | None]:
    """Take some steps of a net while MKL-DNN tells of each primitive; nothing where the engine does not tell.

    The times are of one step: the median step of STEPS, by the sum of its primitives.
    """
    request = {**spec.options, "do": "load", "net": net, "batch": batch}
    variables = {**spec.variables, "MKLDNN_VERBOSE": "1"}
    try:
        with Worker(system, spec.target, spec.payload, variables, bare=spec.bare, affinity=affinity) as worker:
            described = worker.ask({"do": "describe", "net": net, "batch": batch}, timeout_seconds=60)
            worker.ask(request, timeout_seconds=LOAD_SECONDS)
            steps = []
            for _ in range(STEPS):
                worker.ask({"do": "steps", "count": 1}, timeout_seconds=LOAD_SECONDS)
                steps.append(parse(worker.lines))
    except (Refusal, WorkerDied):
        return (), None
    steps = sorted((step for step in steps if step), key=lambda step: sum(one.milliseconds for one in step))
    if not steps:
        return (), None
    layers = layers_of(steps[len(steps) // 2], described["layers"], spec.id, net)
    return layers, reorder_of(layers, spec.id, net)


def layers_of(
    executions: Iterable[Execution], described: Sequence[Mapping[str, Any]], engine: str, net: str
) -> tuple[Layer, ...]:
    """One entry for each primitive, kernel, pass and problem, the longest first.

    Args:
        executions: of one step.
        described: the layers of the net as the worker describes them: names, problems, work and bytes of one product.
        engine: id of the engine.
        net: name of the net.
    """
    found: dict[tuple[str, str, str, str], Layer] = {}
    for one in executions:
        key = one.primitive, one.implementation, one.propagation, one.problem
        named = [item for item in described if _is_of(one, item)]
        flops = float(named[0]["flops"]) if named else None
        touched = float(named[0]["bytes"]) if named else None
        before = found.get(key)
        if before is None:
            names = ", ".join(str(item["layer"]) for item in named)
            found[key] = Layer(
                engine, net, one.primitive, one.milliseconds, *key[1:], layer=names, flops=flops, bytes=touched
            )
            continue
        found[key] = replace(
            before,
            milliseconds=before.milliseconds + one.milliseconds,
            calls=before.calls + 1,
            flops=None if before.flops is None or flops is None else before.flops + flops,
            bytes=None if before.bytes is None or touched is None else before.bytes + touched,
        )
    return tuple(sorted(found.values(), key=lambda layer: -layer.milliseconds))


def _is_of(one: Execution, described: Mapping[str, Any]) -> bool:
    """Whether a primitive is one of this layer: MKL-DNN writes the height first, then the same for the width."""
    problem = str(described["problem"])
    return one.primitive == described["primitive"] and (one.problem == problem or one.problem.startswith(f"{problem}_"))


def reorder_of(layers: Sequence[Layer], engine: str, net: str) -> Reorder | None:
    """The part of MKL-DNN's time that goes into new layouts; None where it tells of nothing."""
    total = sum(layer.milliseconds for layer in layers)
    if total <= 0:
        return None
    return Reorder(engine, net, sum(layer.milliseconds for layer in layers if layer.primitive == "reorder") / total)
