"""Formats, exit codes, severities, and the fields of the JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from docs.generate.markdown import table
from docs.generate.words import Words
from ideepdoctor.errors import Exit
from ideepdoctor.options import Format
from ideepdoctor.render.man import EXITS

FORMATS = {
    Format.TEXT: "people at a terminal",
    Format.JSON: "programs: everything that is known; also what --baseline takes",
    Format.JSONL: "logs: a line for each problem, and one with the summary",
    Format.SARIF: "code scanning (SARIF 2.1.0)",
    Format.JUNIT: "the test view of a CI service",
    Format.GITHUB: "annotations of a GitHub Actions job",
    Format.GITLAB: "GitLab's code quality report",
    Format.MARKDOWN: "an issue, a merge request, a step summary",
    Format.HTML: "a page for people, in one file that loads nothing",
}


def pages(words: Words) -> Mapping[str, str]:
    """``formats.md``."""
    schema = json.loads((files("ideepdoctor") / "render" / "report.schema.json").read_text("utf-8"))
    lines = [
        f"# {words('Formats and exit codes')}",
        "",
        f"## {words('Exit codes')}",
        "",
        *table(
            (words("Exit code"), words("Name"), words("Meaning")),
            [(f"`{int(code)}`", f"`{code.name}`", words(EXITS[code])) for code in Exit],
        ),
        f"## {words('Formats')}",
        "",
        *table(("`--format`", words("What for")), [(f"`{form}`", words(FORMATS[form])) for form in Format]),
        f"## {words('Fields of --format json')}",
        "",
        words(
            "Within one schema_version fields are only added. `ideepdoctor schema` prints the JSON Schema of it all."
        ),
        "",
        *table(
            (words("Field"), words("Type"), words("What it is")),
            [(f"`{name}`", kind, told) for name, kind, told in fields(schema)],
        ),
    ]
    return {"formats.md": "\n".join(lines)}


def fields(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Fields of the document, down to those of what it lists: name with dots, type, description."""
    yield from _below(schema, schema, "", 0)


def _below(
    schema: Mapping[str, Any], part: Mapping[str, Any], before: str, depth: int
) -> Iterator[tuple[str, str, str]]:
    for name, given in part.get("properties", {}).items():
        told = _resolved(schema, given)
        path = f"{before}{name}"
        items = _resolved(schema, told.get("items", {}))
        yield path, _type(schema, told), told.get("description", "")
        if depth < 1:
            yield from _below(schema, items or told, f"{path}[]." if items else f"{path}.", depth + 1)


def _resolved(schema: Mapping[str, Any], part: Mapping[str, Any]) -> Mapping[str, Any]:
    named = str(part.get("$ref", "")).removeprefix("#/$defs/")
    return schema["$defs"][named] if named else part


def _type(schema: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    if "const" in part:
        return f"`{json.dumps(part['const'])}`"
    if "enum" in part:
        return ", ".join(f"`{json.dumps(value)}`" for value in part["enum"])
    kinds = part.get("type", "any")
    told = kinds if isinstance(kinds, str) else " or ".join(kinds)
    items = _resolved(schema, part.get("items", {}))
    return f"{told} of {_type(schema, items)}" if told == "array" and items else told
