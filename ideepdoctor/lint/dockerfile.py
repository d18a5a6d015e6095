"""What a Dockerfile installs, stage by stage: the base image's Python, what pip is given, packages of the system. Pure.

A small reader: instructions with their continuations, defaults of ARG in FROM, words of RUN. What a shell would compute
is not known here.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

from packaging.specifiers import SpecifierSet

from ideepdoctor.lint.pins import Pin, Scope, pin

_INSTRUCTION = re.compile(r"\s*([A-Za-z]+)\s+(.*)", re.DOTALL)
_FROM = re.compile(r"(?:--\S+\s+)*(\S+)(?:\s+[aA][sS]\s+(\S+))?\s*")
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?[-+][^}]*)?\}|(\w+))")
_PYTHON_IMAGE = re.compile(r"(?:.*/)?python(?::(?P<tag>[^@]*))?(?:@.*)?")
_NUMBERED = re.compile(r"(\d+\.\d+)(?:[.-].*)?")
_PIP = re.compile(r"(?:.*/)?pip[\d.]*")
_NEWEST = SpecifierSet(">=3.12")
"""The Python of ``python:3``, ``python:latest`` and ``python:slim``, today and from now on."""
_WITH_VALUE = frozenset(
    {
        "-r",
        "-c",
        "-i",
        "-f",
        "-t",
        "-e",
        "--requirement",
        "--constraint",
        "--index-url",
        "--extra-index-url",
        "--find-links",
        "--target",
        "--editable",
        "--only-binary",
        "--platform",
        "--python-version",
        "--abi",
        "--implementation",
        "--prefix",
        "--root",
        "--trusted-host",
        "--proxy",
        "--timeout",
        "--retries",
        "--cache-dir",
        "--progress-bar",
        "--python",
        "--upgrade-strategy",
        "--src",
        "--global-option",
        "--cert",
    }
)
"""Options of ``pip install`` whose value is the next word."""


@dataclass(slots=True)
class _Stage:
    """A stage while it is read."""

    python: SpecifierSet | None
    pins: list[Pin] = field(default_factory=list)
    not_binary: list[tuple[int, str]] = field(default_factory=list)
    system: list[tuple[int, str]] = field(default_factory=list)
    cloned: list[tuple[int, str]] = field(default_factory=list)

    def scope(self) -> Scope:
        return Scope(tuple(self.pins), self.python, tuple(self.not_binary), tuple(self.system), tuple(self.cloned))


def stages(text: str) -> Iterator[Scope]:
    """What each stage installs; a stage that begins with another one has its Python."""
    defaults: dict[str, str] = {}
    known: dict[str, _Stage] = {}
    done: list[_Stage] = []
    for instruction, rest, lines in _instructions(text):
        if instruction == "ARG" and not done:
            name, _, value = rest.strip().partition("=")
            defaults[name] = value.strip("'\" ")
        elif instruction == "FROM" and (found := _FROM.match(rest)):
            image = _VARIABLE.sub(lambda item: defaults.get(item[1] or item[2], item[0]), found[1])
            before = known.get(image.lower())
            done.append(_Stage(_python_of(image) if before is None else before.python))
            if found[2]:
                known[found[2].lower()] = done[-1]
        elif instruction == "RUN" and done:
            _run(done[-1], rest, lines)
    return (stage.scope() for stage in done)


def _instructions(text: str) -> Iterator[tuple[str, str, list[tuple[int, str]]]]:
    """Each instruction: its name, its text with continuations joined, and its lines with their numbers."""
    held: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("#") or (not line.strip() and held):
            continue  # comments and empty lines may stand between continued ones
        continued = line.rstrip().endswith("\\")
        held.append((number, line.rstrip()[:-1] if continued else line))
        if continued:
            continue
        if found := _INSTRUCTION.fullmatch(" ".join(part for _, part in held)):
            yield found[1].upper(), found[2], held
        held = []
    if held and (found := _INSTRUCTION.fullmatch(" ".join(part for _, part in held))):
        yield found[1].upper(), found[2], held


def _python_of(image: str) -> SpecifierSet | None:
    """The Python of an official image; None for another image, or a tag that says nothing."""
    found = _PYTHON_IMAGE.fullmatch(image)
    if found is None:
        return None
    tag = found["tag"] or "latest"
    numbered = _NUMBERED.fullmatch(tag)
    if numbered is not None:
        return SpecifierSet(f"=={numbered[1]}.*")
    return SpecifierSet("==2.7.*") if tag.split("-")[0] == "2" else None if "$" in tag else _NEWEST


def _run(stage: _Stage, text: str, lines: list[tuple[int, str]]) -> None:
    for words in _commands(text):
        rest = _after_pip(words)
        if rest is not None:
            _installed(stage, rest, lines)
        elif "install" in words and words[0].rpartition("/")[2] in (
            "apt-get",
            "apt",
            "aptitude",
            "emerge",
            "dnf",
            "yum",
        ):
            stage.system += [(_line_of(word, lines), word) for word in words[words.index("install") + 1 :]]
        elif words[:2] == ["git", "clone"]:
            place = next((word for word in words[2:] if "/" in word), "")
            stage.cloned.append((_line_of(place, lines), " ".join(words)))


def _commands(text: str) -> Iterator[list[str]]:
    """The words of each simple command of a RUN, in the form of a shell or of JSON."""
    if text.lstrip().startswith("["):
        try:
            words = json.loads(text)
        except ValueError:
            words = None
        if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
            yield words
            return
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split, lexer.commenters = True, ""
    held: list[str] = []
    try:
        for word in lexer:
            if word and set(word) <= set(";&|()"):
                if held:
                    yield held
                held = []
            elif not word.startswith(("--mount=", "--network=")) and (held or not _sets(word)):
                held.append(word)
    except ValueError:
        return  # a quotation that does not end: the shell's to refuse
    if held:
        yield held


def _sets(word: str) -> bool:
    """Whether a word before a command sets a variable, or only runs what follows."""
    return re.fullmatch(r"\w+=.*", word) is not None or word in ("sudo", "exec", "time", "set", "-ex", "-e")


def _after_pip(words: list[str]) -> list[str] | None:
    """The arguments of ``pip install``; None for another command."""
    for number, word in enumerate(words[:4]):
        if _PIP.fullmatch(word) and "install" in words[number + 1 :]:
            return words[words.index("install", number) + 1 :]
    return None


def _installed(stage: _Stage, words: list[str], lines: list[tuple[int, str]]) -> None:
    skip = ""
    for word in words:
        if skip:
            value, option, skip = word, skip, ""
        else:
            option, _, value = word.partition("=") if word.startswith("-") else ("", "", word)
            if option and not value:
                skip = option if option in {*_WITH_VALUE, "--no-binary"} else ""
                continue
        if option == "--no-binary":
            stage.not_binary += [(_line_of(value, lines), name) for name in value.split(",")]
        elif option in ("", "-e", "--editable") and (found := pin(value, _line_of(value, lines))):
            stage.pins.append(found)


def _line_of(word: str, lines: list[tuple[int, str]]) -> int:
    """The first of these lines on which a word stands."""
    return next((number for number, line in lines if word in line), lines[0][0])
