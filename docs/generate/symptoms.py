"""Faults by what a person sees: texts of errors, signals, and what has no text."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from docs.generate import coverage
from docs.generate.markdown import cell, literal, plain
from docs.generate.words import Words
from ideepdoctor.rules.explain import EVERYTHING

HERE = Path(__file__).parents[1]
SIGNATURES = HERE.parent / "tests" / "symptoms" / "signatures.toml"
"""Exact texts that programs print, each with the entry that it is of and the code that explains it."""


@cache
def signatures() -> tuple[Mapping[str, Any], ...]:
    """The texts that the tests hold the doctor to."""
    return tuple(tomllib.loads(SIGNATURES.read_text("utf-8"))["signature"])


@cache
def signs() -> tuple[Mapping[str, Any], ...]:
    """What is seen without a text of its own, out of ``signs.toml``."""
    return tuple(tomllib.loads((HERE / "signs.toml").read_text("utf-8"))["sign"])


def by_code() -> Mapping[str, tuple[str, ...]]:
    """The texts of a code."""
    return _by("code")


def by_entry() -> Mapping[str, tuple[str, ...]]:
    """The texts of an entry."""
    return _by("entry")


def _by(field: str) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for signature in signatures():
        if signature.get(field):
            found.setdefault(signature[field], {})[shown(signature["text"])] = None
    return {name: tuple(texts) for name, texts in found.items()}


def shown(text: str) -> str:
    """A text as it is printed, a line after the other."""
    return " ".join(literal(line.strip()) for line in text.splitlines() if line.strip())


def stage_of(signature: Mapping[str, Any]) -> str:
    """Where a text shows: the stage of its entry; of a code alone the stage that codes of its family mostly have."""
    stages = {failure.name: failure.stage for failure in coverage.failures()}
    if signature.get("entry") in stages:
        return stages[signature["entry"]]
    families = {"1": "crash", "2": "install", "3": "import", "4": "conflict", "5": "unused", "6": "wrong", "7": "slow"}
    return families.get(str(signature["code"])[3], "build")


def pages(words: Words) -> Mapping[str, str]:
    """``symptoms.md``."""
    known = frozenset(rule.code() for rule in EVERYTHING)
    titles = {rule.code(): rule.title for rule in EVERYTHING}
    rows: dict[str, dict[str, dict[str, None]]] = {stage: {} for stage in coverage.STAGES}
    for sign in signs():
        seen = rows[sign["stage"]].setdefault(plain(words(sign["seen"])), {})
        seen.update(dict.fromkeys(sign["codes"]))
    for signature in signatures():
        seen = rows[stage_of(signature)].setdefault(shown(signature["text"]), {})
        seen[signature["code"]] = None
    lines = [
        f"# {words('Faults by what you see')}",
        "",
        words(
            "Find the stage at which it goes wrong, then the text. `ideepdoctor explain --error` takes a whole "
            "traceback, and `ideepdoctor diagnose` looks at the environment itself, which tells more than any text."
        ),
        "",
    ]
    for stage in filter(rows.get, coverage.STAGES):
        lines += [f"## {words(f'stage {stage}')}", ""]
        for seen, codes in rows[stage].items():
            links = words(", ").join(
                f"[{code}](rules/{code}.md) {plain(cell(words.said(titles[code])))}" for code in codes if code in known
            )
            lines += [f"* {seen}  ", f"  {links}"]
        lines.append("")
    return {"symptoms.md": "\n".join(lines)}
