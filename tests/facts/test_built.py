"""What a built ideep4py says of its own build."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideepdoctor.builder.wheel_metadata import info_text
from ideepdoctor.facts.answer import Answer
from ideepdoctor.facts.built import parse_built, read_built
from ideepdoctor.model.build import BuildInfo

INFO = BuildInfo("x86-64-v3", ("avx", "avx2"), "none", "8" * 40, "c" * 40, "1.23.5", True, {"doctor": "0.1"})


def told(name: str, build: str | None) -> dict[str, Any]:
    return {"metadata": f"Name: {name}\nVersion: 1", "location": "/site", "build": build}


def test_what_the_builder_writes_is_read_again():
    assert parse_built(info_text(INFO)) == INFO


def test_only_of_ideep4py_and_of_the_one_that_is_imported():
    text = info_text(INFO)
    assert read_built(Answer({"distributions": [told("numpy", text), told("ideep4py", text)]})) == INFO
    assert read_built(Answer({"distributions": [told("numpy", text)]})) is None
    assert read_built(Answer({"distributions": [told("ideep4py", None), told("ideep4py", text)]})) is None
    assert read_built(Answer({})) is None


@pytest.mark.parametrize(
    "text",
    [None, "", "[]", "nonsense", "{}", '{"march": 1}', info_text(INFO).replace('"avx"', "3"), "[" * 100_000],
)
def test_what_cannot_be_understood_says_nothing(text: str | None):
    assert parse_built(text) is None


def test_a_later_doctor_may_write_more():
    data = {**json.loads(info_text(INFO)), "later": {"more": 1}}
    assert parse_built(json.dumps(data)) == INFO


@given(st.text())
def test_any_text(text: str):
    parse_built(text)
