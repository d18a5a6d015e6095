"""The Markdown that the documentation is built from: written pages are copied, all others are made from the rules.

Nothing that is made here is committed: some 300 pages that follow from the rules would be stale after the next change
of one. ``docs/build.py`` makes them anew in each build.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from docs.generate import commands, coverage, rules, symptoms, tables
from docs.generate.words import Words

HERE = Path(__file__).parents[1]
ROOT = HERE.parent
LANGUAGES = ("en", "ja")
READMES = {"en": "README.md", "ja": "README.ja.md"}
MAKERS: tuple[Callable[[Words], Mapping[str, str]], ...] = (
    rules.pages,
    symptoms.pages,
    commands.pages,
    tables.pages,
    coverage.pages,
)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_OTHER_LANGUAGE = re.compile(r"^\[(?:日本語|English)\]\(README(?:\.ja)?\.md\)\n\n?", re.MULTILINE)


def pages(language: str) -> dict[str, str]:
    """Every page in a language: its path below the folder, and its Markdown."""
    made = {path.relative_to(HERE / language).as_posix(): written(path) for path in written_pages(language)}
    made["readme.md"] = readme(language)
    for maker in MAKERS:
        for name, text in maker(Words(language)).items():
            if name in made:
                raise ValueError(f"{name} is made twice")
            made[name] = text
    return made


def written_pages(language: str) -> list[Path]:
    """The pages of a language that a person wrote."""
    return sorted((HERE / language).rglob("*.md"))


def written(path: Path) -> str:
    """A written page. Links to the README in the repository become links to its page, those to pictures to theirs."""
    text = path.read_text("utf-8")
    text = re.sub(r"\]\((?:\.\./)+README(?:\.ja)?\.md(#[^)]*)?\)", r"](readme.md\1)", text)
    return text.replace("](../images/", "](images/")


def readme(language: str) -> str:
    """The README as a page: what it links to in the repository stays as a name."""
    text = _OTHER_LANGUAGE.sub("", (ROOT / READMES[language]).read_text("utf-8"), count=1)
    text = re.sub(r"\A# ideepdoctor$", "# ideepdoctor: README", text, flags=re.MULTILINE)
    text = re.sub(r"\[(`[^`]+`)\]\((?!https?:|#)[^)]+\)", r"\1", text)
    return re.sub(r"\[([^\]`]+)\]\((?!https?:|#)[^)]+\)", r"\1", text)


def links(text: str) -> Iterator[str]:
    """What a page links to, outside of programs."""
    outside = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    outside = re.sub(r"^ {4,}.*$", "", outside, flags=re.MULTILINE)
    for found in _LINK.finditer(re.sub(r"`[^`\n]*`", "", outside)):
        yield found[1]


def write(folder: Path, language: str, only: Callable[[str], bool] = lambda name: True) -> int:
    """Write the pages and pictures of a language; what has not changed stays, what is no page any more goes.

    Args:
        folder: where to.
        language: of LANGUAGES.
        only: which pages are wanted.

    Returns:
        How many pages there are.
    """
    wanted = {name: text.encode() for name, text in pages(language).items() if only(name)}
    wanted |= {f"images/{path.name}": path.read_bytes() for path in sorted((HERE / "images").glob("*.svg"))}
    for old in [path for path in folder.rglob("*") if path.is_file()]:
        if old.relative_to(folder).as_posix() not in wanted:
            old.unlink()
    for name, data in wanted.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return sum(name.endswith(".md") for name in wanted)
