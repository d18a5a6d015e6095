"""Lines with wide characters: widths, breaks, columns."""

from __future__ import annotations

import re
import textwrap

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rich.cells import cell_len

from ideepdoctor import locale
from ideepdoctor.locale import columns
from ideepdoctor.locale.translate import Translator

MIXED = st.text("abc 日本語ー。、「」()ッ,.12ﾊﾛ\u3099", max_size=120)


@pytest.fixture
def japanese(monkeypatch):
    monkeypatch.setattr(locale, "_translate", [Translator({"found it": "見つかりました", "state": "状態"})])


@given(MIXED)
def test_a_text_is_as_wide_as_the_terminal_makes_it(text):
    assert columns.width(text) == cell_len(text)


@given(MIXED, st.integers(12, 80))
def test_no_line_is_too_wide_and_nothing_is_lost(text, room):
    lines = columns.wrap(text, room, first="* ", rest="  ")
    assert "".join(line[2:] for line in lines).replace(" ", "") == "".join(text.split())
    for line in lines:
        # A word without a place to break, and marks that must not begin a line, may stand out.
        assert columns.width(line) <= room or not any(
            "\u3040" <= character <= "\u9fff" for character in line[2:-2].strip("ーッ。、「」")
        )


@given(MIXED, st.integers(20, 80))
def test_a_line_begins_and_ends_with_no_mark_that_may_not(text, room):
    assume(not re.search(r"\s[ー。、」ッ]", text))  # a blank is a place to break, whatever comes after it
    for line in columns.wrap(text, room)[1:]:
        assert line[0] not in "ー。、」ッ"
    for line in columns.wrap(text, room)[:-1]:
        assert line[-1] not in "「"


@given(st.text("abcde -.", max_size=120), st.integers(12, 80))
def test_english_is_broken_as_before(text, room):
    assert columns.wrap(text, room) == textwrap.wrap(text, room, break_on_hyphens=False)


def test_a_long_sentence_is_broken_where_japanese_may_be():
    text = "勾配、積、読み込んだ重みが、既知の箇所で黙って誤った値になります (Chainer 7.8.1)。"
    assert columns.wrap(text, 30, first="- ", rest="  ") == [
        "- 勾配、積、読み込んだ重みが、",
        "  既知の箇所で黙って誤った値に",
        "  なります (Chainer 7.8.1)。",
    ]


def test_columns_stay_where_they_were(japanese):
    assert columns.line("  state      found it      12") == "  状態       見つかりました  12"
    assert columns.lines("found it\n  state  x\n") == "見つかりました\n  状態   x\n"


def test_english_lines_are_left_as_they_are():
    assert columns.line("  state      found it  12") == "  state      found it  12"


def test_a_line_that_was_told_already_stays_as_it_is(japanese):
    assert columns.line("   結果     見つかりました") == "   結果     見つかりました"
