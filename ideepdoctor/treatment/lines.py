"""A line of a text file made a comment, and nothing else changed: line ends, indentation and all other bytes stay."""

from __future__ import annotations

import re

from ideepdoctor.errors import UsageError
from ideepdoctor.model.plan import DisableLine
from ideepdoctor.system import System

PREFIX = "# disabled by ideepdoctor: "
_NOOP = ": "
"""A command that does nothing, for a block that must not be empty; bash, zsh, fish and csh have it."""
_PARSERS = (("bash", "--norc", "-n"), ("zsh", "-f", "-n"), ("fish", "--no-config", "--no-execute"))
_SECONDS = 10.0


def disable(system: System, step: DisableLine, text: str) -> str:
    """The text with the step's line made a comment.

    Shells are asked whether they could still read it, because a line may be a part of something larger: the first of
    bash, zsh and fish that reads the old text must read the new one. They only parse it, nothing is run. A line that
    is all there is between ``then`` and ``fi`` becomes a command that does nothing, with the comment after it.

    Args:
        system: starts the shells.
        step: which line.
        text: the file as it is.

    Raises:
        UsageError: the line is not there, or cannot be made a comment by itself.
    """
    lines = lines_of(text)
    index = _index(lines, step)
    where = f"line {index + 1} of {step.path}"
    by_hand = f"change {where} by hand: {step.line.strip()}"
    if step.path.endswith(".json"):
        raise UsageError(f"{step.path} can hold no comments", hint=by_hand)
    if _goes_on(lines[index]) or (index and _goes_on(lines[index - 1])):
        raise UsageError(f"{where} is a part of a longer line (a backslash joins them)", hint=by_hand)
    parser = next((words for words in _PARSERS if _parses(system, words, text)), None)
    for before in ("", _NOOP):
        fresh = "".join([*lines[:index], before + PREFIX + lines[index], *lines[index + 1 :]])
        if parser is None or _parses(system, parser, fresh):
            return fresh
    raise UsageError(f"{where} is a part of a longer command, which would be broken without it", hint=by_hand)


def lines_of(text: str) -> list[str]:
    """The lines with their ends; only a line feed ends one, whatever else Python takes for an end."""
    return re.findall(r"[^\n]*\n|[^\n]+\Z", text)


def _index(lines: list[str], step: DisableLine) -> int:
    """Where the line is now, from 0."""
    wanted = step.line.rstrip("\r\n")
    equal = [number for number, line in enumerate(lines) if line.rstrip("\r\n") == wanted]
    if step.line_number - 1 in equal:
        return step.line_number - 1
    if len(equal) == 1:
        return equal[0]
    found = f"{len(equal)} others are equal to it" if equal else "it is nowhere in the file"
    raise UsageError(
        f"line {step.line_number} of {step.path} is not the one that was seen, and {found}: {wanted.strip()}",
        hint="the file was changed meanwhile: look again (ideepdoctor diagnose)",
    )


def _goes_on(line: str) -> bool:
    """Whether a shell would take the next line as a part of this one."""
    bare = line.rstrip("\r\n")
    return (len(bare) - len(bare.rstrip("\\"))) % 2 == 1


def _parses(system: System, words: tuple[str, ...], text: str) -> bool:
    # Without the user's variables: BASH_ENV and ENV name files that a shell reads first.
    given = text.encode("utf-8", "surrogateescape")
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"}
    return system.run(words, timeout_seconds=_SECONDS, stdin=given, env=environment).ok
