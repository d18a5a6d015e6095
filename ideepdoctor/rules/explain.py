"""A rule as a document. Pure."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from difflib import get_close_matches

from ideepdoctor.errors import UsageError
from ideepdoctor.fleet.merge_pages import PAGES, Case, Page
from ideepdoctor.lint.base import Check, Sample
from ideepdoctor.lint.registry import LINT_CHECKS
from ideepdoctor.locale import documents
from ideepdoctor.rules import RULES
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.selftest.judge import SELF_CHECKS

HEADINGS = ("What it checks", "Why it matters", "How to fix", "References")


EVERYTHING: tuple[type[Rule] | type[Check] | type[Page], ...] = (*RULES, *LINT_CHECKS, *PAGES, *SELF_CHECKS)
"""The rules about environments, then the checks of source, then what is said of a fleet and of the doctor itself."""


def find(code: str) -> type[Rule] | type[Check] | type[Page]:
    """Find a rule by its code, in any case, with or without IDP. Raises UsageError; the hint names near codes."""
    codes = {rule.code(): rule for rule in EVERYTHING}
    asked = code.strip().upper()
    asked = asked if asked.startswith("IDP") else f"IDP{asked}"
    if asked in codes:
        return codes[asked]
    family = [code for code in codes if code.startswith(asked[:4])]
    near = get_close_matches(asked, family or codes, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}? " if near else ""
    raise UsageError(f"no rule has the code {code}", hint=f"{hint}All codes: ideepdoctor explain")


def document(rule: type[Rule] | type[Check] | type[Page], tr: Callable[[str], str] | None = None) -> str:
    """The rule in Markdown: title, the sections of its docstring, and its examples.

    Args:
        rule: which.
        tr: translates a paragraph; None: the document is English, its lines broken as in the docstring.
    """
    told = tr or str
    lines = inspect.cleandoc(rule.__doc__ or "").splitlines()
    body = [f"## {line}" if line in HEADINGS else line.removeprefix("    ") for line in lines[1:]]
    if tr is not None:
        body = _translated(lines, tr)
    requires = f"; looked at only where {', '.join(rule.requires)} hold" if rule.requires else ""
    parts = [
        f"# {rule.code()}: {told(rule.title)}",
        "",
        told(f"Severity: {rule.severity}. Treatment: {rule.fix}{requires}."),
        "",
        *([] if tr is not None else [lines[0]]),
        *body,
        "",
        *_reproduction(rule, told),
        f"## {told('Examples')}",
        "",
        *(f"* {told('found')}: {_example(example, told)}" for example in rule.bad),
        *(f"* {told('fine')}: {_example(example, told)}" for example in rule.ok),
    ]
    return "\n".join(parts) + "\n"


def _translated(lines: Sequence[str], tr: Callable[[str], str]) -> list[str]:
    """The docstring in another language, a paragraph a line."""
    found: list[str] = []
    section: list[str] = []
    for line in [*lines, HEADINGS[0]]:
        if line not in HEADINGS:
            section.append(line)
            continue
        found += [*documents.translated("\n".join(section), tr).splitlines(), ""]
        section = []
        found.append(f"## {tr(line)}")
    return found[:-2]


def _reproduction(rule: type[Rule] | type[Check] | type[Page], told: Callable[[str], str]) -> list[str]:
    """A program that shows the fault, for the rules that have one."""
    program = getattr(rule, "reproduction", "")
    if not program:
        return []
    how = (
        "Run this with the environment's Python. Where the guard corrects it, `IDEEPDOCTOR_GUARD=off` shows what it is "
        "without."
    )
    return [
        f"## {told('See it yourself')}",
        "",
        told(how),
        "",
        "```python",
        *program.strip("\n").splitlines(),
        "```",
        "",
    ]


def _example(example: Example | Sample | Case, told: Callable[[str], str]) -> str:
    if isinstance(example, Case):
        return told(example.name)
    if isinstance(example, Sample):
        program = example.file.endswith(".py")
        title = told(example.name) if program else f"{told(example.name)} ({example.file})"
        fence = "```python" if program else "```text"
        return "\n".join([f"{title}:", "", fence, *example.source.splitlines(), "```", ""])
    if not example.overlay:
        return f"{told(example.name)} ({example.host})"
    text = json.dumps(example.overlay, sort_keys=True)
    return f"{told(example.name)}: `{text if len(text) <= 160 else text[:157] + '...'}`"
