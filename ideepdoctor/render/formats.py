"""The machine formats by name. Each renderer is imported only when it is asked for."""

from __future__ import annotations

from collections.abc import Callable

from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import FailOn
from ideepdoctor.options import Format

Renderer = Callable[[Report, FailOn], str]


def renderer(wanted: Format) -> Renderer:
    """The function that makes one document of a report, without the last newline.

    Raises:
        ValueError: text is for people: render/text.py prints it.
    """
    match wanted:
        case Format.JSON:
            from ideepdoctor.render.json import render
        case Format.JSONL:
            from ideepdoctor.render.jsonl import render
        case Format.SARIF:
            from ideepdoctor.render.sarif import render
        case Format.JUNIT:
            from ideepdoctor.render.junit import render
        case Format.GITHUB:
            from ideepdoctor.render.github import render
        case Format.GITLAB:
            from ideepdoctor.render.gitlab import render
        case Format.MARKDOWN:
            from ideepdoctor.render.markdown import render

            return _fleet(wanted, render)
        case Format.HTML:
            from ideepdoctor.render.html import render

            return _fleet(wanted, render)
        case Format.TEXT:
            raise ValueError("text is no format for machines")
    return render


def _fleet(wanted: Format, plain: Renderer) -> Renderer:
    """Fleets have documents of their own."""

    def render(report: Report, fail_on: FailOn) -> str:
        if "fleet" not in report.extra:
            return plain(report, fail_on)
        if wanted is Format.HTML:
            from ideepdoctor.render.fleet_html import render as fleet
        else:
            from ideepdoctor.render.fleet_markdown import render as fleet
        return fleet(report, fail_on)

    return render
