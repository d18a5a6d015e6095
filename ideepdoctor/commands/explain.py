"""``explain`` and ``schema``: documents that the doctor carries with it."""

from __future__ import annotations

from importlib.resources import files

from ideepdoctor.model.report import Report


def explain(code: str | None) -> Report:
    """Return a rule as a document, or (None) the list of all rules.

    Raises:
        UsageError: no rule has this code.
    """
    from ideepdoctor.rules.explain import EVERYTHING, document, find

    if code is not None:
        rule = find(code)
        text = document(rule)
        data = {"code": rule.code(), "title": rule.title, "severity": str(rule.severity), "text": text}
        return Report("explain", text=text.rstrip("\n") + "\n", extra={"rule": data})
    rows = [{"code": rule.code(), "severity": str(rule.severity), "title": rule.title} for rule in EVERYTHING]
    lines = [f"{row['code']}  {row['severity']:<8} {row['title']}" for row in rows]
    return Report("explain", text="\n".join(lines) + "\n", extra={"rules": rows})


def schema() -> Report:
    """Return the JSON Schema of the envelope."""
    return Report("schema", text=(files("ideepdoctor") / "render" / "report.schema.json").read_text("utf-8"))
