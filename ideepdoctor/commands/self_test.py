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
    compared = f"files    {counted(own.listed, 'file')} compared, {counted(own.modules, 'module')} imported"
    sources = f"files    not compared, this is a folder of sources; {counted(own.modules, 'module')} imported"
    tried = "rules    not tried" if own.examples is None else f"rules    {counted(own.examples, 'example')} tried"
    return (
        f"doctor   {own.folder}",
        compared if own.listed else sources,
        tried,
        f"programs {own.payloads}, compiled by Python {', '.join(own.compiled_by) or 'none'}",
        f"pythons  {', '.join(own.pythons) or 'none'}",
        f"uv       {own.uv}" if own.uv else "uv       does not run",
        f"took     {own.seconds:.1f} s",
    )
