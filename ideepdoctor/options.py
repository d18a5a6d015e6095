"""How a command answers. Kept apart from ``terminal.py`` so that ``--help`` need not import what a run needs."""

from __future__ import annotations

from collections.abc import Iterable
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


def said(words: Iterable[str], *names: str) -> str | None:
    """What a command line says to an option, where that is needed before it is parsed, or although it cannot be.

    Args:
        words: the command line; what stands after ``--`` is a program's own.
        names: of the option: ``--format``, ``-f``.

    Returns:
        The last value; empty where the option ends the line; None where it is not said.
    """
    own = list(words)
    own = own[: own.index("--")] if "--" in own else own
    glued = tuple(f"{name}=" if name.startswith("--") else name for name in names)
    told = None
    for word, after in zip(own, [*own[1:], ""], strict=False):
        if word in names:
            told = after
        else:
            told = next((word.removeprefix(each) for each in glued if word.startswith(each)), told)
    return told
