"""The messages of the package: take them out of the syntax trees, and keep the Japanese catalogues in step with them.

    python tests/messages.py     # adds what is new to ideepdoctor/locale/ja/*.po, drops what is gone

A message is a string or an f-string of several words that a person may read. Its id is the text with each value
named after the expression that gives it: ``f"{path} is empty"`` is ``{path} is empty``. Documents (docstrings of rules
and of commands) are taken paragraph by paragraph. ``tests/locale/test_catalogues.py`` holds the catalogues to it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import polib

from ideepdoctor.locale.documents import paragraphs

PACKAGE = Path(__file__).parents[1] / "ideepdoctor"
CATALOGUES = PACKAGE / "locale" / "ja"
NOT_MESSAGES = Path(__file__).parent / "locale" / "not_messages.txt"
"""Strings of several words that nobody reads (patterns, programs): one a line, as Python writes them."""

UNREAD_CALLS = frozenset(
    {"compile", "search", "fullmatch", "match", "sub", "findall", "startswith", "endswith", "split"}
)
UNREAD_NAMES = frozenset(
    {"reproduction", "overlay", "source", "pattern", "PATTERN", "argv", "__all__", "log", "envvar"}
)
UNREAD_FILES = frozenset(
    {
        "cli_shells.py",
        "facts/vocabulary.py",
        "rules/signature_table.py",
        "symptoms/endings.py",
        "symptoms/table.py",
        "locale/",
        "payload/certify_cases.py",
        "payload/libraries.py",
    }
    | {"render/man.py", "model/manual.py"}  # a manual page is English
)
_UNREAD = re.compile(
    r"^(bold|dim) |^(SELECT|INSERT|CREATE|PRAGMA|DELETE) |^ideepdoctor( [a-z\d-]+| \{\w+\}| IDP\d+| --[a-z-]+)+$"
    r"|^(import|from|export) \S+$|^(import|from) [\w, ]+;|\\[bds.(]|\(\?[:imP]|^[\w, ]+(\|[\w ]+)+$"
)
"""Styles of rich, SQL, a command alone, programs, regular expressions."""
_WORDS = re.compile(r"[A-Za-z]{2,}")


def messages() -> dict[str, str]:
    """Every message and the catalogue that it belongs to, in the order of the files."""
    left_out = not_messages()
    found = dict.fromkeys((text for text in _of_help() if text not in left_out), "cli")
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if any(name.startswith(each) for each in UNREAD_FILES):
            continue
        for message in _of_module(ast.parse(path.read_text("utf-8")), name):
            if message not in left_out:
                found.setdefault(message, catalogue_of(name))
    return found


def not_messages() -> frozenset[str]:
    """What looks like a message and is none."""
    lines = NOT_MESSAGES.read_text("utf-8").splitlines() if NOT_MESSAGES.exists() else []
    return frozenset(ast.literal_eval(line) for line in lines if line and not line.startswith("#"))


def catalogue_of(module: str) -> str:
    """``rules-3`` for ``rules/idp305.py``, ``lint`` for ``lint/flow.py``, ``cli`` for what --help shows."""
    folder, slash, rest = module.partition("/")
    if not slash:
        return "cli" if folder.startswith("cli") else "top"
    family = re.match(r"idp(\d)", rest)
    return f"{folder}-{family[1]}" if family and folder == "rules" else folder


def template(node: ast.expr) -> str | None:
    """The message id of a string or f-string; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.replace("{", "{{").replace("}", "}}")
    if not isinstance(node, ast.JoinedStr):
        return None
    parts, used = [], []
    for value in node.values:
        if isinstance(value, ast.Constant):
            parts.append(str(value.value).replace("{", "{{").replace("}", "}}"))
        elif isinstance(value, ast.FormattedValue):
            name = _name_of(value.value)
            same = sum(each == name for each in used)
            used.append(name)
            parts.append("{" + (name if not same else f"{name}_{same + 1}") + "}")
    return "".join(parts)


def _of_module(tree: ast.Module, module: str) -> Iterator[str]:
    if not module.startswith("payload/"):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name.startswith("IDP"):
                yield from _document(ast.get_docstring(node, clean=True) or "")
    for text in _strings(tree):
        yield _with_names(text) if module.startswith("payload/") else text


def _with_names(text: str) -> str:
    """A message of a payload, which knows no f-strings: ``{value}`` for its ``%s``."""
    count = 0

    def name(found: re.Match[str]) -> str:
        nonlocal count
        if found[0] == "%%":
            return "%"
        if found[1]:
            return f"{{{found[1]}}}"
        count += 1
        return "{value}" if count == 1 else f"{{value_{count}}}"

    return re.sub(r"%(?:\((\w+)\))?[-\d.]*[sdrgfxi%]", name, text)


def _document(text: str) -> Iterator[str]:
    """The paragraphs of a docstring, without what is for programmers."""
    headings = ("What it checks", "Why it matters", "How to fix", "References")
    lines = [line for line in text.splitlines() if line.strip() not in headings]
    for end in ("\f", "\nArgs:", "\nRaises:"):
        lines = "\n".join(lines).split(end)[0].splitlines()
    for paragraph in paragraphs("\n".join(lines)):
        yield paragraph.replace("{", "{{").replace("}", "}}")


def _of_help() -> Iterator[str]:
    """What --help shows of every command."""
    from typer.main import get_command

    from ideepdoctor.cli import app

    commands = [get_command(app)]
    for command in commands:
        commands += getattr(command, "commands", {}).values()
        yield from _document(command.help or "")


def _strings(node: ast.AST) -> Iterator[str]:
    """Strings below a node that a person may read."""
    if isinstance(node, ast.Call) and _called(node) in UNREAD_CALLS:
        return
    if isinstance(node, ast.Call) and _called(node) in ("Sample", "Example"):
        yield from _strings(node.args[0])  # its name; what follows is a program, or facts
        return
    if isinstance(node, ast.Call) and _called(node) == "counted" and isinstance(node.args[1], ast.Constant):
        noun = str(node.args[1].value)
        yield from (f"{{count}} {noun}", f"{{count}} {noun}s")
        return
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(each, ast.Name) and each.id in UNREAD_NAMES for each in targets):
            return
    if isinstance(node, ast.keyword) and node.arg in UNREAD_NAMES:
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # a docstring
    if isinstance(node, ast.Constant | ast.JoinedStr):
        yield from _alternatives(node)
        if isinstance(node, ast.JoinedStr):
            for value in node.values:
                if isinstance(value, ast.FormattedValue):
                    yield from _strings(value.value)
        return
    for child in ast.iter_child_nodes(node):
        yield from _strings(child)


def _alternatives(node: ast.expr) -> Iterator[str]:
    """The message; where a value is one of two constants (a plural's s), one message for each of them."""
    if isinstance(node, ast.JoinedStr):
        for index, value in enumerate(node.values):
            inner = value.value if isinstance(value, ast.FormattedValue) else None
            if isinstance(inner, ast.IfExp):
                for branch in (inner.body, inner.orelse):
                    if isinstance(branch, ast.Constant) and isinstance(branch.value, str):
                        replaced: list[ast.expr] = [ast.Constant(branch.value)]
                    elif isinstance(branch, ast.JoinedStr):
                        replaced = list(branch.values)
                    else:
                        replaced = [ast.FormattedValue(branch, -1, None)]
                    yield from _alternatives(
                        ast.JoinedStr([*node.values[:index], *replaced, *node.values[index + 1 :]])
                    )
                return
    text = template(node) or ""
    if not text.startswith(("#!", '"""')) and "\nimport " not in text and "\ndef " not in text:
        yield from (
            line.strip() for line in text.split("\n") if is_message(line)
        )  # shown, and translated, line by line


def is_message(text: str) -> bool:
    """Whether a person may read it: several words with blanks between them."""
    bare = re.sub(r"\{\w+\}", " ", text)
    return len(_WORDS.findall(bare)) >= 2 and " " in text.strip() and not _UNREAD.search(text)


def _called(node: ast.Call) -> str:
    function = node.func
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _name_of(node: ast.expr) -> str:
    """A word for a value: the last name in the expression that gives it."""
    if isinstance(node, ast.Name):
        return node.id.strip("_") or "value"
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "join" and node.args:
            return _name_of(node.args[0])
        return _name_of(node.args[0]) if node.args else _called(node) or "value"
    if isinstance(node, ast.Subscript):
        return _name_of(node.value)
    if isinstance(node, ast.BinOp):
        return _name_of(node.left)
    if isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp):
        return _name_of(node.generators[0].iter)
    return "value"


def refresh() -> None:
    """Bring the catalogues up to date; translations of messages that still exist are kept."""
    known = {entry.msgid: entry.msgstr for path in CATALOGUES.glob("*.po") for entry in polib.pofile(str(path))}
    by_file: dict[str, list[str]] = {}
    for message, name in messages().items():
        by_file.setdefault(name, []).append(message)
    CATALOGUES.mkdir(exist_ok=True)
    for path in CATALOGUES.glob("*.po"):
        if path.stem not in by_file and path.stem != "words":
            path.unlink()
    for name, found in by_file.items():
        catalogue = polib.POFile(wrapwidth=120)
        catalogue.metadata = {"Language": "ja", "Content-Type": "text/plain; charset=UTF-8"}
        for message in found:
            flags = ["python-brace-format"] if re.search(r"\{\w+\}", message) else []
            catalogue.append(polib.POEntry(msgid=message, msgstr=known.get(message, ""), flags=flags))
        catalogue.save(str(CATALOGUES / f"{name}.po"))


if __name__ == "__main__":
    refresh()
