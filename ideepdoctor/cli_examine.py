"""The commands that look at a target, prove it, and start programs in it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ideepdoctor import cli_complete
from ideepdoctor.cli_options import (
    AlsoOption,
    BaselineOption,
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
    run_here,
    target_options,
    words_of,
)
from ideepdoctor.options import Format, Output

if TYPE_CHECKING:
    from ideepdoctor.commands.session import Session
    from ideepdoctor.model.report import Report


class Exports(StrEnum):
    """What ``env`` can print."""

    SH = "sh"
    FISH = "fish"
    CSH = "csh"
    DOCKER = "docker"
    GITHUB = "github"
    JSON = "json"


class GuardAction(StrEnum):
    """What ``guard`` does."""

    STATUS = "status"
    ENABLE = "enable"
    DISABLE = "disable"


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


EXAMINE_COMMANDS = (cpu, libs, run, guard, trace, env, smoke, certify)
"""In the order of --help."""
PASSING_COMMANDS = (run, trace)
"""Those that pass the words after their own options on to a program."""
PASSED_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False}
"""What typer is told for them."""
