"""Ansible as the engine: which hosts there are, and a playbook run over them, told host by host as each one ends."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from ideepdoctor.errors import UsageError
from ideepdoctor.fleet.tasks import TaskEnd, task_end
from ideepdoctor.system import System

INSTALL = "pip install 'ideepdoctor[fleet]'"
_LIST_SECONDS = 300.0
_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Play:
    """A playbook to run.

    Attributes:
        project: folder of the playbook, with its roles and plugins.
        playbook: name of its file.
        inventory: as ``-i`` takes it: a file, a folder, or names with a comma behind.
        folder: a temporary one for Ansible's own files.
        variables: extra variables.
        limit: pattern of hosts; empty: all.
        forks: hosts at the same time.
        connect_seconds: time limit of a connection; None: as Ansible is set up.
        check: change nothing, only say what would change.
        environ: variables of Ansible's.
    """

    project: str
    playbook: str
    inventory: str
    folder: str
    variables: Mapping[str, Any] = field(default_factory=dict)
    limit: str = ""
    forks: int = 25
    connect_seconds: int | None = None
    check: bool = False
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlayEnd:
    """How a run of a playbook ended.

    Attributes:
        interrupted: by Ctrl-C or a signal that ends a job.
        problem: what Ansible itself said where it could not run; empty where it did.
    """

    interrupted: bool = False
    problem: str = ""


class Engine(Protocol):
    """What the fleet commands need of Ansible."""

    def hosts(self, inventory: str, limit: str) -> tuple[str, ...]:
        """Names of the hosts, in the inventory's order. Raises UsageError: no inventory, or no host in it."""
        ...

    def run(self, play: Play, on_end: Callable[[TaskEnd], None]) -> PlayEnd:
        """Run a playbook; ``on_end`` is called in this thread for each task and host, as it ends."""
        ...


def require_ansible() -> None:
    """Raise UsageError where Ansible is not installed beside the doctor."""
    from importlib.util import find_spec

    missing = [
        package
        for package, module in (("ansible-core", "ansible"), ("ansible-runner", "ansible_runner"))
        if find_spec(module) is None
    ]
    if missing:
        raise UsageError(
            f"fleet needs Ansible, and {' and '.join(missing)} cannot be imported by {sys.executable}",
            hint=f"install it beside the doctor: {INSTALL}",
        )


class AnsibleEngine:
    """Ansible, installed beside the doctor.

    Args:
        system: starts what lists the hosts.
        environ: the doctor's environment variables.
        cwd: the folder that relative paths refer to; an ``ansible.cfg`` in it counts, as it does for Ansible.
    """

    def __init__(self, system: System, environ: Mapping[str, str], cwd: str) -> None:
        require_ansible()
        self._system, self._cwd = system, cwd
        beside = str(Path(sys.executable).parent)
        self._environ = {**environ, "PATH": os.pathsep.join([beside, environ.get("PATH", os.defpath)])}
        own = Path(cwd, "ansible.cfg")
        if "ANSIBLE_CONFIG" not in environ and own.is_file():
            self._environ["ANSIBLE_CONFIG"] = str(own)
        self._environ["ANSIBLE_INVENTORY_UNPARSED_FAILED"] = "true"
        self._environ["ANSIBLE_NOCOLOR"] = "true"
        self._environ.pop("ANSIBLE_FORCE_COLOR", None)

    def hosts(self, inventory: str, limit: str) -> tuple[str, ...]:
        """See ``Engine.hosts``."""
        source = self._source(inventory)
        words = ["ansible", "all", "-i", source, "--list-hosts", *(["--limit", limit] if limit else [])]
        done = self._system.run(words, timeout_seconds=_LIST_SECONDS, env=self._environ, cwd=self._cwd)
        if not done.ok:
            raise UsageError(
                f"Ansible cannot read the inventory {inventory}: {_last_error(done.error_text() or done.text())}",
                hint=f"try it yourself: ansible all -i {source} --list-hosts",
                context={"standard error": done.error_text()[-2000:]},
            )
        lines = done.text().splitlines()
        start = next((number for number, line in enumerate(lines) if line.strip().startswith("hosts (")), len(lines))
        found = tuple(line.strip() for line in lines[start + 1 :] if line.strip())
        if not found:
            which = f" that {limit!r} fits" if limit else ""
            raise UsageError(
                f"there is no host in the inventory {inventory}{which}", hint="see: ansible-inventory --list"
            )
        return found

    def _source(self, inventory: str) -> str:
        if "," in inventory and not Path(self._cwd, inventory).exists():
            return inventory
        path = Path(self._cwd, Path(inventory).expanduser())
        if not path.exists():
            raise UsageError(
                f"there is no inventory {path}",
                hint="-i FILE: one host a line will do; or the names themselves: -i one,two,",
            )
        return str(path)

    def run(self, play: Play, on_end: Callable[[TaskEnd], None]) -> PlayEnd:
        """See ``Engine.run``."""
        import ansible_runner

        said: list[str] = []
        finished = False

        def handle(event: Mapping[str, Any]) -> bool:
            nonlocal finished
            ended = task_end(event)
            if ended is not None:
                on_end(ended)
            elif event.get("event") == "playbook_on_stats":
                finished = True
            elif event.get("event") in ("verbose", "error", "warning"):
                said.append(str(event.get("stdout") or ""))
                del said[:-40]
            return False  # no event is kept in a file

        environ = dict(self._environ)
        if play.connect_seconds is not None:
            environ["ANSIBLE_TIMEOUT"] = str(play.connect_seconds)
        with _cancelled() as cancelled:
            ended = ansible_runner.run(
                private_data_dir=play.folder,
                project_dir=play.project,
                playbook=play.playbook,
                inventory=[self._source(play.inventory)],
                extravars=dict(play.variables),
                envvars={**environ, **play.environ},
                limit=play.limit or None,
                forks=play.forks,
                cmdline="--check" if play.check else None,
                settings={"suppress_output_file": True, "pexpect_timeout": _POLL_SECONDS, "pexpect_use_poll": True},
                quiet=True,
                event_handler=handle,
                cancel_callback=cancelled,
            )
        interrupted = ended.status == "canceled"
        problem = "" if finished or interrupted else _last_error("\n".join(said))
        return PlayEnd(interrupted, problem or ("" if finished or interrupted else f"it ended with {ended.rc}"))


@contextmanager
def _cancelled() -> Iterator[Callable[[], bool]]:
    """A function that tells whether Ctrl-C was pressed, or the job is to end, while the block lasts; then what Ansible
    started is ended, too (its workers lead sessions of their own).
    """
    import psutil

    asked = False

    def ask(_number: int, _frame: object) -> None:
        nonlocal asked
        asked = True

    def told() -> bool:
        if asked:
            for child in psutil.Process().children(recursive=True):
                child.kill()
        return asked

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _last_error(text: str) -> str:
    """What Ansible says is wrong, in one line."""
    lines = [re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line).strip() for line in text.splitlines()]
    told = [line for line in lines if line.startswith(("[ERROR]", "ERROR!", "fatal:"))] or [
        line for line in lines if line
    ]
    return re.sub(r"^(\[ERROR\]:?|ERROR!|fatal:)\s*", "", told[-1]) if told else ""


def project_folder() -> str:
    """Where our playbooks are."""
    return str(files("ideepdoctor") / "fleet" / "project")
