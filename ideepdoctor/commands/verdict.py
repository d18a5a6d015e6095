"""The sentence that a proof comes to."""

from __future__ import annotations

from ideepdoctor.model.facts import Facts, Smoke
from ideepdoctor.model.findings import Judgement, Severity
from ideepdoctor.model.summary import versions


def verdict(facts: Facts, judgement: Judgement, smoke: Smoke) -> str:
    """Say what was proved: interpreter, versions, kernel, worst relative error, speed, and what is still wrong.

    Args:
        facts: of the target that was proved.
        judgement: of the rules, on facts that hold the smoke test.
        smoke: its answer.

    Returns:
        One to five sentences; READY is the first word only where nothing is left undecided.
    """
    stack = versions(facts)
    if smoke.failure or smoke.used is None:
        return f"NOT PROVED on {stack}: the smoke test could not run ({smoke.failure or 'no answer'})."
    if not smoke.used:
        return f"NOT USED on {stack}: Chainer computed with NumPy, not with iDeep."
    errors = [item for item in judgement.findings if item.severity is Severity.ERROR]
    undecided = bool(judgement.unknown) or not any(check.status == "right" for check in smoke.checks)
    head = "FAULTY" if errors else "UNDECIDED" if undecided else "READY"
    sentences = [f"{head}: {stack}; iDeep is used (kernel {smoke.kernel}, {_threads(smoke.threads)})."]
    right = [c.max_relative_error for c in smoke.checks if c.status == "right" and c.max_relative_error is not None]
    bad = [check for check in smoke.checks if check.failed]
    hazards = sorted({check.hazard for check in bad if check.hazard}, key=lambda name: (len(name), name))
    worst = f"worst relative error {max(right):.1e}" if right else "nothing was compared"
    tried = sum(1 for check in smoke.checks if check.status != "not-run")
    sentences.append(f"{tried - len(bad)} of {tried} checks are right, {worst}.")
    if bad:
        named = f" (known hazards {', '.join(hazards)})" if hazards else ""
        sentences.append(f"{len(bad)} {'is' if len(bad) == 1 else 'are'} NOT right{named}: see the findings.")
    if not bad and facts.guard is not None and any(item.active for item in facts.guard.corrections or ()):
        sentences.append("The guard corrects what is known to be wrong with these releases.")
    if smoke.timing is not None:
        timing = smoke.timing
        sentences.append(
            f"Convolution forward + backward: {timing.ratio:.1f} times NumPy "
            f"({timing.ratio_low:.1f} to {timing.ratio_high:.1f})."
        )
    if judgement.unknown:
        count = len(judgement.unknown)
        sentences.append(f"{count} rule{'' if count == 1 else 's'} could not be decided: see the findings.")
    return " ".join(sentences)


def _threads(count: int) -> str:
    return f"{count} thread{'' if count == 1 else 's'}"
