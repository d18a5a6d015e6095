"""``smoke``: is iDeep really used, is it right, how much faster."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from ideepdoctor.commands.session import Session, TargetOptions, examine, find_target, judge_all
from ideepdoctor.commands.verdict import verdict
from ideepdoctor.model.facts import Facts, Smoke
from ideepdoctor.model.report import Report
from ideepdoctor.targets.target import Target


def smoke(session: Session, options: TargetOptions, *, threads: int | None = None, timing: bool = True) -> Report:
    """Run the smoke test in a target and judge what it showed.

    Args:
        session: this run.
        options: which Python.
        threads: OMP_NUM_THREADS for the test; None: what a program of the target would have.
        timing: measure a convolution against NumPy too.

    Raises:
        UsageError: the target is no Python.
        CouldNotCheck: it does not answer.
    """
    target = find_target(session, options)
    facts, result = prove(session, target, threads=threads, timing=timing)
    judgement = judge_all(facts)
    return Report(
        "smoke",
        facts=facts,
        judgement=judgement,
        smoke=result,
        extra={"verdict": verdict(facts, judgement, result)},
    )


def prove(session: Session, target: Target, *, threads: int | None = None, timing: bool = True) -> tuple[Facts, Smoke]:
    """Examine a target and run the smoke test in it, both at once; the facts hold the test's answer.

    The examination takes half of the test's time and is over before the test measures speed.
    """
    from ideepdoctor.facts.collect import Scope
    from ideepdoctor.proof.smoke import run_smoke

    session.progress.detail("smoke test: used, right, faster")
    with ThreadPoolExecutor(max_workers=1) as pool:
        facts = pool.submit(examine, session, target, Scope(interpreters=False))
        result = run_smoke(session.system, target, threads=threads, timing=timing)
        return replace(facts.result(), smoke=result), result
