"""The commands about releases and files: install, upgrade, downgrade, wheelhouse."""

from __future__ import annotations

from typing import Annotated

import typer

from ideepdoctor import cli_complete
from ideepdoctor.cli_options import (
    AlsoOption,
    BaselineOption,
    DryRunOption,
    EmulatorOption,
    FailOnOption,
    FormatOption,
    IndexUrlOption,
    OfflineOption,
    OutputOption,
    PythonOption,
    TargetOption,
    Threshold,
    WheelhouseOption,
    YesOption,
    also_of,
    run_command,
    run_here,
    source_options,
    target_options,
    words_of,
)
from ideepdoctor.options import Format, Output

PruneOption = Annotated[
    bool, typer.Option("--prune", envvar="IDEEPDOCTOR_PRUNE", help="Uninstall what only the old stack needed.")
]


def install(
    spec: Annotated[str, typer.Argument(metavar="ideep4py==VERSION", help="The release, or built wheel, to pin.")],
    python: PythonOption = None,
    at: TargetOption = None,
    offline: OfflineOption = False,
    wheelhouse: WheelhouseOption = None,
    index_url: IndexUrlOption = None,
    emulator: EmulatorOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
    baseline: BaselineOption = None,
    fail_on: FailOnOption = Threshold.ERROR,
) -> None:
    """Pin one release in an environment, by hash, or say why it cannot be right there."""
    from ideepdoctor.commands.install import install as command

    target, source = target_options(python, emulator, at), source_options(offline, wheelhouse, index_url)
    run_here(
        "install",
        target,
        lambda session: command(session, target, spec, dry_run=dry_run, source=source),
        Output(format, output, fail_on, yes=yes, baseline=baseline, also=also_of(also, output)),
    )


def upgrade(
    to: Annotated[
        str | None,
        typer.Option(
            "--to", envvar="IDEEPDOCTOR_TO", autocompletion=cli_complete.stacks, help="Stack; the newest right one."
        ),
    ] = None,
    python: PythonOption = None,
    at: TargetOption = None,
    prune: PruneOption = False,
    offline: OfflineOption = False,
    wheelhouse: WheelhouseOption = None,
    index_url: IndexUrlOption = None,
    emulator: EmulatorOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
    baseline: BaselineOption = None,
    fail_on: FailOnOption = Threshold.ERROR,
) -> None:
    """Move an environment to a newer stack, after asking; undo takes it back."""
    from ideepdoctor.commands.upgrade import MoveOptions
    from ideepdoctor.commands.upgrade import upgrade as command

    source = source_options(offline, wheelhouse, index_url)
    options = MoveOptions(target_options(python, emulator, at), to, prune, dry_run, source)
    run_here(
        "upgrade",
        options.target,
        lambda session: command(session, options),
        Output(format, output, fail_on, yes=yes, baseline=baseline, also=also_of(also, output)),
    )


def downgrade(
    to: Annotated[
        str,
        typer.Option(
            "--to", envvar="IDEEPDOCTOR_TO", autocompletion=cli_complete.stacks, help="Name of a known-good stack."
        ),
    ],
    python: PythonOption = None,
    at: TargetOption = None,
    prune: PruneOption = False,
    offline: OfflineOption = False,
    wheelhouse: WheelhouseOption = None,
    index_url: IndexUrlOption = None,
    emulator: EmulatorOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
    baseline: BaselineOption = None,
    fail_on: FailOnOption = Threshold.ERROR,
) -> None:
    """Move an environment to an older stack, after saying what that loses; undo takes it back."""
    from ideepdoctor.commands.upgrade import MoveOptions
    from ideepdoctor.commands.upgrade import downgrade as command

    source = source_options(offline, wheelhouse, index_url)
    options = MoveOptions(target_options(python, emulator, at), to, prune, dry_run, source)
    run_here(
        "downgrade",
        options.target,
        lambda session: command(session, options),
        Output(format, output, fail_on, yes=yes, baseline=baseline, also=also_of(also, output)),
    )


def wheelhouse(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The folder; made where there is none.")],
    stack: Annotated[
        str | None,
        typer.Option(
            "--stack",
            envvar="IDEEPDOCTOR_STACK",
            autocompletion=cli_complete.stacks,
            help="Known-good stack; each Python's best.",
        ),
    ] = None,
    python: Annotated[
        list[str] | None,
        typer.Option(
            "--python",
            "-p",
            envvar="IDEEPDOCTOR_WHEELHOUSE_PYTHONS",
            autocompletion=cli_complete.versions,
            help="Version: 3.7; may be repeated.",
        ),
    ] = None,
    all_pythons: Annotated[
        bool, typer.Option("--all-pythons", envvar="IDEEPDOCTOR_ALL_PYTHONS", help="Every Python of the stack.")
    ] = False,
    with_build: Annotated[
        bool, typer.Option("--with-build", envvar="IDEEPDOCTOR_WITH_BUILD", help="Also what build needs.")
    ] = False,
    archive: Annotated[
        str | None,
        typer.Option("--archive", metavar="FILE", envvar="IDEEPDOCTOR_ARCHIVE", help="Upstream's source, too."),
    ] = None,
    doctor: Annotated[
        bool, typer.Option("--doctor", envvar="IDEEPDOCTOR_WITH_DOCTOR", help="Also ideepdoctor itself.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", envvar="IDEEPDOCTOR_CHECK", help="Only say whether it is whole: 1 if not.")
    ] = False,
    index_url: IndexUrlOption = None,
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
) -> None:
    """Put everything that a stack needs into a folder, for machines without internet."""
    from ideepdoctor.commands.wheelhouse import WheelhouseOptions
    from ideepdoctor.commands.wheelhouse import wheelhouse as command

    source_options(False, None, index_url)
    pythons = tuple(word for item in python or () for word in words_of(item))
    options = WheelhouseOptions(
        folder, stack, pythons, all_pythons, with_build, archive, doctor, check, index_url or None
    )
    run_command(
        "wheelhouse",
        lambda session: command(session, options),
        Output(format, output, also=also_of(also, output)),
    )


PACKAGE_COMMANDS = (install, upgrade, downgrade, wheelhouse)
