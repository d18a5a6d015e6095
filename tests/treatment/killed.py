"""A run that kills itself: a System that sends SIGKILL to its own process around the N-th call that changes anything.

That is what an impatient person does, or a machine that runs out of memory. The installer is replaced by one that
adds, changes and removes files, so that no network is needed; everything else is the real thing.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ideepdoctor.errors import ApplyFailed, DoctorError
from ideepdoctor.model.plan import (
    CreateEnv,
    DisableLine,
    EditBlock,
    Install,
    Plan,
    RenameFile,
    Requirement,
    SetRpath,
    WriteFile,
)
from ideepdoctor.system import Completed, RealSystem
from ideepdoctor.treatment import installers
from ideepdoctor.treatment.apply import apply_plan, resume
from ideepdoctor.treatment.progress import Quiet
from ideepdoctor.treatment.undo import undo
from tests.treatment.elf import as_patchelf, library, record_line

CHANGES = (
    "run",
    "write_file",
    "append_line",
    "make_folder",
    "remove_file",
    "remove_tree",
    "copy_tree",
    "copy_file",
    "rename",
)
MOMENTS = ("before", "inside", "after")


class Killing(RealSystem):
    """The real system, which ends the process before, in the middle of, or after its N-th change.

    In the middle means: a temporary file that was not renamed yet, half a line of the journal, a tree of which one file
    was copied or removed, a copy of half a file, half a library by patchelf. What has no middle (a rename, a link)
    is killed after it. Processes are played: patchelf, and shells that can read everything.
    """

    def __init__(self, number: int, moment: str = "before") -> None:
        super().__init__()
        self.left = number
        self.moment = moment
        for name in CHANGES:
            setattr(self, name, self._counted(name, getattr(self, name)))

    def _counted(self, name: str, change: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            if name == "run" and "--output" not in arguments[0]:
                # It writes nothing.
                return change(*arguments, **options)
            self.left -= 1
            if self.left != 0:
                return change(*arguments, **options)
            if self.moment == "inside":
                getattr(self, f"_half_{name}", change)(*arguments, **options)
            elif self.moment == "after":
                change(*arguments, **options)
            return os.kill(os.getpid(), signal.SIGKILL)

        return counted

    def run(self, argv: Sequence[str], **_options: Any) -> Completed:
        said = as_patchelf(list(argv)) if argv[0].endswith("patchelf") else ""
        return Completed(tuple(argv), 0, said.encode(), b"", 0.0)

    def _half_run(self, argv: Sequence[str], **_options: Any) -> None:
        if "--output" in argv:
            Path(argv[argv.index("--output") + 1]).write_bytes(library()[:100])

    def _half_write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        os.fsync = lambda _descriptor: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
        RealSystem.write_file(self, path, data, mode)

    def _half_append_line(self, path: str, line: str) -> None:
        with Path(path).open("a") as stream:
            stream.write(line[: len(line) // 2])

    def _half_copy_file(self, source: str, destination: str) -> None:
        if Path(source).is_symlink():
            RealSystem.copy_file(self, source, destination)
        else:
            Path(destination).write_bytes(Path(source).read_bytes()[:2])

    def _half_copy_tree(self, source: str, destination: str) -> None:
        def copy_one(here: str, there: str) -> None:
            shutil.copy2(here, there)
            os.kill(os.getpid(), signal.SIGKILL)

        shutil.copytree(source, destination, symlinks=True, copy_function=copy_one)

    def _half_remove_tree(self, path: str) -> None:
        for found in sorted(Path(path).rglob("*")):
            if not found.is_dir():
                found.unlink()
                return


def prepare(world: Path) -> None:
    """A home with an rc file, a settings file, and an environment with two packages."""
    (world / "home").mkdir(parents=True)
    (world / "home" / ".bashrc").write_bytes(b"export A=1")
    (world / "home" / "settings").write_text("old\n")
    (world / "home" / "settings").chmod(0o640)
    (world / "home" / "zshrc-in-a-repository").write_text("alias x=y\nalias y=z\n")
    (world / "home" / ".zshrc").symlink_to("zshrc-in-a-repository")
    site = world / "env" / "site"
    (site / "one").mkdir(parents=True)
    (site / "one" / "__init__.py").write_text("version = 1\n")
    (site / "two.py").write_text("two\n")
    (site / "link.py").symlink_to("two.py")
    native = world / "env" / "native"
    native.mkdir()
    (native / "lib.so.1.0").write_bytes(library(runpath="/old"))
    (native / "lib.so.1.0").chmod(0o555)
    (native / "lib.so").symlink_to("lib.so.1.0")
    (native / "lib-1.dist-info").mkdir()
    (native / "lib-1.dist-info" / "RECORD").write_text(record_line(native / "lib.so.1.0", "lib.so.1.0"))
    (native / "stranger.so").write_bytes(library(soname="stranger"))
    (native / "stranger.so").chmod(0o700)


def plan(world: Path) -> Plan:
    """Every kind of step, on existing and on new files."""
    site = str(world / "env" / "site")
    return Plan(
        "everything",
        (
            Install(f"{world}/env/bin/python", (Requirement("one", "2", ("0" * 64,)),), "uv", snapshot=(site,)),
            RenameFile(str(world / "env" / "native" / "stranger.so"), "in the way"),
            SetRpath(str(world / "env" / "native" / "lib.so.1.0"), "$ORIGIN/lib", "searches at the wrong place"),
            SetRpath(str(world / "env" / "native" / "lib.so"), "$ORIGIN", "a link"),
            WriteFile(str(world / "home" / "settings"), "new\n", "settings"),
            WriteFile(str(world / "new" / "deep" / "file"), "fresh\n", "a new file"),
            DisableLine(str(world / "home" / ".zshrc"), 1, "alias x=y", "an alias"),
            DisableLine(str(world / "home" / ".zshrc"), 9, "alias y=z", "another, which has moved"),
            EditBlock(str(world / "home" / ".bashrc"), "export B=2", "variables"),
            EditBlock(str(world / "home" / ".zshrc"), "export B=2", "variables"),
            EditBlock(str(world / "home" / "fish" / "config.fish"), "set -gx B 2", "variables"),
        ),
    )


def failing_plan(world: Path) -> Plan:
    """As ``plan``, with the installation last, so that its failure takes all the others back."""
    first, *others = plan(world).steps
    return Plan("everything", (*others, first))


def plan_of_setup(world: Path) -> Plan:
    """A new environment, as setup makes it."""
    env = str(world / "made" / "env")
    return Plan(
        "setup",
        (
            CreateEnv(env, sys.executable, "uv"),
            Install(f"{env}/bin/python", (Requirement("one", "2", ("0" * 64,)),), "uv"),
            RenameFile(f"{env}/lib/three.py", "in the way"),
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


def broken_install(*_arguments: object) -> None:
    """An installer that makes a mess before it fails."""
    fake_install(*_arguments)  # type: ignore[arg-type]
    raise ApplyFailed("the installer failed")


def in_child(folder: Path, command: str, number: int = 0, moment: str = "before") -> int:
    """Do a command on ``folder/world`` in a forked child that kills itself around its N-th change (0: never).

    Args:
        folder: holds the world, and the doctor's own folders.
        command: apply, setup, fail (apply whose last step fails), fail-setup, resume or undo.
        number: of the change, from 1.
        moment: one of MOMENTS.

    Returns:
        0, a DoctorError's exit code, 99 for another error, or minus the signal that ended it.
    """
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.environ["IDEEPDOCTOR_CACHE_DIR"] = str(folder / "cache")
            _do(folder / "world", str(folder / "state"), command, Killing(number, moment))
            code = 0
        except DoctorError as error:
            code = int(error.exit_code)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _do(world: Path, state: str, command: str, system: RealSystem) -> None:
    installers.create_environment = fake_create  # type: ignore[assignment]
    installers.install = broken_install if command.startswith("fail") else fake_install  # type: ignore[assignment]
    if command == "resume":
        resume(system, state, None, Quiet())
    elif command == "undo":
        undo(system, state, None, force=False, sink=Quiet())
    else:
        made = {"apply": plan, "setup": plan_of_setup, "fail": failing_plan, "fail-setup": plan_of_setup}[command]
        apply_plan(system, made(world), state, Quiet())
