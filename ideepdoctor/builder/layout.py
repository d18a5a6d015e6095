"""What a folder of source says of itself, read and never run: its layout, its version, where its MKL-DNN comes from."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from ideepdoctor.errors import UsageError
from ideepdoctor.model.build import Layout

PREPARE_STEP = "python/external/mkldnn/prepare_mkldnn.py"
_HASH = re.compile(r"(?<![0-9a-fA-F])[0-9a-f]{40}(?![0-9a-fA-F])")
_CLONED = re.compile(r"\bgit clone\b(?:[^'\"]|\\\n)*?(\S*(?:mkl-?dnn|onednn)(?:\.git)?)(?=[\s'\"]|$)", re.IGNORECASE)
_IMPORTS_EXTERNAL = re.compile(r"^\s*(?:import|from)\s+external\b", re.MULTILINE)
_VERSION = re.compile(r"^\s*__version__\s*=\s*['\"]([^'\"]+)['\"]\s*(?:#.*)?$", re.MULTILINE)
_SETUP_VERSION = re.compile(r"\bversion\s*=\s*['\"]([^'\"]+)['\"]")


class NoSource(UsageError):
    """What was given is not ideep's source."""

    code = "no-source"


@dataclass(frozen=True, slots=True)
class Pin:
    """Which MKL-DNN a source wants: a commit (40 digits; empty: not said) and the address it names (may be empty)."""

    commit: str
    url: str


def layout_of(folder: str) -> Layout:
    """How a source is built. Raises NoSource, which names what is missing."""
    top = Path(folder)
    setup = _text(top / "python/setup.py")
    if setup is None:
        looked = "it has no python/setup.py"
        inner = [path for path in top.glob("*/python/setup.py") if path.is_file()]
        hint = f"--source {inner[0].parents[1]}" if inner else "give the folder that `git clone` of ideep makes"
        if (top / "setup.py").is_file() and (top / "ideep4py").is_dir():
            hint = f"--source {top.parent}: this is the folder python of it"
        raise NoSource(f"{folder} is not ideep's source: {looked}", hint=hint)
    if not (top / "python/ideep4py/__init__.py").is_file():
        hint = "ideep of other times serves other programs; Chainer needs v1.0.3 to the first commits after v2.0.0"
        raise NoSource(f"{folder} has no ideep4py: python/ideep4py/__init__.py is missing", hint=hint)
    by_cmake = (top / "CMakeLists.txt").is_file()
    if (top / PREPARE_STEP).is_file() and (_IMPORTS_EXTERNAL.search(setup) or not by_cmake):
        return Layout.PREPARE
    if by_cmake:
        return Layout.CMAKE
    raise NoSource(
        f"{folder} is not ideep's source: it has neither CMakeLists.txt nor {PREPARE_STEP}",
        hint="the source is incomplete: get it again, or leave --source out",
    )


def version_of(folder: str) -> str:
    """ideep4py's version: ``__version__`` of its package, else setup.py's. Raises NoSource where neither says."""
    top = Path(folder, "python")
    package, setup = _text(top / "ideep4py/__init__.py") or "", _text(top / "setup.py") or ""
    found = _assigned(package) or _first(_VERSION, package) or _keyword(setup) or _first(_SETUP_VERSION, setup)
    if not found:
        raise NoSource(f"{folder} does not say which version of ideep4py it is", hint="setup.py: version='...'")
    return found


def prepare_pin(folder: str) -> Pin:
    """Which MKL-DNN the prepare step clones.

    Raises:
        NoSource: no commit is named in setup.py or beside the prepare step.
    """
    top = Path(folder, "python")
    clone = top / "external/mkldnn/source"
    paths = [top / "setup.py", *sorted((top / "external").rglob("*.py"))]
    texts = [text for path in paths if clone not in path.parents and (text := _text(path)) is not None]
    commits = {match for text in texts for match in _HASH.findall(text)}
    if len(commits) != 1:
        what = "no commit" if not commits else "several commits"
        raise NoSource(f"{folder} names {what} of MKL-DNN in python/setup.py and python/external")
    urls = [match for text in texts for match in _CLONED.findall(text)]
    return Pin(commits.pop(), urls[0] if urls else "")


def _text(path: Path) -> str | None:
    try:
        return path.read_text("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def _tree(source: str) -> ast.AST | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # Python 2, or no Python
        return None


def _assigned(source: str) -> str | None:
    tree = _tree(source)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__version__" for target in node.targets):
            return _constant(node.value)
    return None


def _keyword(source: str) -> str | None:
    tree = _tree(source)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "setup":
            for keyword in node.keywords:
                if keyword.arg == "version":
                    return _constant(keyword.value)
    return None


def _constant(node: ast.AST) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found.group(1) if found else None
