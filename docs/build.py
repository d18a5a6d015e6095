"""Build the documentation in both languages: ``python docs/build.py [FOLDER]``; see ``docs/build.sh``.

The pages are written to ``FOLDER/pages``, what is built of them to ``FOLDER/html`` (English) and ``FOLDER/html/ja``.
Every warning of Sphinx is an error.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from docs.generate import LANGUAGES, write, written_pages  # noqa: E402


def everything(name: str) -> bool:
    """Every page is wanted."""
    return True


def build(folder: Path, language: str, only: Callable[[str], bool] = everything) -> tuple[int, str]:
    """Write the pages of a language and build them.

    Args:
        folder: for pages and what is built.
        language: of LANGUAGES.
        only: which pages are wanted.

    Returns:
        Sphinx's exit code, 0 where all went well, and what it said.
    """
    from sphinx.application import Sphinx

    pages = folder / "pages" / language
    pages.mkdir(parents=True, exist_ok=True)
    write(pages, language, only)
    html = folder / "html" / ("" if language == "en" else language)
    there = frozenset(path.relative_to(pages).with_suffix("").as_posix() for path in pages.rglob("*.md"))
    own, theirs = (frozenset(_written(each)) for each in (language, *(item for item in LANGUAGES if item != language)))
    said = io.StringIO()
    app = Sphinx(
        str(pages),
        str(HERE),
        str(html),
        str(folder / "doctrees" / language),
        "html",
        confoverrides={"language": language, "other_pages": (there - own) | theirs},
        status=None,
        warning=said,
        warningiserror=True,
        parallel=1,
    )
    app.build(force_all=True)  # a title that changed is in the sidebar of every page
    return app.statuscode, said.getvalue()


def _written(language: str) -> list[str]:
    """Names of the pages of a language that a person wrote; all others are in every language."""
    return [path.relative_to(HERE / language).with_suffix("").as_posix() for path in written_pages(language)]


def main(words: Sequence[str] | None = None) -> int:
    """Build what the command line asks for; the exit code."""
    parser = argparse.ArgumentParser(description="Build the documentation in both languages.")
    parser.add_argument("folder", nargs="?", type=Path, default=HERE.parent / "build" / "docs", help="where to")
    parser.add_argument("--language", choices=LANGUAGES, help="this one alone")
    asked = parser.parse_args(words)
    folder = asked.folder.resolve()
    if asked.language:
        code, said = build(folder, asked.language)
        sys.stderr.write(said)
        return code
    (folder / "html").mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(HERE / "build.py"), str(folder), "--language"]
    running = [subprocess.Popen([*command, language]) for language in LANGUAGES]
    code = max(process.wait() for process in running)
    sys.stdout.write(f"{folder / 'html' / 'index.html'}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
