"""The commands about releases and files: install, upgrade, downgrade, wheelhouse."""

from __future__ import annotations

from typing import Annotated

import typer

from ideepdoctor.cli_options import (
    DryRunOption,
    EmulatorOption,
    FailOnOption,
    FormatOption,
    IndexUrlOption,
    OfflineOption,
    OutputOption,
    PythonOption,
    Threshold,
    VerboseOption,
    WheelhouseOption,
    YesOption,
    run_command,
    source_options,
    target_options,
)
from ideepdoctor.options import Format, Output


def install(
    spec: Annotated[str, typer.Argument(metavar="ideep4py==VERSION", help="The release, or built wheel, to pin.")],
    python: PythonOption = None,
    offline: OfflineOption = False,
    wheelhouse: WheelhouseOption = None,
    index_url: IndexUrlOption = None,
    emulator: EmulatorOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    fail_on: FailOnOption = Threshold.ERROR,
    verbose: VerboseOption = False,
) -> None:
    """Pin one release in an environment, by hash, or say why it cannot be right there."""
    from ideepdoctor.commands.install import install as command

    target, source = target_options(python, emulator), source_options(offline, wheelhouse, index_url)
    run_command(
        "install",
        lambda session: command(session, target, spec, dry_run=dry_run, source=source),
        Output(format, output, fail_on, verbose, yes),
    )


PACKAGE_COMMANDS = (install,)
