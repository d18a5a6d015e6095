"""``self-test``: the doctor examined by itself."""

from __future__ import annotations

from dataclasses import asdict

from ideepdoctor.commands.session import Session
from ideepdoctor.model.own import Own
from ideepdoctor.model.report import Report
from ideepdoctor.model.words import counted


def self_test(session: Session) -> Report:
    """Examine the installation of the doctor on this machine; no network is used, and nothing is left behind."""
    from ideepdoctor.selftest.judge import judge
    from ideepdoctor.selftest.look import look

    own = look(session.system, session.environ, session.progress)
    return Report("self-test", judgement=judge(own), body=_body(own), extra={"self_test": asdict(own)})


def _body(own: Own) -> tuple[str, ...]:
    compared = f"{counted(own.listed, 'file')} compared, {counted(own.modules, 'module')} imported"
    sources = f"not compared, this is a folder of sources; {counted(own.modules, 'module')} imported"
    rows = (
        ("doctor", own.folder),
        ("files", compared if own.listed else sources),
        ("rules", "not tried" if own.examples is None else f"tried on {counted(own.examples, 'example')}"),
        ("programs", f"{own.payloads}, compiled by Python {', '.join(own.compiled_by) or 'none'}"),
        ("pythons", ", ".join(own.pythons) or "none"),
        ("uv", own.uv or "does not run"),
        ("took", f"{own.seconds:.1f} s"),
    )
    return tuple(f"{label:<10}{text}" for label, text in rows)
