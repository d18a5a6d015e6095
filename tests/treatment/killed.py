"""A run that kills itself: ``python -m tests.treatment.killed WORLD STATE COMMAND NUMBER``.

COMMAND is apply, undo or resume. The process sends itself SIGKILL before the NUMBER-th call that changes anything
(0: never), which is what a power cut or an impatient person does. The installer is replaced by one that adds, changes
and removes files, so that no network is needed; everything else is the real thing.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ideepdoctor.model.plan import CreateEnv, EditBlock, Install, Plan, Requirement, WriteFile
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment import installers
from ideepdoctor.treatment.apply import apply_plan, resume
from ideepdoctor.treatment.progress import Quiet
from ideepdoctor.treatment.undo import undo

CHANGES = ("write_file", "append_line", "make_folder", "remove_file", "remove_tree", "copy_tree", "copy_file", "rename")


class Killing(RealSystem):
    """The real system, which ends the process before its N-th change."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.left = number
        for name in CHANGES:
            setattr(self, name, self._counted(getattr(self, name)))

    def _counted(self, change: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return change(*arguments, **options)

        return counted


def prepare(world: Path) -> None:
    """A home with an rc file, a settings file, and an environment with two packages."""
    (world / "home").mkdir(parents=True)
    (world / "home" / ".bashrc").write_bytes(b"export A=1")
    (world / "home" / "settings").write_text("old\n")
    (world / "home" / "settings").chmod(0o640)
    site = world / "env" / "site"
    (site / "one").mkdir(parents=True)
    (site / "one" / "__init__.py").write_text("version = 1\n")
    (site / "two.py").write_text("two\n")
    (site / "link.py").symlink_to("two.py")


def plan(world: Path) -> Plan:
    """Every kind of step, on existing and on new files."""
    site = str(world / "env" / "site")
    return Plan(
        "everything",
        (
            Install(f"{world}/env/bin/python", (Requirement("one", "2", ("0" * 64,)),), "uv", snapshot=(site,)),
            WriteFile(str(world / "home" / "settings"), "new\n", "settings"),
            WriteFile(str(world / "new" / "deep" / "file"), "fresh\n", "a new file"),
            EditBlock(str(world / "home" / ".bashrc"), "export B=2", "variables"),
        ),
    )


def plan_of_setup(world: Path) -> Plan:
    """A new environment, as setup makes it."""
    env = str(world / "made" / "env")
    return Plan(
        "setup",
        (
            CreateEnv(env, sys.executable, "uv"),
            Install(f"{env}/bin/python", (Requirement("one", "2", ("0" * 64,)),), "uv"),
            WriteFile(f"{env}/lib/start.pth", "import start\n", "variables"),
        ),
    )


def fake_create(system: RealSystem, path: str, *_rest: object) -> None:
    system.make_folder(f"{path}/bin")
    system.write_file(f"{path}/bin/python", b"#!\n", 0o755)
    system.make_folder(f"{path}/lib")


def fake_install(system: RealSystem, step: Install, *_rest: object) -> None:
    site = step.snapshot[0] if step.snapshot else str(Path(step.python).parent.parent / "lib")
    system.make_folder(f"{site}/one")
    system.write_file(f"{site}/one/__init__.py", b"version = 2\n")
    system.write_file(f"{site}/three.py", b"three\n")
    system.remove_file(f"{site}/two.py")


def main(world: str, state: str, command: str, number: str) -> None:
    """Do what the command line says."""
    installers.create_environment = fake_create  # type: ignore[assignment]
    installers.install = fake_install  # type: ignore[assignment]
    system = Killing(int(number))
    if command == "apply":
        apply_plan(system, plan(Path(world)), state, Quiet())
    elif command == "setup":
        apply_plan(system, plan_of_setup(Path(world)), state, Quiet())
    elif command == "resume":
        resume(system, state, None, Quiet())
    else:
        undo(system, state, None, force=False, sink=Quiet())


if __name__ == "__main__":
    main(*sys.argv[1:])
