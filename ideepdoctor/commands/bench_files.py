"""``bench compare``, ``bench history`` and ``bench chart``: what is done with results that were measured before."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ideepdoctor.commands.session import Session
from ideepdoctor.model.bench import Result
from ideepdoctor.model.report import Report
from ideepdoctor.proof.bench_bars import Chart, Comparison
from ideepdoctor.proof.bench_file import as_data, read
from ideepdoctor.proof.bench_history import Kept, Store
from ideepdoctor.treatment.state import state_folder


def compare(session: Session, files: Sequence[str]) -> Report:
    """Set result files against each other: the talk's three charts, as text and as data.

    Raises:
        UsageError: a file is not there or holds no result.
    """
    from ideepdoctor.proof.bench_compare import compare as set_against
    from ideepdoctor.render.bench import comparison_lines

    comparison = set_against(_read_all(session, files))
    body = comparison_lines(comparison, unicode=shows_unicode())
    return Report("bench compare", body=tuple(body), extra={"bench_compare": comparison_data(comparison)})


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
        return Report("bench history", body=tuple(body), extra={"bench": as_data(result)})
    found = store.runs()
    text = "".join(_listed(item) for item in found) or "nothing was measured yet: ideepdoctor bench\n"
    return Report("bench history", text=text, extra={"bench_history": [asdict(item) for item in found]})


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


def _read_all(session: Session, files: Sequence[str]) -> list[Result]:
    return [read(str(Path(session.cwd, Path(name).expanduser()))) for name in files]
