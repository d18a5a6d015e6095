"""How a command answers. Kept apart from ``terminal.py`` so that ``--help`` need not import what a run needs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Format(StrEnum):
    """What a command prints."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"
    SARIF = "sarif"
    JUNIT = "junit"
    GITHUB = "github"
    GITLAB = "gitlab"
    MARKDOWN = "markdown"
    HTML = "html"

    @property
    def for_machines(self) -> bool:
        """Whether standard output is exactly one document, errors too, and nobody is asked anything."""
        return self is not Format.TEXT


@dataclass(frozen=True, slots=True)
class Output:
    """How a command answers.

    Attributes:
        format: text for people, the others for machines.
        path: file to write the result to instead of standard output.
        fail_on: the mildest severity that makes the exit code 1.
        verbose: 1: evidence, notes and the commands that were started; 2: also times, what was read, versions.
        yes: do not ask.
        baseline: a report whose findings are known and count no more.
        also: further formats, and the files that they are written to.
        quiet: nothing on standard error but errors.
        log_file: file that a line of JSON is appended to for everything that happens.
    """

    format: Format
    path: str | None = None
    fail_on: str = "error"
    verbose: int = 0
    yes: bool = False
    baseline: str | None = None
    also: tuple[tuple[Format, str], ...] = ()
    quiet: bool = False
    log_file: str | None = None

    @property
    def watched(self) -> bool:
        """Whether somebody listens to what happens."""
        return self.verbose > 0 or self.log_file is not None
