"""What a recipe is, and what one is rendered with. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from ideepdoctor.errors import UsageError
from ideepdoctor.stacks.catalog import all_stacks
from ideepdoctor.stacks.data import Lock, Stack

DEFAULT_REQUIREMENT = "ideepdoctor"
DEFAULT_PYTHON = "3.7"
"""The newest Python that an index has an ideep4py wheel for."""

_REQUIREMENT = re.compile(r"[A-Za-z0-9 ._~:/@+=<>!,;%#?&()\[\]*-]+")
"""No quote, backslash, dollar, brace or line end: the word stands between quotes of shells, YAML, JSON and TOML."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a recipe is rendered with."""

    requirement: str
    """How pip gets the doctor: a name, a wheel, a folder, a URL."""
    stack: Stack
    python: str
    """Minor version of the Python that Chainer runs on: 3.7."""
    lock: Lock
    """The stack's, for that Python; of a recipe that builds ideep4py without it."""
    doctor_version: str

    @property
    def local(self) -> str | None:
        """The file or folder that the requirement names, without extras; None: a name or a URL."""
        path = self.requirement.removesuffix(self.extras)
        if "://" in path or " @ " in path:
            return None
        return path if "/" in path or path.endswith(".whl") else None

    @property
    def extras(self) -> str:
        """``[fleet]`` at the end of the requirement; empty: none."""
        match = re.search(r"\[[\w.,-]*\]$", self.requirement)
        return match.group() if match else ""


def _nothing(_settings: Settings) -> Mapping[str, Any]:
    """Variables of a recipe that needs none of its own."""
    return {}


@dataclass(frozen=True, slots=True)
class RecipeFile:
    """One file of a recipe.

    Attributes:
        path: relative to the folder that the recipe is written to, with ``/``.
        template: name of its file in ``ideepdoctor/recipes/templates``.
        executable: whether it is a program.
    """

    path: str
    template: str
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Recipe:
    """Files that put the doctor to work in one kind of place.

    Attributes:
        name: as ``ideepdoctor recipe`` takes it.
        title: a few words.
        files: the first one is the main one.
        uses: what it is for, one sentence.
        start: the command that uses it, in the folder that it was written to.
        python: default minor version of the Python that Chainer runs on.
        built: whether ideep4py is built from source, for a Python that no index has it for.
        variables: what its templates need beside the settings.
    """

    name: str
    title: str
    files: tuple[RecipeFile, ...]
    uses: str
    start: str
    python: str = DEFAULT_PYTHON
    built: bool = False
    variables: Callable[[Settings], Mapping[str, Any]] = _nothing


def find(recipes: Sequence[Recipe], name: str) -> Recipe:
    """The recipe of this name. Raises UsageError, which names those that are like it."""
    for recipe in recipes:
        if recipe.name == name:
            return recipe
    names = [recipe.name for recipe in recipes]
    like = get_close_matches(name.lower(), names, n=3, cutoff=0.5) or [word for word in names if name.lower() in word]
    known = ", ".join(names)
    hint = f"did you mean {' or '.join(like)}? all recipes: ideepdoctor recipe" if like else f"known recipes: {known}"
    raise UsageError(f"no recipe is called {name!r}", hint=hint)


def settings_for(
    recipe: Recipe,
    *,
    doctor_version: str,
    stack: str | None = None,
    python: str | None = None,
    requirement: str = DEFAULT_REQUIREMENT,
) -> Settings:
    """What a recipe is rendered with.

    Args:
        recipe: decides what is taken where nothing is asked for.
        doctor_version: of this program.
        stack: name of a known-good stack; None: the newest that is locked for the Python.
        python: version of the Python that Chainer runs on (3.7, 3.7.16); None: the recipe's.
        requirement: how pip gets the doctor.

    Raises:
        UsageError: there is no such stack; it is not locked for this Python; the requirement or the version is none.
    """
    minor = _minor(python or (recipe.python if stack is None else _newest(recipe, _named(stack), recipe.python)))
    candidates = all_stacks() if stack is None else (_named(stack),)
    for candidate in candidates:
        lock = _lock(recipe, candidate, minor)
        if lock is not None:
            return Settings(_checked(requirement), candidate, minor, lock, doctor_version)
    pythons = ", ".join(dict.fromkeys(_pythons(recipe, candidates)))
    what = f"the stack {stack}" if stack else "any stack"
    raise UsageError(
        f"Python {minor} is not among those that {what} is locked for in the recipe {recipe.name}",
        hint=f"--python with one of: {pythons}",
    )


def _named(name: str) -> Stack:
    known = {stack.name: stack for stack in all_stacks()}
    if name in known:
        return known[name]
    raise UsageError(f"no stack is called {name}", hint=f"known stacks: {', '.join(known)}")


def _lock(recipe: Recipe, stack: Stack, minor: str) -> Lock | None:
    """The lock of a stack for a minor version, as the recipe needs it: whole, or without what is built."""
    if recipe.built:
        return next((stack.lock_to_build(lock.abis[0]) for lock in stack.locks if lock.python == minor), None)
    return next((lock for lock in stack.index_locks if lock.python == minor and lock.tried), None)


def _pythons(recipe: Recipe, stacks: Sequence[Stack]) -> list[str]:
    return [lock.python for stack in stacks for lock in stack.locks if _lock(recipe, stack, lock.python)]


def _newest(recipe: Recipe, stack: Stack, preferred: str) -> str:
    """The preferred Python where the stack has it, else its newest."""
    pythons = _pythons(recipe, (stack,))
    return preferred if preferred in pythons or not pythons else pythons[0]


def _minor(version: str) -> str:
    match = re.fullmatch(r"(\d+\.\d+)(\.\d+)?", version)
    if match is None:
        raise UsageError(f"{version!r} is no version of Python", hint="--python 3.7")
    return match.group(1)


def _checked(requirement: str) -> str:
    text = requirement.strip()
    if not _REQUIREMENT.fullmatch(text) or text.startswith("-"):
        raise UsageError(
            f"{requirement!r} is nothing that pip installs by one word",
            hint="--requirement with a name (ideepdoctor==0.1.0), a wheel, a folder or a URL",
        )
    return text
