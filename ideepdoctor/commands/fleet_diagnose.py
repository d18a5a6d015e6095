"""``fleet diagnose``: the probe on every host of an inventory, judged here, one file a host."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ideepdoctor.commands.session import Session
from ideepdoctor.errors import CouldNotCheck, Exit, UsageError
from ideepdoctor.fleet.engine import AnsibleEngine, Engine, Play, project_folder
from ideepdoctor.fleet.host import Host, examined, file_name, host_document, not_asked
from ideepdoctor.fleet.remote import remote_command
from ideepdoctor.fleet.tasks import TaskEnd
from ideepdoctor.model.report import Failure, Report
from ideepdoctor.model.summary import FailOn

DEFAULT_FOLDER = "fleet-reports"
CONNECT_SECONDS = 10
"""Time limit of a connection where the one of a host is longer; Ansible's own default."""


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """Which hosts, and how they are asked.

    Attributes:
        inventory: as Ansible's ``-i`` takes it.
        limit: pattern of hosts; empty: all.
        forks: hosts at the same time.
        timeout_seconds: for each host, connection included.
        reports: folder for one file a host.
        python: interpreter on every host; None: the host's variable ``ideepdoctor_python``, else the one found there.
        fail_on: decides the exit code in the hosts' files.
    """

    inventory: str
    limit: str = ""
    forks: int = 25
    timeout_seconds: int = 300
    reports: str = DEFAULT_FOLDER
    python: str | None = None
    fail_on: FailOn = FailOn.ERROR


def diagnose(session: Session, options: FleetOptions, engine: Engine | None = None) -> Report:
    """Say what is wrong with each host of an inventory; nothing is installed on them.

    Raises:
        UsageError: no Ansible, no inventory, no host in it, a folder that cannot be written.
        CouldNotCheck: Ansible itself failed.
    """
    engine = engine or AnsibleEngine(session.system, session.environ, session.cwd)
    names = engine.hosts(options.inventory, options.limit)
    folder = report_folder(session, options.reports)
    with temporary_folder(session) as scratch:
        look = _Look(session, options, folder, set(names), len(names))
        end = engine.run(look.play(scratch), look.on_end)
        if end.problem and len(look.missing) == len(names):
            raise CouldNotCheck(
                f"Ansible could not look at the hosts: {end.problem}",
                hint=f"try it yourself: ansible all -i {options.inventory} -m ansible.builtin.raw -a true",
            )
        for host in not_asked(sorted(look.missing)):
            look.keep(host)
    return merged(session, "fleet diagnose", folder, names, interrupted=end.interrupted)


class _Look:
    """One run over the hosts: what is known of each is written at once and forgotten."""

    def __init__(self, session: Session, options: FleetOptions, folder: Path, missing: set[str], total: int) -> None:
        self._session, self._options, self._folder = session, options, folder
        self._cookie = secrets.token_hex(16)
        self._total = total
        self.missing = missing

    def play(self, scratch: str) -> Play:
        """What Ansible shall run."""
        from ideepdoctor.targets.bare import bare_probe

        options, script = self._options, f"{scratch}/probe.py"
        self._session.system.write_file(script, bare_probe(), 0o600)
        variables: dict[str, Any] = {
            "ideepdoctor_command": list(remote_command(self._cookie, options.timeout_seconds)),
            "ideepdoctor_script": script,
            "ideepdoctor_folder": scratch,
            "ideepdoctor_seconds": options.timeout_seconds,
        }
        if options.python is not None:
            variables["ideepdoctor_python"] = options.python
        return Play(
            project_folder(),
            "diagnose.yml",
            options.inventory,
            scratch,
            variables,
            options.limit,
            options.forks,
            options.timeout_seconds if options.timeout_seconds < CONNECT_SECONDS else None,
        )

    def on_end(self, end: TaskEnd) -> None:
        """A host has ended."""
        printed, answer = "", end.result.get("answer")
        if isinstance(answer, str):
            printed = Path(answer).read_text("utf-8", "replace")
            self._session.system.remove_file(answer)
        self.keep(examined(end, printed, self._cookie, self._options.timeout_seconds))

    def keep(self, host: Host) -> None:
        """Write a host's file."""
        self.missing.discard(host.name)
        write_report(self._session, self._folder / file_name(host.name), host_document(host, self._options.fail_on))
        self._session.progress.step(self._total - len(self.missing), self._total, host.words)


def write_report(session: Session, path: Path, document: dict[str, Any]) -> None:
    """Write a host's file. Raises UsageError where that cannot be."""
    from ideepdoctor.render.json import document as as_text

    try:
        session.system.write_file(str(path), as_text(document).encode("utf-8") + b"\n")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", hint="choose another --reports DIR") from error


def report_folder(session: Session, reports: str) -> Path:
    """The folder for the hosts' files, made where there is none. Raises UsageError."""
    folder = Path(session.cwd, Path(reports).expanduser())
    try:
        session.system.make_folder(str(folder))
    except OSError as error:
        raise UsageError(f"cannot make the folder {folder}: {error.strerror}", hint="--reports DIR") from error
    return folder


@contextmanager
def temporary_folder(session: Session) -> Iterator[str]:
    """A folder of this user's alone for Ansible's files, as long as the block lasts."""
    scratch = session.system.make_temporary_folder()
    try:
        yield scratch
    finally:
        session.system.remove_tree(scratch)


def merged(session: Session, command: str, folder: Path, names: tuple[str, ...], *, interrupted: bool) -> Report:
    """The files of these hosts as ``fleet merge`` sums them up."""
    from ideepdoctor.commands.fleet_merge import merge

    report = merge(session, tuple(str(folder / file_name(name)) for name in names))
    report = replace(report, command=command, extra={**report.extra, "reports": str(folder)})
    if not interrupted:
        return report
    message = f"interrupted; what came until then is in {folder}"
    failure = Failure("interrupted", message, f"ideepdoctor fleet merge {folder}", int(Exit.INTERRUPTED))
    return replace(report, failure=failure)
