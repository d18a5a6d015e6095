"""The commands about reports and facts that were written before."""

from __future__ import annotations

from typing import Annotated

import typer

from ideepdoctor.cli_options import (
    AlsoOption,
    FailOnOption,
    FormatOption,
    OutputOption,
    Threshold,
    VerboseOption,
    also_of,
    run_command,
)
from ideepdoctor.options import Format, Output


def diff(
    first: Annotated[str, typer.Argument(help="Facts of the earlier day, or of the machine where it works.")],
    second: Annotated[str, typer.Argument(help="Facts of the later day, or of the other machine.")],
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
    fail_on: FailOnOption = Threshold.ERROR,
    verbose: VerboseOption = False,
) -> None:
    """Say what changed between two files of facts, and which change explains a new finding."""
    from ideepdoctor.commands.diff import diff as command

    answer = Output(format, output, fail_on, verbose, also=also_of(also))
    run_command("diff", lambda _session: command(first, second), answer)
