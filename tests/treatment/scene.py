"""A home folder, a plan that changes it in every way, and Systems that fail, or kill the process, at a chosen call."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ideepdoctor.model.plan import CreateEnv, EditBlock, Install, Plan, Requirement, WriteFile
from ideepdoctor.system import Completed, RealSystem
from ideepdoctor.treatment.snapshot import Manifest, manifest

SHA = "0" * 64
SIX = Requirement("six", "1.17.0", (SHA,))
WHEEL = Requirement("wheel", "0.42.0", (SHA,))
LONG_AGO = 1_000_000_000


def put(path: Path, text: str, mode: int = 0o644) -> Path:
    """A file that was there long before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def make_home(root: Path) -> Path:
    """A home with an environment that is in use, a linked rc file and a settings file."""
    home = root / "home"
    put(home / "dotfiles" / "bashrc", "alias ls='ls -l'\nno newline at the end", 0o600)
    (home / ".bashrc").symlink_to("dotfiles/bashrc")
    put(home / "settings.ini", "old = yes\n", 0o640)
    site = home / "old" / "lib" / "python3.7" / "site-packages"
    put(site / "six.py", "version = '1.0'\n")
    put(site / "six-1.0.dist-info" / "RECORD", "six.py,,\n", 0o444)
    put(site / "__pycache__" / "six.cpython-37.pyc", "bytecode")
    (site / "link.py").symlink_to("six.py")
    (home / "old" / "lib64").symlink_to("lib")
    put(home / "old" / "bin" / "python", "#!/bin/sh\n", 0o755)
    put(home / "old" / "pyvenv.cfg", "home = /usr/bin\n")
    return home


def make_plan(home: Path) -> Plan:
    """Each kind of step, within and outside of what the plan itself makes."""
    env = home / "deep" / "er" / "env"
    site = env / "lib" / "python3.7" / "site-packages"
    old = home / "old" / "lib" / "python3.7" / "site-packages"
    return Plan(
        "change everything",
        (
            CreateEnv(str(env), str(home / "old" / "bin" / "python"), "uv"),
            Install(str(env / "bin" / "python"), (SIX, WHEEL), "uv"),
            WriteFile(str(site / "start.pth"), "import start\n", "starts"),
            Install(
                str(home / "old" / "bin" / "python"),
                (SIX,),
                "uv",
                snapshot=(str(old), str(home / "old" / "lib64" / "python3.7" / "site-packages"), str(home / "old/bin")),
            ),
            WriteFile(str(old / "start.pth"), "import start\n", "starts"),
            WriteFile(str(home / "settings.ini"), "new = yes\n", "settings"),
            WriteFile(str(home / "config" / "fish" / "conf.d" / "x.fish"), "set -x A b\n", "fish", mode=0o600),
            EditBlock(str(home / ".bashrc"), "export A=b", "variables"),
        ),
        treats=("IDP501",),
    )


class Doubled(RealSystem):
    """The real thing, but for uv, which is played: it makes small files where the real one makes large ones."""

    def __init__(self) -> None:
        super().__init__()
        self.commands: list[tuple[str, ...]] = []

    def run(self, argv: Sequence[str], **options: Any) -> Completed:
        self.commands.append(tuple(argv))
        if "venv" in argv:
            env = Path(argv[-1])
            put(env / "pyvenv.cfg", f"made = {os.urandom(4).hex() if env.name == 'other' else 'here'}\n")
            put(env / "bin" / "python", "#!/bin/sh\n", 0o755)
        else:
            python = Path(argv[argv.index("--python") + 1])
            site = python.parent.parent / "lib" / "python3.7" / "site-packages"
            for line in Path(argv[argv.index("-r") + 1]).read_text().splitlines():
                name, version = line.split()[0].split("==")
                put(site / f"{name}.py", f"version = {version!r}\n")
                put(site / f"{name}-{version}.dist-info" / "RECORD", "\n")
            put(python.parent / "tool", "#!/bin/sh\n", 0o755)
        options["on_line"]("Installed 1 package")
        return Completed(tuple(argv), 0, b"", b"", 0.0)


Act = Callable[[], None]


def _interposed(name: str) -> Callable[..., Any]:
    def method(self: Interposed, *arguments: Any, **options: Any) -> Any:
        return self.act(name, lambda: getattr(Doubled, name)(self, *arguments, **options))

    return method


class Interposed(Doubled):
    """Does something before or after the call with a chosen number (counted from 0)."""

    def __init__(self, at: int, when: str, what: Act) -> None:
        super().__init__()
        self.at, self.when, self.what, self.count = at, when, what, 0

    def act(self, name: str, call: Callable[[], Any]) -> Any:
        number, self.count = self.count, self.count + 1
        if number == self.at and self.when == "before":
            self.what()
        answer = call()
        if number == self.at and self.when == "after":
            self.what()
        return answer

    run = _interposed("run")
    write_file = _interposed("write_file")
    append_line = _interposed("append_line")
    make_folder = _interposed("make_folder")
    remove_file = _interposed("remove_file")
    remove_tree = _interposed("remove_tree")
    copy_tree = _interposed("copy_tree")
    copy_file = _interposed("copy_file")
    rename = _interposed("rename")


def die() -> None:
    """What ``kill -9`` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def in_child(work: Act) -> int:
    """Do it in a forked process; minus the signal that ended it, else its exit code (1: an exception)."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def content(path: Path) -> Manifest:
    """What is in a folder, without times: two runs of one plan do not write at the same time."""
    return {
        name: {key: value for key, value in item.items() if key != "mtime_ns"}
        for name, item in manifest(str(path)).items()
    }
