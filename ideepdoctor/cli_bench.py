"""The command group ``bench``: commands only, as in ``cli.py``."""

from __future__ import annotations

from typing import Annotated

import typer

from ideepdoctor import cli_complete
from ideepdoctor.cli_common import CommonTyper
from ideepdoctor.cli_options import (
    AlsoOption,
    BaselineOption,
    DryRunOption,
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

bench_app = CommonTyper(
    name="bench",
    help="Measure Chainer's engines side by side; compare, keep and draw what was measured.",
    invoke_without_command=True,
)


@bench_app.callback()
def bench(
    context: typer.Context,
    python: PythonOption = None,
    at: TargetOption = None,
    net: Annotated[
        str,
        typer.Option(
            "--net",
            envvar="IDEEPDOCTOR_NET",
            autocompletion=cli_complete.nets,
            help="Networks: alexnet,vgga...; all [the usual four].",
        ),
    ] = "",
    batch: Annotated[
        int | None,
        typer.Option("--batch", min=1, max=4096, envvar="IDEEPDOCTOR_BATCH", help="Images in a step [fits in memory]."),
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", envvar="IDEEPDOCTOR_ENGINE", help="Of ideep,tuned,numpy [all of them].")
    ] = "",
    peer: Annotated[
        list[str] | None,
        typer.Option("--peer", metavar="NAME[=PYTHON]", envvar="IDEEPDOCTOR_PEER", help="torch, mkl, opencv... too."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="FILE:FUNCTION", envvar="IDEEPDOCTOR_MODEL", help="Measure this model."),
    ] = None,
    blocks: Annotated[
        int, typer.Option("--blocks", min=2, max=1000, envvar="IDEEPDOCTOR_BLOCKS", help="Turns of each engine.")
    ] = 5,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.01, max=600, envvar="IDEEPDOCTOR_SECONDS", help="Length of a turn.")
    ] = 1.0,
    name: Annotated[
        str | None, typer.Option("--name", envvar="IDEEPDOCTOR_NAME", help="What charts call this machine.")
    ] = None,
    details: Annotated[
        bool, typer.Option("--details/--no-details", envvar="IDEEPDOCTOR_DETAILS", help="Layers and threads, too.")
    ] = True,
    chart: Annotated[
        str | None, typer.Option("--chart", envvar="IDEEPDOCTOR_CHART", help="Draw it: FILE.html, .svg or .png.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", envvar="IDEEPDOCTOR_BENCH_BASELINE", help="Run or file to compare with.")
    ] = None,
    fail_if_slower: Annotated[
        str | None,
        typer.Option(
            "--fail-if-slower", metavar="PERCENT", envvar="IDEEPDOCTOR_FAIL_IF_SLOWER", help="End with 1 if so: 10%."
        ),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep/--no-keep", envvar="IDEEPDOCTOR_KEEP", help="Keep the result.")] = True,
    emulator: EmulatorOption = None,
    yes: YesOption = False,
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
    fail_on: FailOnOption = Threshold.ERROR,
) -> None:
    """Measure Chainer's engines side by side; compare, keep and draw what was measured."""
    if context.invoked_subcommand is not None:
        return
    from ideepdoctor.commands.bench import BenchOptions
    from ideepdoctor.commands.bench import bench as command

    options = BenchOptions(
        target_options(python, emulator, at),
        words_of(net),
        batch,
        words_of(engine),
        tuple(peer or ()),
        model,
        blocks,
        seconds,
        name,
        details,
        baseline,
        "5%" if baseline is not None and fail_if_slower is None else fail_if_slower,
        chart,
        keep,
    )
    run_here(
        "bench",
        options.target,
        lambda session: command(session, options),
        Output(format, output, fail_on, yes=yes, also=also_of(also, output)),
    )


def tune(
    python: PythonOption = None,
    at: TargetOption = None,
    net: Annotated[
        str,
        typer.Option(
            "--net",
            envvar="IDEEPDOCTOR_NET",
            autocompletion=cli_complete.nets,
            help="Networks: alexnet,vgga... [alexnet].",
        ),
    ] = "",
    model: Annotated[
        str | None, typer.Option("--model", metavar="FILE:FUNCTION", envvar="IDEEPDOCTOR_MODEL", help="Your model.")
    ] = None,
    batch: Annotated[
        int | None, typer.Option("--batch", min=1, max=4096, envvar="IDEEPDOCTOR_BATCH", help="Images in a step [8].")
    ] = None,
    budget: Annotated[str, typer.Option("--budget", envvar="IDEEPDOCTOR_BUDGET", help="Time for all: 60s, 5m.")] = "5m",
    emulator: EmulatorOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
    baseline: BaselineOption = None,
    fail_on: FailOnOption = Threshold.ERROR,
) -> None:
    """Find the fastest setting that is also right, and leave it in the environment."""
    from ideepdoctor.commands.tune import TuneOptions
    from ideepdoctor.commands.tune import tune as command

    options = TuneOptions(target_options(python, emulator, at), words_of(net), batch, model, budget, dry_run)
    run_here(
        "tune",
        options.target,
        lambda session: command(session, options),
        Output(format, output, fail_on, yes=yes, baseline=baseline, also=also_of(also, output)),
    )


FilesArgument = Annotated[
    list[str], typer.Argument(metavar="FILE...", help="Results of bench, of any machines; or IDs of its history.")
]


@bench_app.command()
def compare(
    files: FilesArgument,
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
) -> None:
    """Set results of several machines against each other."""
    from ideepdoctor.commands.bench_files import compare as command

    run_command(
        "bench compare",
        lambda session: command(session, files),
        Output(format, output, also=also_of(also, output)),
    )


@bench_app.command()
def history(
    run: Annotated[str | None, typer.Argument(metavar="[ID]", help="Show this run; none: list all.")] = None,
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
) -> None:
    """List the runs that were kept, or show one of them."""
    from ideepdoctor.commands.bench_files import history as command

    run_command(
        "bench history",
        lambda session: command(session, run),
        Output(format, output, also=also_of(also, output)),
    )


@bench_app.command()
def chart(
    files: FilesArgument,
    output: Annotated[
        str, typer.Option("--output", "-o", envvar="IDEEPDOCTOR_OUTPUT", help="FILE.html, FILE.svg or FILE.png.")
    ],
    which: Annotated[
        str, typer.Option("--which", envvar="IDEEPDOCTOR_WHICH", help="Chart for svg and png; html has all.")
    ] = "",
    format: FormatOption = Format.TEXT,
    also: AlsoOption = None,
) -> None:
    """Draw results as a page that needs no network, or as a picture."""
    from ideepdoctor.commands.bench_files import chart as command

    run_command(
        "bench chart",
        lambda session: command(session, files, output, which),
        Output(format, also=also_of(also, output)),
    )
