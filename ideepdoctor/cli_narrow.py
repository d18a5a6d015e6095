"""Only what a command line needs of the application: to declare every option of every command takes 30 ms."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

import typer


def narrowed(app: typer.Typer, words: Sequence[str], with_values: Iterable[str]) -> typer.Typer:
    """The application with the one command that is asked for; with all of them, bare, where none is.

    Args:
        app: with its commands and groups.
        words: the command line.
        with_values: options of the application itself that a value follows.

    Returns:
        A copy; the application itself where the command is unknown, so that a likely one can be suggested.
    """
    name = _command_of(words, frozenset(with_values))
    few = copy.copy(app)
    if name is None:
        few.registered_commands = [_bare(info) for info in app.registered_commands]
        few.registered_groups = [_empty(info) for info in app.registered_groups]
        return few
    few.registered_commands = [info for info in app.registered_commands if command_name(info) == name]
    few.registered_groups = [
        info for info in app.registered_groups if info.typer_instance and info.typer_instance.info.name == name
    ]
    return few if few.registered_commands or few.registered_groups else app


def command_name(info: typer.models.CommandInfo) -> str:
    """The name of a command as it is typed."""
    return info.name or ("" if info.callback is None else info.callback.__name__.lower().replace("_", "-"))


def _command_of(words: Sequence[str], with_values: frozenset[str]) -> str | None:
    follows = False
    for word in words:
        if follows:
            follows = False
        elif word in with_values:
            follows = True
        elif not word.startswith("-"):
            return word
    return None


def _bare(info: typer.models.CommandInfo) -> typer.models.CommandInfo:
    """A command with its name and what it is for, which is all that the list of commands shows."""

    def callback() -> None:
        """Nothing is run by this name."""

    few = copy.copy(info)
    few.name = command_name(info)
    callback.__doc__ = getattr(info.callback, "__doc__", None)
    few.callback = callback
    return few


def _empty(info: typer.models.TyperInfo) -> typer.models.TyperInfo:
    few = copy.copy(info)
    if info.typer_instance is not None:
        few.typer_instance = copy.copy(info.typer_instance)
        few.typer_instance.registered_commands = []
        few.typer_instance.registered_callback = None
    return few
