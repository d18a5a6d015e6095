"""What bench measures: an engine is a payload in a target with options and variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ideepdoctor.targets.target import Target


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """An engine before it has run.

    Attributes:
        id: ``ideep``, ``tuned``, ``numpy``, ``mkl``, ``torch``...
        label: how it is called until its versions are known.
        kind: ideep, numpy, torch, opencv, caffe or cupy.
        target: where it runs.
        payload: name of its worker.
        options: what ``load`` is asked besides the net and the batch.
        variables: set for the worker; None: unset.
        bare: without what the environment's start-up file sets and corrects.
        forward_only: it has no backward pass.
        columns: whether its convolutions unfold their input in memory, as NumPy's do.
        note: what the reader must know of it.
    """

    id: str
    label: str
    kind: str
    target: Target
    payload: str = "bench"
    options: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str | None] = field(default_factory=dict)
    bare: bool = False
    forward_only: bool = False
    columns: bool = False
    note: str = ""


def own_engines(target: Target) -> tuple[EngineSpec, ...]:
    """The engines that the target's environment holds: iDeep as pip installs it, as it is set up here, and NumPy."""
    with_ideep = {"use": "auto", "to_intel64": True}
    return (
        EngineSpec("ideep", "Chainer + iDeep, as installed", "ideep", target, options=with_ideep, bare=True),
        EngineSpec("tuned", "Chainer + iDeep, tuned", "ideep", target, options=with_ideep),
        EngineSpec("numpy", "Chainer + NumPy", "numpy", target, options={"use": "never"}, bare=True, columns=True),
    )
