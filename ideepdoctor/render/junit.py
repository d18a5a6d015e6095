"""JUnit XML: a test case for each rule, as CI systems show test results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as Xml

from ideepdoctor.model.findings import Severity
from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import FailOn
from ideepdoctor.render.problems import Level, Problem, problems, subject
from ideepdoctor.rules.explain import EVERYTHING

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report, fail_on: FailOn = FailOn.ERROR) -> str:
    """One ``testsuites`` document.

    A rule with a finding that counts (``fail_on``) fails, one with milder findings passes and tells them as its
    output; undecided rules and an error that ended the command are errors; rules that were
    skipped, and what was accepted, are skipped.
    """
    root = Xml.Element("testsuites", name="ideepdoctor")
    suite = Xml.SubElement(root, "testsuite", name=_clean(f"ideepdoctor {report.command}"))
    listed = Xml.SubElement(suite, "properties")
    Xml.SubElement(listed, "property", name="subject", value=_clean(subject(report)))
    by_code: dict[str, list[Problem]] = {}
    for item in problems(report):
        by_code.setdefault(item.code, []).append(item)
    judgement = report.judgement
    skipped = {} if judgement is None else {item.code: item.because for item in judgement.skipped}
    accepted = {} if judgement is None else {item.code: item.reason for item in judgement.suppressed}
    passed = () if judgement is None else judgement.ok
    titles = {rule.code(): rule.title for rule in EVERYTHING}
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    codes = sorted({*by_code, *skipped, *passed, *accepted})
    if not codes:  # a command that judges nothing: a suite without a test is an error to some
        counts["tests"] += 1
        Xml.SubElement(suite, "testcase", name=_clean(f"{report.command} ended"), classname="ideepdoctor")
    for code in codes:
        here = by_code.get(code, [])
        title = titles.get(code) or next((item.title for item in here), "")
        case = Xml.SubElement(suite, "testcase", name=_clean(f"{code} {title}".strip()), classname="ideepdoctor")
        counts["tests"] += 1
        if here:
            _tell(case, here, fail_on, counts)
        elif code in skipped:
            counts["skipped"] += 1
            Xml.SubElement(case, "skipped", message=f"because of {skipped[code]}")
        elif code in accepted:
            counts["skipped"] += 1
            Xml.SubElement(case, "skipped", message=_clean(f"accepted: {accepted[code]}"))
    _write_counts(root, suite, counts)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode")


def _tell(case: Xml.Element, here: Sequence[Problem], fail_on: FailOn, counts: dict[str, int]) -> None:
    text = _clean("\n\n".join(_lines(item) for item in here))
    broken = [item for item in here if item.level in (Level.UNKNOWN, Level.FAILED)]
    counting = [item for item in here if item not in broken and fail_on.reached_by(Severity(item.level))]
    if broken:
        counts["errors"] += 1
        Xml.SubElement(case, "error", type=str(broken[0].level), message=_clean(broken[0].message)).text = text
    elif counting:
        counts["failures"] += 1
        Xml.SubElement(case, "failure", type=str(counting[0].level), message=_clean(counting[0].message)).text = text
    else:
        Xml.SubElement(case, "system-out").text = text


def _lines(item: Problem) -> str:
    where = item.path if item.line is None else f"{item.path}:{item.line}"
    parts = [f"{item.level}: {item.message}", f"next: {item.do}" if item.do else "", where or ""]
    return "\n".join(part for part in parts if part)


def _write_counts(root: Xml.Element, suite: Xml.Element, counts: Mapping[str, int]) -> None:
    for name in ("tests", "failures", "errors"):
        root.set(name, str(counts[name]))
        suite.set(name, str(counts[name]))
    suite.set("skipped", str(counts["skipped"]))


def _clean(text: str) -> str:
    """The text without the characters that XML cannot hold."""
    return _NOT_XML.sub("?", text)
