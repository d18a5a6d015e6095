"""What a run of certify comes to: a row for each family of operations, its faults, and the rules that these break."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ideepdoctor.model.facts import Facts, OpCheck, Smoke
from ideepdoctor.model.findings import Finding, Judgement, Severity
from ideepdoctor.proof.certify_data import ONE_CPU, Case, Model, Result, Setting
from ideepdoctor.proof.certify_lasting import CODES

UNEXPLAINED = {"wrong": "IDP606", "crashed": "IDP607", "raised": "IDP607", "timeout": "IDP607"}
"""Rules about faults that no known hazard explains, by status."""
_EVIDENCE = 12
"""Cases that a finding shows; the JSON document lists all."""

Pairs = Sequence[tuple[Case, Setting]]
Results = Mapping[tuple[str, str], Result]


def code_of(hazard: str | None, status: str) -> str:
    """The rule that a fault is about: the one that names the hazard, else one of the two about the rest."""
    from ideepdoctor.rules import RULES

    named = [rule.code() for rule in RULES if hazard is not None and hazard in getattr(rule, "hazards", ())]
    return named[0] if named else UNEXPLAINED[status]


def rows(pairs: Pairs, results: Results) -> list[dict[str, Any]]:
    """A row for each family, JSON-ready, in the order of the catalogue."""
    families: dict[str, list[tuple[Case, Setting, Result | None]]] = {}
    for case, setting in pairs:
        families.setdefault(case.family, []).append((case, setting, results.get((case.key, setting.name))))
    return [_row(family, found) for family, found in families.items()]


def _row(family: str, found: list[tuple[Case, Setting, Result | None]]) -> dict[str, Any]:
    tried = [(case, setting, item) for case, setting, item in found if item is not None and item.status != "not-run"]
    errors = [item.error for _, _, item in tried if item.error is not None]
    used = {item.used for _, _, item in tried} - {"-"}
    kernels = sorted({kernel for _, _, item in tried for kernel in item.kernels})
    return {
        "op": family,
        "cases": len(found),
        "tried": len(tried),
        "right": sum(1 for _, _, item in tried if item.status == "right"),
        "used": "-" if not used else used.pop() if len(used) == 1 else "part",
        "why_not": _counted(item.why for _, _, item in tried if item.why),
        "worst_error": max(errors, default=None),
        "kernels": kernels,
        "not_run": _counted(item.message for _, _, item in found if item is not None and item.status == "not-run"),
        "faults": faults([(case, setting, item) for case, setting, item in tried if item.failed]),
    }


def _counted(texts: Iterable[str]) -> list[dict[str, Any]]:
    return [{"text": text, "count": count} for text, count in Counter(texts).most_common()]


def faults(failed: Sequence[tuple[Case, Setting, Result]]) -> list[dict[str, Any]]:
    """Faults of one family: those of a known hazard together, the others by how they ended."""
    groups: dict[tuple[str | None, str], list[tuple[Case, Setting, Result]]] = {}
    for case, setting, item in failed:
        groups.setdefault((item.hazard, "" if item.hazard else item.status), []).append((case, setting, item))
    return [_fault(hazard, found) for (hazard, _), found in groups.items()]


def _fault(hazard: str | None, found: list[tuple[Case, Setting, Result]]) -> dict[str, Any]:
    case, setting, worst = max(found, key=lambda row: _badness(row[2]))
    return {
        "hazard": hazard,
        "code": code_of(hazard, worst.status),
        "status": worst.status,
        "cases": len({item[0].key for item in found}),
        "tries": len(found),
        "threads": list(dict.fromkeys(item[1].name for item in found)),
        "worst": {
            "op": case.op,
            "case": case.text,
            "threads": setting.name,
            "error": worst.error,
            "message": worst.message,
        },
    }


def _badness(item: Result) -> tuple[bool, bool, float]:
    return item.status != "wrong", item.error is None, item.error or 0.0


def failures(pairs: Pairs, results: Results) -> list[dict[str, Any]]:
    """Every case that did not go right, JSON-ready."""
    found = []
    for case, setting in pairs:
        item = results.get((case.key, setting.name))
        if item is not None and item.failed:
            found.append(
                {
                    "op": case.op,
                    "family": case.family,
                    "case": case.text,
                    "threads": setting.name,
                    "status": item.status,
                    "hazard": item.hazard,
                    "code": code_of(item.hazard, item.status),
                    "error": item.error,
                    "tolerance": item.tolerance,
                    "wrong": list(item.wrong),
                    "message": item.message,
                }
            )
    return found


def as_smoke(pairs: Pairs, results: Results, model: Model | None, own: int | None) -> Smoke:
    """The failing cases as checks of a smoke test, so that the same rules judge them.

    Of what no known hazard explains, a family's worst case stands for all that ended like it.
    """
    named: list[OpCheck] = []
    others: dict[tuple[str, str], list[tuple[Case, Setting, Result]]] = {}
    used, kernel = False, None
    for case, setting in pairs:
        item = results.get((case.key, setting.name))
        if item is None or item.status == "not-run":
            continue
        used = used or item.forward is True
        kernel = kernel or next((name.split()[-1] for name in item.kernels if name.startswith("convolution ")), None)
        if item.failed and code_of(item.hazard, item.status) not in UNEXPLAINED.values():
            named.append(_check(case, setting, item, own))
        elif item.failed:
            others.setdefault((case.family, item.status), []).append((case, setting, item))
    for found in others.values():
        worst = max(found, key=lambda row: _badness(row[2]))
        check = _check(*worst, own)
        count = len({row[0].key for row in found}) - 1
        named.append(replace(check, case=f"{check.case} and {count} more" if count else check.case))
    if model is not None and not named:
        named += _of_model(model, own or 1)
    return Smoke(threads=own or 1, used=used, kernel=kernel, checks=tuple(named), failure="")


def _of_model(model: Model, threads: int) -> list[OpCheck]:
    """Faults of a whole model that no case of it shows alone."""
    found = []
    if model.wrong:
        text = f"gradients of the whole model ({', '.join(model.wrong[:3])}...)"
        found.append(OpCheck("model", text, threads, "wrong", True, None, None, None, "no case alone shows it"))
    if model.ended:
        status = "crashed" if model.ended.startswith("crashed") else "raised"
        found.append(OpCheck("model", "as a whole", threads, status, None, None, None, None, model.ended))
    return found


def _check(case: Case, setting: Setting, item: Result, own: int | None) -> OpCheck:
    return OpCheck(
        op=case.op,
        case=case.text,
        threads=1 if setting.name == ONE_CPU else setting.threads or own or 1,
        status=item.status,
        used_ideep=item.forward,
        max_relative_error=item.error,
        tolerance=item.tolerance,
        hazard=item.hazard,
        message=item.message,
    )


def judged(facts: Facts, smoke: Smoke, judge: Any, command: str) -> Judgement:
    """The rules' word on what was tried, as errors with the command that shows them.

    Other rules speak only where they keep those from being decided: what else is wrong with an environment is for
    ``diagnose`` to say.

    Args:
        facts: of the target, without a smoke test.
        smoke: see ``as_smoke``.
        judge: applies the rules to facts.
        command: shows the failing cases.
    """
    judgement: Judgement = judge(replace(facts, smoke=smoke))
    proved = {code_of(check.hazard, check.status) for check in smoke.checks}
    wanted = {"IDP601", *proved, *CODES}
    if not any(item.code in wanted for item in judgement.skipped):
        judgement = Judgement(
            findings=tuple(item for item in judgement.findings if item.code in wanted),
            unknown=tuple(item for item in judgement.unknown if item.code in wanted),
            ok=judgement.ok,
        )
    return replace(judgement, findings=tuple(_proved(item, proved, command) for item in judgement.findings))


def _proved(item: Finding, proved: set[str], command: str) -> Finding:
    if item.code not in proved:
        return item
    shown = tuple(replace(seen, command=command) for seen in item.evidence[:_EVIDENCE])
    return replace(item, severity=Severity.ERROR, evidence=shown)
