"""What bench measured, as facts that rules can judge."""

from __future__ import annotations

from ideepdoctor.model.bench import Engine, Result
from ideepdoctor.model.facts import BenchFacts, TimedStep

_ENGINES = {"numpy": "numpy", "mkl": "mkl", "tuned": "ideep"}
"""By id: what rules judge. iDeep as pip leaves it is not set up here, and judged by nobody."""


def bench_facts(result: Result) -> BenchFacts:
    """The steps of a run with their numbers of threads; rows without an interval or that number are left out."""
    steps: dict[tuple[str, str, int], TimedStep] = {}
    for row in result.results:
        engine = result.engine(row.engine)
        threads = engine.threads or result.machine.cpus_used
        name = _name(engine)
        if name is None or threads is None or not row.measured or row.low is None or row.high is None:
            continue
        step = TimedStep(
            name, f"{row.net}, batch {row.batch}", threads, row.median or 0.0, row.low, row.high, row.of_ceiling
        )
        steps[name, step.subject, threads] = step
    for item in result.scaling:
        name = _name(result.engine(item.engine))
        if name is None or item.low is None or item.high is None:
            continue
        key = name, f"{item.net}, batch {item.batch}", item.threads
        steps.setdefault(key, TimedStep(*key, item.median, item.low, item.high))
    return BenchFacts(tuple(steps.values()), result.noise.quiet, result.noise.messages)


def _name(engine: Engine) -> str | None:
    return _ENGINES.get(engine.id)
