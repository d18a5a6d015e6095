"""``recipe``: files that put the doctor to work in a container, a CI service, a cluster."""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ideepdoctor import __version__
from ideepdoctor.commands.session import Session
from ideepdoctor.errors import UsageError
from ideepdoctor.model.report import Report
from ideepdoctor.model.words import counted
from ideepdoctor.recipes import RECIPES
from ideepdoctor.recipes.base import DEFAULT_REQUIREMENT, Recipe, Settings, find, settings_for
from ideepdoctor.recipes.render import render


@dataclass(frozen=True, slots=True)
class RecipeOptions:
    """What ``recipe`` was asked.

    Attributes:
        name: of the recipe; None: the list of all.
        folder: write the files there; None: the text of the one file is the answer.
        stack: name of a known-good stack; None: the newest that is right for the Python.
        python: version that Chainer runs on; None: the recipe's own.
        requirement: how pip gets the doctor.
        force: replace files that differ.
        several: whether an answer may be several files without a folder (JSON).
    """

    name: str | None = None
    folder: str | None = None
    stack: str | None = None
    python: str | None = None
    requirement: str = DEFAULT_REQUIREMENT
    force: bool = False
    several: bool = False


@dataclass(frozen=True, slots=True)
class _File:
    """A file to write: where, what, with which mode, and what is there now (None: nothing) with which mode."""

    path: str
    place: Path
    data: bytes
    mode: int
    before: bytes | None
    mode_before: int

    @property
    def same(self) -> bool:
        return self.before == self.data and (self.mode & 0o111 == 0 or self.mode_before & 0o111 != 0)


def recipe(session: Session, options: RecipeOptions) -> Report:
    """Render a recipe: as text, or into a folder; or list all.

    Raises:
        UsageError: no such recipe, stack or Python; files that differ are in the way; the folder cannot be written.
            Nothing was written then.
    """
    if options.name is None:
        return _list()
    chosen = find(RECIPES, options.name)
    settings = settings_for(
        chosen,
        doctor_version=__version__,
        stack=options.stack,
        python=options.python,
        requirement=options.requirement,
    )
    texts = render(chosen, settings)
    if options.folder is not None:
        return _written(session, chosen, settings, texts, options)
    if len(texts) > 1 and not options.several:
        raise UsageError(
            f"the recipe {chosen.name} is {counted(len(texts), 'file')}: {', '.join(texts)}",
            hint=f"name a folder for them: ideepdoctor recipe {chosen.name} --output DIR",
        )
    return Report("recipe", text="".join(texts.values()), extra={"recipe": _data(chosen, settings, texts)})


def _list() -> Report:
    width = max(len(item.name) for item in RECIPES)
    lines = [f"{item.name:<{width}}  {item.uses}" for item in RECIPES]
    lines += ["", "write one: ideepdoctor recipe NAME --output DIR"]
    rows = [
        {
            "name": item.name,
            "title": item.title,
            "uses": item.uses,
            "start": item.start,
            "files": [file.path for file in item.files],
        }
        for item in RECIPES
    ]
    return Report("recipe", text="".join(f"{line}\n" for line in lines), extra={"recipes": rows})


def _data(recipe: Recipe, settings: Settings, texts: Mapping[str, str]) -> dict[str, Any]:
    """The recipe as the JSON has it."""
    modes = {file.path: file.executable for file in recipe.files}
    return {
        "name": recipe.name,
        "title": recipe.title,
        "uses": recipe.uses,
        "start": recipe.start,
        "stack": settings.stack.name,
        "python": settings.python,
        "requirement": settings.requirement,
        "files": [{"path": path, "text": text, "executable": modes[path]} for path, text in texts.items()],
        "folder": None,
        "written": [],
    }


def _written(
    session: Session, recipe: Recipe, settings: Settings, texts: Mapping[str, str], options: RecipeOptions
) -> Report:
    folder = Path(session.cwd, Path(options.folder or ".").expanduser())
    executable = {file.path for file in recipe.files if file.executable}
    files = [_file(folder, path, text, path in executable) for path, text in texts.items()]
    different = [file.path for file in files if file.before is not None and file.before != file.data]
    if different and not options.force:
        raise UsageError(
            f"{folder} has other files of these names: {', '.join(different)}",
            hint="look at them; --force replaces them, --output takes another folder",
        )
    wanted = [file for file in files if not file.same]
    _write(session, folder, wanted)
    names = {file.path for file in wanted}
    lines = [f"{'written' if file.path in names else 'the same'}  {folder / file.path}" for file in files]
    lines.append(f"use it, in {folder}: {recipe.start}")
    data = {**_data(recipe, settings, texts), "folder": str(folder), "written": [file.path for file in wanted]}
    return Report("recipe", text="".join(f"{line}\n" for line in lines), extra={"recipe": data})


def _file(folder: Path, path: str, text: str, executable: bool) -> _File:
    place, mode_before = folder / path, 0
    try:
        before = place.read_bytes()
        mode_before = stat.S_IMODE(place.stat().st_mode)
    except FileNotFoundError:
        before = None
    except OSError as error:
        raise _unwritable(place, error) from error
    return _File(path, place, text.encode("utf-8"), 0o755 if executable else 0o644, before, mode_before)


def _write(session: Session, folder: Path, files: Sequence[_File]) -> None:
    """Write all of them, or none: what was written before a failure is taken back."""
    made: list[Path] = []
    done: list[_File] = []
    try:
        for file in files:
            for parent in reversed([file.place.parent, *file.place.parent.parents]):
                if not parent.exists():
                    session.system.make_folder(str(parent))
                    made.append(parent)
            session.system.write_file(str(file.place), file.data, file.mode)
            done.append(file)
    except OSError as error:
        for file in done:
            if file.before is None:
                session.system.remove_file(str(file.place))
            else:
                session.system.write_file(str(file.place), file.before, file.mode_before)
        for parent in reversed(made):
            session.system.remove_tree(str(parent))
        raise _unwritable(folder, error) from error


def _unwritable(place: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot write {place}: {error.strerror or error}", hint="choose another --output DIR")
