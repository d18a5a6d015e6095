"""A page for each code, and an index of each family."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from docs.generate import coverage, symptoms
from docs.generate.markdown import plain, table, with_codes
from docs.generate.words import Words
from ideepdoctor.rules.explain import EVERYTHING, document

CODES = frozenset(rule.code() for rule in EVERYTHING)


@dataclass(frozen=True, slots=True)
class Family:
    """Codes that belong together.

    Attributes:
        name: of its page.
        starts: what its codes begin with.
        title: what they are about.
        found_by: the commands that find them.
    """

    name: str
    starts: tuple[str, ...]
    title: str
    found_by: str


FAMILIES = (
    Family("machine", ("IDP1",), "The machine", "diagnose, setup"),
    Family("python", ("IDP2",), "Python and pip", "diagnose, setup"),
    Family("packages", ("IDP3",), "Packages", "diagnose, setup"),
    Family("libraries", ("IDP4",), "Libraries and the loader", "diagnose, libs"),
    Family("settings", ("IDP5",), "Variables and settings", "diagnose, setup"),
    Family("results", ("IDP6",), "Use, results and memory", "smoke, certify, setup"),
    Family("speed", ("IDP7",), "Speed", "smoke, bench, tune, diagnose"),
    Family("building", ("IDP8",), "Building from source", "build, explain --log, diagnose"),
    Family("source", ("IDP9",), "The source of a program", "lint"),
    Family("fleet", ("IDP00",), "Many machines", "fleet merge, fleet diagnose"),
    Family("doctor", ("IDP09",), "The doctor itself", "self-test"),
)


def family_of(code: str) -> Family:
    """The family of a code. Raises StopIteration for a code of none."""
    return next(family for family in FAMILIES if code.startswith(family.starts))


def pages(words: Words) -> Mapping[str, str]:
    """``rules/CODE.md``, ``rules/FAMILY.md`` and ``rules/index.md``."""
    seen = symptoms.by_code()
    reported = coverage.by_code()
    made = {f"rules/{rule.code()}.md": _page(rule, words, seen, reported) for rule in EVERYTHING}
    for family in FAMILIES:
        made[f"rules/{family.name}.md"] = _family(family, words)
    made["rules/index.md"] = _index(words)
    return made


def commands(found_by: str, words: Words) -> str:
    """Names of commands as links."""
    names = found_by.split(", ")
    return words(", ").join(f"[`{name}`](../commands/{name.split()[0]}.md)" for name in names)


def _page(rule: type, words: Words, seen: Mapping[str, Sequence[str]], reported: Mapping[str, Sequence[str]]) -> str:
    code = rule.code()  # type: ignore[attr-defined]
    family = family_of(code)
    heading, _, body = document(rule, words.translate).partition("\n")
    about = [
        "",
        f"{words('Family')}: [{words(family.title)}]({family.name}.md){words('. ')}"
        f"{words('Found by')}: {commands(family.found_by, words)}{words('. ').rstrip()}",
        "",
    ]
    ends: list[str] = []
    if code in seen:
        ends += ["", f"## {words('What it looks like')}", "", *(f"* {text}" for text in seen[code])]
    if code in reported:
        told = words(", ").join(f"[{entry}](../coverage.md#{entry.lower()})" for entry in reported[code])
        ends += ["", f"{words('Reported failures')}: {told}{words('. ').rstrip()}"]
    text = with_codes(_safe(body), CODES - {code}, "")
    return "\n".join(["---", "orphan: true", "---", heading, *about, text.rstrip("\n"), *ends, ""])


def _safe(body: str) -> str:
    """A document whose characters no reader of Markdown takes for marks, outside of programs and lists."""
    parts = re.split(r"(^```.*?^```$)", body, flags=re.DOTALL | re.MULTILINE)
    told = []
    for number, part in enumerate(parts):
        if number % 2:
            told.append(part)
            continue
        lines = [
            re.sub(r"^\\\* ", "* ", plain(line)) if not line.startswith("#") else line for line in part.split("\n")
        ]
        told.append("\n".join(lines))
    return "".join(told)


def _row(rule: type, words: Words) -> tuple[str, str, str, str]:
    code, title = rule.code(), words.said(rule.title)  # type: ignore[attr-defined]
    severity, fix = str(rule.severity), str(rule.fix)  # type: ignore[attr-defined]
    return f"[{code}]({code}.md)", plain(title), words(severity), words(f"treatment {fix}")


def _family(family: Family, words: Words) -> str:
    heads = (words("Code"), words("Fault"), words("Severity"), words("Treatment"))
    rows = [
        _row(rule, words)
        for rule in sorted(EVERYTHING, key=lambda rule: rule.code())
        if family_of(rule.code()) is family
    ]
    return "\n".join(
        [
            f"# {words(family.title)}",
            "",
            f"{words('Found by')}: {commands(family.found_by, words)}{words('. ').rstrip()}",
            "",
            *table(heads, rows),
        ]
    )


def _index(words: Words) -> str:
    intro = (
        "Each fault has a code, and each code a page: what is looked at, why it matters, how it is cured, and "
        "examples, which are also the tests of the rule. `ideepdoctor explain CODE` prints the same."
    )
    lines = [f"# {words('Rules')}", "", words(intro), ""]
    rows = []
    for family in FAMILIES:
        codes = sorted(code for code in CODES if family_of(code) is family)
        shown = codes[0] if len(codes) == 1 else f"{codes[0]} ... {codes[-1]}"
        rows.append((f"[{words(family.title)}]({family.name}.md)", shown, str(len(codes))))
    lines += table((words("Family"), words("Codes"), words("Number")), rows)
    names = [family.name for family in FAMILIES]
    return "\n".join([*lines, "```{toctree}", ":hidden:", "", *names, "```", ""])
