"""Pictures of what the doctor prints: ``python docs/screenshots.py`` writes ``docs/images/*.svg`` anew.

Each is a report of recorded facts, printed by the doctor's own renderer, so it is the same on every machine;
``tests/docs/test_screenshots.py`` compares. Where a real run takes minutes, the report is one of the tests'.
"""

from __future__ import annotations

import html
import importlib.metadata
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from rich.console import Console  # noqa: E402
from rich.text import Text  # noqa: E402

from docs.figure import figure  # noqa: E402
from ideepdoctor import locale  # noqa: E402
from ideepdoctor.commands.verdict import verdict  # noqa: E402
from ideepdoctor.locale import columns  # noqa: E402
from ideepdoctor.model.facts import ConvTiming, OpCheck, Smoke  # noqa: E402
from ideepdoctor.model.report import Report  # noqa: E402
from ideepdoctor.render import bench, certify  # noqa: E402
from ideepdoctor.render.text import render  # noqa: E402
from ideepdoctor.rules import RULES  # noqa: E402
from ideepdoctor.rules.engine import judge  # noqa: E402
from tests.reports import bench as bench_file  # noqa: E402
from tests.reports import certified  # noqa: E402
from tests.rules.hosts import facts_on  # noqa: E402

IMAGES = HERE / "images"
COLUMNS = 80
FONTS = '"DejaVu Sans Mono", "Liberation Mono", Menlo, Consolas, "Noto Sans Mono CJK JP", "Noto Sans CJK JP", monospace'
RICH = importlib.metadata.version("rich")
"""What drew the pictures: another release draws other lines of SVG, if the same texts."""
CHARACTER = 12.2
"""Width of a column in rich's pictures."""
_RUN = re.compile(r'(<text [^>]*textLength=")[\d.]+("[^>]*>)([^<]*)</text>')
_FACES = re.compile(r"\s*@font-face \{.*?\}\n", re.DOTALL)


def _diagnosed(host: str, overlay: Mapping[str, Any]) -> Report:
    facts = facts_on(host, overlay)
    return Report("diagnose", facts=facts, judgement=judge(facts, RULES))


def _healthy() -> Report:
    return _diagnosed("py37-healthy", {})


def _broken() -> Report:
    return _diagnosed("py37-healthy", {"packages": {"numpy": "1.15.4"}})


def _explained() -> Report:
    from ideepdoctor.commands.explain import Symptoms, explain

    return explain(None, Symptoms(error=ERROR))


def _set_up() -> Report:
    facts = facts_on("py37-healthy")
    checks = tuple(OpCheck(f"operation {number}", "", 2, "right", True, 2.4e-6, 1e-4) for number in range(38))
    smoke = Smoke(
        2, True, "jit:avx512_common", checks, ConvTiming("batch 8", 7, 0.0575, 0.0125, 4.6, 3.9, 5.8, 385.0), 6
    )
    judgement = judge(facts, RULES)
    steps = ["run a script: .ideep/bin/python your_script.py", "or activate it: . .ideep/bin/activate"]
    told = {"verdict": verdict(facts, judgement, smoke), "next": steps}
    return Report("setup", facts=facts, judgement=judgement, smoke=smoke, extra=told)


def _certified() -> Report:
    data = certified()
    body = tuple(certify.lines(data))
    return Report(
        "certify",
        facts=facts_on("py37-healthy"),
        body=body,
        extra={"verdict": "WRONG: 140 of 144 tries are right; concat ends the process"},
    )


def _measured() -> Report:
    return Report("bench", body=tuple(bench.lines(bench_file("two-cores"), COLUMNS)))


def _fleet() -> Report:
    import tempfile

    from ideepdoctor.commands.fleet_merge import judged
    from ideepdoctor.fleet.merge import merged
    from ideepdoctor.fleet.merge_files import files_of
    from tests.benchmarks.fleet_reports import write_example

    with tempfile.TemporaryDirectory() as name:
        write_example(Path(name) / "reports")
        found = merged(files_of(("reports",), name), lambda text: None)
    assert found is not None
    return Report("fleet merge", judgement=judged(found), extra={"fleet": found})


ERROR = "terminate called after throwing an instance of 'mkldnn::error'"
"""Several faults end so."""
PICTURES: Mapping[str, tuple[str, str, Callable[[], Report]]] = {
    "healthy": ("ideepdoctor diagnose", "en", _healthy),
    "broken": ("ideepdoctor diagnose", "en", _broken),
    "setup": ("ideepdoctor setup", "en", _set_up),
    "explain": ('ideepdoctor explain --error "$(tail -n 1 train.log)"', "en", _explained),
    "certify": ("ideepdoctor certify --ops conv,concat,lstm", "en", _certified),
    "bench": ("ideepdoctor bench", "en", _measured),
    "fleet": ("ideepdoctor fleet merge reports", "en", _fleet),
    "japanese": ("ideepdoctor diagnose --lang ja", "ja", _broken),
}
"""The command line that is shown, the language, and what makes the report."""


def picture(name: str) -> str:
    """A picture as SVG that asks for nothing outside of itself. The language is English again afterwards."""
    shown, language, report = PICTURES[name]
    console = Console(
        record=True, width=COLUMNS, highlight=False, markup=False, emoji=False, force_terminal=True, file=_Nowhere()
    )
    locale.use(language)
    try:
        console.print(Text(f"$ {shown}", style="bold green"))
        render(report(), console)
    finally:
        locale.use("en")
    return closed(console.export_svg(title="ideepdoctor", unique_id=f"doctor-{name}"))


def closed(svg: str) -> str:
    """An SVG of rich without the fonts that it would load: those of the reader serve, since each run of text is
    stretched to the place that it has.
    """
    told = _FACES.sub("\n", svg).replace("font-family: Fira Code, monospace;", f"font-family: {FONTS};")
    told = _RUN.sub(_as_wide_as_it_is, told)
    told = re.sub("<!--.*?-->", f"<!-- rich {RICH} -->", told, count=1)
    return re.sub(r"[ \t]+$", "", told, flags=re.MULTILINE).rstrip("\n") + "\n"


def _as_wide_as_it_is(found: re.Match[str]) -> str:
    """A run of text with the place that a terminal gives it: rich counts characters, some of which take two."""
    return f"{found[1]}{CHARACTER * columns.width(html.unescape(found[3])):g}{found[2]}{found[3]}</text>"


class _Nowhere:
    """A stream that keeps nothing."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        """Nothing is kept."""

    def isatty(self) -> bool:
        return False


def pictures() -> dict[str, str]:
    """Every file of ``docs/images`` by its name."""
    return {**{f"{name}.svg": picture(name) for name in PICTURES}, "architecture.svg": figure()}


def main() -> None:
    """Write them."""
    IMAGES.mkdir(exist_ok=True)
    made = pictures()
    for old in IMAGES.glob("*.svg"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (IMAGES / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
