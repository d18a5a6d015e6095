"""Python 2 source made readable for ``ast``: every edit keeps the line, and columns can be told back. Pure.

The grammar is that of fissix, the maintained fork of lib2to3. Its fixers are not used: they move lines. Here a node of
its tree becomes an edit of the text, of the same width where that is possible. What a program computes may change by
it (``raise E, V`` becomes ``raise(E, V)``); names, calls, their order and their places do not.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

_NAMES_OF_TODAY = ("async", "await")
"""Keywords of Python 3 that are names in Python 2 (``to_gpu(x, async=True)``)."""
_ESCAPE = re.compile(r"\\(?=[uUNx])")


class NotPython2(Exception):
    """The text is no Python 2 either; ``line`` says where the parser stopped, None where it does not say."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement in one line or, of the same shape, in several.

    Attributes:
        line: from 1.
        column: from 0, in characters.
        length: characters replaced, line ends among them.
        text: what stands there instead; it has as many line ends.
    """

    line: int
    column: int
    length: int
    text: str


@dataclass(frozen=True, slots=True)
class Converted:
    """Text that ``ast`` may read, and how its columns map to those of the source.

    Attributes:
        text: as many lines as the source.
        moved: for each line that was changed, (column in ``text``, characters inserted before it), ascending.
    """

    text: str
    moved: dict[int, list[tuple[int, int]]]

    def column(self, line: int, column: int) -> int:
        """The source's column of a column of ``text``; both count characters from 0."""
        inserted = 0
        for start, shift in self.moved.get(line, ()):
            if start > column:
                break
            inserted = shift
        return max(0, column - inserted)


def convert(text: str) -> Converted:
    """Turn Python 2 source into text for ``ast``.

    Args:
        text: with ``\\n`` as the only line end.

    Raises:
        NotPython2: the grammar of Python 2 does not allow it.
        RecursionError: it is nested too deeply.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        edits = list(_edits(_parse(text)))
        converted = _apply(text, edits)
        try:
            ast.parse(converted.text)
        except TabError:
            return _apply(text, [*edits, *_tabs(text)])
        except (SyntaxError, ValueError):
            pass  # whoever asked parses it again, and reports
        return converted


@cache
def _grammars() -> tuple[Any, ...]:
    """With the print statement, with the print function, and with exec as a function too."""
    from fissix.pgen2 import pgen  # type: ignore[import-untyped]

    # Not fissix.pygram: it keeps a pickle in the user's cache folder.
    with_statements = pgen.generate_grammar(str(files("fissix") / "Grammar.txt"))
    without_print = with_statements.copy()
    del without_print.keywords["print"]
    without_both = without_print.copy()
    del without_both.keywords["exec"]
    return with_statements, without_print, without_both


def _parse(text: str) -> Any:
    from fissix import pytree  # type: ignore[import-untyped]
    from fissix.pgen2 import driver, parse, tokenize

    failed: NotPython2 | None = None
    grammars = _grammars()
    function = re.search(r"^from\s+__future__\s+import\b.*\bprint_function\b", text, re.MULTILINE)
    for grammar in grammars[1:] if function else grammars:
        try:
            return driver.Driver(grammar, convert=pytree.convert).parse_string(text + "\n")
        except parse.ParseError as error:
            place = error.context[1] if error.context else (None, 0)
            failed = failed or NotPython2("invalid syntax", place[0])
        except (tokenize.TokenError, IndentationError) as error:
            told = error.args[1] if len(error.args) > 1 else ()
            numbers = [item for item in told if isinstance(item, int)]
            failed = failed or NotPython2(str(error.args[0]), numbers[0] if numbers else None)
    raise failed or NotPython2("invalid syntax", None)


def _edits(tree: Any) -> Iterator[Edit]:
    names = {number: name for name, number in _grammars()[0].symbol2number.items()}
    hidden: set[int] = set()
    counter = iter(range(1, 1_000_000))
    for node in tree.pre_order():
        if id(node) in hidden:
            continue
        kind = names.get(node.type, "")
        if not node.children:
            yield from _leaf(node)
            if node.value in ("True", "False") and _is_plain_name(node, names):
                yield Edit(node.lineno, node.column, len(node.value), node.value[:-1] + "_")
            continue
        several = kind == "raise_stmt" and len(node.children) > 2 and str(node.children[2]).strip() == ","
        if several or kind in ("print_stmt", "exec_stmt"):
            yield from _as_call(node)
        elif kind == "except_clause" and len(node.children) == 4 and node.children[2].value == ",":
            yield from _named_except(node, hidden)
        elif kind in ("tfpdef", "vfpdef") and str(node.children[0]).strip() == "(":
            hidden.update(id(item) for item in node.pre_order())
            yield _instead(node, f"_{next(counter)}")
        elif kind == "atom" and {_is_bytes(item) for item in node.children} == {True, False}:
            hidden.update(id(item) for item in node.children)
            yield from _one_kind(node)
        elif kind in ("comp_for", "old_comp_for"):
            yield from _bare_tuple(node, names)


def _leaf(leaf: Any) -> Iterator[Edit]:
    value: str = leaf.value
    if not value:
        return
    if value == "`":
        yield Edit(leaf.lineno, leaf.column, 1, "(" if leaf.parent.children[0] is leaf else ")")
    elif value == "<>":
        yield Edit(leaf.lineno, leaf.column, 2, "!=")
    elif value in _NAMES_OF_TODAY and _is_name(leaf):
        yield Edit(leaf.lineno, leaf.column, 5, value[:-1] + "_")
    elif value[0].isdigit():
        number = value.rstrip("lL")
        if re.fullmatch(r"0[0-7]+", number):
            number = str(int(number, 8))
        if number != value:
            yield Edit(leaf.lineno, leaf.column, len(value), number.ljust(len(value)))
    elif value[-1] in "'\"":
        text = _string(value)
        if text != value:
            yield Edit(leaf.lineno, leaf.column, len(value), text)


def _is_plain_name(leaf: Any, names: dict[int, str]) -> bool:
    """Whether True stands where Python 3 wants a name: ``xmlrpclib.True``, ``from __builtin__ import True``."""
    if leaf.prev_sibling is not None and str(leaf.prev_sibling).strip() == ".":
        return True
    return names.get(leaf.parent.type, "") in ("import_from", "import_as_name", "import_as_names", "dotted_name")


def _is_name(leaf: Any) -> bool:
    from fissix.pgen2 import token

    return bool(leaf.type == token.NAME)


def _string(value: str) -> str:
    """A string literal that Python 3 reads, of the same shape but for the ``u`` of ``ur``."""
    quote = min(value.find(mark) for mark in "'\"" if mark in value)
    prefix, body = value[:quote], value[quote:]
    if prefix.lower() == "ur":
        prefix = prefix[1:]
    if "b" in prefix.lower() and not body.isascii():
        body = "".join(letter if letter.isascii() else "?" for letter in body)
    try:
        ast.literal_eval(prefix + body)
    except (SyntaxError, ValueError):
        # '\Users' is text in Python 2, and half an escape in Python 3.
        body = _ESCAPE.sub("/", body)
    return prefix + body


def _is_bytes(leaf: Any) -> bool | None:
    """Whether a literal is bytes, for Python 3; None where the leaf is no literal."""
    value = str(leaf).strip()
    if leaf.children or not value or value[-1] not in "'\"":
        return None
    return "b" in value[: min(value.find(mark) for mark in "'\"" if mark in value)].lower()


def _one_kind(node: Any) -> Iterator[Edit]:
    """``'a' b'b'`` without the ``b``: Python 3 does not join the two."""
    for leaf in node.children:
        prefix = len(leaf.value) - len(leaf.value.lstrip("bBrRuU"))
        text = leaf.value[:prefix].replace("b", "").replace("B", "") + leaf.value[prefix:]
        yield Edit(leaf.lineno, leaf.column, len(leaf.value), _string(text))


def _first(node: Any) -> Any:
    return next(iter(node.leaves()))


def _end(node: Any) -> tuple[int, int]:
    """Line and column after the last token of a node."""
    last = list(node.leaves())[-1]
    lines = last.value.split("\n")
    return last.lineno + len(lines) - 1, len(lines[-1]) + (last.column if len(lines) == 1 else 0)


def _as_call(node: Any) -> Iterator[Edit]:
    """``print a, b`` as ``print(a, b)``: likewise exec and raise; ``print >>f, a`` as ``print(  f, a)``."""
    word, after = node.children[0], _first(node.children[1])
    start = word.column + len(word.value)
    yield Edit(word.lineno, start, 1 if after.prefix.startswith((" ", "\t")) else 0, "(")
    if after.value == ">>":
        yield Edit(after.lineno, after.column, 2, "  ")
    line, column = _end(node)
    yield Edit(line, column, 0, ")")


def _named_except(node: Any, hidden: set[int]) -> Iterator[Edit]:
    comma, target = node.children[2], node.children[3]
    yield Edit(comma.lineno, comma.column, 1, " as" if _first(target).prefix else " as ")
    if target.children:  # except E, (a, b): and except E, self.error:
        hidden.update(id(item) for item in target.pre_order())
        yield _instead(target, "_")


def _instead(node: Any, name: str) -> Edit:
    """A name in place of a node; spaces and the same line ends keep what follows where it is."""
    first, text = _first(node), str(node)[len(_first(node).prefix) :]
    if len(text.split("\n")[0]) > len(name):
        name = f" {name}" if text.startswith("(") else name  # lambda(a, b): has no space of its own
    rest = text[len(name) :]
    blank = "\n".join(" " * len(line) for line in rest.split("\n"))
    return Edit(first.lineno, first.column, len(text), name + blank.replace("\n", "\\\n"))


def _bare_tuple(node: Any, names: dict[int, str]) -> Iterator[Edit]:
    """``[x for x in 1, 2]`` with parentheses."""
    for before, item in zip(node.children, node.children[1:], strict=False):
        if str(before).strip() == "in" and names.get(item.type) == "testlist_safe":
            first = _first(item)
            yield Edit(first.lineno, first.column, 0, "(")
            line, column = _end(item)
            yield Edit(line, column, 0, ")")


def _tabs(text: str) -> Iterator[Edit]:
    """Indentation as Python 2 counts it: a tab goes to the next multiple of eight."""
    for number, line in enumerate(text.split("\n"), 1):
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        if "\t" in indent:
            yield Edit(number, 0, len(indent), indent.expandtabs(8))


def _apply(text: str, edits: list[Edit]) -> Converted:
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    parts: list[str] = []
    moved: dict[int, list[tuple[int, int]]] = {}
    at = 0
    for edit in sorted(edits, key=lambda item: (item.line, item.column)):
        start = starts[edit.line - 1] + edit.column
        if start < at:
            continue  # within what was replaced before
        parts += [text[at:start], edit.text]
        at = start + edit.length
        shift = len(edit.text) - edit.length
        if shift and "\n" not in edit.text:
            known = moved.setdefault(edit.line, [])
            before = known[-1][1] if known else 0
            known.append((edit.column + before + len(edit.text), before + shift))
    parts.append(text[at:])
    return Converted("".join(parts), moved)
