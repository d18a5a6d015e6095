"""Apply every rule and every check of source to its own examples."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ideepdoctor.facts.serialize import facts_from_json
from ideepdoctor.lint.demands import read_named
from ideepdoctor.lint.engine import lint
from ideepdoctor.lint.registry import LINT_CHECKS
from ideepdoctor.lint.source import Unreadable
from ideepdoctor.model.own import Trouble
from ideepdoctor.rules import RULES
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.overlay import apply

_UNREADABLE = "IDP900"
"""The check that a program can be read at all."""


def try_all(hosts: Path) -> tuple[int | None, tuple[Trouble, ...]]:
    """Try all examples.

    Args:
        hosts: folder of the recorded machines.

    Returns:
        How many were tried, None where the machines are not there; and those that do not give what they must.
    """
    if not hosts.is_dir():
        return None, ()

    @cache
    def host(name: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = json.loads((hosts / f"{name}.json").read_text("utf-8"))
        return found

    tried, wrong = 0, []
    for rule in RULES:
        for example, bad in [*((item, True) for item in rule.bad), *((item, False) for item in rule.ok)]:
            tried += 1
            why = _rule_trouble(rule, host, example, bad)
            if why:
                wrong.append(Trouble(f"{rule.code()}, {example.name}", why))
    sources = list(_sources())
    return tried + len(sources), (*wrong, *(trouble for trouble in sources if trouble.why))


def _rule_trouble(rule: type[Rule], host: Any, example: Example, bad: bool) -> str:
    try:
        facts = facts_from_json(apply(host(example.host), example.overlay))
        seen = {finding.code for finding in rule().check(facts)}
    except Exception as error:  # noqa: BLE001 - a rule that raises does not hold
        return f"{type(error).__name__}: {error}"
    return _difference(seen, rule.code() if bad else "")


def _sources() -> Iterator[Trouble]:
    """One for each program; ``why`` is empty where all is as it must be."""
    for check in LINT_CHECKS:
        for sample, bad in [*((item, True) for item in check.bad), *((item, False) for item in check.ok)]:
            try:
                judged = lint(read_named(sample.file, sample.source.encode("utf-8")))
                seen = {item.finding.code for item in judged.found}
            except Unreadable:
                seen = {_UNREADABLE}
            except Exception as error:  # noqa: BLE001 - as above
                yield Trouble(f"{check.code()}, {sample.name}", f"{type(error).__name__}: {error}")
                continue
            yield Trouble(f"{check.code()}, {sample.name}", _difference(seen, check.code() if bad else ""))


def _difference(seen: set[str], wanted: str) -> str:
    if seen == ({wanted} if wanted else set()):
        return ""
    return f"gives {', '.join(sorted(seen)) or 'nothing'} instead of {wanted or 'nothing'}"
