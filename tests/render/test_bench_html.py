"""The page: self-contained, accessible, with every number; a browser opens it where there is one."""

from __future__ import annotations

import functools
import json
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ideepdoctor.model.bench import Result
from ideepdoctor.render.bench_html import page
from ideepdoctor.render.chart_svg import DARK, LIGHT
from tests.data.bench import make

SMALL = make.small()
VOID = {"meta", "link", "br", "img", "input", "hr"}


@functools.cache
def pages() -> dict[str, str]:
    many = [SMALL, make.BIG, make.MIDDLE, make.GPU]
    return {"one": page([SMALL]), "many": page(many), "cut": page([make.interrupted(SMALL)])}


class Read(HTMLParser):
    """The elements with their attributes; fails where tags do not close each other."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", ["one", "many", "cut"])
def test_the_page_loads_nothing_and_runs_nothing(name: str) -> None:
    text = pages()[name]
    read = Read(text)
    assert not {"script", "img", "iframe", "object", "embed", "form"} & {tag for tag, _ in read.found}
    for tag, attributes in read.found:
        assert not [key for key in attributes if key.startswith("on")], tag
        for key in ("src", "href", "xlink:href", "action"):
            assert (attributes.get(key) or "data:,") == "data:,"
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "@import" not in text
    assert "url(" not in text


@pytest.mark.parametrize("name", ["one", "many", "cut"])
def test_the_page_can_be_read_without_seeing_it(name: str) -> None:
    read = Read(pages()[name])
    ids = Counter(attributes["id"] for _, attributes in read.found if attributes.get("id"))
    assert [key for key, count in ids.items() if count > 1] == []
    charts = [attributes for tag, attributes in read.found if tag == "svg"]
    assert charts
    for attributes in charts:
        assert attributes["role"] == "img"
        assert all(ids[key] == 1 for key in (attributes["aria-labelledby"] or "").split())
        assert "width" not in attributes and "height" not in attributes
    tables = sum(tag == "table" for tag, _ in read.found)
    assert tables == sum(tag == "caption" for tag, _ in read.found)
    assert tables >= len(charts) / 2 - 1
    assert all(attributes.get("scope") for tag, attributes in read.found if tag == "th")
    assert ("html", {"lang": "en"}) in read.found
    levels = [int(tag[1]) for tag, _ in read.found if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1


def text_of(name: str) -> str:
    """What is read on the page, charts aside."""
    shown = re.sub(r"<(style|svg)\b.*?</\1>", "", pages()[name], flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", shown).split())


def test_every_number_stands_in_a_table() -> None:
    text = text_of("one")
    for row in SMALL.results:
        if row.median is None:
            assert row.why in text
        else:
            digits = 1 if row.median < 0.1 else 0
            assert f"{row.median * 1000:.{digits}f}" in text
            assert f"{row.gflops:.0f}" in text
    for said in (
        *("Chainer 7.8.1 + iDeep 2.0.0.post3, tuned", "MKL_DEBUG_CPU_TYPE=7, OMP_NUM_THREADS=2", "chainer 7.8.1"),
        *("steal 0.1 %", "3600 to 4100 MHz", "not throttled", "5 interleaved blocks", "pinned to CPUs 0, 1"),
        *("What limits each net", "2 cores x 4.1 GHz x 64 flop per cycle", "jit:avx512_common", "geometric mean"),
        *("conv1 backward weights", "OpenBLAS 0.3.17", "A step by threads"),
    ):
        assert said in text, said


def test_a_page_of_several_machines_has_the_three_charts_and_each_run() -> None:
    text = text_of("many")
    for said in (
        "Chainer with iDeep: 4 runs on two-cores, 28-cores, 18-cores and gpu-server",
        "NumPy against iDeep: iDeep tuned, two-cores is 1",
        "Chainer with iDeep against PyTorch or Caffe, which is 1 on each machine",
        "CPUs against a GPU: CuPy, gpu-server is 1",
        "NumPy (MKL) is slower on the bigger machine: 28-cores (28 cores) against 18-cores (18 cores)",
        *(f"Run {result.id} on" for result in (SMALL, make.BIG, make.MIDDLE, make.GPU)),
    ):
        assert said in text, said


def test_what_is_doubtful_is_said_first() -> None:
    assert "The run on two-cores was interrupted" in text_of("cut")
    noisy = replace(make.GPU, noise=replace(make.GPU.noise, quiet=False, messages=("steal of 12 %",)))
    assert "gpu-server was not quiet: steal of 12 %." in page([noisy])
    other = replace(make.GPU, results=tuple(replace(row, batch=128) for row in make.GPU.results), nets=())
    assert "Not drawn: CPUs against a GPU" in page([SMALL, other])


def test_light_dark_and_paper_have_their_colours() -> None:
    text = pages()["one"]
    assert f"--tuned: {LIGHT.series['tuned']};" in text
    assert f"--tuned: {DARK.series['tuned']};" in text
    assert "@media (prefers-color-scheme: dark)" in text
    assert "@media print" in text
    assert text.count("--ground:") == 3


def test_names_that_are_markup_stay_text() -> None:
    evil = "<script>alert(1)</script>&\"'"
    strange: Result = replace(
        SMALL,
        machine=replace(SMALL.machine, name=evil, cpu=evil),
        engines=tuple(replace(engine, label=evil, versions={evil: evil}) for engine in SMALL.engines),
        results=tuple(replace(row, net=evil) for row in SMALL.results if row.net == "vgga"),
        layers=tuple(replace(layer, layer=evil, net=evil) for layer in SMALL.layers),
        noise=replace(SMALL.noise, messages=(evil,)),
        nets=(),
    )
    assert "script" not in {tag for tag, _ in Read(page([strange])).found}


def test_a_run_without_anything_is_a_page_too() -> None:
    Read(page([replace(SMALL, results=(), layers=(), scaling=(), engines=(), nets=())]))


BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def opened(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    assert BROWSER is not None
    folder = f"--user-data-dir={path.parent / 'profile'}"
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    done = [BROWSER, *quiet, folder, "--enable-logging=stderr", *words, path.as_uri()]
    return subprocess.run(done, capture_output=True, text=True, timeout=120)


def complaints(path: Path) -> list[str]:
    """What the browser asks the network for on behalf of a page, and what it says on the console."""
    log = path.parent / "net.json"
    done = opened(path, f"--log-net-log={log}", f"--screenshot={path.parent / 'shot.png'}")
    asked = [
        event["params"]["url"]
        for event in json.loads(log.read_text("utf-8"))["events"]
        if "file://" in str(event.get("params", {}).get("network_isolation_key"))
    ]
    return [*asked, *(line for line in done.stderr.splitlines() if "CONSOLE" in line)]


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
def test_a_browser_asks_the_network_for_nothing_and_has_no_complaint(tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text('<script>console.error("no")</script><img src="http://example.invalid/x.png">', "utf-8")
    assert len(complaints(bad)) == 2, "what is looked for here is not seen"
    for name in ("one", "many"):
        path = tmp_path / f"{name}.html"
        path.write_text(pages()[name], "utf-8")
        assert complaints(path) == []


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_hangs_over_the_edge_of_a_phone_or_a_desk(width: int, tmp_path: Path) -> None:
    # In a frame: a window of a browser is 500 pixels wide at least.
    frame = f"<iframe src=page.html style='width:{width}px;height:900px;border:0'></iframe>"
    outer = tmp_path / "outer.html"
    outer.write_text(f"<script>onmessage = told => document.title = told.data</script>{frame}", "utf-8")
    for text in pages().values():
        told = "parent.postMessage(document.documentElement.scrollWidth + ' of ' + innerWidth, '*')"
        (tmp_path / "page.html").write_text(text.replace("</body>", f"<script>{told}</script></body>"), "utf-8")
        done = opened(outer, "--dump-dom", "--virtual-time-budget=4000", "--window-size=1600,1000")
        found = re.search(r"<title>(\d+) of (\d+)</title>", done.stdout)
        assert found is not None, done.stdout[:300]
        assert int(found[1]) <= int(found[2]) == width
