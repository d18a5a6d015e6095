"""The commands and options of the application as data, for the manual page."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import typer
import typer.main

from ideepdoctor.cli_common import COMMON
from ideepdoctor.model.manual import ManualCommand, ManualEntry


def commands(app: typer.Typer) -> tuple[ManualCommand, ...]:
    """Every command in the order of ``--help``; the commands of a group stand below it."""
    root: Any = typer.main.get_command(app)
    return tuple(_below(root, typer.Context(root, info_name="ideepdoctor"), ""))


def common_options(app: typer.Typer) -> tuple[ManualEntry, ...]:
    """The options that every command has."""
    root: Any = typer.main.get_command(app)
    context = typer.Context(root, info_name="ideepdoctor", **root.context_settings)
    return tuple(_entry(param, context) for param in (*COMMON, root.get_help_option(context)))


def _below(group: Any, context: Any, before: str) -> Iterator[ManualCommand]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command.hidden:
            continue
        inner = typer.Context(command, info_name=name, parent=context)
        yield _command(command, inner, f"{before}{name}")
        if hasattr(command, "list_commands"):
            yield from _below(command, inner, f"{before}{name} ")


def _command(command: Any, context: Any, name: str) -> ManualCommand:
    own = [param for param in command.params if param not in COMMON and not getattr(param, "hidden", False)]
    return ManualCommand(
        name,
        " ".join(command.collect_usage_pieces(context)),
        inspect.cleandoc(command.help or ""),
        tuple(_entry(param, context) for param in own if param.param_type_name == "argument"),
        tuple(_entry(param, context) for param in own if param.param_type_name == "option"),
    )


def _entry(param: Any, context: Any) -> ManualEntry:
    names, told = param.get_help_record(context)
    text = param.help or ""
    notes = told.removeprefix(text).strip().removeprefix("[").removesuffix("]").split("; ")
    variable = param.envvar if isinstance(param.envvar, str) else ""
    return ManualEntry(names, text, variable, tuple(note for note in notes if note and "env var:" not in note))
