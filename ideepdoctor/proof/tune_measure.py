"""What tune measures with: a worker for each setting that is in a race, blocks of training steps in turn."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.proof.bench_run import LOAD_SECONDS, QUIET_SECONDS, steps_in, whole_steps
from ideepdoctor.proof.tune_space import Setting
from ideepdoctor.proof.worker import Refusal, Worker, WorkerDied
from ideepdoctor.system import System
from ideepdoctor.targets.target import Target


@dataclass(frozen=True, slots=True)
class Subject:
    """What is made fast: nets of the tables at a batch, or the user's own model.

    Attributes:
        nets: names; empty for a model.
        batch: of the nets.
        model: FILE and FUNCTION.
    """

    nets: tuple[str, ...] = ()
    batch: int = 8
    model: tuple[str, str] | None = None

    @property
    def text(self) -> str:
        """For people, and for the profile."""
        return ":".join(self.model) if self.model else f"{', '.join(self.nets)}, batch {self.batch}"

    def loads(self, setting: Setting) -> list[dict[str, Any]]:
        """The requests that load it."""
        plain = {"do": "load", "use": "auto", "to_intel64": setting.to_intel64, "batch": self.batch}
        if self.model is not None:
            return [{**plain, "net": "", "model": list(self.model)}]
        return [{**plain, "net": net} for net in self.nets]


@dataclass
class Bench:
    """Measures settings; workers are kept as long as their setting is in the race, or in the next one.

    Attributes:
        system: starts them.
        target: where.
        subject: what they compute.
        variables: what a setting sets, from its own; None as a value: unset.
        seconds: length of a block.
        keep: how many settings may have their workers at the same time.
    """

    system: System
    target: Target
    subject: Subject
    variables: Callable[[Setting], Mapping[str, str | None]]
    seconds: float = 0.5
    keep: int = 8
    threads: int | None = None
    gflops: dict[Setting, float] = field(default_factory=dict)
    _held: dict[Setting, list[_Loaded]] = field(default_factory=dict)

    def measure(self, settings: Sequence[Setting], block: int) -> dict[Setting, Sequence[float] | str]:
        """One block of each setting in turn; see ``tune_search.Measure``.

        Several nets give one value for each block: the geometric mean of their medians.
        """
        for gone in [item for item in self._held if item not in settings]:
            self._end(gone)
        calm = [item for item in settings if not item.restless][: self.keep]
        with ThreadPoolExecutor(max_workers=2) as pool:
            list(pool.map(self._begun, [item for item in calm if item not in self._held]))
        first = block % len(settings)
        answers: dict[Setting, Sequence[float] | str] = {}
        for setting in [*settings[first:], *settings[:first]]:
            if setting not in self._held:
                self._begun(setting)
            answers[setting] = self._block(setting)
            if setting not in calm:
                self._end(setting)
        return answers

    def _begun(self, setting: Setting) -> None:
        """Start the workers of a setting; what fails is told by its first block."""
        self._held[setting] = [_Loaded(self, setting, request) for request in self.subject.loads(setting)]

    def _block(self, setting: Setting) -> Sequence[float] | str:
        medians: list[float] = []
        for loaded in self._held[setting]:
            if loaded.problem:
                return loaded.problem
            time.sleep(QUIET_SECONDS)  # the threads of the one before spin on for a while
            steps = loaded.steps(self.seconds)
            if loaded.problem:
                return loaded.problem
            if len(self._held[setting]) == 1:
                return steps
            medians.append(statistics.median(steps))
        return [statistics.geometric_mean(medians)]

    def _end(self, setting: Setting) -> None:
        for loaded in self._held.pop(setting, ()):
            loaded.close()

    def close(self) -> None:
        """End all workers."""
        for setting in list(self._held):
            self._end(setting)


class _Loaded:
    """A worker that has a net."""

    def __init__(self, bench: Bench, setting: Setting, request: Mapping[str, Any]) -> None:
        self._bench, self._worker, self._step = bench, None, 0.0
        self.problem = ""
        try:
            self._worker = Worker(bench.system, bench.target, "bench", bench.variables(setting))
            answer = self._worker.ask(request, timeout_seconds=LOAD_SECONDS)
            if answer.get("used") is False:
                self.problem = "it does not use iDeep"
            if not setting.options:
                bench.threads = answer.get("threads")
            self.steps(0.0)  # the second step: the first has made the primitives
        except (Refusal, WorkerDied, CouldNotCheck) as error:
            self.problem = str(error) or type(error).__name__
        except BaseException:
            self.close()
            raise

    def steps(self, seconds: float) -> list[float]:
        """Seconds of each step of a block of about this length; empty, and ``problem`` set, where it failed."""
        count = steps_in(seconds, self._step) if self._step else 1
        try:
            if self._worker is None:
                return []
            answer = self._worker.ask({"do": "steps", "count": count}, timeout_seconds=LOAD_SECONDS)
        except (Refusal, WorkerDied) as error:
            self.problem = str(error)
            return []
        found = whole_steps(answer["forward"], answer["backward"])
        self._step = statistics.median(found)
        return found

    def close(self) -> None:
        """End it."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None
