"""``--help`` in other languages: the same page, translated where it is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer

from ideepdoctor.locale import tr, translating

_SHORT = 30
"""Columns of the first column, at most, as in English."""


class Formatter(typer.Context.formatter_class):  # type: ignore[valid-type,misc]
    """Writes what typer's own writes; in another language than English by columns of the terminal."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write how it is called."""
        super().write_usage(prog, args, f"{tr('Usage')}: " if translating() and prefix is None else prefix)

    def write_heading(self, heading: str) -> None:
        """Write a heading."""
        super().write_heading(tr(heading))

    def write_text(self, text: str) -> None:
        """Write paragraphs."""
        if not translating():
            super().write_text(text)
            return
        from ideepdoctor.locale import columns
        from ideepdoctor.locale.documents import paragraphs

        indent = " " * self.current_indent
        blocks = [columns.wrap(part, self.width, first=indent, rest=indent) for part in paragraphs(text)]
        self.write("\n\n".join("\n".join(lines) for lines in blocks) + "\n")

    def write_dl(self, rows: Sequence[tuple[str, str]], col_max: int = _SHORT, col_spacing: int = 2) -> None:
        """Write a list of names and what they mean."""
        if not translating():
            super().write_dl(rows, col_max, col_spacing)
            return
        from ideepdoctor.locale import columns

        indent = " " * self.current_indent
        first = min(max((columns.width(name) for name, _ in rows), default=0), col_max) + col_spacing
        for name, text in rows:
            told, bracket, more = text.partition("  [")
            lines = columns.wrap(told, max(self.width - first - 2, 10))
            if bracket:
                lines += columns.wrap(f"[{more}", max(self.width - first - 2, 10))
            if lines and columns.width(name) <= first - col_spacing:
                self.write(f"{indent}{columns.ljust(name, first)}{lines.pop(0)}\n")
            else:
                self.write(f"{indent}{name}\n")
            for line in lines:
                self.write(f"{indent}{' ' * first}{line}\n")


class Context(typer.Context):
    """Writes its help with ``Formatter``."""

    formatter_class = Formatter


def commands(group: Any, ctx: Any) -> list[tuple[str, str]]:
    """The commands of a group and what each is for, whole: what is translated cannot be cut first."""
    from ideepdoctor.locale.documents import paragraphs

    found = []
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if command is not None and not command.hidden:
            found.append((name, next(iter(paragraphs(command.help or "")), "")))
    return found
