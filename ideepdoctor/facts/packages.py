"""Installed distributions, from lines of their metadata."""

from __future__ import annotations

import re
from dataclasses import replace

from ideepdoctor.facts.answer import Answer
from ideepdoctor.model.facts import AlteredFile, Package


def normalise(name: str) -> str:
    """The form of a distribution's name in which names are compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse_metadata(text: str, requires_txt: str | None, location: str) -> Package | None:
    """Read the lines Name, Version and Requires-Dist; None where there is no name.

    Args:
        text: lines of a METADATA or PKG-INFO file.
        requires_txt: requires.txt of an egg-info folder, whose requirements are not in PKG-INFO.
        location: the folder on sys.path that holds it.
    """
    values: dict[str, list[str]] = {}
    for line in text.split("\n"):
        key, colon, value = line.partition(":")
        if colon:
            values.setdefault(key, []).append(value.strip())
    name = values.get("Name", [""])[0]
    if not name:
        return None
    requires = values.get("Requires-Dist") or list(parse_requires_txt(requires_txt or ""))
    return Package(normalise(name), values.get("Version", [""])[0], location, tuple(requires))


def parse_requires_txt(text: str) -> tuple[str, ...]:
    """Turn the sections of a requires.txt, ``[extra:marker]``, into requirements with markers."""
    found = []
    marker = ""
    for line in (line.strip() for line in text.split("\n")):
        if line.startswith("[") and line.endswith("]"):
            extra, _, condition = line[1:-1].partition(":")
            parts = ([f"({condition})"] if condition else []) + ([f'extra == "{extra}"'] if extra else [])
            marker = " and ".join(parts)
        elif line and not line.startswith("#"):
            found.append(f"{line}; {marker}" if marker else line)
    return tuple(found)


def read_packages(answer: Answer) -> tuple[Package, ...] | None:
    """The distributions of the probe's answer, in the order of sys.path; None where they were not looked for."""
    if answer.values.get("distributions") is None:
        return None
    found = []
    checked = answer.maybe_part("integrity")
    for item in answer.parts("distributions"):
        package = _read(item)
        if package is None:
            continue
        if checked is not None and package.name == checked.text("distribution"):
            altered = tuple(
                AlteredFile(*(str(value) for value in row))
                for row in sorted(checked.rows("altered", 4), key=lambda row: str(row[0]))
            )
            package = replace(package, integrity=checked.text("by"), altered=altered)
        found.append(package)
    return tuple(found)


def read_duplicates(answer: Answer) -> tuple[Package, ...]:
    """Further distributions of a name that came before, and packages that conda lists while pip's are there.

    Conda's list says what conda believes to be in its environment; where the installed distribution is of another
    version or was installed by something else, that is no longer so.
    """
    first = {package.name: package for package in reversed(read_packages(answer) or ())}
    again = [package for item in answer.parts("further_distributions") if (package := _read(item)) is not None]
    prefix = answer.part("python").text("prefix") if answer.values.get("conda_packages") else ""
    for name, version in answer.rows("conda_packages", 2):
        there = first.get(normalise(str(name)))
        if there is not None and (there.version != version or there.installer not in (None, "conda")):
            again.append(Package(there.name, str(version), f"{prefix}/conda-meta", installer="conda"))
    return tuple(again)


def _read(item: Answer) -> Package | None:
    package = parse_metadata(item.text("metadata"), item.maybe_text("requires_txt"), item.text("location"))
    if package is None:
        return None
    tags = None if item.values.get("tags") is None else item.texts("tags")
    return replace(package, tags=tags, installer=item.maybe_text("installer"))
