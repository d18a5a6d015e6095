"""The built documentation: no warning, no dead link, nothing from elsewhere, and a search that finds."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from docs.search import Pairs
from ideepdoctor.rules.explain import EVERYTHING
from tests.docs.site import Page, dead, local, outside, pages

ROOT = Path(__file__).parents[2]
CODES = sorted(rule.code() for rule in EVERYTHING)
ELSEWHERE = {
    "https://chainer.org": "what this is for",
    "https://www.sphinx-doc.org/": "what built the pages, in each footer",
    "https://pradyunsg.me": "who made the theme, in each footer",
    "https://github.com/pradyunsg/furo": "the theme, in each footer",
}
"""Every link to another host. Reports are named, and not linked: they move."""

TYPED = ("行列の積が遅い", "NumPyがこのideep4py に合わない", "numpy.core.multiarray", "遅", "々ア1a あ", "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as a person builds it."""
    made = tmp_path_factory.mktemp("docs")
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "build.py"), str(made)], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")
    return made / "html"


@pytest.fixture(scope="module")
def site(folder: Path) -> dict[Path, Page]:
    return pages(folder.resolve())


def index(folder: Path) -> dict[str, dict[str, object]]:
    """What the search of a language knows."""
    told = (folder / "searchindex.js").read_text("utf-8")
    found: dict[str, dict[str, object]] = json.loads(told.removeprefix("Search.setIndex(").removesuffix(")"))
    return found


def test_every_code_has_a_page_in_each_language(folder: Path) -> None:
    for code in CODES:
        for language in ("", "ja"):
            assert (folder / language / "rules" / f"{code}.html").is_file(), code


def test_no_local_link_is_dead(site: dict[Path, Page], folder: Path) -> None:
    assert len(site) > 2 * len(CODES)
    assert dead(site, folder.resolve()) == []


def test_a_dead_link_would_be_seen(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<p id="x"><a href="#x"><a href="#y"><a href="b.html"><img src="c.png">')
    assert dead(pages(tmp_path), tmp_path) == ["a.html: #y", "a.html: b.html", "a.html: c.png"]


def test_nothing_comes_from_another_host(site: dict[Path, Page], folder: Path) -> None:
    assert [url for page in site.values() for url in page.loads if outside(url)] == []
    for path in [*folder.rglob("*.css"), *folder.rglob("*.svg")]:
        assert not re.search(r"(?:url\(\s*['\"]?|@import\s+['\"])(?:https?:)?//", path.read_text("utf-8")), path
    for path in folder.rglob("*.js"):
        if "searchindex" not in path.name:
            assert not re.search(r"(?:fetch|import|open)\(\s*['\"`]https?://", path.read_text("utf-8")), path


def test_links_to_other_hosts_are_few_and_well_formed(site: dict[Path, Page]) -> None:
    assert {url for page in site.values() for url in page.links if outside(url)} == set(ELSEWHERE)


def test_each_page_says_its_language_and_links_to_the_other(site: dict[Path, Page], folder: Path) -> None:
    top = f"{folder.resolve().as_posix()}/"
    for path, page in site.items():
        japanese = path.as_posix().startswith(f"{top}ja/")
        assert page.language == ("ja" if japanese else "en"), path
        if path.name not in ("search.html", "genindex.html"):
            there = {place for url, place, _ in local(path, page) if url.partition("#")[0].endswith(".html")}
            crossing = [place for place in there if place.startswith(f"{top}ja/") != japanese]
            assert len(crossing) == 1, path


def test_search_knows_codes_and_texts_of_errors(folder: Path) -> None:
    found = index(folder)
    words = {**found["terms"], **found["titleterms"]}
    assert {code.lower() for code in CODES} <= set(words)
    assert {"xbyak", "multiarray", "sigabrt"} <= set(words)


def test_search_in_japanese_knows_codes_and_pairs(folder: Path) -> None:
    found = index(folder / "ja")
    words = {**found["terms"], **found["titleterms"]}
    assert {code.lower() for code in CODES} <= set(words)
    assert set(Pairs({}).split("行列の積が遅い")) <= set(words)


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
@pytest.mark.parametrize(
    "text", ["行列の積が遅い", "NumPyがこのideep4py に合わない", "numpy.core.multiarray", "遅", "々ア1a あ", ""]
)
def test_what_is_typed_is_cut_as_the_pages_are(text: str) -> None:
    program = f"{Pairs.js_splitter_code}\nconsole.log(JSON.stringify(splitQuery({json.dumps(text)})))"
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True, timeout=30)
    assert json.loads(done.stdout) == Pairs({}).split(text)
    assert "".join(Pairs({}).split("あい")) == "あい"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium")
@pytest.mark.parametrize(
    ("page", "words", "found"),
    [
        ("search.html", "IDP305", "rules/IDP305.html"),
        ("search.html", "Xbyak", "rules/IDP111.html"),
        ("ja/search.html", "畳み込みの出力", "rules/IDP603.html"),
        ("ja/search.html", "SIGILL", "symptoms.html"),
    ],
)
def test_the_search_of_a_browser_finds_without_a_server(folder: Path, page: str, words: str, found: str) -> None:
    url = f"{(folder / page).resolve().as_uri()}?q={quote(words)}"
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=8000", "--dump-dom")
    done = subprocess.run(["chromium", *options, url], capture_output=True, text=True, timeout=120)
    results = done.stdout.partition('id="search-results"')[2]
    assert re.search(rf'href="[^"]*{re.escape(found)}', results), results[:2000]
