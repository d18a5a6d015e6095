"""Commands only: parse, call, render, exit code. What a command does is in ``commands/``."""

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
    from ideepdoctor.commands.session import Session
    from ideepdoctor.model.report import Report

app = CommonTyper(
    name="ideepdoctor",
    help="Installer and environment doctor for Chainer with Intel iDeep (ideep4py) on CPUs.",
    no_args_is_help=True,
)


class Exports(StrEnum):
    """What ``env`` can print."""

    SH = "sh"
    FISH = "fish"
    CSH = "csh"
    DOCKER = "docker"
    GITHUB = "github"
    JSON = "json"


class GetPython(StrEnum):
    """What ``setup --get-python`` gets an older Python with."""

    CONDA = "conda"
    PYENV = "pyenv"


class GuardAction(StrEnum):
    """What ``guard`` does."""

    STATUS = "status"
    ENABLE = "enable"
    DISABLE = "disable"


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


@app.command()
def cpu(
    python: PythonOption = None,
    at: TargetOption = None,
    emulator: EmulatorOption = None,
    why_not: Annotated[
        str | None,
        typer.Option(
            "--why-not",
            envvar="IDEEPDOCTOR_WHY_NOT",
            autocompletion=cli_complete.levels,
            help="Why not avx512, avx2, avx.",
        ),
    ] = None,
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
) -> None:
    """Show what this CPU has, what is left of it, and what each ideep4py needs."""
    from ideepdoctor.commands.cpu import cpu as command

    target = target_options(python, emulator, at)
    run_command(
        "cpu",
        lambda session: command(session, target, why_not),
        Output(format, output, also=also_of(also, output)),
    )


@app.command()
def libs(
    python: PythonOption = None,
    at: TargetOption = None,
    emulator: EmulatorOption = None,
    deep: Annotated[
        bool,
        typer.Option("--deep", envvar="IDEEPDOCTOR_DEEP", help="Whole disks, and every package in both import orders."),
    ] = False,
    tree: Annotated[
        bool, typer.Option("--tree", envvar="IDEEPDOCTOR_TREE", help="What ideep4py's module needs, as a tree.")
    ] = False,
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
    baseline: BaselineOption = None,
    fail_on: FailOnOption = Threshold.ERROR,
) -> None:
    """List every MKL, MKL-DNN and OpenMP library this target can meet: what it really is, who wins and why."""
    from ideepdoctor.commands.libs import LibsOptions
    from ideepdoctor.commands.libs import libs as command

    options = LibsOptions(target_options(python, emulator, at), deep=deep, tree=tree)
    run_command(
        "libs",
        lambda session: command(session, options),
        Output(format, output, fail_on, baseline=baseline, also=also_of(also, output)),
    )


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def run(
    words: Annotated[list[str] | None, typer.Argument(metavar="-- PROGRAM...", help="Program and arguments.")] = None,
    python: PythonOption = None,
    at: TargetOption = None,
    no_auto: Annotated[
        bool, typer.Option("--no-auto", envvar="IDEEPDOCTOR_NO_AUTO", help="Do not call to_intel64() for it.")
    ] = False,
    no_guard: Annotated[
        bool, typer.Option("--no-guard", envvar="IDEEPDOCTOR_NO_GUARD", help="Correct nothing (nor call to_intel64()).")
    ] = False,
) -> None:
    """Start a program with the right variables, what is known to be wrong corrected, and to_intel64() called for it."""
    from ideepdoctor.commands.run import RunOptions
    from ideepdoctor.commands.run import run as command

    options = RunOptions(target_options(python, None, at), tuple(words or ()), auto=not no_auto, guard=not no_guard)
    run_here("run", options.target, lambda session: command(session, options), Output(Format.TEXT))


@app.command()
def guard(
    action: Annotated[GuardAction, typer.Argument(help="status, enable or disable.")] = GuardAction.STATUS,
    python: PythonOption = None,
    at: TargetOption = None,
    emulator: EmulatorOption = None,
    yes: YesOption = False,
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
    baseline: BaselineOption = None,
    fail_on: FailOnOption = Threshold.ERROR,
) -> None:
    """Show, enable or disable what corrects known faults of Chainer with ideep4py."""
    from ideepdoctor.commands import guard as command
    from ideepdoctor.commands.session import refuse_elsewhere

    target = target_options(python, emulator, at)

    def act(session: Session) -> Report:
        if action is GuardAction.STATUS:
            return command.status(session, target)
        refuse_elsewhere(f"guard {action}", target)
        return command.switch(session, target, on=action is GuardAction.ENABLE)

    run_command("guard", act, Output(format, output, fail_on, yes=yes, baseline=baseline, also=also_of(also, output)))


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def trace(
    words: Annotated[list[str] | None, typer.Argument(metavar="-- PROGRAM...", help="Program and arguments.")] = None,
    python: PythonOption = None,
    at: TargetOption = None,
    auto: Annotated[
        bool,
        typer.Option(
            "--auto/--no-auto", envvar="IDEEPDOCTOR_AUTO_TRACED", help="Call to_intel64() for it, as run does."
        ),
    ] = False,
    no_guard: Annotated[
        bool, typer.Option("--no-guard", envvar="IDEEPDOCTOR_NO_GUARD", help="Correct nothing, even where set up.")
    ] = False,
    chrome: Annotated[
        str | None,
        typer.Option("--chrome", envvar="IDEEPDOCTOR_CHROME", help="Write every call to this file, for Perfetto."),
    ] = None,
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
) -> None:
    """Run a program, then say by line what iDeep computed, what NumPy and why, and what to change."""
    from ideepdoctor.commands.trace import TraceOptions
    from ideepdoctor.commands.trace import trace as command

    options = TraceOptions(
        target_options(python, None, at), tuple(words or ()), auto, not no_guard, output, format, chrome
    )
    run_here("trace", options.target, lambda session: command(session, options), Output(format, output))


@app.command()
def env(
    python: PythonOption = None,
    at: TargetOption = None,
    emulator: EmulatorOption = None,
    format: Annotated[
        Exports | None, typer.Option("--format", "-f", envvar="IDEEPDOCTOR_ENV_FORMAT", help="Dialect [sh].")
    ] = None,
    write: Annotated[
        str | None,
        typer.Option("--write", envvar="IDEEPDOCTOR_WRITE", help="env, rc, or a shell start-up file: write it there."),
    ] = None,
    yes: YesOption = False,
    output: OutputOption = None,
) -> None:
    """Print, or write, the variables that are right for this machine."""
    from ideepdoctor.commands import variables

    target = target_options(python, emulator, at)
    shown = Format.JSON if format is Exports.JSON else Format.TEXT
    if write is not None:
        shell = None if format in (None, Exports.JSON) else str(format)
        run_here(
            f"env --write {write}",
            target,
            lambda session: variables.write(session, target, write, shell),
            Output(shown, output, yes=yes),
        )
    run_command(
        "env",
        lambda session: variables.show(session, target, str(format or Exports.SH)),
        Output(shown, output),
    )


@app.command()
def smoke(
    python: PythonOption = None,
    at: TargetOption = None,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, envvar="IDEEPDOCTOR_THREADS", help="OMP_NUM_THREADS for the test.")
    ] = None,
    no_timing: Annotated[
        bool, typer.Option("--no-timing", envvar="IDEEPDOCTOR_NO_TIMING", help="Only used and right.")
    ] = False,
    emulator: EmulatorOption = None,
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
    baseline: BaselineOption = None,
    fail_on: FailOnOption = Threshold.ERROR,
) -> None:
    """Test in seconds: is iDeep really used, is it right, how much faster."""
    from ideepdoctor.commands.smoke import smoke as command

    target = target_options(python, emulator, at)
    run_command(
        "smoke",
        lambda session: command(session, target, threads=threads, timing=not no_timing),
        Output(format, output, fail_on, baseline=baseline, also=also_of(also, output)),
    )


@app.command()
def certify(
    python: PythonOption = None,
    at: TargetOption = None,
    budget: Annotated[
        str | None, typer.Option("--budget", envvar="IDEEPDOCTOR_BUDGET", help="Stop after this: 60s, 5m.")
    ] = None,
    ops: Annotated[
        str, typer.Option("--ops", envvar="IDEEPDOCTOR_OPS", help="Operations: conv,bn,concat,optimizers.")
    ] = "",
    threads: Annotated[
        str, typer.Option("--threads", envvar="IDEEPDOCTOR_CERTIFY_THREADS", help="Numbers of threads: 1,2,1cpu.")
    ] = "",
    model: Annotated[
        str | None,
        typer.Option(
            "--model", metavar="FILE:FUNCTION", envvar="IDEEPDOCTOR_MODEL", help="Try what this model gives to iDeep."
        ),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", envvar="IDEEPDOCTOR_FRESH", help="Forget earlier results.")] = False,
    emulator: EmulatorOption = None,
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
    baseline: BaselineOption = None,
    fail_on: FailOnOption = Threshold.ERROR,
) -> None:
    """Prove in minutes: every operation, many shapes, each number of threads, against float64. Goes on when stopped."""
    from ideepdoctor.commands.certify import CertifyOptions
    from ideepdoctor.commands.certify import certify as command

    options = CertifyOptions(
        target_options(python, emulator, at), budget, words_of(ops), words_of(threads), model, fresh
    )
    run_command(
        "certify",
        lambda session: command(session, options),
        Output(format, output, fail_on, baseline=baseline, also=also_of(also, output)),
    )


@app.command()
def lint(
    paths: Annotated[
        list[str], typer.Argument(metavar="FILE", help="Python files, notebooks, folders; - is standard input.")
    ],
    select: Annotated[
        str,
        typer.Option(
            "--select",
            envvar="IDEEPDOCTOR_SELECT",
            autocompletion=cli_complete.code_lists,
            help="Codes or families: IDP902,91x.",
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
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
    baseline: BaselineOption = None,
    fail_on: FailOnOption = Threshold.ERROR,
) -> None:
    """Say from the source of programs what keeps them from iDeep or is wrong with it. Runs nothing of them."""
    from ideepdoctor.commands.lint import LintOptions, lint_sources

    options = LintOptions(tuple(paths), words_of(select), words_of(ignore), baseline)
    run_command(
        "lint",
        lambda session: lint_sources(session, options),
        Output(format, output, fail_on, also=also_of(also, output)),
    )


@app.command()
def explain(
    code: Annotated[
        str | None,
        typer.Argument(metavar="[CODE]", autocompletion=cli_complete.codes, help="Such as IDP305; none: list all."),
    ] = None,
    log: Annotated[
        str | None, typer.Option("--log", metavar="FILE", envvar="IDEEPDOCTOR_LOG", help="Log of a build; - reads it.")
    ] = None,
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
) -> None:
    """Print a rule as a document, or list the rules; or say why a build failed, by its log."""
    from ideepdoctor.commands.explain import explain as command

    run_command(
        "explain",
        lambda session: command(code, log),
        Output(format, output, also=also_of(also, output)),
    )


@app.command()
def schema(
    output: OutputOption = None,
) -> None:
    """Print the JSON Schema of what --format json prints."""
    from ideepdoctor.commands.explain import schema as command

    run_command("schema", lambda session: command(), Output(Format.TEXT, output))


@app.command()
def probe(
    output: OutputOption = None,
) -> None:
    """Write one script for where no doctor runs: python probe.py > facts.json; then diagnose --facts facts.json."""
    from ideepdoctor.commands.diagnose import bare as command

    run_command("probe", lambda session: command(), Output(Format.TEXT, output))


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
