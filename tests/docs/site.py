"""A built site: its pages, what they link to, and what they load."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "embed": "src", "object": "data"}
"""Elements that load what their attribute names, whoever reads the page."""


@dataclass
class Page(HTMLParser):
    """What of a page matters to links."""

    text: str
    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    language: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "html":
            self.language = given.get("lang", "")
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload", "shortcut icon"):
            self.loads.append(given["href"])
        if tag in LOADED and given.get(LOADED[tag]):
            self.loads.append(given[LOADED[tag]])


def pages(folder: Path) -> dict[Path, Page]:
    """Every page below a folder."""
    return {path: Page(path.read_text("utf-8")) for path in sorted(folder.rglob("*.html"))}


def outside(url: str) -> bool:
    """Whether a link leads to another host."""
    return bool(urlsplit(url).netloc) or url.startswith("//")


def local(path: Path, page: Page) -> Iterator[tuple[str, str, str]]:
    """Links and files of a page that are of this site: as written, the path that they lead to, and the anchor."""
    for url in {*page.links, *page.loads}:
        parts = urlsplit(url)
        if not outside(url) and parts.scheme not in ("data", "mailto", "javascript"):
            there = posixpath.join(path.parent.as_posix(), unquote(parts.path)) if parts.path else path.as_posix()
            yield url, posixpath.normpath(there), unquote(parts.fragment)


def dead(known: dict[Path, Page], folder: Path) -> list[str]:
    """Local links and files that lead nowhere, each as ``page: link``."""
    files = {path.as_posix() for path in folder.rglob("*") if path.is_file()}
    anchors = {path.as_posix(): page.anchors for path, page in known.items()}
    found = []
    for path, page in known.items():
        for url, there, anchor in local(path, page):
            there = f"{there}/index.html" if f"{there}/index.html" in files else there
            if there not in files or (anchor and anchor not in anchors.get(there, {anchor})):
                found.append(f"{path.relative_to(folder)}: {url}")
    return sorted(found)
