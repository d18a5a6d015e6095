"""The manual page, in the language of man(7). Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator

from ideepdoctor import __date__, __version__
from ideepdoctor.errors import Exit
from ideepdoctor.model.manual import ManualCommand, ManualEntry

EXITS: dict[Exit, str] = {
    Exit.OK: "Healthy, or nothing at or above --fail-on (default: error).",
    Exit.FINDINGS: "Findings at or above it; or setup refused, because nothing here can hold iDeep.",
    Exit.USAGE: "Usage; or the target is no Python. Nothing was done.",
    Exit.COULD_NOT_CHECK: "Could not check: the target does not answer, or the network is needed and not there; "
    "nothing was changed.",
    Exit.ROLLED_BACK: "A step failed, and everything was rolled back.",
    Exit.NEEDS_ATTENTION: "A step failed and a person must look.",
    Exit.BUSY: "Another doctor is at work.",
    Exit.INTERRUPTED: "Interrupted.",
}

VARIABLES = (
    ("IDEEPDOCTOR_STATE_DIR", "Folder of the journal and the backups."),
    ("IDEEPDOCTOR_CACHE_DIR", "Folder of what can be made or fetched again."),
    ("IDEEPDOCTOR_SETTINGS", "File of settings instead of the one that is found; empty: none."),
    ("IDEEPDOCTOR_GUARD", "off: the guard in an environment corrects nothing."),
    ("XDG_STATE_HOME, XDG_CACHE_HOME", "Where the two folders are when the variables above are not set."),
    ("NO_COLOR", "Set to anything: no colour."),
    ("FORCE_COLOR", "Set to anything: colour where standard output is no terminal, too."),
    ("TERM", "dumb: no colour, and no line that moves."),
    ("COLUMNS", "Columns that text is broken at."),
    ("CI", "Set to anything: no question and no line that moves."),
    ("LC_ALL, LC_MESSAGES, LANG", "Language of what people read, where --lang does not say."),
    ("HTTPS_PROXY, PIP_INDEX_URL, UV_DEFAULT_INDEX, ...", "What pip and uv go by, the doctor's installers go by, too."),
)

FILES = (
    ("./.ideep", "The environment that setup makes where --env names no other."),
    ("ideepdoctor.toml, pyproject.toml", "Findings that a project lives with, each with its reason."),
    ("~/.local/state/ideepdoctor", "The journal of every change, the backups, and the lock."),
    ("~/.cache/ideepdoctor", "Tools, sources and built wheels that can be fetched or made again."),
    ("site-packages/ideepdoctor.pth", "In an environment: what sets its variables and loads the guard."),
)

EXAMPLES = (
    ("Make an environment in which Chainer uses iDeep, and prove it", "ideepdoctor setup"),
    ("Say what is wrong with the active environment", "ideepdoctor diagnose"),
    ("Cure it, after a question; take it back", "ideepdoctor fix && ideepdoctor undo"),
    ("Run a program with everything right", "ideepdoctor run -- train.py --epochs 10"),
    ("In a CI job: fail with a reason", "ideepdoctor diagnose --format github --also junit:report.xml --quiet"),
    ("Keep a record of a long run", "ideepdoctor certify --quiet --log-file certify.jsonl"),
    ("Complete words in bash", "source <(ideepdoctor completion bash)"),
    ("Read this page from the program itself", "ideepdoctor man | man -l -"),
)

_SUMMARY = "installer and environment doctor for Chainer with Intel iDeep on CPUs"


def render(commands: Iterable[ManualCommand], common: Iterable[ManualEntry]) -> str:
    """The page.

    Args:
        commands: all of them.
        common: options that every command has.
    """
    listed = list(commands)
    lines = [
        f'.TH IDEEPDOCTOR 1 "{__date__}" "ideepdoctor {__version__}" "User Commands"',
        ".nh",  # no hyphens in names, no blanks to fill lines
        ".ad l",
        ".SH NAME",
        r"ideepdoctor \-",
        *_lines(_SUMMARY),
        ".SH SYNOPSIS",
        r".B ideepdoctor",
        r"[\fIcommon options\fP] \fIcommand\fP [\fIoptions\fP] [\fIarguments\fP]",
        ".br",
        r".B ideepdoctor \-\-version",
        ".SH DESCRIPTION",
        *_paragraphs(
            "iDeep (ideep4py) makes Chainer several times faster than NumPy on a CPU. ideepdoctor makes an environment "
            "in which Chainer really uses it and computes right numbers with it, and proves both; says what is wrong "
            "with an environment, why, and what to do; and does it, reversibly.\n\n"
            "Results go to standard output, everything else to standard error; progress is shown in a terminal only. "
            "With a --format for machines standard output is exactly one document, errors too."
        ),
        ".SH COMMON OPTIONS",
        *_lines("Every command takes them, before and after its own options; after -- nothing is taken."),
        *_entries(common),
        ".SH COMMANDS",
    ]
    for command in listed:
        lines += _command(command)
    lines += [".SH EXIT STATUS", *_pairs((str(int(code)), text) for code, text in EXITS.items())]
    lines += [
        ".SH ENVIRONMENT",
        *_lines("Every option has a variable, which is named with it; an option that is given wins."),
        *_pairs(VARIABLES),
        ".SH FILES",
        *_pairs(FILES),
        ".SH EXAMPLES",
    ]
    for number, (what, words) in enumerate(EXAMPLES):
        lines += [*([".PP"] if number else []), *_lines(f"{what}:"), ".PP", ".RS 4", ".nf", _text(words), ".fi", ".RE"]
    lines += [".SH SEE ALSO", r".BR pip (1),", r".BR ansible\-playbook (1)"]
    return "\n".join(lines) + "\n"


def _command(command: ManualCommand) -> Iterator[str]:
    yield f".SS {_text(command.name)}"
    yield rf"\fBideepdoctor {_text(command.name)}\fP {_text(command.usage)}"
    yield ".PP"
    yield from _paragraphs(command.text)
    yield from _entries([*command.arguments, *command.options])


def _entries(entries: Iterable[ManualEntry]) -> Iterator[str]:
    for entry in entries:
        yield ".TP"
        yield rf"\fB{_text(entry.names)}\fP"
        rest = [*entry.notes, *([entry.variable] if entry.variable else [])]
        yield from _lines(" ".join([entry.text, *([f"[{'; '.join(rest)}]"] if rest else [])]))


def _pairs(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, text in pairs:
        yield ".TP"
        yield rf"\fB{_text(name)}\fP"
        yield from _lines(text)


def _paragraphs(text: str) -> list[str]:
    blocks = [" ".join(block.split()) for block in text.split("\n\n") if block.strip()]
    lines: list[str] = []
    for number, block in enumerate(blocks):
        lines += [".PP"] if number else []
        lines += [line for sentence in re.split(r"(?<=[.;:]) (?=[A-Z])", block) for line in _lines(sentence)]
    return lines


def _lines(text: str) -> list[str]:
    """Lines of the source, short enough for whoever reads it."""
    return [_text(line) for line in textwrap.wrap(text, 68, break_on_hyphens=False)]


def _text(text: str) -> str:
    """A line of text that no formatter takes for a request: backslashes, hyphens, quotes and dots at the beginning."""
    told = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga")
    told = told.replace("^", r"\(ha").replace("~", r"\(ti")
    return rf"\&{told}" if told.startswith((".", "'")) else told
