"""A page for each command, out of the command line itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from docs.generate.markdown import plain, table
from docs.generate.words import Words
from ideepdoctor.cli import app
from ideepdoctor.cli_manual import commands, common_options
from ideepdoctor.locale import documents
from ideepdoctor.model.manual import ManualCommand, ManualEntry
from ideepdoctor.render.man import EXAMPLES, FILES, VARIABLES


def pages(words: Words) -> Mapping[str, str]:
    """``commands/NAME.md``, where a group has its commands, and ``commands/index.md``."""
    listed = commands(app)
    groups: dict[str, list[ManualCommand]] = {}
    for command in listed:
        groups.setdefault(command.name.split()[0], []).append(command)
    made = {f"commands/{name}.md": _page(group, words) for name, group in groups.items()}
    made["commands/index.md"] = _index(groups, words)
    return made


def _page(group: Sequence[ManualCommand], words: Words) -> str:
    lines = [f"# {group[0].name}", ""]
    for number, command in enumerate(group):
        lines += [f"## {command.name}", ""] if number else []
        lines += ["```text", f"ideepdoctor {command.name} {command.usage}".rstrip(), "```", ""]
        lines += [*_told(command.text, words), ""]
        lines += _entries(words("Arguments"), command.arguments, words) if command.arguments else []
        lines += _entries(words("Options"), command.options, words) if command.options else []
    lines += [words("Options of every command, exit codes and files: [Commands](index.md)."), ""]
    return "\n".join(lines)


def _told(text: str, words: Words) -> list[str]:
    if words.translate is not None:
        text = documents.translated(text, words.translate)
    return [plain(line) for line in re.sub(r"(?m)^\* ", "", text).splitlines()]


def _entries(head: str, entries: Iterable[ManualEntry], words: Words) -> list[str]:
    rows = []
    for entry in entries:
        notes = [note for note in entry.notes if note]
        told = plain(words.said(entry.text)) + (f" ({plain('; '.join(notes))})" if notes else "")
        rows.append((f"`{entry.names}`", told, f"`{entry.variable}`" if entry.variable else ""))
    return table((head, words("What for"), words("Variable")), rows)


def _index(groups: Mapping[str, Sequence[ManualCommand]], words: Words) -> str:
    rows = []
    for name, group in groups.items():
        first = group[0].text.split("\n\n")[0]
        told = " ".join(_told(first, words)) if first else ""
        rows.append((f"[`{name}`]({name}.md)", told))
    lines = [f"# {words('Commands')}", "", *table((words("Command"), words("What it does")), rows)]
    lines += [f"## {words('Options of every command')}", ""]
    lines += _entries(words("Option"), common_options(app), words)
    lines += [f"## {words('Variables')}", ""]
    lines += [words("Every option has a variable, which is named with it; an option that is given wins."), ""]
    lines += table(
        (words("Variable"), words("What for")), [(f"`{name}`", _said(text, words)) for name, text in VARIABLES]
    )
    lines += [f"## {words('Files')}", ""]
    lines += table((words("File"), words("What it is")), [(f"`{name}`", _said(text, words)) for name, text in FILES])
    if words.language == "en":
        lines += ["## Examples", "", *table(("Task", "Command"), [(what, f"`{line}`") for what, line in EXAMPLES])]
    return "\n".join([*lines, "```{toctree}", ":hidden:", "", *groups, "```", ""])


def _said(text: str, words: Words) -> str:
    """The manual page is English in every language."""
    return plain(words.own.get(text, text))
