"""Options that every command has: declared once, added by the classes of commands and groups, told by ``common()``.

An application is made with ``CommonTyper``; its commands and groups then need no ``cls=``. A further common option is a
further field of ``Common``: nothing else has to be changed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup, TyperOption

from ideepdoctor.cli_help import Context, commands
from ideepdoctor.cli_narrow import narrowed
from ideepdoctor.locale import LANGUAGES, language_of, translating, use
from ideepdoctor.options import said

if TYPE_CHECKING:
    from collections.abc import Callable

SECTION = "Common options"
"""The heading under which ``--help`` and the manual page show them."""
COMPLETING = "_IDEEPDOCTOR_COMPLETE"
"""A shell asks for completions: see ``cli_shells``."""
_KEY = "ideepdoctor.common"


_SWITCH = {"true": 1, "yes": 1, "on": 1, "false": 0, "no": 0, "off": 0}


def _level(text: str) -> int:
    """How often ``-v`` was said, or what its variable says: a number, or a word of a switch. Raises ValueError."""
    word = str(text).strip().lower()
    if word in _SWITCH:
        return _SWITCH[word]
    if not word.isdecimal():
        raise ValueError(f"{text!r} is no number")
    return int(word)


@dataclass(frozen=True, slots=True)
class Common:
    """What the common options were set to, by the command line or by their variables.

    Attributes:
        lang: language of what people read; None: that of LC_ALL, LC_MESSAGES or LANG, where there is a catalogue of it.
        quiet: results and errors only.
        log_file: file that a line of JSON is appended to for everything that happens.
        verbose: 1: evidence, notes, commands started; 2: also times, what was read, versions.
    """

    lang: Annotated[
        str | None,
        typer.Option("--lang", metavar="en|ja", envvar="IDEEPDOCTOR_LANG", help="Language of what people read."),
    ] = None
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", envvar="IDEEPDOCTOR_QUIET", help="Results and errors only: no progress.")
    ] = False
    log_file: Annotated[
        str | None,
        typer.Option(
            "--log-file", metavar="FILE", envvar="IDEEPDOCTOR_LOG_FILE", help="Append what happens, as JSON lines."
        ),
    ] = None
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            parser=_level,
            envvar="IDEEPDOCTOR_VERBOSE",
            help="Evidence, notes, commands started; -vv: also times, what was read, versions.",
        ),
    ] = 0


_CHOSEN: ContextVar[Common] = ContextVar("common")


def common() -> Common:
    """What the common options of the command that runs were set to; the defaults where none runs."""
    return _CHOSEN.get(Common())


def noted(context: typer.Context) -> Common:
    """What was read of the common options until now."""
    return Common(**context.meta.get(_KEY, {}))


def _keep(context: Any, parameter: Any, value: Any) -> Any:
    """Note what an option was set to; one that stands before the command's name holds where the command has none."""
    if parameter.name == "lang" and value:
        _speak(value)
    known = context.meta.setdefault(_KEY, {})
    source = context.get_parameter_source(parameter.name)
    if parameter.name not in known or (source is not None and source.name == "COMMANDLINE"):
        known[parameter.name] = value
    return value


def _speak(language: str) -> None:
    """Print in a language from now on. Raises typer.BadParameter."""
    try:
        use(language_of({}, language))
    except ValueError:
        raise typer.BadParameter(f"{language!r} is not one of {', '.join(LANGUAGES)}", param_hint="--lang") from None


def speak(words: Iterable[str], environ: Mapping[str, str]) -> None:
    """Choose the language before the command line is read: ``--help`` is answered while it is.

    Args:
        words: the command line; a ``--lang`` in it that is wrong is reported when it is read.
        environ: IDEEPDOCTOR_LANG, LC_ALL, LC_MESSAGES, LANG.
    """
    asked = said(words, "--lang")
    with suppress(ValueError):
        use(language_of(environ, environ.get("IDEEPDOCTOR_LANG") if asked is None else asked))


def _declared() -> tuple[TyperOption, ...]:
    declaring = typer.Typer(add_completion=False, rich_markup_mode=None)
    declaring.command()(Common)
    options = tuple(cast(TyperOption, option) for option in typer.main.get_command(declaring).params)
    for option in options:
        option.callback, option.expose_value, option.is_eager = _keep, False, True
        option.show_default = False
    return options


COMMON: tuple[TyperOption, ...] = _declared()
"""The options themselves, in the order in which they are shown."""


def _with_common(params: Iterable[Any] | None) -> list[Any]:
    own = list(params or ())
    names = {name for param in own for name in (*param.opts, *param.secondary_opts)}
    return [*own, *(option for option in COMMON if names.isdisjoint(option.opts))]


@contextmanager
def _told(context: typer.Context) -> Iterator[None]:
    """``common()`` tells what was noted while the command runs."""
    before = _CHOSEN.set(noted(context))
    try:
        yield
    finally:
        _CHOSEN.reset(before)


def _write_options(command: TyperCommand | TyperGroup, context: typer.Context, formatter: Any) -> None:
    """Write the sections of ``--help``: arguments, the command's own options, the common ones."""
    parts: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], SECTION: []}
    for param in command.get_params(context):
        row = param.get_help_record(context)
        if row is not None:
            own = "Arguments" if param.param_type_name == "argument" else "Options"
            parts[SECTION if param in COMMON else own].append(row)
    for title, rows in parts.items():
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)


class CommonCommand(TyperCommand):
    """A command with the common options, before, between and after its own; after ``--`` they are the program's."""

    context_class = Context

    def __init__(self, name: str | None, **settings: Any) -> None:
        super().__init__(name, **{**settings, "params": _with_common(settings.get("params"))})

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options into the help."""
        _write_options(self, ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        """Run it."""
        with _told(ctx):
            return super().invoke(ctx)


class CommonGroup(TyperGroup):
    """A group of commands with the common options: before the name of a command they hold for it, too."""

    context_class = Context

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "params": _with_common(settings.get("params"))})

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options and the commands into the help."""
        _write_options(self, ctx, formatter)
        if not translating():
            self.format_commands(ctx, formatter)
            return
        with formatter.section("Commands"):
            formatter.write_dl(commands(self, ctx))

    def invoke(self, ctx: Any) -> Any:
        """Run it, or one of its commands."""
        with _told(ctx):
            return super().invoke(ctx)


class CommonTyper(typer.Typer):
    """An application whose commands and groups have the common options, and none of typer's ornaments.

    Args:
        settings: of ``typer.Typer``.
    """

    def __init__(self, **settings: Any) -> None:
        plain: dict[str, Any] = {
            "cls": CommonGroup,
            "add_completion": False,
            "pretty_exceptions_enable": False,
            "rich_markup_mode": None,
            "context_settings": {"help_option_names": ["-h", "--help"]},
        }
        super().__init__(**{**plain, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """As that of ``typer.Typer``, with the common options."""
        return super().command(name, **{"cls": CommonCommand, **settings})

    def __call__(self, words: Sequence[str], **settings: Any) -> Any:
        """Run the command that the words ask for."""
        with_values = [name for option in COMMON if not option.is_flag and not option.count for name in option.opts]
        if COMPLETING in os.environ:
            from ideepdoctor.cli_shells import answer, words_of

            typed = words_of(os.environ)
            sys.stdout.write(answer(typer.main.get_command(narrowed(self, typed, with_values)), os.environ))
            return 0
        return typer.Typer.__call__(narrowed(self, words, with_values), words, **settings)
