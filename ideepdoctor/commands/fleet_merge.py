"""``fleet merge``: what the reports of many hosts come to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from ideepdoctor.commands.session import Session
from ideepdoctor.errors import UsageError
from ideepdoctor.fleet.merge_files import files_of
from ideepdoctor.fleet.merge_pages import IDP001, IDP002, IDP003, IDP004, Page
from ideepdoctor.model.findings import Evidence, Finding, FixSafety, Judgement, NotKnown, Severity
from ideepdoctor.model.report import Report
from ideepdoctor.model.words import counted

_LONGEST_LIST = 160
"""Characters of a folded list of hosts in a finding; the whole list stands under the key ``fleet``."""
_NAMED_FILES = 3
"""Skipped files that are named in an undecided rule; all of them stand under the key ``fleet``."""


def merge(session: Session, paths: tuple[str, ...]) -> Report:
    """Group the hosts of these files by cause, and find those that are not like their twins; changes nothing.

    Args:
        session: progress, and where relative paths begin.
        paths: see ``fleet.merge_files.files_of``.

    Returns:
        A report whose findings are causes, each with the hosts that have it; hosts without an answer and files that say
        nothing are undecided, so that the exit code is 3 where there is no finding that counts.

    Raises:
        UsageError: there is no file in what was named, or a list of files cannot be read.
        CouldNotCheck: there is no room for a temporary file.
    """
    from ideepdoctor.fleet.merge import merged

    found = merged(files_of(paths, session.cwd), session.progress.detail)
    if found is None:
        raise UsageError(
            "there is no file in what was named",
            hint="name files, folders (every .json below them), or @LIST or - with names of files",
        )
    return Report("fleet merge", judgement=judged(found), extra={"fleet": found})


def judged(fleet: Mapping[str, Any]) -> Judgement:
    """The picture of a fleet as findings and undecided rules, so that every format has them."""
    findings = [*_causes(fleet["causes"]), *_outliers(fleet["outliers"]), *_slower(fleet["slower"])]
    order = list(Severity)
    unknown = [*_unanswered(fleet["causes"]), *_skipped(fleet["skipped"]), *_undecided(fleet["causes"])]
    return Judgement(tuple(sorted(findings, key=lambda item: order.index(item.severity))), unknown=tuple(unknown))


def listed(folded: str) -> str:
    """A folded list of hosts that fits into a sentence."""
    if len(folded) <= _LONGEST_LIST:
        return folded
    return f"{folded[:_LONGEST_LIST].rpartition(',')[0] or folded[:_LONGEST_LIST]},..."


def _causes(causes: list[Mapping[str, Any]]) -> Iterator[Finding]:
    for item in causes:
        if item["severity"] in list(Severity):
            yield Finding(
                item["code"],
                Severity(item["severity"]),
                item["title"],
                f"{counted(item['count'], 'host')} ({listed(item['hosts'])}): {item['found']}",
                item["needed"],
                item["consequence"],
                item["next_step"],
                fix=FixSafety(item["safety"]) if item["safety"] in list(FixSafety) else FixSafety.MANUAL,
            )


def _unanswered(causes: list[Mapping[str, Any]]) -> Iterator[NotKnown]:
    for item in causes:
        if item["severity"] == "failed":
            hosts = f"{counted(item['count'], 'host')} ({listed(item['hosts'])})"
            yield NotKnown(IDP001.code(), IDP001.title, f"{hosts}: {item['code']}: {item['found']}")


def _undecided(causes: list[Mapping[str, Any]]) -> Iterator[NotKnown]:
    for item in causes:
        if item["severity"] == "unknown":
            hosts = f"{counted(item['count'], 'host')} ({listed(item['hosts'])})"
            yield NotKnown(item["code"], item["title"], f"{hosts}: {item['found']}")


def _skipped(skipped: list[Mapping[str, str]]) -> Iterator[NotKnown]:
    by_reason: dict[str, list[str]] = defaultdict(list)
    for item in skipped:
        by_reason[item["reason"]].append(item["file"])
    for reason, files in by_reason.items():
        named = ", ".join(files[:_NAMED_FILES])
        more = f" and {len(files) - _NAMED_FILES} more" if len(files) > _NAMED_FILES else ""
        yield NotKnown(IDP002.code(), IDP002.title, f"{named}{more}: {reason}")


def _outliers(outliers: list[Mapping[str, Any]]) -> Iterator[Finding]:
    for item in outliers:
        hosts = f"{counted(item['count'], 'host')} ({listed(item['hosts'])})"
        found = "; ".join(f"{row['what']}: {row['difference'] or row['found']}" for row in item["differs"])
        usual = "; ".join(
            f"{row['what']}: {row['usual']} ({row['having']} of {row['known']} have it)" for row in item["differs"]
        )
        yield _of_twins(
            IDP003,
            found=f"{hosts}: {found}",
            needed=usual,
            consequence="a job that runs on many hosts fails, or is slow, or gets other numbers there",
            next_step="ideepdoctor diff TWIN.json HOST.json, with the reports of one of its twins and of it",
            item=item,
        )


def _slower(slower: list[Mapping[str, Any]]) -> Iterator[Finding]:
    for item in slower:
        value, unit = f"{item['value']:.3g}", item["unit"]
        also = ", ".join(item["differs_in"])
        yield _of_twins(
            IDP004,
            found=f"{item['host']}: {value} {unit} ({item['what']}), {100 * item['share']:.0f} % of its twins' median",
            needed=f"at least {item['limit']:.3g} {unit}: the median of {item['twins']} twins is {item['median']:.3g}",
            consequence="a step of a data-parallel training waits for its slowest host",
            next_step=f"look at what else it differs in: {also}" if also else "ideepdoctor bench on it and on a twin",
            item=item,
        )


def _of_twins(
    page: type[Page], *, found: str, needed: str, consequence: str, next_step: str, item: Mapping[str, Any]
) -> Finding:
    machine = item["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in (item["versions"] or {}).items())
    seen = f"twins: {machine['processor']}, {machine['CPUs']} CPUs{f'; {versions}' if versions else ''}"
    return Finding(
        page.code(), page.severity, page.title, found, needed, consequence, next_step, (Evidence(seen),), page.fix
    )
