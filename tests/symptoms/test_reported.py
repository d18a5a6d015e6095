"""Texts that people report lead to their cause first: alone, in a traceback, in every dress that a log has."""

from __future__ import annotations

import pytest

from ideepdoctor.symptoms.search import Found, search
from tests.rules.test_signatures import DRESSES
from tests.symptoms.signatures import SIGNATURES, Signature

TRAINING = [f"epoch {number:3d}  main/loss 0.{number:03d}  main/accuracy 0.9{number:02d}" for number in range(90)]
TRACEBACK = [
    "Traceback (most recent call last):",
    '  File "train.py", line 41, in <module>',
    "    main()",
    '  File "train.py", line 20, in main',
    "    model(x)",
]
AFTER = ["During handling of the above exception, another exception occurred:", "SystemExit: 1"]


def first(found: Found) -> str | None:
    if found.causes:
        return found.causes[0].cause.code
    return found.build.hits[0].code if found.build.hits else None


def named(signatures: tuple[Signature, ...]) -> list[object]:
    return [pytest.param(one, id=f"{one.entry}-{number}") for number, one in enumerate(signatures)]


@pytest.mark.parametrize("one", named(SIGNATURES))
def test_a_reported_text_names_its_cause_first(one: Signature):
    assert first(search(one.text.splitlines())) == one.code


@pytest.mark.parametrize("one", named(SIGNATURES))
def test_it_does_so_in_a_traceback_in_the_middle_of_a_run(one: Signature):
    found = search([*TRAINING, *TRACEBACK, *one.text.splitlines(), *AFTER, *TRAINING])
    assert first(found) == one.code
    assert found.build.telling == ()


@pytest.mark.parametrize("one", named(SIGNATURES))
def test_it_does_so_in_every_dress_of_a_log(one: Signature):
    for name, dress in DRESSES.items():
        assert first(search(dress.format(line) for line in one.text.splitlines())) == one.code, name


@pytest.mark.parametrize("one", named(tuple(one for one in SIGNATURES if one.of_a_build)))
def test_what_is_wrong_with_a_build_stays_a_finding(one: Signature):
    found = search(["-- Configuring done", *one.text.splitlines(), "make: *** [all] Error 2"])
    assert found.build.hits[0].code == one.code


def test_every_entry_with_a_text_of_its_own_is_there():
    entries = {one.entry for one in SIGNATURES}
    assert {"F01", "F14", "F25", "F33", "F36", "F43", "F56", "F75", "F79", "H7", "L15"} <= entries
    assert len(SIGNATURES) > 100
