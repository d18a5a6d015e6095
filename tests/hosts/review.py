"""What the rules say of every recorded machine, as text that a person has reviewed: findings/NAME.txt.

    python tests/hosts/review.py [NAME ...]

writes them anew; tests/rules/test_hosts.py compares them. A change is to be read like a change of the rules.
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

from ideepdoctor.facts.serialize import facts_from_json
from ideepdoctor.model.facts import Facts
from ideepdoctor.rules import RULES
from ideepdoctor.rules.engine import judge
from ideepdoctor.treatment.variables import recommended

HERE = Path(__file__).parent
FINDINGS = HERE / "findings"


def main() -> None:
    """Write the named machines' texts, or all; remove those of machines that are no more."""
    names = sys.argv[1:] or hosts()
    for name in names:
        (FINDINGS / f"{name}.txt").write_text(findings_text(name), "utf-8")
    if not sys.argv[1:]:
        for path in FINDINGS.glob("*.txt"):
            if path.stem not in names:
                path.unlink()


def hosts() -> list[str]:
    """Names of the recorded machines."""
    return sorted(path.stem for path in HERE.glob("*.json"))


def facts_of(name: str) -> Facts:
    """The facts of a recorded machine."""
    return facts_from_json(json.loads((HERE / f"{name}.json").read_text("utf-8")))


def findings_text(name: str) -> str:
    """What the rules say of a recorded machine."""
    facts = facts_of(name)
    judgement = judge(facts, RULES)
    lines = [f"{name}: {about(name, facts)}", f"variables: {_variables(facts)}", ""]
    for finding in judgement.findings:
        lines.append(f"{finding.severity.value:8}{finding.code}  {finding.found}")
        lines.append(f"{'':8}{finding.fix.value}: {finding.next_step}")
    lines += [f"{'unknown':8}{item.code}  {item.reason}" for item in judgement.unknown]
    if judgement.skipped:
        lines.append("skipped " + ", ".join(f"{item.code} ({item.because})" for item in judgement.skipped))
    if not (judgement.findings or judgement.unknown or judgement.skipped):
        lines.append("nothing")
    return "\n".join(lines) + "\n"


def about(name: str, facts: Facts) -> str:
    """One line: which machine this is."""
    path = HERE / "shapes" / f"{name}.toml"
    if path.exists():
        return str(tomllib.loads(path.read_text("utf-8"))["about"])
    has = [f"{item.name} {item.version}" for item in facts.packages or () if item.name in ("chainer", "ideep4py")]
    under = f", under {' '.join(facts.target.emulator)}" if facts.target.emulator else ""
    return f"recorded: Python {facts.python.version}, {', '.join(has) or 'nothing installed'}{under}"


def _variables(facts: Facts) -> str:
    return " ".join(f"{item.name}={item.value}" for item in recommended(facts))


if __name__ == "__main__":
    main()
