"""Commands that are printed about a target on another machine or in a container: what to type here, what there."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

from ideepdoctor.model.facts import TargetRef
from ideepdoctor.model.findings import Evidence, Finding

_FROM_HERE = re.compile(
    r"ideepdoctor (diagnose|libs|cpu|smoke|certify|report|guard status)\b(?! --(target|python|facts))"
)
"""Commands that examine such a target from here."""


def named(target: TargetRef) -> str:
    """The options that name this target."""
    if not target.address:
        return f"--python {target.python}"
    return f"--target {target.address} --python {target.python}"


def step_there(target: TargetRef, step: str) -> str:
    """A step for a person, with the place where it is to be done."""
    if not target.address or not step:
        return step
    if _FROM_HERE.match(step):
        return _FROM_HERE.sub(lambda found: f"{found[0]} {named(target)}", step)
    return f"on {target.address}: {step}"


def command_there(target: TargetRef, command: str) -> str:
    """A command line of the target's machine, as it is typed here: for ssh one word, which the shell there reads."""
    if not target.transport:
        return command
    reach = " ".join(target.transport)
    if target.transport[0] == "ssh":
        return f"{reach} {shlex.quote(command)}"
    return f"{reach} {command}" if re.fullmatch(r"[\w./ =:+-]+", command) else f"{reach} sh -c {shlex.quote(command)}"


def finding_there(target: TargetRef, finding: Finding) -> Finding:
    """A finding whose next step and commands are right for where its target is."""
    evidence = tuple(_evidence_there(target, one) for one in finding.evidence)
    return replace(finding, next_step=step_there(target, finding.next_step), evidence=evidence)


def _evidence_there(target: TargetRef, evidence: Evidence) -> Evidence:
    command = evidence.command
    if command is None or command.startswith(" ".join(target.transport)):
        return evidence
    if command.startswith("ideepdoctor "):
        return replace(evidence, command=step_there(target, command))
    return replace(evidence, command=command_there(target, command))
