"""README.ja.md says what README.md says: the same sections, commands and outputs, block by block."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")


def blocks(name: str) -> list[str]:
    """What blank lines part, in the order of the file."""
    return [block for block in re.split(r"\n\s*\n", (ROOT / name).read_text("utf-8")) if block.strip()]


def is_code(block: str) -> bool:
    return block.startswith(("    ", "<!--", "```"))


def test_both_have_the_same_blocks():
    ours, theirs = blocks("README.md"), blocks("README.ja.md")
    for english, japanese in zip(ours, theirs, strict=True):
        if is_code(english):
            assert japanese == english
        assert heading(japanese) == heading(english), english
        assert rows(japanese) == rows(english), english


def test_code_is_the_same_in_both():
    for english, japanese in zip(blocks("README.md"), blocks("README.ja.md"), strict=True):
        if not is_code(english):
            assert sorted(re.findall(r"`[^`]+`", japanese)) == sorted(re.findall(r"`[^`]+`", english)), english


def test_every_paragraph_is_japanese():
    english = [block for block in blocks("README.ja.md") if not is_code(block) and not JAPANESE.search(block)]
    assert english == ["# ideepdoctor", "[English](README.md)"]


def test_each_file_names_the_other():
    assert "README.ja.md" in (ROOT / "README.md").read_text("utf-8")
    assert "README.md" in (ROOT / "README.ja.md").read_text("utf-8")


def test_links_within_the_page_lead_to_a_heading():
    for name in ("README.md", "README.ja.md"):
        text = (ROOT / name).read_text("utf-8")
        anchors = {anchor(title) for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}
        assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= anchors, name


def anchor(title: str) -> str:
    """As a forge makes it: lower case, blanks to hyphens, no marks."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def heading(block: str) -> int:
    return len(block) - len(block.lstrip("#")) if block.startswith("#") else 0


def rows(block: str) -> list[int]:
    """Columns of each row of a table; items of a list."""
    lines = block.splitlines()
    if block.startswith("|"):
        return [len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", line))) for line in lines]
    return [sum(line.startswith(("* ", "- ")) for line in lines)]
