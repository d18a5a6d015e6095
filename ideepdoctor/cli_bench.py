"""The command group ``bench``: commands only, as in ``cli.py``."""

from __future__ import annotations

import typer

bench_app = typer.Typer(
    name="bench",
    help="Measure Chainer's engines side by side; compare, keep and draw what was measured.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
