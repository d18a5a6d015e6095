"""Every example of every check: BAD gives that check's finding and no other, OK gives none at all."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from ideepdoctor.lint.base import Check, Sample
from ideepdoctor.lint.demands import read_named
from ideepdoctor.lint.engine import lint
from ideepdoctor.lint.registry import LINT_CHECKS
from ideepdoctor.lint.source import Unreadable, read
from ideepdoctor.rules import RULES
from ideepdoctor.rules.explain import HEADINGS, document, find
from tests.lint.sources import found

CHECKS = [check for check in LINT_CHECKS if check.code() != "IDP900"]
CASES = [
    (check, sample, bad) for check in CHECKS for bad in (False, True) for sample in (check.bad if bad else check.ok)
]


def label(case: object) -> str:
    if isinstance(case, Sample):
        return case.name.replace(" ", "-")
    return case.code() if inspect.isclass(case) else ("bad" if case else "ok")


@pytest.mark.parametrize(("check", "sample", "bad"), CASES, ids=label)
def test_example(check: type[Check], sample: Sample, bad: bool):
    seen = found(sample.source, sample.file)
    assert {item.finding.code for item in seen} == ({check.code()} if bad else set())
    for item in seen:
        finding = item.finding
        assert all((finding.found, finding.needed, finding.consequence, finding.next_step, finding.title))
        assert finding.next_step.isascii()
        [evidence] = finding.evidence
        assert evidence.path == sample.file
        assert sample.source.splitlines()[item.place.line - 1].strip() in evidence.text


@pytest.mark.parametrize(("check", "sample", "bad"), [case for case in CASES if case[2]], ids=label)
def test_a_bad_example_can_be_silenced_on_its_line(check: type[Check], sample: Sample, bad: bool):
    lines = sample.source.splitlines()
    for item in found(sample.source, sample.file):
        lines[item.place.line - 1] += f"  # noqa: {check.code()}"
    silenced = lint(read_named(sample.file, "\n".join(lines).encode()))
    assert silenced.found == ()
    assert silenced.suppressed >= 1


@pytest.mark.parametrize("bad", [True, False])
def test_the_examples_of_what_cannot_be_read(bad: bool):
    check = find("IDP900")
    for sample in check.bad if bad else check.ok:
        assert isinstance(sample, Sample)
        if bad:
            with pytest.raises(Unreadable):
                read("program.py", sample.source.encode())
        else:
            assert found(sample.source) == ()


@pytest.mark.parametrize("check", LINT_CHECKS, ids=label)
def test_a_check_is_a_document(check: type[Check]):
    text = inspect.cleandoc(check.__doc__ or "")
    assert [line for line in text.splitlines() if line in HEADINGS] == list(HEADINGS)
    assert len(check.ok) >= 2
    assert len(check.bad) >= 2
    assert not check.title.endswith(".")
    printed = document(check)
    assert printed.startswith(f"# {check.code()}: {check.title}\n")
    assert find(check.code().lower()) is check
    assert re.findall(r"^## (.+)$", printed, re.MULTILINE) == [*HEADINGS, "Examples"]
    assert len(re.findall(r"^```(?:python|text)$", printed, re.MULTILINE)) == len(check.ok) + len(check.bad)
    assert max(map(len, printed.splitlines())) <= 120


def test_codes_are_unique_of_one_family_and_every_file_is_registered():
    codes = [check.code() for check in LINT_CHECKS]
    assert codes == sorted(set(codes))
    assert all(re.fullmatch(r"IDP9\d\d", code) for code in codes)
    assert not set(codes) & {rule.code() for rule in RULES}
    folder = Path(inspect.getfile(LINT_CHECKS[0])).parent
    assert len(list(folder.glob("idp*.py"))) == len(codes)
