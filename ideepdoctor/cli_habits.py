"""What a good tool brings along: completion, a manual page, a look at itself. Commands only, as in ``cli.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from ideepdoctor.cli_options import (
    AlsoOption,
    FailOnOption,
    FormatOption,
    OutputOption,
    Threshold,
    also_of,
    run_command,
)
from ideepdoctor.cli_shells import Shell
from ideepdoctor.options import Format, Output


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="The shell that shall complete.")],
    output: OutputOption = None,
) -> None:
    """Print what makes a shell complete commands, options and their values."""
    from ideepdoctor.cli_shells import SCRIPTS
    from ideepdoctor.model.report import Report

    run_command("completion", lambda session: Report("completion", text=SCRIPTS[shell]), Output(Format.TEXT, output))


def man(output: OutputOption = None) -> None:
    """Print the manual page, for man: ideepdoctor man | man -l -"""
    from ideepdoctor.cli import app
    from ideepdoctor.cli_manual import commands, common_options
    from ideepdoctor.commands.man import man as command

    run_command("man", lambda session: command(commands(app), common_options(app)), Output(Format.TEXT, output))


def self_test(
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
    fail_on: FailOnOption = Threshold.ERROR,
) -> None:
    """Examine the doctor itself on this machine: files, modules, rules, data, folders, tools. Changes nothing."""
    from ideepdoctor.commands.self_test import self_test as command

    run_command("self-test", command, Output(format, output, fail_on, also=also_of(also, output)))


HABIT_COMMANDS: tuple[Callable[..., None], ...] = (self_test, completion, man)
