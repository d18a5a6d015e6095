"""The peer ``source``: Chainer with an ideep4py that was built here, in an environment of a lock and that wheel."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from ideepdoctor.errors import CouldNotCheck, DoctorError, NotPossibleHere, UsageError
from ideepdoctor.model.plan import Requirement
from ideepdoctor.proof.peer_environments import Recipe
from ideepdoctor.stacks.catalog import all_stacks, same_version, with_built
from ideepdoctor.stacks.data import Lock
from ideepdoctor.system import System
from ideepdoctor.treatment.state import cache_folder

WHEELHOUSE_VARIABLE = "IDEEPDOCTOR_WHEELHOUSE"
"""Of the option --wheelhouse of other commands."""
CHECK = (
    "import chainer, ideep4py, json, os, re; from chainer.backends import intel64; intel64.check_ideep_available(); "
    "top = os.path.dirname(os.path.dirname(os.path.abspath(ideep4py.__file__))); "
    "folders = [name for name in sorted(os.listdir(top)) if name.startswith('ideep4py-') and "
    "os.path.isfile(os.path.join(top, name, 'ideepdoctor-build.json'))]; "
    "assert folders, 'its ideep4py was not built by ideepdoctor'; "
    "told = json.load(open(os.path.join(top, folders[0], 'ideepdoctor-build.json'))); "
    "local = re.search('[+]doctor[.]([^-]+)[.]dist-info', folders[0]); "
    "march = local.group(1) if local else told['march'].replace('x86-64-', ''); "
    "version = getattr(ideep4py, '__version__', '1'); "
    "print('Chainer ' + chainer.__version__ + ' + iDeep ' + version + ' (built here, ' + march + "
    "(', without MKL' if told['mkl'] == 'none' else '') + ')')"
)
"""Python, from 2.7 on, that prints the label of an environment which has a built ideep4py."""


@dataclass(frozen=True, slots=True)
class Built:
    """A wheel of a build.

    Attributes:
        path: of the file.
        version: with its local part.
        abi: ABI tag.
        minor: version of Python.
        mkl: wheel, none or folder.
        time: of its last change, in seconds since the epoch.
    """

    path: str
    version: Version
    abi: str
    minor: str
    mkl: str
    time: float

    @property
    def label(self) -> str:
        """What sets it apart: ``built here, v3``."""
        march = str(self.version.local).removeprefix("doctor.")
        return f"built here, {march}{', without MKL' if self.mkl == 'none' else ''}"


def source_recipe(system: System, environ: Mapping[str, str], cwd: str, minor: str | None) -> Recipe:
    """How the environment is made: of the newest wheel that was built, for the target's Python where there is one.

    Args:
        system: starts interpreters.
        environ: the user's variables.
        cwd: the folder whose ``wheelhouse`` is looked into, too.
        minor: version of the target's Python, which is preferred.

    Raises:
        UsageError: there is no wheel, or none that an interpreter and a lock are there for.
    """
    from ideepdoctor.targets.choose import base_for_new_environment

    folders = wheel_folders(environ, cwd)
    found = built_wheels(folders)
    if not found:
        raise UsageError(
            "--peer source needs an ideep4py that was built here, and there is none",
            hint="build one: ideepdoctor build; or name an interpreter that has one: --peer source=PYTHON",
            context={"looked in": ", ".join(folders)},
        )
    why = ""
    for item in sorted(found, key=lambda item: (item.minor == minor, item.time), reverse=True):
        locked = _lock_for(item)
        if locked is None:
            why = why or f"Chainer is not locked for Python {item.minor} with ideep4py {item.version.public}"
            continue
        try:
            base = base_for_new_environment(system, environ, item.minor, [item.abi])
        except (UsageError, NotPossibleHere, CouldNotCheck) as error:
            why = why or _first(error)
            continue
        chainer, lock = locked
        label = f"Chainer {chainer} + iDeep {item.version.public} ({item.label})"
        return Recipe("source", label, lock, base.path, CHECK, links=(str(Path(item.path).parent),))
    names = ", ".join(Path(item.path).name for item in found[:3])
    raise UsageError(f"--peer source: no environment can be made for {names}: {why}", hint="--peer source=PYTHON")


def _first(error: DoctorError) -> str:
    return error.message.splitlines()[0]


def _lock_for(item: Built) -> tuple[str, Lock] | None:
    """The newest Chainer that is locked for a wheel, and the lock with it."""
    digest = hashlib.sha256(Path(item.path).read_bytes()).hexdigest()
    requirement = Requirement("ideep4py", str(item.version), (digest,))
    for stack in all_stacks():
        lock = stack.lock_to_build(item.abi) if same_version(stack.ideep4py, item.version.public) else None
        if lock is not None:
            return stack.chainer, with_built(lock, requirement)
    return None


def wheel_folders(environ: Mapping[str, str], cwd: str) -> tuple[str, ...]:
    """Where wheels of builds may be: the wheelhouse of this run and of this folder, and what ``build`` keeps."""
    named = [environ[WHEELHOUSE_VARIABLE]] if environ.get(WHEELHOUSE_VARIABLE) else []
    kept = sorted(Path(cache_folder(environ), "build", "wheel").glob("*/"))
    # A piece without its list is not there: it was being made when the doctor was killed.
    whole = [str(folder) for folder in kept if folder.with_name(f"{folder.name}.json").is_file()]
    return (*(str(Path(cwd, name).absolute()) for name in (*named, "wheelhouse")), *whole)


def built_wheels(folders: Iterable[str]) -> Sequence[Built]:
    """The wheels of builds in some folders, newest first; of those that differ in nothing said, the newest alone."""
    found: dict[tuple[str, str, str], Built] = {}
    for folder in folders:
        for path in sorted(Path(folder).glob("ideep4py-*.whl")):
            item = _read(str(path))
            if item is None:
                continue
            key = str(item.version), item.abi, item.mkl
            if key not in found or found[key].time < item.time:
                found[key] = item
    return sorted(found.values(), key=lambda item: item.time, reverse=True)


def _read(path: str) -> Built | None:
    """What a file says of itself; None where it is no whole wheel of a build."""
    try:
        _, version, _, tags = parse_wheel_filename(Path(path).name)
        [(python, abi)] = {(tag.interpreter, tag.abi) for tag in tags}
        with zipfile.ZipFile(path) as whole:
            told = json.loads(whole.read(f"ideep4py-{version}.dist-info/ideepdoctor-build.json"))
        return Built(path, version, abi, f"{python[2]}.{python[3:]}", str(told["mkl"]), Path(path).stat().st_mtime)
    except (InvalidWheelFilename, InvalidVersion, OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        return None
