"""Commands only: parse, call, render, exit code. What a command does is in ``commands/``.

Here: those that change an environment or judge it, and the program itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ideepdoctor import cli_complete
from ideepdoctor.cli_bench import bench_app
from ideepdoctor.cli_bench import tune as tune_command
from ideepdoctor.cli_build import build as build_command
from ideepdoctor.cli_common import CommonTyper, noted, speak
from ideepdoctor.cli_documents import DOCUMENT_COMMANDS
from ideepdoctor.cli_examine import EXAMINE_COMMANDS, PASSED_ON, PASSING_COMMANDS
from ideepdoctor.cli_fleet import app as fleet_app
from ideepdoctor.cli_habits import HABIT_COMMANDS
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
from ideepdoctor.cli_packages import PACKAGE_COMMANDS
from ideepdoctor.cli_recipe import recipe as recipe_command
from ideepdoctor.cli_reports import diff as diff_command
from ideepdoctor.cli_reports import report as report_command
from ideepdoctor.errors import Exit
from ideepdoctor.options import Format, Output

if TYPE_CHECKING:
    pass

app = CommonTyper(
    name="ideepdoctor",
    help="Installer and environment doctor for Chainer with Intel iDeep (ideep4py) on CPUs.",
    no_args_is_help=True,
)


class GetPython(StrEnum):
    """What ``setup --get-python`` gets an older Python with."""

    CONDA = "conda"
    PYENV = "pyenv"


def _version(context: typer.Context, asked: bool) -> None:
    if asked:
        from ideepdoctor import __version__

        typer.echo(f"ideepdoctor {__version__}")
        if noted(context).verbose:
            from ideepdoctor.about import about
            from ideepdoctor.render.details import versions

            typer.echo("\n".join(versions(about())))
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, help="Print the version; -v: what it runs on, too.")
    ] = False,
) -> None:
    """Installer and environment doctor for Chainer with Intel iDeep (ideep4py) on CPUs."""


@app.command()
def setup(
    python: PythonOption = None,
    at: TargetOption = None,
    env: Annotated[
        str | None, typer.Option("--env", envvar="IDEEPDOCTOR_ENV", help="Folder of the new environment [./.ideep].")
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", envvar="IDEEPDOCTOR_IN_PLACE", help="Change the existing environment.")
    ] = False,
    stack: Annotated[
        str | None,
        typer.Option(
            "--stack", envvar="IDEEPDOCTOR_STACK", autocompletion=cli_complete.stacks, help="Known-good stack."
        ),
    ] = None,
    chainer: Annotated[
        str | None, typer.Option("--chainer", envvar="IDEEPDOCTOR_CHAINER", help="Version of Chainer.")
    ] = None,
    ideep: Annotated[
        str | None, typer.Option("--ideep", envvar="IDEEPDOCTOR_IDEEP", help="Version of ideep4py.")
    ] = None,
    guard: Annotated[
        bool, typer.Option("--guard/--no-guard", envvar="IDEEPDOCTOR_WITH_GUARD", help="Correct the known faults.")
    ] = True,
    tune: Annotated[
        bool, typer.Option("--tune/--no-tune", envvar="IDEEPDOCTOR_TUNE", help="Look for a faster setting: 20 s.")
    ] = True,
    build: Annotated[
        bool, typer.Option("--build", envvar="IDEEPDOCTOR_BUILD", help="Build ideep4py for a Python without a wheel.")
    ] = False,
    get_python: Annotated[
        GetPython | None,
        typer.Option("--get-python", envvar="IDEEPDOCTOR_GET_PYTHON", help="Get Python 3.7 (--python) with this tool."),
    ] = None,
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
    """Make an environment in which Chainer uses iDeep, and prove it."""
    from dataclasses import replace

    from ideepdoctor.commands.setup import SetupOptions
    from ideepdoctor.commands.setup import setup as command

    wanted, source = None if guard else False, source_options(offline, wheelhouse, index_url)
    options = SetupOptions(
        target_options(python, emulator, at), env, in_place, stack, chainer, ideep, dry_run, wanted, tune, source
    )
    options = replace(options, build=build, get_python=get_python)
    run_here(
        "setup",
        options.target,
        lambda session: command(session, options),
        Output(format, output, fail_on, yes=yes, baseline=baseline, also=also_of(also, output)),
    )


@app.command()
def diagnose(
    python: PythonOption = None,
    at: TargetOption = None,
    facts: Annotated[
        str | None, typer.Option("--facts", envvar="IDEEPDOCTOR_FACTS", help="Judge saved facts instead.")
    ] = None,
    save_facts: Annotated[
        str | None, typer.Option("--save-facts", envvar="IDEEPDOCTOR_SAVE_FACTS", help="Write the facts here too.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", envvar="IDEEPDOCTOR_QUICK", help="Static checks only: nothing is imported.")
    ] = False,
    select: Annotated[
        str,
        typer.Option(
            "--select",
            envvar="IDEEPDOCTOR_SELECT",
            autocompletion=cli_complete.code_lists,
            help="Codes or families: IDP305,5xx.",
        ),
    ] = "",
    ignore: Annotated[
        str,
        typer.Option(
            "--ignore",
            envvar="IDEEPDOCTOR_IGNORE",
            autocompletion=cli_complete.code_lists,
            help="Codes or families to leave out.",
        ),
    ] = "",
    baseline: BaselineOption = None,
    emulator: EmulatorOption = None,
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
    fail_on: FailOnOption = Threshold.ERROR,
) -> None:
    """Say what is wrong with an environment, why, and what to do. Changes nothing."""
    from ideepdoctor.commands.diagnose import DiagnoseOptions
    from ideepdoctor.commands.diagnose import diagnose as command

    options = DiagnoseOptions(
        target_options(python, emulator, at), facts, save_facts, quick, words_of(select), words_of(ignore)
    )
    answer = Output(format, output, fail_on, baseline=baseline, also=also_of(also, output))
    run_command("diagnose", lambda session: command(session, options), answer)


@app.command()
def fix(
    python: PythonOption = None,
    at: TargetOption = None,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", envvar="IDEEPDOCTOR_UNSAFE", help="Also change the version of Chainer.")
    ] = False,
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
    """Treat what diagnose finds, after asking, and check again."""
    from ideepdoctor.commands.fix import fix as command

    target, source = target_options(python, emulator, at), source_options(offline, wheelhouse, index_url)
    run_here(
        "fix",
        target,
        lambda session: command(session, target, unsafe=unsafe, dry_run=dry_run, source=source),
        Output(format, output, fail_on, yes=yes, baseline=baseline, also=also_of(also, output)),
    )


@app.command()
def undo(
    journal: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", autocompletion=cli_complete.runs, help="Which run; none: the last one."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", envvar="IDEEPDOCTOR_FORCE", help="Also where files changed since.")
    ] = False,
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
) -> None:
    """Take back what a run of the doctor did."""
    from ideepdoctor.commands.history import undo as command

    run_command(
        "undo",
        lambda session: command(session, journal, force=force),
        Output(format, output, also=also_of(also, output)),
    )


@app.command()
def resume(
    journal: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", autocompletion=cli_complete.runs, help="Which run; none: the unfinished one."),
    ] = None,
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
) -> None:
    """Finish a run that was killed."""
    from ideepdoctor.commands.history import resume as command

    run_command(
        "resume",
        lambda session: command(session, journal),
        Output(format, output, also=also_of(also, output)),
    )


@app.command()
def history(
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
) -> None:
    """List the runs that changed something."""
    from ideepdoctor.commands.history import history as command

    run_command("history", command, Output(format, output, also=also_of(also, output)))


for _examining in (*EXAMINE_COMMANDS, *DOCUMENT_COMMANDS):
    app.command(context_settings=PASSED_ON if _examining in PASSING_COMMANDS else None)(_examining)
# Below the others: --help lists commands in the order in which they come, and setup is what most people want.
app.add_typer(bench_app)
app.add_typer(fleet_app)
app.command("tune")(tune_command)
for _command in PACKAGE_COMMANDS:
    app.command()(_command)
app.command("build")(build_command)
app.command("diff")(diff_command)
app.command("report")(report_command)
app.command("recipe")(recipe_command)
for _habit in HABIT_COMMANDS:
    app.command(_habit.__name__.replace("_", "-"))(_habit)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run a command and end the process with its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    speak(words, os.environ)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 (open for as long as the process lives)
    if sys.stdout is None:
        sys.stderr.write("error  standard output is closed: there is nowhere to write the result\n")
        sys.exit(int(Exit.COULD_NOT_CHECK))
    sys.exit(_guarded(lambda: app(words, prog_name="ideepdoctor", standalone_mode=False), words))


def _guarded(command: Callable[[], Any], words: list[str]) -> int:
    """Run the command; a standard output that takes nothing is quiet (nobody reads it) or one error (a full disk)."""
    try:
        return _answered(command, words)
    except OSError as error:
        from ideepdoctor.answering import cannot_write, finish_broken_pipe

        return finish_broken_pipe(0) if isinstance(error, BrokenPipeError) else cannot_write(error)
    except (KeyboardInterrupt, typer.Abort):
        return int(Exit.INTERRUPTED)
    except SystemExit as ended:
        # typer ends the process with 1 when nobody reads the help.
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
        from ideepdoctor.answering import finish_broken_pipe

        return finish_broken_pipe(0)


def _answered(command: Callable[[], Any], words: list[str]) -> int:
    try:
        result = command()
    except typer.TyperException as error:
        from ideepdoctor.terminal import usage_failure

        understood = getattr(getattr(error, "ctx", None), "command_path", "ideepdoctor")
        return usage_failure(error.format_message(), words, understood)
    except BrokenPipeError:
        from ideepdoctor.answering import finish_broken_pipe

        return finish_broken_pipe(0)
    return result if isinstance(result, int) else 0
