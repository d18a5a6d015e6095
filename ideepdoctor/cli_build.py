"""Commands that make what ``setup`` installs: commands only, as in ``cli.py``."""

from __future__ import annotations

from typing import Annotated

import typer

from ideepdoctor.cli_options import (
    AlsoOption,
    BaselineOption,
    DryRunOption,
    FailOnOption,
    FormatOption,
    IndexUrlOption,
    OfflineOption,
    PythonOption,
    Threshold,
    WheelhouseOption,
    YesOption,
    also_of,
    run_command,
    source_options,
)
from ideepdoctor.options import Format, Output


def build(
    python: PythonOption = None,
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="URL|DIR|FILE", envvar="IDEEPDOCTOR_SOURCE", help="git, folder, archive."),
    ] = None,
    ref: Annotated[
        str | None, typer.Option("--ref", envvar="IDEEPDOCTOR_REF", help="Tag or commit [what fits Chainer].")
    ] = None,
    chainer: Annotated[
        str | None, typer.Option("--chainer", envvar="IDEEPDOCTOR_CHAINER", help="Version of Chainer to serve.")
    ] = None,
    march: Annotated[
        str, typer.Option("--march", envvar="IDEEPDOCTOR_MARCH", help="native, x86-64-v3, haswell...")
    ] = "native",
    mkl: Annotated[
        str, typer.Option("--mkl", metavar="wheel|none|auto|DIR", envvar="IDEEPDOCTOR_MKL", help="Where MKL is from.")
    ] = "wheel",
    mkldnn_source: Annotated[
        str | None,
        typer.Option("--mkldnn-source", metavar="URL", envvar="IDEEPDOCTOR_MKLDNN_SOURCE", help="Where MKL-DNN is."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, max=1024, envvar="IDEEPDOCTOR_JOBS", help="Compilers at once."),
    ] = None,
    made: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="DIR", envvar="IDEEPDOCTOR_BUILD_OUTPUT", help="For the wheel."),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify/--no-verify", envvar="IDEEPDOCTOR_VERIFY", help="Prove the wheel before.")
    ] = True,
    fresh: Annotated[
        bool, typer.Option("--fresh", envvar="IDEEPDOCTOR_FRESH", help="Use nothing that an earlier run kept.")
    ] = False,
    offline: OfflineOption = False,
    wheelhouse: WheelhouseOption = None,
    index_url: IndexUrlOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    format: FormatOption = Format.TEXT,
    also: AlsoOption = None,
    baseline: BaselineOption = None,
    fail_on: FailOnOption = Threshold.ERROR,
) -> None:
    """Build ideep4py from source, for Pythons that no wheel exists for too, and prove what was built."""
    from ideepdoctor.commands.build import BuildOptions
    from ideepdoctor.commands.build import build as command

    files = source_options(offline, wheelhouse, index_url)
    options = BuildOptions(
        python, source, ref, chainer, march, mkl, mkldnn_source, jobs, made, verify, fresh, dry_run, files
    )
    run_command(
        "build",
        lambda session: command(session, options),
        Output(format, None, fail_on, yes=yes, baseline=baseline, also=also_of(also, None)),
    )
