"""A file's bytes become a syntax tree whose places are those of the file. Pure: what is read is handed in."""

from __future__ import annotations

import ast
import codecs
import io
import re
import tokenize
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

from ideepdoctor.lint.pins import Scope
from ideepdoctor.lint.python2 import Converted, NotPython2, convert

_NOQA = re.compile(r"#\s*noqa(?P<codes>\s*:\s*(?P<list>[A-Za-z]+[0-9]+(?:[,\s]+[A-Za-z]+[0-9]+)*))?", re.IGNORECASE)
_TOLD_OF_PYTHON_2 = ("Missing parentheses in call to", "multiple exception types must", "leading zeros in decimal")
_IGNORE_FILE = re.compile(r"^\s*#.*\bideepdoctor:\s*ignore-file\b", re.MULTILINE)


class Unreadable(Exception):
    """A file, or a cell of a notebook, that cannot be linted. The text says why; ``line`` where, None for the whole."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file as an editor counts it: from 1, in characters; in a notebook within its code cell."""

    line: int
    column: int
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """One program: a file, or all code cells of a notebook one after the other.

    Attributes:
        path: as the user named it.
        tree: of the whole.
        lines: of the whole, as they stand in the file.
        read_lines: as ``ast`` read them: other than ``lines`` where the source is Python 2.
        python2: whether it is valid only in Python 2 (of a notebook: any cell).
        converted: first line, counted from 0, to how columns map there.
        cells: (first line counted from 0, number of the code cell), ascending; empty for a file.
        unread: cells that are no Python, with their own place.
        demanded: what a file of requirements says is to be installed; None for a program.
    """

    path: str
    tree: ast.Module
    lines: tuple[str, ...]
    read_lines: tuple[str, ...]
    python2: bool = False
    converted: Mapping[int, Converted] = field(default_factory=dict)
    cells: tuple[tuple[int, int], ...] = ()
    unread: tuple[tuple[Place, str], ...] = ()
    demanded: tuple[Scope, ...] | None = None

    def place(self, node: ast.AST) -> Place:
        """Where a node begins."""
        line = getattr(node, "lineno", 1)
        raw = self.read_lines[line - 1].encode("utf-8", "surrogatepass")
        column = len(raw[: getattr(node, "col_offset", 0)].decode("utf-8", "ignore"))
        start, cell = self._part(line - 1)
        mapped = self.converted.get(start)
        if mapped is not None:
            column = mapped.column(line - start, column)
        return Place(line - start, column + 1, cell)

    def line_of(self, node: ast.AST) -> int:
        """The line that a sentence about this node names: within its cell in a notebook."""
        return self.place(node).line

    def text_of(self, node: ast.AST) -> str:
        """The line on which a node begins, without its indentation."""
        return self.lines[getattr(node, "lineno", 1) - 1].strip()

    @property
    def ignored(self) -> bool:
        """Whether a comment line of the file says ``ideepdoctor: ignore-file``."""
        return _IGNORE_FILE.search("\n".join(self.lines)) is not None

    def suppressed(self, node: ast.AST, code: str) -> bool:
        """Whether ``# noqa`` or ``# noqa: CODE`` stands on the first or last line of a node."""
        first = getattr(node, "lineno", 1)
        ends = {first, getattr(node, "end_lineno", None) or first}
        return any(_silences(self.lines[line - 1], code) for line in ends if line <= len(self.lines))

    def _part(self, index: int) -> tuple[int, int | None]:
        found: tuple[int, int | None] = (0, None)
        for start, cell in self.cells:
            if start > index:
                break
            found = (start, cell)
        return found


def _silences(line: str, code: str) -> bool:
    for found in _NOQA.finditer(line):
        listed = found.group("list")
        if listed is None:
            return True
        if any(code.startswith(word.upper()) for word in re.split(r"[,\s]+", listed) if word):
            return True
    return False


def read(path: str, data: bytes) -> Source:
    """Read a Python file, of either language.

    Raises:
        Unreadable: binary, not decodable, or neither Python 3 nor Python 2.
    """
    text = decode(data)
    tree, read_text, converted = parse(text)
    known = {} if converted is None else {0: converted}
    return Source(path, tree, tuple(text.split("\n")), tuple(read_text.split("\n")), converted is not None, known)


def decode(data: bytes) -> str:
    """Text of a source file by its byte order mark, its cookie (PEP 263), or UTF-8; ``\\n`` is its only line end.

    Raises:
        Unreadable: binary, an unknown encoding, bytes that do not fit it.
    """
    for mark, name in ((codecs.BOM_UTF16_LE, "UTF-16"), (codecs.BOM_UTF16_BE, "UTF-16")):
        if data.startswith(mark):
            raise Unreadable(f"is {name}, which Python does not read")
    if b"\0" in data:
        raise Unreadable("is a binary file, not Python source")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        if "encoding problem" in str(error):
            raise Unreadable("its coding cookie contradicts its byte order mark") from error
        if "unknown encoding" not in str(error):
            return _latin(data)
        raise Unreadable(f"its coding cookie names an {error}") from error
    try:
        text = data.decode(encoding)
    except LookupError as error:
        raise Unreadable(f"its coding cookie names {encoding}, which is no text encoding") from error
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        said = "" if encoding.startswith("utf-8") else f" by its cookie ({encoding})"
        if not said:
            return _latin(data)
        raise Unreadable(f"byte {data[error.start]:#04x} cannot be decoded{said}", line) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _latin(data: bytes) -> str:
    """Bytes that are no UTF-8, without a cookie: no Python runs them, and the message names the first."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Unreadable(
            f"byte {data[error.start]:#04x} is not UTF-8, and no coding cookie says what it is", line
        ) from error
    raise Unreadable("its encoding cannot be told")


def parse(text: str) -> tuple[ast.Module, str, Converted | None]:
    """Parse as Python 3, else as Python 2.

    Returns:
        The tree, the text that was parsed, and how its columns map where it was converted.

    Raises:
        Unreadable: it is neither; or it is nested too deeply.
    """
    try:
        return _ast(text), text, None
    except SyntaxError as error:
        three = error
    try:
        converted = convert(text)
        return _ast(converted.text), converted.text, converted
    except NotPython2 as error:
        two = error
    except SyntaxError as error:
        two = NotPython2(error.msg, error.lineno)
    except RecursionError:
        two = NotPython2("nested too deeply", None)
    line = three.lineno or 1
    old = three.msg.startswith(_TOLD_OF_PYTHON_2)
    also = f"; as Python 2: {two}" + (f", line {two.line}" if two.line else "") if old else ""
    raise Unreadable(f"syntax error: {three.msg}{also}", line)


def _ast(text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (RecursionError, MemoryError) as error:
        raise Unreadable("is nested too deeply to be parsed") from error
    except ValueError as error:
        if isinstance(error, SyntaxError):
            raise
        raise Unreadable(f"cannot be parsed: {error}") from error
