"""How a text finds its translation: by itself, by its template, piece by piece; and how the language is chosen."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideepdoctor.locale import LANGUAGES, language_of, tr, translating, use
from ideepdoctor.locale.translate import Translator

CATALOGUE = {
    "cannot read {path}: {error}": "{path} を読めません: {error}",
    "{path} is empty": "{path} は空です",
    "no such file": "ファイルがありません",
    "{count} error": "エラー {count} 件",
    "{count} errors": "エラー {count} 件",
    "{count} note": "注記 {count} 件",
    "a {{literal}} brace": "波括弧 {{literal}}",
    "set {name} to {value} first": "先に {name} を {value} にしてください",
    "set {name} to the right value first": "先に {name} を正しい値にしてください",
    "the kernel is {kernel}": "カーネルは {kernel}",
    "what was seen": "見えたもの",
}


@pytest.fixture
def translator():
    return Translator(CATALOGUE)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no such file", "ファイルがありません"),
        ("  no such file\n", "  ファイルがありません\n"),
        ("net.py is empty", "net.py は空です"),
        ("cannot read /a b/net.py: no such file", "/a b/net.py を読めません: ファイルがありません"),
        ("cannot read x: Permission denied", "x を読めません: Permission denied"),
        ("a {literal} brace", "波括弧 {literal}"),
        ("cannot read {x}: {y}", "{x} を読めません: {y}"),
        ("2 errors, 1 note", "エラー 2 件、注記 1 件"),
        ("2 errors, and something else", "エラー 2 件、and something else"),
        ("no such file; net.py is empty", "ファイルがありません。net.py は空です"),
        ("no such file (2 errors)", "ファイルがありません (エラー 2 件)"),
        ("set X to the right value first", "先に X を正しい値にしてください"),
        ("set X to 3 first", "先に X を 3 にしてください"),
        ("what was seen: net.py is empty", "見えたもの: net.py は空です"),
        ("nobody knows this one", "nobody knows this one"),
        ("", ""),
        ("\n", "\n"),
    ],
)
def test_a_text_is_translated(translator, text, told):
    assert translator(text) == told


@given(st.text(string.printable + "あ{}", max_size=200))
def test_any_text_comes_back_whole_where_nothing_of_it_is_known(text):
    assert Translator({})(text) == text


@given(st.text(string.ascii_letters + " /.{}:", min_size=1, max_size=40).filter(lambda value: value == value.strip()))
def test_a_value_is_put_where_the_translation_wants_it(value):
    assert (
        Translator({"the kernel is {kernel}": "カーネルは {kernel}"})(f"the kernel is {value}") == f"カーネルは {value}"
    )


def test_a_long_text_is_left_alone_and_a_hard_one_costs_little(translator):
    import time

    long = "no such file, " * 1000
    assert translator(long) == long
    begun = time.monotonic()
    translator("cannot read " * 300)
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    ("environ", "asked", "language"),
    [
        ({}, None, "en"),
        ({"LANG": "ja_JP.UTF-8"}, None, "ja"),
        ({"LANG": "ja_JP.UTF-8", "LC_ALL": "C"}, None, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "ja_JP"}, None, "ja"),
        ({"LANG": "ja_JP.eucJP", "LC_ALL": ""}, None, "ja"),
        ({"LANG": "fr_FR.UTF-8"}, None, "en"),
        ({"LANG": "ja_JP.UTF-8"}, "en", "en"),
        ({}, "ja", "ja"),
        ({}, "ja_JP.UTF-8", "ja"),
        ({}, "JA-jp", "ja"),
        ({"LANG": "ja_JP"}, "C", "en"),
    ],
)
def test_the_language_is_the_one_that_was_asked_for_or_that_of_the_locale(environ, asked, language):
    assert language_of(environ, asked) == language


def test_a_language_without_a_catalogue_is_refused_when_it_is_asked_for():
    for asked in ("fr", "japanese", "xx_YY"):
        with pytest.raises(ValueError, match=asked):
            language_of({}, asked)
    with pytest.raises(ValueError, match="fr"):
        use("fr")


def test_english_needs_no_catalogue():
    assert LANGUAGES[0] == "en"
    use("en")
    assert not translating()
    assert tr("error") == "error"
