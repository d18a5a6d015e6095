"""A line of a distribution's RECORD brought up to date with a file that a step has changed on purpose."""

from __future__ import annotations

import base64
import csv
import os
from dataclasses import dataclass
from pathlib import Path

from ideepdoctor.treatment.action import Surroundings, path_of_link
from ideepdoctor.treatment.file_steps import ReplaceFile
from ideepdoctor.treatment.lines import lines_of


@dataclass(frozen=True, slots=True)
class Entry:
    """A file that changes."""

    path: str
    old_sha256: str
    """Hexadecimal."""
    new_sha256: str
    new_size_bytes: int


def record_of(path: str) -> str | None:
    """The RECORD that lists a file; None where no distribution that was installed around it does."""
    for folder in Path(path).parents:
        records = sorted(folder.glob("*.dist-info/RECORD"))
        name = os.path.relpath(path, folder)
        for record in records:
            text = _text(record)
            if Path(path).name in text and any(_name(line) == name for line in lines_of(text)):
                return str(record)
        if records:
            return None
    return None


class RecordEntry(ReplaceFile):
    """The RECORD with the new digest and size of a file; one that does not list it as it was stays as it is."""

    def __init__(self, record: str, entry: Entry, index: int, around: Surroundings) -> None:
        super().__init__(path_of_link(record), index, around, backup="record")
        self._entry = entry

    def content(self) -> bytes:
        """See ReplaceFile."""
        entry = self._entry
        name = os.path.relpath(entry.path, Path(self._path).parent.parent)
        lines = lines_of(_text(Path(self._path)))
        for number, line in enumerate(lines):
            fields, end = _split(line)
            if _name(line) == name and fields[1:2] == [_digest(entry.old_sha256)]:
                lines[number] = ",".join([fields[0], _digest(entry.new_sha256), str(entry.new_size_bytes)]) + end
        return "".join(lines).encode("utf-8", "surrogateescape")


def _text(record: Path) -> str:
    return record.read_bytes().decode("utf-8", "surrogateescape")


def _split(line: str) -> tuple[list[str], str]:
    """Name as written (perhaps quoted), digest and size; and the end of the line."""
    bare = line.rstrip("\r\n")
    return bare.rsplit(",", 2), line[len(bare) :]


def _name(line: str) -> str:
    return next(iter(next(csv.reader([_split(line)[0][0]]), [])), "")


def _digest(hexadecimal: str) -> str:
    return "sha256=" + base64.urlsafe_b64encode(bytes.fromhex(hexadecimal)).rstrip(b"=").decode("ascii")
