"""What the modules of the command line share: options that many commands have, and how a command is run."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ideepdoctor import cli_complete
from ideepdoctor.cli_common import common
from ideepdoctor.options import Format, Output

if TYPE_CHECKING:
    from ideepdoctor.commands.session import Session, TargetOptions
    from ideepdoctor.commands.source import SourceOptions
    from ideepdoctor.model.report import Report


class Threshold(StrEnum):
    """The mildest severity that makes a command end with 1."""

    ERROR = "error"
    WARNING = "warning"
    NEVER = "never"


PythonOption = Annotated[
    str | None,
    typer.Option(
        "--python",
        "-p",
        envvar="IDEEPDOCTOR_PYTHON",
        autocompletion=cli_complete.pythons,
        help="Interpreter, version (3.7) or environment.",
    ),
]
TargetOption = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="WHERE",
        envvar="IDEEPDOCTOR_TARGET",
        help="ssh:HOST, docker:NAME, podman:NAME, kubectl:POD, conda:NAME.",
    ),
]
EmulatorOption = Annotated[
    str | None,
    typer.Option("--emulator", envvar="IDEEPDOCTOR_EMULATOR", help='Start Python under this: "qemu-x86_64 -cpu max".'),
]
FormatOption = Annotated[
    Format, typer.Option("--format", "-f", envvar="IDEEPDOCTOR_FORMAT", help="For people, or for machines.")
]
OutputOption = Annotated[
    str | None, typer.Option("--output", "-o", envvar="IDEEPDOCTOR_OUTPUT", help="Write the result to this file.")
]
FailOnOption = Annotated[
    Threshold, typer.Option("--fail-on", envvar="IDEEPDOCTOR_FAIL_ON", help="Mildest severity that ends with 1.")
]
AlsoOption = Annotated[
    list[str] | None,
    typer.Option("--also", metavar="FORMAT:FILE", envvar="IDEEPDOCTOR_ALSO", help="Write it in this format, too."),
]
BaselineOption = Annotated[
    str | None,
    typer.Option("--baseline", metavar="FILE", envvar="IDEEPDOCTOR_BASELINE", help="Only what is not in it counts."),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", envvar="IDEEPDOCTOR_YES", help="Do not ask.")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", "-n", envvar="IDEEPDOCTOR_DRY_RUN", help="Show the plan, change nothing.")
]
OfflineOption = Annotated[
    bool, typer.Option("--offline", envvar="IDEEPDOCTOR_OFFLINE", help="Use no network: --wheelhouse, or the caches.")
]
WheelhouseOption = Annotated[
    str | None,
    typer.Option("--wheelhouse", metavar="DIR", envvar="IDEEPDOCTOR_WHEELHOUSE", help="Take files from here first."),
]
IndexUrlOption = Annotated[
    str | None,
    typer.Option("--index-url", metavar="URL", envvar="IDEEPDOCTOR_INDEX_URL", help="A mirror of the package index."),
]


def run_command(name: str, command: Callable[[Session], Report], output: Output) -> NoReturn:
    """Run a command, print its report, leave with its exit code: see ``terminal.run``."""
    from dataclasses import replace

    from ideepdoctor.terminal import run

    told = common()
    run(name, command, replace(output, verbose=told.verbose, quiet=told.quiet, log_file=told.log_file))


def run_here(name: str, target: TargetOptions, command: Callable[[Session], Report], output: Output) -> NoReturn:
    """``run_command``, for a command that works on this machine alone."""

    def checked(session: Session) -> Report:
        from ideepdoctor.commands.session import refuse_elsewhere

        refuse_elsewhere(name, target)
        return command(session)

    run_command(name, checked, output)


def target_options(python: str | None, emulator: str | None, at: str | None = None) -> TargetOptions:
    """The target as the command line names it."""
    import shlex

    from ideepdoctor.commands.session import TargetOptions

    return TargetOptions(python, tuple(shlex.split(emulator or "")), at or None)


def source_options(offline: bool, wheelhouse: str | None, index_url: str | None) -> SourceOptions:
    """Where files come from as the command line says it; the URL goes to the installers by the environment."""
    import os

    from ideepdoctor.commands.source import SourceOptions

    if index_url:
        os.environ["IDEEPDOCTOR_INDEX_URL"] = index_url
    return SourceOptions(offline, wheelhouse or None, index_url or None)


def words_of(text: str) -> tuple[str, ...]:
    """The words of a list with commas or blanks between them."""
    return tuple(word for word in text.replace(",", " ").split() if word)


def also_of(words: list[str] | None, output: str | None) -> tuple[tuple[Format, str], ...]:
    """Formats and files of ``--also``.

    Args:
        words: ``FORMAT:FILE`` each.
        output: file of ``--output``; None: standard output.

    Raises:
        typer.BadParameter: no format or no file; standard output; a file that is named twice, by --output too.
    """
    import os

    found = []
    taken = set() if output is None else {os.path.realpath(output)}
    for word in words or ():
        form, colon, path = word.partition(":")
        if form not in list(Format) or not colon or not path:
            known = ", ".join(Format)
            raise typer.BadParameter(f"{word!r} is not FORMAT:FILE with a FORMAT of {known}", param_hint="--also")
        if path == "-":
            said = f"{word!r} is standard output: it has what --format says (--format {form})"
            raise typer.BadParameter(said, param_hint="--also")
        place = os.path.realpath(path)
        if place in taken:
            raise typer.BadParameter(f"{path!r} is named twice: each format needs its own file", param_hint="--also")
        taken.add(place)
        found.append((Format(form), path))
    return tuple(found)
