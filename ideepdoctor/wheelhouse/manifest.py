"""``manifest.json`` of a wheelhouse: which files, for what, with which digests; and whether they are there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.model.plan import Requirement
from ideepdoctor.treatment.snapshot import sha256_of
from ideepdoctor.wheelhouse.wanted import FileSet

NAME = "manifest.json"
SCHEMA = "ideepdoctor-wheelhouse"
OPEN = "must be built"
"""Ends the phrase about what no index has."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a wheelhouse: its digest and its size in bytes."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a wheelhouse holds.

    Attributes:
        files: by name.
        sets: what they are for.
        made: when it was last completed (UTC).
        version: of the doctor that did.
    """

    files: Mapping[str, Entry] = field(default_factory=dict)
    sets: tuple[FileSet, ...] = ()
    made: str = ""
    version: str = ""

    def name_of(self, digests: Iterable[str]) -> str | None:
        """The file with one of these digests, or None."""
        wanted = frozenset(digests)
        return next((name for name, entry in self.files.items() if entry.sha256 in wanted), None)

    def as_data(self) -> dict[str, Any]:
        """JSON-ready; every file says what it is for."""
        serves = {
            name: [held.name for held in self.sets if any(entry.sha256 in item.sha256 for item in held.requirements)]
            for name, entry in self.files.items()
        }
        return {
            "schema": SCHEMA,
            "schema_version": "1",
            "made": self.made,
            "version": self.version,
            "files": {
                name: {"sha256": entry.sha256, "size": entry.size, "for": serves[name]}
                for name, entry in sorted(self.files.items())
            },
            "sets": [
                {
                    "name": held.name,
                    "slug": held.slug,
                    "every": held.every,
                    "missing": list(held.missing),
                    "index": held.index,
                    "requirements": {item.name: [item.version, *item.sha256] for item in held.requirements},
                }
                for held in self.sets
            ],
        }


def read(folder: str) -> Manifest | None:
    """The manifest of a folder; None where it has none.

    Raises:
        CouldNotCheck: it cannot be read, or is none.
    """
    path = Path(folder) / NAME
    try:
        data = json.loads(path.read_bytes())
        if data["schema"] != SCHEMA or data["schema_version"] != "1":
            raise ValueError(f"it is of the kind {data['schema']} {data['schema_version']}")
        return Manifest(
            files={name: Entry(item["sha256"], item["size"]) for name, item in data["files"].items()},
            sets=tuple(
                FileSet(
                    item["name"],
                    item["slug"],
                    tuple(Requirement(name, pin[0], tuple(pin[1:])) for name, pin in item["requirements"].items()),
                    item["every"],
                    tuple(item["missing"]),
                    item["index"],
                )
                for item in data["sets"]
            ),
            made=data["made"],
            version=data["version"],
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise CouldNotCheck(
            f"{path} is no manifest of a wheelhouse: {type(error).__name__}: {error}",
            hint=f"make it anew (files that are whole are kept): rm {path}; ideepdoctor wheelhouse {folder} ...",
        ) from error


def digests_in(folder: str) -> dict[str, Entry]:
    """Every plain file of a folder with its digest, but hidden ones and the manifest. Raises OSError."""
    found = {}
    for path in sorted(Path(folder).iterdir()):
        if path.is_file() and not path.name.startswith(".") and path.name != NAME:
            found[path.name] = Entry(sha256_of(str(path)), path.stat().st_size)
    return found


def problems(manifest: Manifest, there: Mapping[str, Entry]) -> list[str]:
    """What is missing or altered, a phrase each; empty: everything is as it was."""
    found = [
        f"{name} is {'missing' if name not in there else 'altered'}"
        for name, entry in sorted(manifest.files.items())
        if there.get(name) != entry
    ]
    digests = {entry.sha256 for entry in (*there.values(), *manifest.files.values())}
    for held in manifest.sets:
        found += [f"{item.name} {item.version} ({held.name}) was never fetched" for item in held.lacking(digests)]
        for name in held.missing:
            if not any(file.startswith(f"{name}-") and "+doctor" in file for file in there):
                found.append(f"{name} ({held.name}) {OPEN}")
    return found


def lacking(folders: Sequence[str], requirements: Sequence[Requirement]) -> list[str]:
    """Which of the requirements no folder has a file of, with the digest that it must have; a phrase each.

    Only files that can be it by their names are read.
    """
    found = []
    manifests = [(folder, read(folder)) for folder in folders]
    for item in requirements:
        reasons = [reason for folder, held in manifests if (reason := _reason(folder, held, item)) is not None]
        if len(reasons) == len(folders):
            found.append(reasons[0])
    return found


def _reason(folder: str, held: Manifest | None, item: Requirement) -> str | None:
    """Why a folder does not serve a requirement; None: it does."""
    listed = None if held is None else held.name_of(item.sha256)
    names = [path.name for path in Path(folder).iterdir() if _can_be(path.name, item)]
    for name in dict.fromkeys([*([listed] if listed in names else []), *names]):
        if sha256_of(str(Path(folder) / name)) in item.sha256:
            return None
    if listed in names:
        return f"{listed} is altered"
    if listed is not None:
        return f"{listed} is missing"
    return f"{item.name} {item.version} is missing" + (f" ({', '.join(names)} is another file)" if names else "")


def _can_be(file: str, item: Requirement) -> bool:
    """Whether a file name is that of a release."""
    name, version = file.lower().replace("-", "_").replace(".", "_"), item.version.lower()
    start = f"{item.name}_{version}".replace("-", "_").replace(".", "_").replace("+", "_")
    name = name.replace("+", "_")
    return name.startswith((f"{start}_",)) and not file.startswith(".")
