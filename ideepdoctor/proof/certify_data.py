"""What certify works with: cases, settings of threads, results. Data only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FAILING = ("wrong", "crashed", "raised", "timeout")
"""States of a case that did not go right."""
ONE_CPU = "1cpu"
"""Name of the setting in which a program may use one processor only."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case of the payload's catalogue.

    Attributes:
        key: the same for the same case, whatever it is called.
        op: Chainer's function, or another kind of operation.
        family: its row in the table, and what ``--ops`` calls it.
        text: shapes, options and layouts, for people.
        seconds: an estimate of what it takes.
        risk: 2: must not share a process; 1: may end its process; 0: neither.
        spec: what the payload wants back.
    """

    key: str
    op: str
    family: str
    text: str
    seconds: float
    risk: int
    spec: Mapping[str, Any] = field(compare=False, hash=False)


@dataclass(frozen=True, slots=True)
class Setting:
    """How many threads, and processors, a case is tried with.

    Attributes:
        name: ``2``, or ``1cpu``.
        threads: OMP_NUM_THREADS; None: what the user has.
        one_cpu: whether it may use one processor only.
    """

    name: str
    threads: int | None = None
    one_cpu: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one case in one setting.

    Attributes:
        key: of the case.
        setting: its name.
        status: right, wrong, crashed, raised, timeout or not-run.
        hazard: the known hazard that it shows, or None.
        forward: whether iDeep was used going forward; None where that cannot be told.
        backward: the same, going backward.
        why: why iDeep was not used, or "".
        error: largest relative error over outputs and gradients; None: not finite, or not compared.
        tolerance: what rounding explains.
        wrong: names of the outputs and gradients that are off by more.
        message: signal, exception or other text that explains the status.
        kernels: primitives and implementations that MKL-DNN named.
        seconds: that it took, reference included.
        measured: of the cases about memory and forked children.
    """

    key: str
    setting: str
    status: str
    hazard: str | None = None
    forward: bool | None = None
    backward: bool | None = None
    why: str = ""
    error: float | None = None
    tolerance: float | None = None
    wrong: tuple[str, ...] = ()
    message: str = ""
    kernels: tuple[str, ...] = ()
    seconds: float | None = None
    measured: Mapping[str, Any] | None = field(default=None, hash=False)

    @property
    def failed(self) -> bool:
        """Whether it was tried and did not go right."""
        return self.status in FAILING

    @property
    def used(self) -> str:
        """``yes``, ``part``, ``no``, or ``-`` where it cannot be told."""
        told = [word for word in (self.forward, self.backward) if word is not None]
        if not told:
            return "-"
        return "yes" if all(told) else "part" if any(told) else "no"


@dataclass(frozen=True, slots=True)
class Plan:
    """What the payload says can be tried in a target.

    Attributes:
        threads: of the OpenMP runtime as the user has it; None where it is not loaded.
        available: Chainer's own word on iDeep.
        reason: why it is not available, or "".
        cases: the catalogue, each family's cases in the order in which they are worth trying.
        unknown: files of Chainer that speak of iDeep and that the catalogue knows nothing of.
        guard: what is known of the guard there; None where there is none.
    """

    threads: int | None
    available: bool
    reason: str
    cases: tuple[Case, ...]
    unknown: tuple[str, ...]
    guard: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Model:
    """What a user's model gives to iDeep, and its gradients against float64.

    Attributes:
        cases: each once.
        others: functions that iDeep does not serve: name, why, count.
        gradients: name, error, tolerance and right of each output and parameter; None where they were not compared.
        ended: how the model killed its process or raised, or "".
        notes: on the comparison.
    """

    cases: tuple[Case, ...]
    others: tuple[Mapping[str, Any], ...]
    gradients: tuple[Mapping[str, Any], ...] | None
    ended: str
    notes: tuple[str, ...]

    @property
    def wrong(self) -> tuple[str, ...]:
        """Names of outputs and parameters' gradients that are wrong."""
        return tuple(str(row["name"]) for row in self.gradients or () if not row["right"])


def case_from(item: Mapping[str, Any]) -> Case:
    """A case of the payload's answer. Raises KeyError, TypeError, ValueError where it is none."""
    source = f", {item['source']}" if re.fullmatch(r"\d+ times?", str(item.get("source", ""))) else ""
    return Case(
        key=str(item["key"]),
        op=str(item["op"]),
        family=str(item["family"]),
        text=str(item["text"]) + source,
        seconds=float(item["seconds"]),
        risk=int(item["risk"]),
        spec=item,
    )


def result_from(item: Mapping[str, Any], setting: str) -> Result:
    """A result of the payload's answer, or of the file. Raises KeyError, TypeError, ValueError where it is none."""
    return Result(
        key=str(item["key"]),
        setting=setting,
        status=str(item["status"]),
        hazard=item["hazard"],
        forward=item["forward"],
        backward=item["backward"],
        why=str(item["why"]),
        error=None if item["error"] is None else float(item["error"]),
        tolerance=None if item["tolerance"] is None else float(item["tolerance"]),
        wrong=tuple(str(name) for name in item["wrong"]),
        message=str(item["message"]),
        kernels=tuple(str(name) for name in item["kernels"]),
        seconds=None if item["seconds"] is None else float(item["seconds"]),
        measured=item["measured"],
    )
