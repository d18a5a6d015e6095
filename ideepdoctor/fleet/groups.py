"""What makes two hosts have the same cause: what was found, without what is each host's own. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

NOTE = "info"
UNDECIDED = "unknown"
SEVERITIES = ("failed", "error", "warning", UNDECIDED, NOTE)
"""Of a cause, worst first. ``failed``: the host gave no answer that could be judged."""

_PATH = re.compile(r"(?<![\w.:/~-])(?:~|file://)?/[^\s:;,'\"`()\[\]{}<>|=]+")
_FILE = re.compile(r"/([^/]+\.[A-Za-z][^/]*)$")
"""Last part of a path that is a file by its look: it has an ending."""
_MEASURED = (
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "#"),
    (re.compile(r"\b[0-9a-f]{12,64}\b(?<=[0-9a-f])(?=[^.\w]|$)"), "#"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?\b"), "#"),
    (re.compile(r"\b\d+(?:\.\d+)?e[-+]?\d+\b"), "#"),
    (re.compile(r"\(\d+(?:\.\d+)? to \d+(?:\.\d+)?\)"), "(# to #)"),
    (re.compile(r"\(\d+ threads?\)"), "(# threads)"),
    (re.compile(r"\band \d+ more\b"), "and # more"),
    (re.compile(r"\bp = \d[\d.]*"), "p = #"),
    (
        re.compile(
            r"\b\d+(?:\.\d+)?(?= ?(?:%|[munµ]?s\b|[kKMGT]i?B\b|bytes?\b|GFLOP/s|times\b|seconds?\b|minutes?\b))"
        ),
        "#",
    ),
)
_ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\b[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){3,7}\b|\bport \d+\b|\bpid \d+\b")


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that a host has, as its report says it.

    Attributes:
        code: of the rule, or the status of a host without an answer (``unreachable``).
        severity: one of SEVERITIES.
        title: of the rule.
        found: what was found, or why it could not be decided, on this host.
        needed: what must be there instead.
        consequence: what happens because of it.
        next_step: one command, or one thing to do.
        safety: of the treatment: safe, unsafe, manual.
    """

    code: str
    severity: str
    title: str
    found: str
    needed: str = ""
    consequence: str = ""
    next_step: str = ""
    safety: str = "manual"


def cause_key(cause: Cause, host: str) -> str:
    """32 hexadecimal digits that are the same on every host that has this for the same reason."""
    kept = cause.found if cause.severity != "failed" else _ADDRESS.sub("ADDRESS", cause.found)
    return _digest((cause.code, cause.severity, stable(kept, host)))


def group_key(keys: Iterable[str]) -> str:
    """32 hexadecimal digits of a set of causes, in whatever order."""
    return _digest(sorted(set(keys)))


def is_cause(cause: Cause) -> bool:
    """Whether it parts hosts into groups: notes do not, they only stand in the list of what was found."""
    return cause.severity != NOTE


def stable(text: str, host: str) -> str:
    """A text without the host's name, folders, and what is measured anew in every run; versions stay.

    Args:
        text: as a finding has it.
        host: name of the host, with or without its domain.
    """
    for name in sorted({host, host.partition(".")[0]}, key=len, reverse=True):
        if name and name in text:
            text = re.sub(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", "HOST", text)
    text = _PATH.sub(_shortened, text)
    for pattern, instead in _MEASURED:
        text = pattern.sub(instead, text)
    return " ".join(text.split())


def _shortened(found: re.Match[str]) -> str:
    """A file by its name, a folder as PATH; an end of a sentence after it stays."""
    path = found[0].rstrip(".")
    rest = found[0][len(path) :]
    file = _FILE.search(path)
    return f"{f'PATH/{file[1]}' if file else 'PATH'}{rest}"


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
