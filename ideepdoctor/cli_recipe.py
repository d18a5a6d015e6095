"""The command ``recipe``."""

from __future__ import annotations

from typing import Annotated

import typer

from ideepdoctor import cli_complete
from ideepdoctor.cli_options import FormatOption, run_command
from ideepdoctor.options import Format, Output


def recipe(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", autocompletion=cli_complete.recipes, help="Of the recipe; none: list all."),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", envvar="IDEEPDOCTOR_LIST", help="List all recipes.")] = False,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="DIR", envvar="IDEEPDOCTOR_RECIPE_OUTPUT", help="Write the files here."),
    ] = None,
    stack: Annotated[
        str | None,
        typer.Option(
            "--stack", envvar="IDEEPDOCTOR_STACK", autocompletion=cli_complete.stacks, help="Known-good stack."
        ),
    ] = None,
    python: Annotated[
        str | None,
        typer.Option(
            "--python",
            "-p",
            envvar="IDEEPDOCTOR_RECIPE_PYTHON",
            autocompletion=cli_complete.versions,
            help="Version that Chainer runs on: 3.7.",
        ),
    ] = None,
    requirement: Annotated[
        str,
        typer.Option(
            "--requirement",
            metavar="REQ",
            envvar="IDEEPDOCTOR_REQUIREMENT",
            help="How pip gets ideepdoctor there: name, wheel, folder, URL.",
        ),
    ] = "ideepdoctor",
    force: Annotated[
        bool, typer.Option("--force", envvar="IDEEPDOCTOR_FORCE", help="Replace files that differ.")
    ] = False,
    format: FormatOption = Format.TEXT,
) -> None:
    """Print or write files for containers, CI services and clusters, with the versions of a known-good stack."""
    from ideepdoctor.commands.recipe import RecipeOptions
    from ideepdoctor.commands.recipe import recipe as command

    if listed and name is not None:
        raise typer.BadParameter("a name and --list exclude each other", param_hint="--list")
    options = RecipeOptions(name, output, stack, python, requirement, force, several=format.for_machines)
    run_command("recipe", lambda session: command(session, options), Output(format))
