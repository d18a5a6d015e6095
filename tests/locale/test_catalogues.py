"""No message of the package lacks its translation, none is left over, the values agree, and each is found again."""

from __future__ import annotations

import re

import polib
import pytest

from ideepdoctor.locale import columns
from ideepdoctor.locale.catalogue import load
from ideepdoctor.locale.translate import FIELD, NUMBERS, Translator
from tests.messages import CATALOGUES, catalogue_of, messages, not_messages

ENTRIES = [entry for path in sorted(CATALOGUES.glob("*.po")) for entry in polib.pofile(str(path))]
BY_HAND = {entry.msgid for entry in polib.pofile(str(CATALOGUES / "words.po"))}
REFRESH = "python tests/messages.py brings the catalogues up to date; then translate what is empty"


def fields(text: str) -> set[str]:
    return set(FIELD.findall(text))


def test_every_message_of_the_package_is_in_a_catalogue():
    listed = {entry.msgid for entry in ENTRIES}
    assert not [message for message in messages() if message not in listed], REFRESH


def test_no_catalogue_keeps_a_message_that_is_gone():
    said = set(messages())
    assert not [entry.msgid for entry in ENTRIES if entry.msgid not in said | BY_HAND], REFRESH


def test_no_message_lacks_its_translation():
    assert not [entry.msgid for entry in ENTRIES if not entry.msgstr], REFRESH


def test_what_is_called_no_message_is_still_in_the_package(monkeypatch):
    listed = not_messages()
    monkeypatch.setattr("tests.messages.not_messages", frozenset)
    assert not listed - set(messages())


def test_the_values_of_a_translation_are_those_of_its_message():
    assert not [entry.msgid for entry in ENTRIES if fields(entry.msgid) != fields(entry.msgstr)]
    assert not [entry.msgid for entry in ENTRIES if entry.msgstr.count("{{") != entry.msgid.count("{{")]


def test_what_is_code_is_in_the_translation_as_it_stands():
    def code(text: str) -> set[str]:
        return set(re.findall(r"IDP\d{3}|``[^`]+``|--[a-z][\w-]+|\b[A-Z]{2,}_[A-Z_]+\b", text))

    wrong = {entry.msgid: code(entry.msgid) - code(entry.msgstr) for entry in ENTRIES}
    assert not {message: words for message, words in wrong.items() if words}


def test_a_translation_has_no_english_sentence_left():
    ascii_only = [entry for entry in ENTRIES if entry.msgstr.isascii() and english(entry.msgstr)]
    assert not [(entry.msgid, entry.msgstr) for entry in ascii_only]


_COMMAND = r"\b(ideepdoctor|apt|dnf|pip|pipx|uv|git|conda|cmake)( [a-z-]+)+"


def english(text: str) -> list[str]:
    """Three English words in a row, outside of code."""
    bare = re.sub(r"``[^`]*``|`[^`]*`|\{\w+\}|'[^']*'|\"[^\"]*\"", " § ", text)
    bare = re.sub(rf"{_COMMAND}|\b\w+(Error|Warning): .*", " § ", bare)
    bare = re.sub(r"\S*[\d/=<>$_.\-:]\S*", lambda found: " § " if len(found[0].rstrip(".:,")) > 1 else found[0], bare)
    return re.findall(r"\b(?:[a-z]{2,} ){3,}", bare + " ")


def shape(text: str) -> str:
    """A text with its values left out."""
    return re.sub(r"\{\w+\}|Qz\d+x|\b10\d\b", "_", text)


def test_each_template_is_found_again_by_a_text_that_was_made_from_it():
    """A text that another template takes for its own would be told as something else."""
    translator = Translator(load("ja"))
    alike: dict[str, set[str]] = {}
    """Messages that differ in the names of their values alone are one to a reader; any translation of it will do."""
    for entry in ENTRIES:
        alike.setdefault(shape(entry.msgid), set()).add(shape(entry.msgstr))
    wrong = []
    for entry in ENTRIES:
        if "}{" in entry.msgid:
            continue  # nobody can tell where one value ends and the next begins: see the next test
        names = sorted(fields(entry.msgid))
        values = {name: str(100 + index) if name in NUMBERS else f"Qz{index}x" for index, name in enumerate(names)}
        text, wanted = entry.msgid, entry.msgstr
        for name, value in values.items():
            text, wanted = text.replace(f"{{{name}}}", value), wanted.replace(f"{{{name}}}", value)
        text, wanted = (part.replace("{{", "{").replace("}}", "}") for part in (text, wanted))
        told = translator(text)
        if told != wanted and shape(told) not in alike[shape(entry.msgid)]:
            wrong.append((text, told, wanted))
    assert not wrong


def test_values_without_a_word_between_them_stay_together():
    for entry in ENTRIES:
        for run in re.findall(r"(?:(?<!\{)\{\w+\}){2,}", entry.msgid):
            assert run in entry.msgstr, entry.msgid


def test_titles_and_labels_are_short_enough_for_a_line():
    titles = {rule.title for rule in everything()}
    told = {entry.msgid: entry.msgstr for entry in ENTRIES}
    assert not [told[title] for title in titles if title in told and columns.width(told[title]) > 80]


def everything():
    from ideepdoctor.rules.explain import EVERYTHING

    return EVERYTHING


@pytest.mark.parametrize(
    ("module", "catalogue"),
    [
        ("rules/idp305.py", "rules-3"),
        ("rules/loading.py", "rules"),
        ("lint/idp901.py", "lint"),
        ("cli_bench.py", "cli"),
        ("terminal.py", "top"),
        ("commands/setup.py", "commands"),
    ],
)
def test_each_folder_has_its_catalogue(module, catalogue):
    assert catalogue_of(module) == catalogue
