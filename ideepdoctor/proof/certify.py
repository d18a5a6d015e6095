"""Driver of payload/certify*.py: every operation in every setting of threads, kept as it goes, within a budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ideepdoctor.errors import CouldNotCheck, UsageError
from ideepdoctor.proof.certify_data import Case, Model, Plan, Result, Setting, case_from, result_from
from ideepdoctor.proof.certify_order import batches, left
from ideepdoctor.proof.certify_store import Store
from ideepdoctor.system import System
from ideepdoctor.targets.target import Target, run_payload

OP_SECONDS = 30
"""For the imports and for each case; the slowest takes 4 s on two cores that others use, too."""
OP_SECONDS_EMULATED = 150
MODEL_SECONDS = 300
"""For a user's own model: five runs of it."""
_LEAST_SECONDS = 3.0
"""A batch is not begun with less than this left: the imports take one or two."""
_BATCH_LIMIT = 90.0
"""No case is begun later in a batch than this."""


def make_plan(system: System, target: Target) -> Plan:
    """Ask the target for the catalogue.

    Raises:
        CouldNotCheck: it does not answer, or Chainer cannot be imported there.
    """
    answer = _ask(system, target, {"action": "plan"}, seconds=60.0)
    with _Understood(target):
        _need(answer)
        ready = answer["ready"]
        return Plan(
            threads=ready["threads"],
            available=bool(ready["available"]),
            reason=str(ready["reason"]),
            cases=tuple(case_from(item) for item in answer["cases"]),
            unknown=tuple(str(name) for name in answer["unknown"]),
            guard=answer["guard"],
        )


def record_model(
    system: System, target: Target, path: str, function: str, *, env: Mapping[str, str] | None = None
) -> Model:
    """Run a user's model once: what it gives to iDeep, and its gradients.

    Args:
        system: starts the process.
        target: where.
        path: of the file.
        function: in it, which returns (link or callable, inputs...).
        env: the whole environment to do so in; None: the doctor's own.

    Raises:
        UsageError: the function is not what it must be.
        CouldNotCheck: the target does not answer, or Chainer cannot be imported there.
    """
    request = {"action": "model", "file": path, "function": function, "model_seconds": MODEL_SECONDS}
    answer = _ask(system, target, request, seconds=60.0, more_seconds=MODEL_SECONDS, env=env)
    with _Understood(target):
        _need(answer)
        if answer["refused"]:
            raise UsageError(str(answer["refused"]), hint="--model FILE:FUNCTION: see the README on certify")
        gradients = answer["gradients"]
        return Model(
            cases=tuple(case_from(item) for item in answer["cases"]),
            others=tuple(answer["others"]),
            gradients=None if gradients is None else tuple(gradients),
            ended=str(answer["ended"]),
            notes=tuple(str(note) for note in answer["notes"]),
        )


@dataclass
class Run:
    """A run over cases and settings, which goes on where an earlier one was stopped.

    Attributes:
        system: starts processes.
        target: where the cases are run.
        store: keeps the results.
        pairs: cases and settings, in order.
        deadline: ``time.monotonic()`` after which nothing is begun; None: until all is done.
        told: called before each batch with the number of pairs done, of all pairs, and the setting's name.
        results: by key and setting; those of earlier runs are in it from the start.
        env: the whole environment of the cases; None: the doctor's own.
    """

    system: System
    target: Target
    store: Store
    pairs: Sequence[tuple[Case, Setting]]
    deadline: float | None = None
    told: Callable[[int, int, str], None] = lambda _done, _all, _name: None
    results: dict[tuple[str, str], Result] = field(default_factory=dict)
    env: Mapping[str, str] | None = None
    _pace: float = 1.0

    def go(self) -> None:
        """Try what has no result yet.

        Raises:
            CouldNotCheck: the target does not answer, or the results cannot be written.
        """
        in_vain = 0
        while waiting := left(self.pairs, self.results):
            setting, cases = next(batches(waiting, self._pace))
            seconds = self._seconds_for(cases)
            if seconds < _LEAST_SECONDS:
                return
            self.told(len(self.pairs) - len(waiting), len(self.pairs), setting.name)
            found = run_batch(self.system, self.target, cases, setting, seconds, env=self.env)
            in_vain = 0 if found else in_vain + 1
            if in_vain == 2:
                raise CouldNotCheck(
                    f"{self.target.python}: no case came to an end within {seconds:.0f} s",
                    hint="the machine is very busy, or the target hangs; try again later",
                    context={"first case": f"{cases[0].op} {cases[0].text}", "threads": setting.name},
                )
            self._learn(cases, found)
            self.results.update(((item.key, item.setting), item) for item in found)
            self.store.add(setting.name, found)

    def _seconds_for(self, cases: Sequence[Case]) -> float:
        if self.deadline is None:
            return _BATCH_LIMIT
        return min(_BATCH_LIMIT, self.deadline - time.monotonic())

    def _learn(self, cases: Sequence[Case], found: Sequence[Result]) -> None:
        """Adapt the pace to what the cases really took."""
        estimates = {case.key: case.seconds for case in cases}
        measured = [(item.seconds, estimates[item.key]) for item in found if item.seconds is not None]
        if measured:
            ratio = sum(real for real, _ in measured) / sum(guess for _, guess in measured)
            self._pace = min(10.0, max(0.3, (self._pace + ratio) / 2))


def run_batch(
    system: System,
    target: Target,
    cases: Sequence[Case],
    setting: Setting,
    seconds: float,
    *,
    env: Mapping[str, str] | None = None,
) -> tuple[Result, ...]:
    """Run some cases in one setting.

    Args:
        system: starts the process.
        target: where.
        cases: which.
        setting: threads and processors.
        seconds: after these no further case is begun.
        env: the whole environment to do so in; None: the doctor's own.

    Returns:
        A result of each case that there was time for.

    Raises:
        CouldNotCheck: the target does not answer, or Chainer cannot be imported there.
    """
    request = {
        "action": "run",
        "threads": setting.threads,
        "one_cpu": setting.one_cpu,
        "cases": [dict(case.spec) for case in cases],
    }
    answer = _ask(system, target, request, seconds=seconds, env=env)
    with _Understood(target):
        if answer["ready"] is None and not answer["failure"].startswith("import of chainer"):
            return ()
        _need(answer)
        return tuple(result_from(item, setting.name) for item in answer["results"])


def _ask(
    system: System,
    target: Target,
    request: Mapping[str, Any],
    *,
    seconds: float,
    more_seconds: float = 0.0,
    env: Mapping[str, str] | None = None,
) -> Mapping[str, Any]:
    op_seconds = OP_SECONDS_EMULATED if target.emulator else OP_SECONDS
    whole = {"threads": None, "one_cpu": False, "seconds": seconds, "op_seconds": op_seconds, **request}
    timeout_seconds = seconds + 3 * op_seconds + more_seconds
    return run_payload(system, target, "certify", whole, timeout_seconds=timeout_seconds, env=env)


def _need(answer: Mapping[str, Any]) -> None:
    if answer["failure"] or answer["ready"] is None:
        raise CouldNotCheck(
            f"nothing can be certified here: {answer['failure'] or 'no answer'}", hint="ideepdoctor diagnose"
        )


class _Understood:
    """Turns an answer that is not the payload's into an error that says so."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, KeyError | TypeError | ValueError | AttributeError):
            raise CouldNotCheck(
                f"{self._target.python} answered certify with something else",
                hint="run it again; if it happens again, report it",
                context={"error": f"{type(error).__name__}: {error}"},
            ) from error
