"""The page of a fleet: what is on it, and whether its search finds a host in a folded list."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.commands.fleet_merge import judged
from ideepdoctor.fleet.names import fold
from ideepdoctor.model.report import Report
from ideepdoctor.render.fleet_html import MOST_HOSTS, render
from tests.benchmarks.fleet_reports import report
from tests.fleet.test_merge import fleet_of, plant


class Reader(HTMLParser):
    """Rows of the map, by their hosts; ids; whatever would be loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[str] = []
        self.ids: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "tr" and found.get("data-hosts"):
            self.rows.append(str(found["data-hosts"]))
        if found.get("id"):
            self.ids.append(str(found["id"]))
        self.loaded += [str(found[name]) for name in ("src", "href") if name in found and tag != "a"]


def page(fleet: Mapping[str, Any]) -> str:
    return render(Report("fleet merge", judgement=judged(fleet), extra={"fleet": fleet}))


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    return reader


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("small")
    plant(folder, [*["healthy"] * 8, "old NumPy", "threads", "slow", "unreachable"])
    return page(fleet_of(folder))


def large_fleet(folder: Path) -> Mapping[str, Any]:
    """A fleet of 10,000: the picture of twelve with longer names."""
    plant(folder, [*["healthy"] * 8, "old NumPy", "threads", "slow", "unreachable"])
    text = json.dumps(fleet_of(folder))
    fleet: dict[str, Any] = json.loads(text)
    healthy = next(group for group in fleet["groups"] if group["state"] == "healthy")
    names = [f"n{number:05d}" for number in range(1, 9990) if number != 4711]
    fleet["hosts"].update(total=len(names) + 2, healthy=len(names))
    healthy.update(hosts=fold(names), count=len(names))
    return fleet


def test_a_small_fleet_has_a_row_for_each_host(small):
    found = read(small)
    assert found.rows == [f"n{number:02d}" for number in range(1, 13)]
    assert len(found.ids) == len(set(found.ids))
    assert found.loaded == ["data:,"]
    for title in ("IDP305: NumPy 1.15.4", "threads: 4", "unreachable: ssh: connect to host n12"):
        assert title in small


def test_a_large_fleet_has_a_row_for_each_group(tmp_path):
    fleet = large_fleet(tmp_path)
    assert fleet["hosts"]["total"] > MOST_HOSTS
    text = page(fleet)
    assert read(text).rows == [group["hosts"] for group in fleet["groups"]]
    assert len(text) < 60_000


def test_names_and_findings_are_text_and_no_markup(tmp_path):
    made = report("n1", "old NumPy", random.Random(1))
    made["host"]["name"] = "<img/src=x>&\"'"
    made["findings"][0]["found"] = "</script><script>alert(1)</script>"
    (tmp_path / "a.json").write_text(json.dumps(made))
    text = page(fleet_of(tmp_path))
    assert "<img" not in text and "<script>alert" not in text
    assert read(text).rows == ["<img/src=x>&\"'"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "shown"),
    [("n00001", 1), ("n04711", 0), ("n9989", 0), ("n09989", 1), ("N09989", 1), ("idp305", 1), ("n09989 idp305", 0)],
)
def test_the_search_finds_a_host_in_a_folded_list(tmp_path, word: str, shown: int):
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("no chromium on this machine")
    (tmp_path / "fleet").mkdir()
    text = page(large_fleet(tmp_path / "fleet"))
    typed = (
        f"<script>var f=document.getElementById('words');f.value={json.dumps(word)};"
        "f.dispatchEvent(new Event('input'));"
        "document.body.setAttribute('data-shown',document.querySelectorAll('article[data-hosts]:not([hidden])').length)"
        "</script></body>"
    )
    (tmp_path / "page.html").write_text(text.replace("</body>", typed))
    done = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", f"file://{tmp_path}/page.html"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    found = re.search(r'data-shown="(\d+)"', done.stdout)
    assert found is not None and int(found[1]) == shown
