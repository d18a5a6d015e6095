"""``fleet setup``: the doctor and an environment for Chainer onto every host, proved there; or what would be done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ideepdoctor.commands.fleet_diagnose import FleetOptions, report_folder, temporary_folder, write_report
from ideepdoctor.commands.session import Session
from ideepdoctor.errors import CouldNotCheck, Exit, UsageError
from ideepdoctor.fleet.engine import AnsibleEngine, Engine, Play
from ideepdoctor.fleet.host import file_name
from ideepdoctor.fleet.setup import HostSetup, closing, host_document, host_lines
from ideepdoctor.fleet.tasks import TaskEnd
from ideepdoctor.model.report import Failure, Report
from ideepdoctor.model.words import counted


@dataclass(frozen=True, slots=True)
class FleetSetupOptions:
    """What every host gets.

    Attributes:
        hosts: which hosts; its ``python`` is the one for Chainer, its time limit the one of ``setup`` there.
        check: only say what would be done.
        serial: hosts that are done before the next ones begin: a number or a share (``25%``); empty: all at once.
        requirement: how pip gets the doctor there; None: ``ideepdoctor``, or what the inventory says.
        env: folder of the environment on the hosts; None: ~/.ideep, or what the inventory says.
        stack: known-good stack; None: the role's, or what the inventory says.
        offline: no network on the hosts: everything comes from the wheelhouse.
        wheelhouse: a folder on the hosts.
    """

    hosts: FleetOptions
    check: bool = False
    serial: str = ""
    requirement: str | None = None
    env: str | None = None
    stack: str | None = None
    offline: bool = False
    wheelhouse: str | None = None


def setup(session: Session, options: FleetSetupOptions, engine: Engine | None = None) -> Report:
    """Set every host up, after asking, and prove it there; or (``check``) say what would be done.

    Raises:
        UsageError: no Ansible, no inventory, no host in it, a requirement that the hosts cannot get.
        CouldNotCheck: Ansible itself failed.
    """
    engine = engine or AnsibleEngine(session.system, session.environ, session.cwd)
    variables = role_variables(session, options)
    names = engine.hosts(options.hosts.inventory, options.hosts.limit)
    if not options.check:
        where = options.env or "~/.ideep, or where the inventory says"
        asked = f"{counted(len(names), 'host')} will get the doctor and an environment for Chainer ({where})"
        if not session.agrees(Report("fleet setup", body=(asked,))):
            return Report("fleet setup", body=("nothing was changed",))
    folder = report_folder(session, options.hosts.reports)
    with temporary_folder(session) as scratch:
        run = _Run(session, options, folder, names)
        end = engine.run(run.play(scratch, variables), run.on_end)
        if end.problem and not run.begun:
            raise CouldNotCheck(
                f"Ansible could not set the hosts up: {end.problem}",
                hint=f"try it yourself: ansible all -i {options.hosts.inventory} -m ansible.builtin.raw -a true",
            )
        hosts = run.finish(interrupted=end.interrupted)
    return _report(session, options, folder, hosts, interrupted=end.interrupted)


def role_variables(session: Session, options: FleetSetupOptions) -> dict[str, Any]:
    """What the command line says, as variables of the role; the rest is the inventory's. Raises UsageError."""
    said: dict[str, Any] = {"ideepdoctor_setup_seconds": options.hosts.timeout_seconds, "ideepdoctor_reports": ""}
    named = {
        "ideepdoctor_base_python": options.hosts.python,
        "ideepdoctor_env": options.env,
        "ideepdoctor_stack": options.stack,
        "ideepdoctor_serial": options.serial or None,
        "ideepdoctor_requirement": _requirement(session, options.requirement),
    }
    said.update({name: value for name, value in named.items() if value is not None})
    if options.offline and options.wheelhouse is None:
        raise UsageError("--offline needs --wheelhouse DIR, a folder on the hosts", hint="see: ideepdoctor wheelhouse")
    if options.wheelhouse is not None:
        said["ideepdoctor_pip_arguments"] = ["--no-index"] if options.offline else []
        said["ideepdoctor_pip_arguments"] += [f"--find-links={options.wheelhouse}"]
        said["ideepdoctor_setup_arguments"] = ["--offline"] if options.offline else []
        said["ideepdoctor_setup_arguments"] += [f"--wheelhouse={options.wheelhouse}"]
    return said


def _requirement(session: Session, asked: str | None) -> str | None:
    """A wheel by its whole path, since it is copied from here; anything else as it was said."""
    if asked is None or "://" in asked:
        return asked
    path = Path(session.cwd, Path(asked).expanduser())
    if asked.endswith(".whl"):
        if not path.is_file():
            raise UsageError(f"there is no wheel {path}", hint="make one: pip wheel --no-deps FOLDER")
        return str(path)
    if path.is_dir() and "/" in asked:
        raise UsageError(
            f"{path} is a folder, which the hosts have not", hint=f"make a wheel: pip wheel --no-deps {path}"
        )
    return asked


@dataclass(slots=True)
class _Run:
    """One run over the hosts: of each, what was done and how it ended."""

    session: Session
    options: FleetSetupOptions
    folder: Path
    names: tuple[str, ...]
    begun: dict[str, HostSetup] = field(default_factory=dict)

    def play(self, scratch: str, variables: Mapping[str, Any]) -> Play:
        """What Ansible shall run: the playbook and the role of the recipe ``ansible``."""
        from ideepdoctor import __version__
        from ideepdoctor.recipes.ansible import RECIPE
        from ideepdoctor.recipes.base import settings_for
        from ideepdoctor.recipes.render import render

        project = Path(scratch, "project")
        settings = settings_for(RECIPE, doctor_version=__version__)
        for path, text in render(RECIPE, settings).items():
            whole = project / path
            self.session.system.make_folder(str(whole.parent))
            self.session.system.write_file(str(whole), text.encode("utf-8"))
        hosts = self.options.hosts
        return Play(
            str(project),
            "playbook.yml",
            hosts.inventory,
            scratch,
            dict(variables),
            hosts.limit,
            hosts.forks,
            check=self.options.check,
        )

    def on_end(self, end: TaskEnd) -> None:
        """A task has ended on a host."""
        before = self.begun.get(end.host, HostSetup(end.host))
        after = before.after(end)
        self.begun[end.host] = after
        if after.report is not None:
            document = host_document(after, end.seconds)
            write_report(self.session, self.folder / file_name(end.host), document)
            after = replace(after, report=None)
            self.begun[end.host] = after
        if after.words != before.words:
            self.session.progress.step(len(self.begun), len(self.names), after.words)

    def finish(self, *, interrupted: bool) -> list[HostSetup]:
        """The hosts in the inventory's order; one that did not come to its end has failed."""
        found = (self.begun.get(name, HostSetup(name)) for name in self.names)
        return [host.ended(interrupted=interrupted) for host in found]


def _report(
    session: Session, options: FleetSetupOptions, folder: Path, hosts: list[HostSetup], *, interrupted: bool
) -> Report:
    """What came of it, host by host."""
    code = Exit.INTERRUPTED if interrupted else max((host.exit_code for host in hosts), key=_SERIOUS.index)
    failure = None
    if code is not Exit.OK:
        bad = [host.name for host in hosts if host.exit_code is not Exit.OK]
        message = f"{counted(len(bad), 'host')} of {len(hosts)} not ready: {', '.join(bad)}"
        failure = Failure(
            "hosts", message, "what each of them says is above; run it again when it is mended", int(code)
        )
    rows = [host.row() for host in hosts]
    extra = {"fleet_setup": {"check": options.check, "hosts": rows, "reports": str(folder)}}
    closed = closing(hosts, check=options.check)
    return Report("fleet setup", body=(*host_lines(hosts, check=options.check), closed), failure=failure, extra=extra)


_SERIOUS = (
    Exit.OK,
    Exit.COULD_NOT_CHECK,
    Exit.USAGE,
    Exit.FINDINGS,
    Exit.BUSY,
    Exit.ROLLED_BACK,
    Exit.NEEDS_ATTENTION,
    Exit.INTERRUPTED,
)
"""What the hosts' exit codes come to: the last one here that one of them has."""
