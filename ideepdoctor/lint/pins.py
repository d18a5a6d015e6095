"""Files that say what is to be installed: requirements, what each demands, and for which Python. Pure.

A line that is no requirement (an include, a path, what a template has yet to fill in) is passed over: whoever installs
from it says what is wrong with it.
"""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

_DOCKER = re.compile(r"(?:(?:Docker|Container)file(?:[.-].*)?|.*\.(?:docker|container)file)", re.IGNORECASE)
_LISTED = re.compile(r"(?:.*[-_.])?(?:requirements|constraints)(?:[-_.].*)?\.(?:txt|in)", re.IGNORECASE)
_CONDA = re.compile(r"(?:.*[-_.])?environment(?:[-_.].*)?\.ya?ml", re.IGNORECASE)
_BY_NAME = {"setup.cfg": "cfg", "pyproject.toml": "toml", "pipfile": "pipfile"}
_OPTION = re.compile(r"\s+--?[a-z].*$")
_COMMENT = re.compile(r"(^|\s)#.*$")


@dataclass(frozen=True, slots=True)
class Pin:
    """A requirement, and where it stands.

    Attributes:
        line: from 1.
        name: normalised.
        specifier: what its version must be.
        marked: whether an environment marker says for whom it is.
        url: where it comes from instead of an index; empty for an index.
    """

    line: int
    name: str
    specifier: SpecifierSet
    marked: bool = False
    url: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """What goes into one environment: a file, or a stage of a Dockerfile.

    Attributes:
        pins: in the order of the file.
        python: which Pythons it may be; None: not told.
        not_binary: names, or ``:all:``, that are to be built from source, each with its line.
        system: packages of the system's distribution, each with its line.
        cloned: repositories that are cloned, each with its line: the whole command.
    """

    pins: tuple[Pin, ...] = ()
    python: SpecifierSet | None = None
    not_binary: tuple[tuple[int, str], ...] = ()
    system: tuple[tuple[int, str], ...] = ()
    cloned: tuple[tuple[int, str], ...] = ()


def kind_of(name: str, folder: str = "") -> str | None:
    """What a file of this name holds, by its name and that of its folder; None: nothing that is read here."""
    if _DOCKER.fullmatch(name):
        return "docker"
    if _LISTED.fullmatch(name) or (folder.lower() == "requirements" and name.lower().endswith((".txt", ".in"))):
        return "listed"
    return "conda" if _CONDA.fullmatch(name) else _BY_NAME.get(name.lower())


def scopes(kind: str, text: str) -> tuple[Scope, ...]:
    """What a file of this kind demands. Raises ValueError where it is no TOML or no INI file."""
    if kind == "docker":
        from ideepdoctor.lint.dockerfile import stages

        return tuple(stages(text))
    readers = {"listed": listed, "conda": _conda, "cfg": _cfg, "toml": _toml, "pipfile": _pipfile}
    return (readers[kind](text),)


def pin(text: str, line: int) -> Pin | None:
    """A requirement as pip reads it; None for anything else."""
    if text.startswith(("git+", "hg+", "http:", "https:")):
        return Pin(line, "", SpecifierSet(), url=text)
    try:
        found = Requirement(text)
    except InvalidRequirement:
        return None
    return Pin(line, canonicalize_name(found.name), found.specifier, found.marker is not None, found.url or "")


def listed(text: str) -> Scope:
    """A requirements file of pip."""
    pins: list[Pin] = []
    not_binary: list[tuple[int, str]] = []
    for number, line in _joined(text):
        words = line.split()
        if not words:
            continue
        option, _, value = words[0].partition("=")
        if option == "--no-binary":
            value = value or " ".join(words[1:])
            not_binary += [(number, name.strip()) for name in value.split(",")]
        elif option in ("-e", "--editable"):
            pins += [found for found in [pin(value or " ".join(words[1:]), number)] if found]
        elif not option.startswith("-"):
            pins += [found for found in [pin(_OPTION.sub("", line).strip(), number)] if found]
    return Scope(tuple(pins), not_binary=tuple(not_binary))


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments, continued ones as one, each with the number of its first."""
    held, first = "", 0
    for number, line in enumerate(text.split("\n"), 1):
        bare = _COMMENT.sub("", line)
        first = first or number
        if bare.endswith("\\"):
            held += bare[:-1]
            continue
        yield first, held + bare
        held, first = "", 0
    if held:
        yield first, held


def _conda(text: str) -> Scope:
    """An environment file of conda: its own names, and what it gives to pip."""
    pins: list[Pin] = []
    python, inside, of_pip = None, False, -1
    for number, line in enumerate(text.split("\n"), 1):
        bare = _COMMENT.sub("", line).rstrip()
        item = re.fullmatch(r"(\s*)-\s+(.+)", bare)
        if item is None:
            inside = bare.startswith("dependencies:") if bare and not bare[0].isspace() else inside
            continue
        indent, word = len(item[1]), item[2].strip("'\" ")
        if not inside:
            continue
        if word.replace(" ", "") == "pip:":
            of_pip = indent
            continue
        of_pip = of_pip if indent > of_pip else -1
        found = pin(word if of_pip >= 0 else _of_conda(word), number)
        if found is not None and found.name == "python" and of_pip < 0:
            python = found.specifier
        elif found is not None:
            pins.append(found)
    return Scope(tuple(pins), python)


def _of_conda(word: str) -> str:
    """``numpy=1.21`` of conda as pip would have it."""
    found = re.fullmatch(r"([\w.-]+)\s*(.*)", word.rpartition("::")[2])
    if found is None:
        return ""
    exact = re.fullmatch(r"=?\s*(\d[^=\s]*)(?:[=\s].*)?", found[2])  # name=version=build, or name version
    return f"{found[1]}{found[2]}" if exact is None else f"{found[1]}=={exact[1].rstrip('.*')}.*"


def _cfg(text: str) -> Scope:
    """The options of setuptools in setup.cfg."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise ValueError(str(error).split("\n")[0]) from error
    given = [
        parser.get("options", "install_requires", fallback=""),
        parser.get("options", "setup_requires", fallback=""),
    ]
    if parser.has_section("options.extras_require"):
        given += [value for _, value in parser.items("options.extras_require")]
    words = [word for value in given for line in value.split("\n") if (word := _COMMENT.sub("", line).strip())]
    python = parser.get("options", "python_requires", fallback="")
    return Scope(tuple(_placed(text, words)), _specifier(python))


def _toml(text: str) -> Scope:
    """pyproject.toml: of PEP 621 and 735, and Poetry's."""
    data = _loaded(text)
    project, poetry = _table(data, "project"), _table(data, "tool", "poetry")
    words = list(_strings(project.get("dependencies")))
    for group in (*_table(project, "optional-dependencies").values(), *_table(data, "dependency-groups").values()):
        words += _strings(group)
    wanted = {**_table(poetry, "dependencies"), **_table(poetry, "dev-dependencies")}
    for group in _table(poetry, "group").values():
        wanted.update(_table(group, "dependencies") if isinstance(group, Mapping) else {})
    python = project.get("requires-python") or wanted.pop("python", "")
    pins = [*_placed(text, words), *_keyed(text, wanted)]
    return Scope(tuple(pins), _specifier(_of_poetry(python) if isinstance(python, str) else ""))


def _pipfile(text: str) -> Scope:
    """A Pipfile."""
    data = _loaded(text)
    python = _table(data, "requires").get("python_version")
    wanted = {**_table(data, "packages"), **_table(data, "dev-packages")}
    return Scope(tuple(_keyed(text, wanted)), _specifier(f"=={python}.*" if isinstance(python, str) else ""))


def _loaded(text: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"no TOML: {error}") from error


def _table(data: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """A table within a table; empty where it is not there."""
    found: Any = data
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return dict(found) if isinstance(found, Mapping) else {}


def _strings(values: Any) -> list[str]:
    return [item for item in values if isinstance(item, str)] if isinstance(values, list) else []


def _placed(text: str, words: list[str]) -> Iterator[Pin]:
    """Requirements with the line on which their text stands first."""
    lines = text.split("\n")
    for word in words:
        where = next((number for number, line in enumerate(lines, 1) if word in _COMMENT.sub("", line)), 1)
        found = pin(word, where)
        if found is not None:
            yield found


def _keyed(text: str, wanted: Mapping[str, Any]) -> Iterator[Pin]:
    """Requirements of a table of TOML: a name, and a version or a table with one."""
    lines = text.split("\n")
    for name, value in wanted.items():
        begins = re.compile(rf"\s*[\"']?{re.escape(name)}[\"']?\s*[.=]|\[.*\.{re.escape(name)}\]")
        where = next((number for number, line in enumerate(lines, 1) if begins.match(line)), 1)
        several = value[0] if isinstance(value, list) and value else value
        given = several if isinstance(several, Mapping) else {"version": several}
        specifier = _specifier(_of_poetry(str(given.get("version") or "")))
        marked = bool({"markers", "python", "platform"} & set(given))
        yield Pin(where, canonicalize_name(name), specifier or SpecifierSet(), marked, _git(given))


def _git(given: Mapping[str, Any]) -> str:
    ref = next((given[name] for name in ("rev", "tag", "branch", "ref") if name in given), "")
    return f"{given['git']}@{ref}" if ref and "git" in given else str(given.get("git", ""))


def _of_poetry(version: str) -> str:
    """``^3.8`` as ``>=3.8``, ``2.0.0`` as ``==2.0.0``: as far as it is needed here."""
    version = version.strip()
    if version[:1].isdigit():
        return f"=={version}"
    return f">={version[1:]}" if version[:1] == "^" else "" if version == "*" else version


def _specifier(text: str) -> SpecifierSet | None:
    """None where nothing, or nothing that can be read, is said."""
    try:
        return SpecifierSet(text) if text.strip() else None
    except InvalidSpecifier:
        return None
