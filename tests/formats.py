"""Each format read by somebody else's parser or model; what a document holds, for tests of every command."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any

import jsonschema
from junitparser import JUnitXml
from sarif_pydantic import Sarif

from ideepdoctor.options import Format

SCHEMA = json.loads((files("ideepdoctor") / "render" / "report.schema.json").read_text("utf-8"))
ISSUE = {
    "type": "object",
    "required": ["description", "check_name", "fingerprint", "severity", "location"],
    "properties": {
        "description": {"type": "string", "minLength": 1},
        "check_name": {"type": "string", "minLength": 1},
        "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
        "location": {
            "type": "object",
            "required": ["path", "lines"],
            "properties": {
                "path": {"type": "string", "minLength": 1, "pattern": r"^(?!/|\./|\.\./)"},
                "lines": {
                    "type": "object",
                    "required": ["begin"],
                    "properties": {"begin": {"type": "integer", "minimum": 1}},
                },
            },
        },
    },
}
"""What GitLab documents of an issue of its code quality report: the fields that it reads."""
_LINE = re.compile(r"::(error|warning|notice) [a-z]+=[^,\n]*(,[a-z]+=[^,\n]*)*::.+")
_VOID = {"meta", "link", "input", "br"}


class Page(HTMLParser):
    """A page whose elements are closed in the order in which they were opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep it."""
        self.tags.append(tag)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep it."""
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """It is the last one that was opened."""
        assert self.open.pop() == tag


def _json(text: str) -> Any:
    found = json.loads(text, parse_constant=_no_number)
    jsonschema.validate(found, SCHEMA)
    return found


def _no_number(word: str) -> None:
    """JSON has no such number."""
    raise AssertionError(f"{word} is no JSON")


def _jsonl(text: str) -> list[Any]:
    found = [json.loads(line) for line in text.splitlines()]
    assert [item["record"] for item in found].count("summary") == 1 and found[-1]["record"] == "summary"
    return found


def _sarif(text: str) -> Any:
    [run] = Sarif.model_validate_json(text).runs
    assert run.tool.driver.name == "ideepdoctor"
    return json.loads(text)["runs"][0]


def _junit(text: str) -> Any:
    [suite] = JUnitXml.fromstring(text.encode("utf-8"))
    assert suite.tests == len(list(suite))
    return suite


def _gitlab(text: str) -> Any:
    found = json.loads(text)
    jsonschema.validate(found, {"type": "array", "items": ISSUE})
    assert len({item["fingerprint"] for item in found}) == len(found)
    return found


def _github(text: str) -> list[str]:
    lines = text.rstrip("\n").split("\n")
    assert all(_LINE.fullmatch(line) for line in lines if line.startswith("::"))
    assert len(lines) == 1 or all(line.startswith("::") for line in lines)
    return lines


def _markdown(text: str) -> str:
    assert text.startswith("#"), "it begins with a heading"
    return text


def _page(text: str) -> Page:
    page = Page(text)
    assert page.tags.count("main") == page.tags.count("h1") == 1
    return page


READ: dict[Format, Callable[[str], Any]] = {
    Format.JSON: _json,
    Format.JSONL: _jsonl,
    Format.SARIF: _sarif,
    Format.JUNIT: _junit,
    Format.GITHUB: _github,
    Format.GITLAB: _gitlab,
    Format.MARKDOWN: _markdown,
    Format.HTML: _page,
    Format.TEXT: str,
}
"""By format, what reads a document and raises where it is none."""
