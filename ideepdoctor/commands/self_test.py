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
    files = f"{counted(own.listed, 'file')} compared" if own.listed else "a folder of sources: not compared"
    tried = "not tried" if own.examples is None else f"{counted(own.examples, 'example')} tried"
    pythons = ", ".join(own.pythons) or "none"
    return (
        f"doctor   {own.folder}",
        f"files    {files}, {counted(own.modules, 'module')} imported",
        f"rules    {tried}",
        f"programs {own.payloads}, compiled by Python {', '.join(own.compiled_by) or 'none'}",
        f"pythons  {pythons}",
        f"uv       {own.uv or 'does not run'}",
        f"took     {own.seconds:.1f} s",
    )
