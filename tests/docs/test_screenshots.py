"""The pictures of the documentation are what the doctor prints today, and load nothing."""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET

import pytest

from docs.screenshots import CHARACTER, COLUMNS, IMAGES, PICTURES, RICH, pictures
from ideepdoctor.locale import columns, language

MADE = pictures()
REFRESH = "python docs/screenshots.py draws them anew"


def comparable(svg: str) -> str:
    """A picture without the number of rules that were skipped: each new rule is one more."""
    return re.sub(r"(?<=\u0020|\u00a0)\d+(?=\u00a0(?:checks\u00a0skipped|件を))", "N", svg.replace("&#160;", "\u00a0"))


def texts(svg: str) -> list[str]:
    """What is written in a picture."""
    return [html.unescape(text) for text in re.findall(r"<text [^>]*>([^<]*)</text>", svg)]


def test_there_is_a_file_for_each_and_no_other() -> None:
    assert {path.name for path in IMAGES.iterdir()} == set(MADE)
    assert language() == "en"


@pytest.mark.parametrize("name", sorted(MADE))
def test_a_picture_is_todays(name: str) -> None:
    kept, made = comparable((IMAGES / name).read_text("utf-8")), comparable(MADE[name])
    assert texts(kept) == texts(made), REFRESH
    drawn_by = re.search(r"<!-- rich ([\d.]+) -->", kept)
    if drawn_by is None or drawn_by[1] == RICH:
        assert kept == made, REFRESH


@pytest.mark.parametrize("name", sorted(MADE))
def test_a_picture_is_whole_and_loads_nothing(name: str) -> None:
    ET.fromstring(MADE[name])
    assert set(re.findall(r"https?://[^\"' ]+", MADE[name])) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@font-face|@import|url\((?!#)|<image|xlink", MADE[name])


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_no_line_is_wider_than_the_terminal_and_each_run_has_the_place_of_its_characters(name: str) -> None:
    runs = re.findall(r'<text [^>]*x="([\d.]+)"[^>]*textLength="([\d.]+)"[^>]*>([^<]*)</text>', MADE[f"{name}.svg"])
    assert runs
    for left, width, text in runs:
        assert float(width) == pytest.approx(columns.width(html.unescape(text)) * CHARACTER, abs=0.01)
        assert not text.strip() or float(left) + float(width) <= COLUMNS * CHARACTER + 0.01
    if name == "japanese":
        assert any(not text.isascii() for text in texts(MADE[f"{name}.svg"]))
