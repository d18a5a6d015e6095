"""``bench compare``, ``bench history`` and ``bench chart``: what is done with results that were measured before."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ideepdoctor.commands.session import Session
from ideepdoctor.errors import CouldNotCheck, UsageError
from ideepdoctor.locale import columns
from ideepdoctor.model.bench import Result
from ideepdoctor.model.report import Report
from ideepdoctor.proof.bench_bars import Chart, Comparison
from ideepdoctor.proof.bench_file import as_data, read
from ideepdoctor.proof.bench_history import Kept, Store
from ideepdoctor.treatment.state import state_folder

if TYPE_CHECKING:
    from ideepdoctor.render.charts import Drawing

_ENDS = (".html", ".svg", ".png")


def compare(session: Session, files: Sequence[str]) -> Report:
    """Set results against each other: the talk's three charts, as text and as data.

    Args:
        session: this run.
        files: result files, or ids of runs in the history.

    Raises:
        UsageError: a file is not there or holds no result, and no run has this id.
    """
    from ideepdoctor.proof.bench_compare import compare as set_against
    from ideepdoctor.render.bench import comparison_lines

    results = _read_all(session, files)
    comparison = set_against(results)
    body = comparison_lines(comparison, unicode=shows_unicode())
    return Report(
        "bench compare",
        body=tuple(body),
        extra={"bench_compare": comparison_data(comparison)},
        measured=tuple(results),
    )


def history(session: Session, run: str | None) -> Report:
    """List the runs that were kept, newest first, or (an id or its beginning) show one as it was shown then.

    Raises:
        UsageError: no such run, or several.
        CouldNotCheck: the history cannot be read.
    """
    store = Store(session.system, state_folder(session.environ))
    if run is not None:
        from ideepdoctor.render.bench import lines

        result = store.get(run)
        body = lines(result, unicode=shows_unicode())
        return Report("bench history", body=tuple(body), extra={"bench": as_data(result)}, measured=(result,))
    found = store.runs()
    text = "".join(_listed(item) for item in found) or "nothing was measured yet: ideepdoctor bench\n"
    return Report("bench history", text=columns.lines(text), extra={"bench_history": [asdict(item) for item in found]})


def chart(session: Session, files: Sequence[str], output: str, name: str) -> Report:
    """Draw result files as a page, or one chart of them as a picture.

    Raises:
        UsageError: a file is not there or holds no result; no such chart; an end of a name that says nothing; what
            makes PNG files is not installed.
        CouldNotCheck: the file cannot be written.
    """
    check_chart(output)
    path = draw(session, _read_all(session, files), output, name)
    return Report("bench chart", extra={"verdict": f"written: {path}", "chart": {"file": path}})


def check_chart(output: str) -> None:
    """Say before anything is measured that a chart could not be written: its name ends in .html, .svg or .png.

    Raises:
        UsageError: another end; or .png, and what makes it is not installed.
    """
    end = Path(output).suffix.lower()
    if end not in _ENDS:
        raise UsageError(f"{output!r} does not end in .html, .svg or .png", hint="such as -o speed.html")
    if end == ".png" and not importlib.util.find_spec("resvg_py"):
        raise UsageError(
            "what makes PNG files is not installed (resvg-py)",
            hint='pip install "ideepdoctor[png]" where ideepdoctor is, or write .svg or .html',
        )


def draw(session: Session, results: Sequence[Result], output: str, name: str = "") -> str:
    """Write the page (.html: all charts) or one chart (.svg, .png). Returns the path.

    Args:
        session: its folder is where relative paths begin.
        results: one or more runs.
        output: the file.
        name: of the chart, such as ``engines`` or ``threads``; empty: the first one.

    Raises:
        UsageError: see ``check_chart``; no chart of this name, or nothing that could be drawn.
        CouldNotCheck: the file cannot be written.
    """
    check_chart(output)
    path = Path(session.cwd, Path(output).expanduser())
    end = path.suffix.lower()
    if end == ".html":
        from ideepdoctor.render.bench_html import page

        if name:
            raise UsageError("a page has all charts: --which is for .svg and .png", hint=f"leave out --which {name}")
        data = page(results).encode("utf-8")
    else:
        from ideepdoctor.render.charts import svg

        data = svg(_chosen(results, name)).encode("utf-8")
        if end == ".png":
            data = _png(data.decode("utf-8"))
    try:
        session.system.write_file(str(path), data)
    except OSError as error:
        raise CouldNotCheck(
            f"cannot write {path}: {error.strerror or error}", hint="name a file in a folder that is there"
        ) from error
    return str(path)


def _chosen(results: Sequence[Result], name: str) -> Drawing:
    from ideepdoctor.render.charts import drawings

    found = drawings(results)
    if not found:
        raise UsageError("nothing was measured in these files: there is nothing to draw", hint="ideepdoctor bench")
    chosen = found[0] if not name else next((item for item in found if item.name == name), None)
    if chosen is None:
        names = ", ".join(item.name for item in found)
        raise UsageError(f"no chart of these files is called {name!r}", hint=f"--which with one of: {names}")
    return chosen


def _png(svg: str) -> bytes:
    """The picture at twice its size, for sharp screens."""
    from resvg_py import svg_to_bytes

    return svg_to_bytes(svg_string=svg, zoom=2, sans_serif_family="DejaVu Sans")


def shows_unicode() -> bool:
    """Whether standard output takes block characters; a file always does, but is written as the terminal would be."""
    return (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "").startswith("utf")


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """A comparison as JSON-ready data: runs by label, charts with their ratios and intervals, notes."""
    runs = [
        {"label": run.label, "id": run.result.id, "started": run.result.started, "machine": asdict(run.result.machine)}
        for run in comparison.runs
    ]
    return {
        "runs": runs,
        "charts": [_chart_data(chart) for chart in comparison.charts],
        "notes": list(comparison.notes),
    }


def _chart_data(chart: Chart) -> dict[str, Any]:
    return {
        "id": chart.id,
        "title": chart.title,
        "base": chart.base,
        "axis": chart.axis,
        "nets": [asdict(group) for group in chart.groups],
        "geometric_means": [asdict(mean) for mean in chart.means],
        "notes": list(chart.notes),
    }


def _listed(item: Kept) -> str:
    cut = "" if item.complete else ", interrupted"
    engines, nets = ", ".join(item.engines) or "no engine", ", ".join(item.nets) or "nothing"
    return f"{item.id}  {item.started}  {item.machine}{cut}\n  {engines}\n  {nets}\n"


def _read_all(session: Session, names: Sequence[str]) -> list[Result]:
    """Results of files, or of runs in the history where a name is no file's. Raises as ``read`` and ``Store.get``."""
    return [_read(session, name) for name in names]


def _read(session: Session, name: str) -> Result:
    path = Path(session.cwd, Path(name).expanduser())
    if path.exists() or path.suffix or "/" in name:
        return read(str(path))
    try:
        return Store(session.system, state_folder(session.environ)).get(name)
    except UsageError as error:
        raise UsageError(f"there is no file {path}, and {error.message}", hint=error.hint) from None
