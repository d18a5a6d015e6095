"""The commands about reports and facts that were written before."""

from __future__ import annotations

from typing import Annotated

import typer

from ideepdoctor.cli_options import (
    AlsoOption,
    EmulatorOption,
    FailOnOption,
    FormatOption,
    OutputOption,
    PythonOption,
    TargetOption,
    Threshold,
    YesOption,
    also_of,
    run_command,
    target_options,
)
from ideepdoctor.options import Format, Output


def diff(
    first: Annotated[str, typer.Argument(help="Facts of the earlier day, or of the machine where it works.")],
    second: Annotated[str, typer.Argument(help="Facts of the later day, or of the other machine.")],
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
    fail_on: FailOnOption = Threshold.ERROR,
) -> None:
    """Say what changed between two files of facts, and which change explains a new finding."""
    from ideepdoctor.commands.diff import diff as command

    answer = Output(format, output, fail_on, also=also_of(also, output))
    run_command("diff", lambda _session: command(first, second), answer)


def report(
    python: PythonOption = None,
    at: TargetOption = None,
    facts: Annotated[
        str | None, typer.Option("--facts", envvar="IDEEPDOCTOR_FACTS", help="Report on saved facts instead.")
    ] = None,
    share: Annotated[
        str | None,
        typer.Option("--share", metavar="FILE", envvar="IDEEPDOCTOR_SHARE", help="Write it here, once seen."),
    ] = None,
    emulator: EmulatorOption = None,
    yes: YesOption = False,
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
) -> None:
    """Report what is wrong here so that it may be shown to strangers: no names, no folders, no secrets."""
    from ideepdoctor.commands.report import ReportOptions
    from ideepdoctor.commands.report import report as command

    options = ReportOptions(target_options(python, emulator, at), facts, share)
    answer = Output(format, output, "never", yes=yes, also=also_of(also, output))
    run_command("report", lambda session: command(session, options), answer)
