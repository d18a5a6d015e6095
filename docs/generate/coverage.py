"""What people report, entry by entry: which rule finds it, how that was shown, and what is done about it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from docs.generate.markdown import plain, table, with_codes
from docs.generate.words import Words
from ideepdoctor.rules.explain import EVERYTHING

HERE = Path(__file__).parents[1]
STAGES = ("install", "import", "conflict", "crash", "unused", "slow", "wrong", "build")
HOW = ("real", "emulated", "recorded", "data")


@dataclass(frozen=True, slots=True)
class Failure:
    """An entry of ``failures.toml``, which says what its fields are."""

    name: str
    title: str
    stage: str
    sources: tuple[str, ...]
    codes: tuple[str, ...]
    how: str
    tests: tuple[str, ...]
    outside: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """An entry of ``checks.toml``."""

    name: str
    title: str
    codes: tuple[str, ...]


@cache
def failures() -> tuple[Failure, ...]:
    """The entries in their order."""
    found = tomllib.loads((HERE / "failures.toml").read_text("utf-8"))
    lists = ("sources", "codes", "tests")
    return tuple(
        Failure(name, **{key: tuple(value) if key in lists else value for key, value in entry.items()})
        for name, entry in found.items()
    )


@cache
def checks() -> tuple[Check, ...]:
    """The checks in their order."""
    found = tomllib.loads((HERE / "checks.toml").read_text("utf-8"))
    return tuple(Check(name, entry["title"], tuple(entry["codes"])) for name, entry in found.items())


@cache
def own() -> Mapping[str, str]:
    """Codes that no report asked for, and what they are."""
    found: Mapping[str, str] = tomllib.loads((HERE / "own.toml").read_text("utf-8"))
    return found


@cache
def by_code() -> Mapping[str, tuple[str, ...]]:
    """The names of the entries that a code finds."""
    found: dict[str, list[str]] = {}
    for failure in failures():
        for code in failure.codes:
            found.setdefault(code, []).append(failure.name)
    return {code: tuple(names) for code, names in found.items()}


def pages(words: Words) -> Mapping[str, str]:
    """``coverage.md``."""
    rules = {rule.code(): rule for rule in EVERYTHING}
    known = frozenset(rules)
    inside = [failure for failure in failures() if not failure.outside]
    detected = [failure for failure in inside if known & set(failure.codes)]
    lines = [
        f"# {words('What is detected')}",
        "",
        words(
            "What people report about Chainer with iDeep and its neighbours, and what the doctor makes of each. "
            "Severity and treatment are those of the rules; a rule can be milder or sharper where the facts say so."
        ),
        "",
        f"**{words('Detected')}: {len(detected)} / {len(inside)}** "
        f"({words('not applicable here')}: {len(failures()) - len(inside)}){words('. ').rstrip()}",
        "",
        *table(
            (words("How it was shown"), words("Number"), words("Meaning")),
            [(words(how), str(sum(item.how == how for item in detected)), words(f"shown {how}")) for how in HOW],
        ),
    ]
    from docs.generate.symptoms import by_entry

    seen = by_entry()
    for stage in STAGES:
        lines += [f"## {words(f'stage {stage}')}", ""]
        for failure in failures():
            if failure.stage == stage:
                lines += _entry(failure, words, rules, seen.get(failure.name, ()))
    lines += [f"## {words('The checks that a doctor needs')}", ""]
    lines += table(
        (words("Check"), words("What it does"), words("Codes")),
        [(check.name, _own(check.title, words), _codes(check.codes, known)) for check in checks()],
    )
    lines += [f"## {words('Found here, reported by nobody')}", ""]
    rows = [(code, plain(_own(told, words))) for code, told in sorted(own().items())]
    lines += table((words("Code"), words("What it is")), [(_codes((code,), known), told) for code, told in rows])
    return {"coverage.md": "\n".join(lines)}


def _own(text: str, words: Words) -> str:
    """Titles are data: English where they have no translation."""
    return words.own.get(text, text)


def _codes(codes: tuple[str, ...], known: frozenset[str]) -> str:
    return with_codes(", ".join(codes), known, "rules/")


def _entry(failure: Failure, words: Words, rules: Mapping[str, type], seen: tuple[str, ...]) -> list[str]:
    lines = [f"({failure.name.lower()})=", f"### {failure.name}: {plain(_own(failure.title, words))}", ""]
    for code in failure.codes:
        rule = rules.get(code)
        if rule is not None:
            how = f"{words(str(rule.severity))}; {words(f'treatment {rule.fix}')}"  # type: ignore[attr-defined]
            title = plain(words.said(rule.title))  # type: ignore[attr-defined]
            lines.append(f"* [{code}](rules/{code}.md) {title} ({how})")
    if failure.outside:
        lines.append(f"* {words('not applicable here')}: {plain(_own(failure.outside, words))}")
    else:
        lines.append(f"* {words('How it was shown')}: {words(failure.how)}")
    if failure.note:
        lines.append(f"* {plain(_own(failure.note, words))}")
    lines += [f"* {text}" for text in seen]
    if failure.tests:
        lines.append(f"* {words('Tests')}: {', '.join(f'`{test}`' for test in failure.tests)}")
    lines.append(f"* {words('Reported in')}: {plain(', '.join(failure.sources))}")
    return [*lines, ""]
