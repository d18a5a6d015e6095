"""The command group ``fleet``: commands only, as in ``cli.py``."""

from __future__ import annotations

from typing import Annotated

import typer

from ideepdoctor.cli_common import CommonTyper
from ideepdoctor.cli_fleet_run import register
from ideepdoctor.cli_options import (
    AlsoOption,
    FailOnOption,
    FormatOption,
    OutputOption,
    Threshold,
    also_of,
    run_command,
)
from ideepdoctor.options import Format, Output

app = CommonTyper(
    name="fleet",
    help="Many machines: judge them, set them up, and find the odd one.",
    no_args_is_help=True,
)
register(app)


@app.command()
def merge(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Reports or facts of hosts, folders of them; - or @LIST: their names."),
    ],
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
    fail_on: FailOnOption = Threshold.ERROR,
) -> None:
    """Group the reports of many hosts by cause, and name the hosts that differ from their twins."""
    from ideepdoctor.commands.fleet_merge import merge as command

    answer = Output(format, output, fail_on, also=also_of(also, output))
    run_command("fleet merge", lambda session: command(session, tuple(paths)), answer)
