"""The commands that need no target: about source, about rules and logs, and what others can use."""

from __future__ import annotations

from typing import Annotated

import typer

from ideepdoctor import cli_complete
from ideepdoctor.cli_common import common
from ideepdoctor.cli_options import (
    AlsoOption,
    BaselineOption,
    FailOnOption,
    FormatOption,
    OutputOption,
    Threshold,
    also_of,
    run_command,
    words_of,
)
from ideepdoctor.options import Format, Output


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


def explain(
    code: Annotated[
        str | None,
        typer.Argument(metavar="[CODE]", autocompletion=cli_complete.codes, help="Such as IDP305; none: list all."),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option("--log", metavar="FILE", envvar="IDEEPDOCTOR_LOG", help="Log of a run or a build; - reads it."),
    ] = None,
    error: Annotated[
        str | None,
        typer.Option("--error", metavar="TEXT", envvar="IDEEPDOCTOR_ERROR", help="What it said before it ended."),
    ] = None,
    exit_code: Annotated[
        str | None,
        typer.Option(
            "--exit",
            metavar="CODE",
            envvar="IDEEPDOCTOR_EXIT",
            autocompletion=cli_complete.endings,
            help="How it ended: 132, -4, SIGILL, hang.",
        ),
    ] = None,
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
) -> None:
    """Print a rule as a document, or list the rules; or say what is behind an error, a log, a signal, what is piped."""
    from ideepdoctor.commands.explain import Symptoms
    from ideepdoctor.commands.explain import explain as command

    symptoms = Symptoms(log, error, exit_code, details=common().verbose > 0)
    run_command(
        "explain",
        lambda session: command(code, symptoms),
        Output(format, output, also=also_of(also, output)),
    )


def schema(
    output: OutputOption = None,
) -> None:
    """Print the JSON Schema of what --format json prints."""
    from ideepdoctor.commands.explain import schema as command

    run_command("schema", lambda session: command(), Output(Format.TEXT, output))


def probe(
    output: OutputOption = None,
) -> None:
    """Write one script for where no doctor runs: python probe.py > facts.json; then diagnose --facts facts.json."""
    from ideepdoctor.commands.diagnose import bare as command

    run_command("probe", lambda session: command(), Output(Format.TEXT, output))


DOCUMENT_COMMANDS = (lint, explain, schema, probe)
