"""See the doctor's own installation: everything that ``self-test`` judges, collected; no network is used.

What cannot be looked at because something is broken is told as broken: nothing here raises for it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from ideepdoctor.errors import CouldNotCheck, DoctorError
from ideepdoctor.model.own import Own, Trouble
from ideepdoctor.selftest.record import NAME, PACKAGE, file_state
from ideepdoctor.system import System
from ideepdoctor.treatment.progress import Progress

_COMPILE = (
    "import json, sys\n"
    "told = {}\n"
    "for name, source in json.load(sys.stdin).items():\n"
    "    try:\n"
    "        compile(source.encode('ascii'), str(name), 'exec')\n"
    "    except Exception:\n"
    "        told[name] = str(sys.exc_info()[1])\n"
    "sys.stdout.write(json.dumps(told))\n"
)
_COMPILE_SECONDS = 20.0
_IMPORT = (
    "import importlib, json, sys\n"
    "asked, told = json.load(sys.stdin), {}\n"
    "if asked['folder'] not in sys.path:\n"
    "    sys.path.append(asked['folder'])\n"
    "for name in asked['names']:\n"
    "    try:\n"
    "        importlib.import_module(name)\n"
    "    except BaseException as error:\n"
    "        told[name] = type(error).__name__ + ': ' + str(error)\n"
    "print(json.dumps(told))\n"
)
_IMPORT_SECONDS = 60.0
_ENTRY = f"{NAME}.__main__"
"""Starts the command line when it is run; imported, it does nothing."""


def look(system: System, environ: Mapping[str, str], progress: Progress) -> Own:
    """Look at everything.

    Args:
        system: starts interpreters and uv, writes into the doctor's own folders.
        environ: the doctor's variables.
        progress: told what is looked at.
    """
    started = time.monotonic()
    total = 6
    progress.step(1, total, "the files of the package")
    files = file_state()
    progress.step(2, total, "modules and libraries")
    names = sorted(_modules())
    imports = tuple(_unimportable(system, environ, names))
    progress.step(3, total, "rules on their examples")
    tried, wrong = _examples()
    progress.step(4, total, "data")
    data = tuple(_data())
    progress.step(5, total, "folders, locks and uv")
    folders = tuple(_folders(system, environ))
    uv, uv_error = _uv(system, environ)
    progress.step(6, total, "programs for other Pythons")
    pythons = _pythons(system, environ)
    payloads = _payloads()
    compiled, uncompiled = _compiled(system, environ, payloads, pythons)
    return Own(
        folder=str(PACKAGE),
        listed=files.listed,
        missing=files.missing,
        altered=files.altered,
        modules=len(names),
        imports=imports,
        libraries=tuple(_libraries()),
        payloads=len(payloads),
        compiled_by=compiled,
        payload_errors=uncompiled,
        examples=tried,
        example_errors=wrong,
        data_errors=data,
        folders=folders,
        pythons=tuple(found for found, _ in pythons),
        uv=uv,
        uv_error=uv_error,
        seconds=round(time.monotonic() - started, 3),
    )


def _modules() -> Iterator[str]:
    """Names of the modules, without the programs that run elsewhere."""
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[0] == "payload" or "project" in parts or not all(part.isidentifier() for part in parts):
            continue
        name = ".".join((NAME, *parts)).removesuffix(".__init__")
        if name != _ENTRY:
            yield name


def _unimportable(system: System, environ: Mapping[str, str], names: list[str]) -> Iterator[Trouble]:
    """What cannot be imported, tried in another process, which knows nothing of this one."""
    request = json.dumps({"folder": str(PACKAGE.parent), "names": names}).encode()
    done = system.run([sys.executable, "-c", _IMPORT], stdin=request, timeout_seconds=_IMPORT_SECONDS, env=environ)
    try:
        told = dict(json.loads(done.text().splitlines()[-1]))
    except (ValueError, TypeError, IndexError):
        told = {NAME: (done.error_text() or f"ended with {done.returncode}").strip()[-300:]}
    for name, why in told.items():
        path = PACKAGE.joinpath(*name.split(".")[1:])
        yield Trouble(name, why, str(path if path.is_dir() else path.with_suffix(".py")))


def _libraries() -> Iterator[tuple[str, str, str | None]]:
    try:
        from packaging.requirements import Requirement
    except ImportError:
        yield "packaging", "", None
        return
    try:
        wanted = [Requirement(text) for text in requires(NAME) or ()]
    except PackageNotFoundError:  # a folder of sources: what it imports has been tried
        return
    for requirement in wanted:
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            there: str | None = version(requirement.name)
        except PackageNotFoundError:
            there = None
        if there is None or not requirement.specifier.contains(there, prereleases=True):
            yield requirement.name, str(requirement.specifier), there


def _examples() -> tuple[int | None, tuple[Trouble, ...]]:
    """How many examples were tried (None: they could not be), and those that do not give what they must."""
    try:
        from ideepdoctor.selftest.examples import try_all
    except Exception:  # noqa: BLE001 - the module that is broken has been named
        return None, ()
    return try_all(PACKAGE / "rules" / "hosts")


def _data() -> Iterator[Trouble]:
    try:
        from ideepdoctor.selftest.data import read_all
    except Exception as error:  # noqa: BLE001 - as above
        yield Trouble("data", f"{type(error).__name__}: {error}")
        return
    yield from read_all(PACKAGE)


def _folders(system: System, environ: Mapping[str, str]) -> Iterator[Trouble]:
    """What is wrong with the doctor's own folders; those that were not there are not there afterwards."""
    from ideepdoctor.treatment.state import cache_folder, state_folder

    for what, place in (("the folder of the journal", state_folder), ("the folder of the cache", cache_folder)):
        try:
            folder = place(environ)
            top = _first_missing(Path(folder))
            try:
                system.make_folder(folder)
                probe = str(Path(folder) / "self-test")
                system.write_file(probe, b"")
                system.remove_file(probe)
                if place is state_folder and (why := _lock_trouble(system, folder)):
                    yield Trouble("the lock", why, folder)
            finally:
                if top is not None:
                    system.remove_tree(str(top))
        except DoctorError as error:
            yield Trouble(what, error.message, error.context.get("folder"))
        except OSError as error:
            yield Trouble(what, f"{error.strerror or error}", error.filename)


def _first_missing(folder: Path) -> Path | None:
    """The topmost folder that would have to be made; None where all is there."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    return missing[-1] if missing else None


def _lock_trouble(system: System, folder: str) -> str:
    from ideepdoctor.treatment.state import is_locked, locked

    if is_locked(folder):
        return ""  # by another doctor: it locks
    with locked(system, folder):
        return "" if is_locked(folder) else "a second doctor is not kept out"


def _uv(system: System, environ: Mapping[str, str]) -> tuple[str | None, str]:
    from ideepdoctor.treatment.installers import uv_program

    try:
        program = uv_program()
    except (CouldNotCheck, ImportError) as error:
        return None, str(error)
    done = system.run([program, "--version"], timeout_seconds=20, env=environ)
    words = done.text().split()
    if not done.ok or len(words) < 2 or words[0] != "uv":
        return None, f"{program} --version: {(done.error_text() or done.text()).strip()[:200] or done.returncode}"
    return words[1], ""


def _pythons(system: System, environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Version and path of one interpreter of each version that is here."""
    from ideepdoctor.targets.find import find_interpreters

    found = {item.version: item.path for item in reversed(find_interpreters(system, environ))}
    return tuple(sorted(found.items(), key=lambda item: [int(part) for part in item[0].split(".") if part.isdecimal()]))


def _payloads() -> dict[str, str]:
    """Name and text of each program for other Pythons; what is no ASCII is told as not compiling."""
    texts = {}
    for path in sorted((PACKAGE / "payload").glob("*.py")):
        texts[path.name] = path.read_bytes().decode("utf-8", "replace")
    return texts


def _compiled(
    system: System, environ: Mapping[str, str], payloads: Mapping[str, str], pythons: tuple[tuple[str, str], ...]
) -> tuple[tuple[str, ...], tuple[Trouble, ...]]:
    """Versions that compiled the programs, and what they did not: an interpreter of each minor version, two at once."""
    from concurrent.futures import ThreadPoolExecutor

    minors = {".".join(version.split(".")[:2]): (version, path) for version, path in pythons}
    request = json.dumps(payloads).encode("ascii")

    def ask(python: tuple[str, str]) -> tuple[str, dict[str, str]]:
        argv = [python[1], "-B", "-E", "-s", "-c", _COMPILE]
        done = system.run(argv, stdin=request, timeout_seconds=_COMPILE_SECONDS, env=environ)
        try:
            return python[0], dict(json.loads(done.text()))
        except (ValueError, TypeError):
            return python[0], {"the compiler": done.error_text().strip()[-200:] or f"ended with {done.returncode}"}

    with ThreadPoolExecutor(2) as pool:
        told = list(pool.map(ask, minors.values()))
    wrong = [
        Trouble(f"{name} in Python {version}", why, str(PACKAGE / "payload" / name))
        for version, errors in told
        for name, why in sorted(errors.items())
    ]
    return tuple(version for version, _ in told), tuple(wrong)
