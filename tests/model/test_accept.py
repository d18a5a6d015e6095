"""What somebody has accepted is listed, and counts no more."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideepdoctor import __version__
from ideepdoctor.model.accept import (
    IN_BASELINE,
    Accepted,
    Baseline,
    Ignore,
    accept,
    compared,
    fingerprints,
    unused,
)
from ideepdoctor.model.findings import Evidence, Finding, Judgement, NotKnown, Severity, Suppressed
from ideepdoctor.model.project import Project

TODAY = date(2026, 11, 30)


def finding(code="IDP401", found="libmkldnn 0.20 at 0x7f00", path="/opt/x/libmkldnn.so"):
    return Finding(code, Severity.ERROR, "A stranger", found, "ours", "dies", "fix", (Evidence("seen", path),))


def judgement(*findings, unknown=(), ok=()):
    return Judgement(tuple(findings), unknown=tuple(unknown), ok=tuple(ok))


def test_an_ignore_takes_the_findings_of_its_rule_and_keeps_the_reason():
    done = accept(judgement(finding(), finding("IDP305")), Accepted((Ignore("IDP401", "old cluster"),)), TODAY)
    assert [item.code for item in done.findings] == ["IDP305"]
    [known] = done.suppressed
    assert (known.code, known.severity, known.reason) == ("IDP401", Severity.ERROR, "old cluster")


@pytest.mark.parametrize(("pattern", "left"), [("/opt/*", 0), ("/usr/*", 1), ("/opt/x/libmkldnn.so", 0)])
def test_an_ignore_with_a_path_takes_only_what_is_about_it(pattern, left):
    done = accept(judgement(finding()), Accepted((Ignore("IDP401", "r", pattern),)), TODAY)
    assert len(done.findings) == left


def test_an_ignore_with_a_path_takes_nothing_that_is_about_no_file():
    done = accept(judgement(replace(finding(), evidence=())), Accepted((Ignore("IDP401", "r", "*"),)), TODAY)
    assert len(done.findings) == 1


@pytest.mark.parametrize(("until", "left"), [(date(2026, 11, 29), 1), (TODAY, 0), (date(2027, 1, 1), 0)])
def test_an_ignore_ends_after_its_last_day_and_the_finding_says_so(until, left):
    done = accept(judgement(finding()), Accepted((Ignore("IDP401", "for now", None, until),), origin="x.toml"), TODAY)
    assert len(done.findings) == left
    if left:
        assert done.findings[0].evidence[-1].text == f"it was ignored until {until} by x.toml: for now"
        assert fingerprints(done.findings) == fingerprints([finding()])


def test_a_second_ignore_that_still_holds_is_enough():
    ended = Ignore("IDP401", "a", None, date(2020, 1, 1))
    done = accept(judgement(finding()), Accepted((ended, Ignore("IDP401", "b"))), TODAY)
    assert [item.reason for item in done.suppressed] == ["b"]


def test_a_baseline_takes_what_it_had_and_leaves_what_is_new():
    before = finding(found="libmkldnn 0.20 at 0x7f00, error 3.1e-03")
    again = finding(found="libmkldnn 0.21 at 0x1234, error 9.9e-01")
    another = finding(path="/home/u/libmkldnn.so")
    known = frozenset(fingerprints([before]))
    done = accept(judgement(again, another), Accepted(baseline=Baseline("base.json", known)), TODAY)
    assert done.findings == (another,)
    assert [item.reason for item in done.suppressed] == ["in the baseline"]


def test_one_more_of_the_same_is_new():
    known = frozenset(fingerprints([finding()]))
    done = accept(judgement(finding(), finding()), Accepted(baseline=Baseline("base.json", known)), TODAY)
    assert len(done.findings) == 1


def test_an_undecided_rule_is_accepted_by_its_code_or_the_baseline_only():
    unknown = NotKnown("IDP111", "AVX", "no CPUID")
    by_code = accept(judgement(unknown=[unknown]), Accepted((Ignore("IDP111", "emulated"),)), TODAY)
    assert (by_code.unknown, by_code.suppressed[0].severity) == ((), None)
    with_path = accept(judgement(unknown=[unknown]), Accepted((Ignore("IDP111", "emulated", "*"),)), TODAY)
    assert with_path.unknown == (unknown,)
    known = accept(
        judgement(unknown=[unknown]),
        Accepted(baseline=Baseline("base.json", frozenset(fingerprints([unknown])))),
        TODAY,
    )
    assert known.unknown == ()


def test_an_ignore_that_fits_nothing_is_named_where_its_rule_was_looked_at():
    accepted = Accepted((Ignore("IDP401", "r"), Ignore("IDP305", "r"), Ignore("IDP601", "r")))
    assert [item.code for item in unused(judgement(finding(), ok=["IDP305"]), accepted)] == ["IDP305"]


@given(st.lists(st.sampled_from(["a 1", "a 2", "b", "c"]), max_size=6))
def test_fingerprints_are_never_the_same_twice_and_follow_the_order(texts):
    made = fingerprints([finding(found=text) for text in texts])
    assert len(set(made)) == len(made)
    assert made == fingerprints([finding(found=text) for text in texts])


@given(
    st.lists(st.sampled_from(["IDP401", "IDP305", "IDP601"]), max_size=5),
    st.sets(st.sampled_from(["IDP401", "IDP305"])),
)
def test_nothing_is_lost(codes, ignored):
    given_ = judgement(*(finding(code) for code in codes))
    done = accept(given_, Accepted(tuple(Ignore(code, "r") for code in sorted(ignored))), TODAY)
    assert sorted([item.code for item in done.findings] + [item.code for item in done.suppressed]) == sorted(codes)
    assert not {item.code for item in done.findings} & ignored


def test_a_finding_of_the_project_is_the_same_in_another_checkout():
    def prints(root):
        inside = finding(path=f"{root}/env/lib.so", found=f"{root}/env/lib.so is damaged")
        return fingerprints([inside, finding(path="/usr/lib/lib.so")], Project(f"{root}/src", root))

    assert prints("/builds/7/team/app") == prints("/home/jane/app")
    assert prints("/builds/7/team/app") != prints("")
    relative = fingerprints([finding(path="a.py")], Project("/app/src", "/app"))
    assert relative == fingerprints([finding(path="/app/src/a.py")], Project("/app", "/app"))


@pytest.mark.parametrize(
    ("changes", "command", "python", "said"),
    [
        ({}, "diagnose", "/a/python", []),
        ({"made_by": "0.0.1"}, "diagnose", "/a/python", ["made by ideepdoctor 0.0.1, this is"]),
        ({}, "diagnose", "/b/python", ["of another environment, /a/python"]),
        ({}, "lint", "", ["made by ideepdoctor diagnose: it knows nothing of what ideepdoctor lint finds"]),
        ({"fingerprints": frozenset("ab")}, "diagnose", "/a/python", ["1 of 2 findings in the baseline base.json"]),
        ({"fingerprints": frozenset("ab")}, "smoke", "/a/python", []),
        ({"made_for": "", "command": "", "made_by": ""}, "diagnose", "/b/python", []),
    ],
)
def test_a_baseline_says_why_it_may_not_fit(changes, command, python, said):
    base = Baseline("base.json", frozenset("a"), "diagnose", __version__, "/a/python")
    known = Suppressed("IDP401", Severity.ERROR, "x", "y", IN_BASELINE, "a")
    told = compared(replace(base, **changes), Judgement(suppressed=(known,)), command, python)
    assert len(told["doubts"]) == len(said)
    for doubt, words in zip(told["doubts"], said, strict=True):
        assert words in doubt
    assert told["met"] == 1
