"""``certify``: every operation that Chainer gives to iDeep, in many shapes and numbers of threads, against float64."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

from ideepdoctor.commands.session import Session, TargetOptions, examine, find_target, judge_all, model_place
from ideepdoctor.errors import CouldNotCheck, Interrupted, UsageError
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import versions
from ideepdoctor.proof.certify import Run, make_plan, record_model
from ideepdoctor.proof.certify_data import Case, Model, Plan, Setting
from ideepdoctor.proof.certify_lasting import fork_data, lasting_of, memory_data, with_leaks
from ideepdoctor.proof.certify_order import ordered, seconds_of, selected, settings_of
from ideepdoctor.proof.certify_report import as_smoke, failures, judged, rows
from ideepdoctor.proof.certify_store import Store
from ideepdoctor.rules.elsewhere import named, step_there
from ideepdoctor.rules.installed import variable
from ideepdoctor.targets.target import Target, payload_source
from ideepdoctor.treatment.state import state_folder


@dataclass(frozen=True, slots=True)
class CertifyOptions:
    """What ``certify`` was asked.

    Attributes:
        target: which Python.
        budget: length of time after which nothing is begun; None: until all is done.
        ops: operations to try; empty: all.
        threads: settings to try them in; empty: the usual ones.
        model: ``FILE:FUNCTION``: try what that model gives to iDeep instead of the catalogue.
        fresh: forget the results of earlier runs.
    """

    target: TargetOptions
    budget: str | None = None
    ops: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    model: str | None = None
    fresh: bool = False


def certify(session: Session, options: CertifyOptions) -> Report:
    """Try every case in every setting, as far as the budget allows, and judge all that is known by then.

    Args:
        session: this run.
        options: what to try.

    Raises:
        UsageError: the target is no Python; an operation, a number of threads, a length of time or a model that is
            none.
        CouldNotCheck: the target does not answer, or Chainer cannot be imported there.
        Interrupted: by the user; the results so far are kept.
    """
    started = time.monotonic()
    budget = None if options.budget is None else seconds_of(options.budget)
    target = find_target(session, options.target)
    if options.model is not None and target.transport:
        raise UsageError(
            f"--model takes a file of this machine, and {target.address} is another one",
            hint="run ideepdoctor certify --model FILE:FUNCTION there; "
            "without --model the catalogue is tried from here",
        )
    place = None if options.model is None else model_place(session, options.model)
    session.progress.detail("asking for the catalogue")
    facts, plan = _look(session, target)
    settings = settings_of(options.threads, plan.threads)
    model = None if place is None else _recorded(session, target, place)
    cases = selected(plan.cases if model is None else model.cases, options.ops)
    run = _run(session, target, facts, plan, options.fresh)
    run.pairs = ordered(cases, settings)
    run.deadline = None if budget is None else started + budget
    run.told = lambda done, count, name: session.progress.step(done + 1, count, f"certify, threads: {name}")
    kept = _known(run)
    try:
        run.go()
    except KeyboardInterrupt as error:
        raise Interrupted(
            f"interrupted; {_known(run)} of {len(run.pairs)} tries are kept",
            hint="the same command goes on from there; --fresh forgets them",
            context={"results": run.store.path},
        ) from error
    return _report(facts, plan, settings, run, model, place, kept, time.monotonic() - started)


def _look(session: Session, target: Target) -> tuple[Facts, Plan]:
    """Examine the target and ask for the catalogue, both at once."""
    from ideepdoctor.facts.collect import Scope

    with ThreadPoolExecutor(max_workers=1) as pool:
        facts = pool.submit(examine, session, target, Scope(interpreters=False))
        plan = make_plan(session.system, target)
        return facts.result(), plan


def _recorded(session: Session, target: Target, place: tuple[str, str]) -> Model:
    session.progress.detail(f"running {place[0]}:{place[1]}")
    model = record_model(session.system, target, *place)
    if not model.cases and not model.ended:
        names = ", ".join(sorted({str(row["name"]) for row in model.others})) or "no function of Chainer"
        raise UsageError(f"{place[1]}() gives nothing to iDeep; it ran: {names}", hint="see the README on certify")
    return model


def _run(session: Session, target: Target, facts: Facts, plan: Plan, fresh: bool) -> Run:
    """A run that goes on from what is kept for this target as it is now."""
    guard = None if plan.guard is None else {name: plan.guard[name] for name in ("digest", "active", "corrections")}
    packages = {name: getattr(facts.package(name), "version", None) for name in ("chainer", "ideep4py", "numpy")}
    identity = {
        "target": {**asdict(facts.target), "reason": "", "python": facts.python.executable},
        "version": facts.python.version,
        "packages": packages,
        "cpu": {"vendor": facts.cpu.vendor, "model": facts.cpu.model_name, "flags": sorted(facts.cpu.flags or ())},
        "guard": guard,
        "IDEEPDOCTOR_GUARD": variable(facts, "IDEEPDOCTOR_GUARD"),
        "OMP_NUM_THREADS": variable(facts, "OMP_NUM_THREADS"),
        "payload": hashlib.sha256(payload_source("certify")).hexdigest(),
    }
    store = Store(session.system, state_folder(session.environ), identity)
    if fresh:
        store.forget()
    return Run(session.system, target, store, (), results=store.load())


def _known(run: Run) -> int:
    return sum(1 for case, setting in run.pairs if _has(run, case, setting))


def _report(
    facts: Facts,
    plan: Plan,
    settings: Sequence[Setting],
    run: Run,
    model: Model | None,
    place: tuple[str, str] | None,
    kept: int,
    seconds: float,
) -> Report:
    results = {(case.key, s.name): run.results[case.key, s.name] for case, s in run.pairs if _has(run, case, s)}
    if not any(item.status != "not-run" for item in results.values()):
        raise CouldNotCheck("nothing was tried: the budget was too short, or nothing can be tried here")
    lasting = lasting_of(run.pairs, results)
    facts, results = replace(facts, lasting=lasting), with_leaks(results, lasting)
    smoke = as_smoke(run.pairs, results, model, plan.threads)
    names = ",".join(setting.name for setting in settings)
    again = f"ideepdoctor certify {named(facts.target)} --threads {names}"
    again += "" if place is None else f" --model {place[0]}:{place[1]}"
    judgement = judged(facts, smoke, judge_all, again)
    data = {
        "complete": len(results) == len(run.pairs),
        "tries": len(run.pairs),
        "tried": len(results),
        "kept_from_before": kept,
        "right": sum(1 for item in results.values() if item.status == "right"),
        "failed": sum(1 for item in results.values() if item.failed),
        "not_run": sum(1 for item in results.values() if item.status == "not-run"),
        "threads": [setting.name for setting in settings],
        "own_threads": plan.threads,
        "available": plan.available,
        "guard": plan.guard,
        "unknown_files": list(plan.unknown),
        "ops": rows(run.pairs, results),
        "failures": failures(run.pairs, results),
        "memory": memory_data(lasting),
        "fork": fork_data(lasting),
        "model": None if model is None or place is None else _model_data(model, place),
        "results_file": run.store.path,
        "seconds": seconds,
    }
    from ideepdoctor.render.certify import lines

    extra = {"certify": data, "verdict": _verdict(facts, data, bool(smoke.checks), model, smoke.used, again)}
    return Report("certify", facts=facts, judgement=judgement, body=tuple(lines(data)), extra=extra)


def _has(run: Run, case: Case, setting: Setting) -> bool:
    return (case.key, setting.name) in run.results


def _model_data(model: Model, place: tuple[str, str]) -> dict[str, Any]:
    return {
        "file": place[0],
        "function": place[1],
        "cases": [{"op": case.op, "case": case.text} for case in model.cases],
        "others": [dict(row) for row in model.others],
        "gradients": None if model.gradients is None else [dict(row) for row in model.gradients],
        "ended": model.ended,
        "notes": list(model.notes),
    }


def _verdict(
    facts: Facts, data: dict[str, Any], faulty: bool, model: Model | None, used: bool | None, again: str
) -> str:
    """One sentence, and the next step."""
    stack = versions(facts)
    count = f"{data['tried']} of {data['tries']} tries"
    if not used:
        return f"NOT USED on {stack}: NumPy computed all of {count}. Next: ideepdoctor diagnose"
    if faulty or data["failed"] or (model is not None and (model.wrong or model.ended)):
        hazards = sorted({str(row["hazard"] or "new") for row in data["failures"]}, key=lambda name: (len(name), name))
        known = f" ({', '.join(hazards)})" if hazards else ""
        step = "ideepdoctor explain CODE for each finding"
        if data["guard"] is None or not data["guard"]["active"]:
            step = step_there(facts.target, f"ideepdoctor fix --python {facts.python.executable}, then certify again")
        return f"WRONG: {data['failed']} of {data['tried']} tries on {stack} are not right{known}. Next: {step}"
    if not data["complete"]:
        return f"SO FAR RIGHT: {count} on {stack}. Next: {again} goes on"
    guard = " with the guard" if data["guard"] is not None and data["guard"]["active"] else ""
    done = f"CERTIFIED: {stack}{guard}: all of {data['right']} tries are right."
    step = step_there(facts.target, "ideepdoctor certify --model FILE:FUNCTION")
    return f"{done} Next: your own model, {step}"
