"""``--select`` and ``--ignore`` become codes."""

from __future__ import annotations

import pytest

from ideepdoctor.commands.session import judge_all, wanted_codes
from ideepdoctor.errors import UsageError
from ideepdoctor.rules import BUILD_RULES, RULES
from tests.rules.hosts import facts_on

CODES = frozenset(rule.code() for rule in RULES if rule not in BUILD_RULES)


def family(digit: str) -> frozenset[str]:
    return frozenset(code for code in CODES if code.startswith(f"IDP{digit}"))


def test_nothing_asked_means_all():
    assert wanted_codes((), ()) is None


@pytest.mark.parametrize("word", ["IDP305", "idp305", "305", " 305 "])
def test_one_code_however_it_is_written(word: str):
    assert wanted_codes((word,), ()) == {"IDP305"}


@pytest.mark.parametrize("word", ["IDP3", "idp3xx", "3xx", "3XX", "3", "IDP3XX"])
def test_a_family_however_it_is_written(word: str):
    assert wanted_codes((word,), ()) == family("3")
    assert wanted_codes((), (word,)) == CODES - family("3")


def test_words_add_up_and_ignore_wins():
    assert wanted_codes(("5xx", "IDP305"), ()) == family("5") | {"IDP305"}
    assert wanted_codes(("5xx",), ("501", "IDP502")) == family("5") - {"IDP501", "IDP502"}
    assert wanted_codes(("31x",), ()) == {code for code in CODES if code.startswith("IDP31")}


@pytest.mark.parametrize("word", ["IDP", "idpxxx", "", "x", "999", "IDP3055", "numpy", "IDPIDP305", "IDP801"])
@pytest.mark.parametrize("where", ["select", "ignore"])
def test_a_word_that_fits_no_rule_is_refused(word: str, where: str):
    with pytest.raises(UsageError, match="no rule fits"):
        wanted_codes(*(((word,), ()) if where == "select" else ((), (word,))))


@pytest.mark.parametrize(
    ("select", "ignore"), [(("305",), ("3xx",)), ((), ("1xx", "2xx", "3xx", "4xx", "5xx", "6xx", "7xx", "8xx"))]
)
def test_to_leave_nothing_to_look_at_is_refused_for_nothing_is_not_healthy(
    select: tuple[str, ...], ignore: tuple[str, ...]
):
    with pytest.raises(UsageError, match="leave no rule"):
        wanted_codes(select, ignore)


def test_the_choice_decides_what_is_told_and_not_what_holds():
    facts = facts_on("py37-healthy", {"packages": {"ideep4py": None}})
    assert [item.code for item in judge_all(facts).findings] == ["IDP301"]
    only = judge_all(facts, wanted_codes(("305",), ()))
    assert only.findings == ()
    assert only.ok == ()
    assert [item.code for item in only.skipped] == ["IDP305"]
