"""What is on the page of a fleet, and the same in the language in use. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ideepdoctor.locale import language, tr


@dataclass(frozen=True, slots=True)
class Words:
    """What the page itself says."""

    search: str = "Search: a host, a code, a word"
    hosts_and_causes: str = "Hosts and causes"
    groups_and_causes: str = "Groups and causes"
    number: str = "so many of the group differ from their twins"
    row_of_host: str = "A row for each host, a column for each cause, and for what it differs in from its twins"
    row_of_group: str = (
        "A row for each group of hosts with the same causes, a column for each cause, and for what hosts differ in "
        "from their twins"
    )
    host: str = "host"
    group: str = "group"
    state: str = "state"
    names: str = "their names"
    groups: str = "Groups, the largest first"
    outliers: str = "Not like their twins"
    slower: str = "Slower than their twins"
    skipped: str = "Skipped files: nothing is known from them"
    why: str = "Why each says nothing about a host"
    older: str = "Older reports: not counted"
    newest: str = "The newest report of a host counts"
    file: str = "file"
    reason: str = "reason"
    instead: str = "counted instead"
    besides: str = "Besides"
    kinds: str = "Kinds of hosts that were compared"
    splits: str = "Twins of several kinds"
    notes: str = "Notes"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the map."""

    label: str
    title: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: class of its colour, what it shows, and what that means; all empty: nothing is the matter."""

    kind: str = ""
    text: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A host, or a group of hosts."""

    label: str
    hosts: str
    state: str
    words: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Hosts with the same causes; a cause: severity, head, rows of name, text and whether that is code."""

    number: int
    title: str
    state: str
    hosts: str
    causes: tuple[tuple[str, str, tuple[tuple[str, str, bool], ...]], ...]


@dataclass(frozen=True, slots=True)
class Page:
    """The whole page."""

    title: str
    subject: str
    verdict: str
    edge: str
    by_host: bool
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    left_out: str
    meaning: tuple[tuple[str, str, str], ...]
    groups: tuple[Group, ...]
    outliers: tuple[tuple[str, str, tuple[str, ...]], ...]
    slower: tuple[tuple[str, str, tuple[str, ...]], ...]
    notes: tuple[tuple[str, str], ...]
    splits: tuple[str, ...]
    kinds: tuple[tuple[str, str], ...]
    skipped: tuple[tuple[str, str], ...]
    older: tuple[tuple[str, str, str], ...]
    footer: str
    words: Words = field(default_factory=Words)
    lang: str = "en"


def in_language(page: Page) -> Page:
    """The page with what people read translated; names of hosts and files, codes and numbers as they are."""

    def items(found: tuple[tuple[str, str, tuple[str, ...]], ...]) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
        return tuple((tr(head), hosts, tuple(tr(line) for line in lines)) for head, hosts, lines in found)

    return replace(
        page,
        lang=language(),
        subject=tr(page.subject),
        verdict=tr(page.verdict),
        columns=tuple(Column(tr(item.label), tr(item.title)) for item in page.columns),
        rows=tuple(
            replace(
                row,
                label=tr(row.label),
                words=tr(row.words),
                cells=tuple(replace(cell, title=tr(cell.title)) for cell in row.cells),
            )
            for row in page.rows
        ),
        left_out=tr(page.left_out),
        meaning=tuple((kind, letter, tr(words)) for kind, letter, words in page.meaning),
        groups=tuple(
            replace(
                group,
                title=tr(group.title),
                causes=tuple(
                    (tr(severity), tr(head), tuple((tr(name), tr(text), is_code) for name, text, is_code in rows))
                    for severity, head, rows in group.causes
                ),
            )
            for group in page.groups
        ),
        outliers=items(page.outliers),
        slower=items(page.slower),
        notes=tuple((tr(words), hosts) for words, hosts in page.notes),
        splits=tuple(tr(line) for line in page.splits),
        skipped=tuple((file, tr(reason)) for file, reason in page.skipped),
        footer=tr(page.footer),
        words=Words(**{name: tr(str(getattr(page.words, name))) for name in Words.__dataclass_fields__}),
    )
