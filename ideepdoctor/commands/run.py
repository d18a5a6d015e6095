"""``run``: start a program with the right variables, the guard, and to_intel64() called for it."""

from __future__ import annotations

import errno
import hashlib
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ideepdoctor.commands.session import Session, TargetOptions, examine, find_target, judge_all
from ideepdoctor.errors import CouldNotCheck, UsageError

if TYPE_CHECKING:
    from ideepdoctor.facts.collect import Scope
    from ideepdoctor.model.facts import Facts
    from ideepdoctor.targets.target import Target

_MARK = "IDEEPDOCTOR_SET"
"""Names the variables that are ours and not the user's; the start-up file of an environment reads it, too."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What ``run`` was asked.

    Attributes:
        target: which Python; without one, the program itself where it is a path to a Python.
        words: the program and its arguments; a file that ends with .py, or options (-m), are for the target's Python.
        auto: call to_intel64() for the program.
        guard: correct what is known to be wrong.
    """

    target: TargetOptions
    words: tuple[str, ...]
    auto: bool = True
    guard: bool = True


@dataclass(frozen=True, slots=True)
class Prepared:
    """A program that is ready to start: for ``run``, and for ``trace``, which stays to report.

    Attributes:
        argv: the program and its arguments.
        environ: its whole environment.
        facts: what is known of the target's Python.
    """

    argv: list[str]
    environ: dict[str, str]
    facts: Facts


def run(session: Session, options: RunOptions) -> NoReturn:
    """Become the program.

    Raises:
        UsageError: no program, a program that cannot be started, a target that is no Python.
        CouldNotCheck: the target does not answer.
    """
    from ideepdoctor.facts.collect import BARE

    modules = [name for name, wanted in (("guard", options.guard), ("auto", options.auto and options.guard)) if wanted]
    prepared = prepare(session, options.target, options.words, "run", BARE, modules)
    if not options.guard:
        prepared.environ["IDEEPDOCTOR_GUARD"] = "off"  # an environment's own corrects nothing either
    session.progress.close()
    try:
        session.system.become(prepared.argv, prepared.environ)
    except OSError as error:
        raise cannot_start(prepared.argv[0], error) from error


def prepare(
    session: Session, asked: TargetOptions, words: tuple[str, ...], command: str, scope: Scope, modules: list[str]
) -> Prepared:
    """Make a program ready to start.

    Args:
        session: this run of the doctor.
        asked: which Python; without one, the program itself where it is a path to a Python.
        words: the program and its arguments.
        command: name of the doctor's command, for errors.
        scope: what to find out about the target.
        modules: which of ours the program's Python loads at its start: ``guard``, ``auto``, ``trace``.

    Raises:
        UsageError: no program, a program that cannot be started, a target that is no Python.
        CouldNotCheck: the target does not answer.
    """
    example = f"ideepdoctor {command} -- python train.py"
    if not words:
        raise UsageError(f"no program to {command}", hint=f"for example: {example}")
    target = find_target(session, _target_of(asked, words))
    if target.transport or target.emulator:
        raise UsageError(f"{command} starts programs on this machine alone", hint="leave out --target and --emulator")
    facts = examine(session, target, scope)
    modules = [name for name in modules if name != "auto" or wants_layouts(facts)]
    environ = variables(session.environ, facts)
    environ = _without_bad_preload(session, target, environ)
    environ["PATH"] = search_path(environ.get("PATH", ""), facts.python.executable)
    argv = command_line(words, facts.python.executable)
    if shutil.which(argv[0], path=environ["PATH"]) is None:
        raise UsageError(f"{_shown(argv[0])} cannot be started: {_why_not(argv[0])}", hint=f"for example: {example}")
    environ.pop("IDEEPDOCTOR_RUN", None)  # of a run that started this one
    if modules:
        environ["IDEEPDOCTOR_RUN"] = ",".join(f"_ideepdoctor_{name}" for name in modules)
        folder, given = start_folder(session), environ.get("PYTHONPATH", "")
        environ["PYTHONPATH"] = given if given.split(":")[0] == folder else f"{folder}:{given}" if given else folder
        if ignores_variables(argv):
            what = "corrects iDeep" if command == "run" else "records"
            text = f"a Python that is started with -E, -I or -S does not load what {what}: leave that option out"
            session.progress.note(text)
    return Prepared(argv, environ, facts)


def cannot_start(program: str, error: OSError) -> UsageError:
    """The error for a program that the system refuses to start."""
    why, hint = error.strerror or str(error), "see whether it is a program for this machine"
    line = _first_line(shutil.which(program) or program)
    if error.errno == errno.ENOENT and line.startswith(b"#!"):
        named = line[2:].strip().decode("utf-8", "replace")
        why, hint = f"its first line names {named}, which is not there", "mend that line, or name the interpreter"
    elif error.errno == errno.ENOENT and line.startswith(b"\x7fELF"):
        why = "the loader that it needs is not on this machine"
    elif error.errno == errno.ENOEXEC:
        why = "it is no program for this machine, and no first line names its interpreter"
        hint = f"if it is a shell script: sh {_shown(program)}"
    return UsageError(f"{_shown(program)} cannot be started: {why}", hint=hint)


def _first_line(program: str) -> bytes:
    try:
        with Path(program).open("rb") as stream:
            return stream.readline(256)
    except OSError:
        return b""


def _shown(word: str) -> str:
    """A word of the command line as it can be printed: quoted, bytes that are no text as escapes."""
    return shlex.quote(word.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))


def _why_not(word: str) -> str:
    path = Path(word)
    if "/" not in word:
        return "it is a folder" if word and path.is_dir() else "there is no such command on PATH"
    if not path.exists():
        return "there is no such file"
    return "it is a folder" if path.is_dir() else "it is not executable (chmod +x)"


def command_line(words: tuple[str, ...], python: str) -> list[str]:
    """The program and its arguments; what only a Python can run is given to the target's.

    That is options alone, a script (.py), a compiled one or an archive (.pyc, .pyz), and a folder with a __main__.py.
    The names ``python`` and ``python3`` mean the target's where its own folder does not have them.
    """
    first, scripts = Path(words[0]), Path(python).parent
    is_script = words[0].endswith((".py", ".pyw", ".pyc", ".pyz")) and not first.is_dir()
    if words[0].startswith("-") or is_script or (words[0] and (first / "__main__.py").is_file()):
        return [python, *words]
    if words[0] in ("python", "python3") and not (scripts / words[0]).exists():
        return [python, *words[1:]]
    return list(words)


def search_path(path: str, python: str) -> str:
    """A PATH on which the target's commands come first; as it is where its Python is the first one there already."""
    scripts = str(Path(python).parent)
    found = shutil.which("python", path=path) or shutil.which("python3", path=path)
    if found is not None and str(Path(found).parent) == scripts:
        return path
    return f"{scripts}:{path}" if path else scripts


def ignores_variables(argv: list[str]) -> bool:
    """Whether this starts a Python with -E, -I or -S, which keeps it from loading what PYTHONPATH has."""
    if not Path(argv[0]).name.startswith(("python", "pypy")):
        return False
    words = iter(argv[1:])
    for word in words:
        if not word.startswith("-") or word in ("-", "--") or word.startswith("--"):
            return False
        for place, letter in enumerate(word[1:], 2):
            if letter in "EIS":
                return True
            if letter in "cm":
                return False
            if letter in "WXQ":  # a value follows, in this word or the next
                if place == len(word):
                    next(words, None)
                break
    return False


def variables(environ: Mapping[str, str], facts: Facts) -> dict[str, str]:
    """The environment with what is right for this machine where the user has set nothing."""
    from ideepdoctor.treatment.variables import before_start, recommended

    result = dict(environ)
    ours = [name for name in environ.get(_MARK, "").split(",") if name in environ]
    for variable in (*recommended(facts), *before_start(facts)):
        if variable.name not in result:
            result[variable.name] = variable.value
            ours.append(variable.name)
    if ours:
        result[_MARK] = ",".join(dict.fromkeys(ours))
    return result


def wants_layouts(facts: Facts) -> bool:
    """Whether to_intel64() is to be called: unless tune measured that the model is faster without."""
    from ideepdoctor.treatment.profile import in_force

    profile = in_force(facts)
    return profile is None or profile.to_intel64 is not False


def start_folder(session: Session) -> str:
    """A folder in the doctor's cache with what the program's Python loads at its start; its name is its content's."""
    from ideepdoctor.targets import cache
    from ideepdoctor.targets.target import payload_source

    files = {
        "sitecustomize.py": payload_source("run_start"),
        "_ideepdoctor_guard.py": payload_source("guard"),
        "_ideepdoctor_auto.py": payload_source("auto"),
        "_ideepdoctor_trace.py": payload_source("trace"),
    }
    digest = hashlib.sha256(b"\0".join(files.values())).hexdigest()[:16]
    folder = Path(cache.cache_folder(session.environ)) / "run" / digest
    hint = "set IDEEPDOCTOR_CACHE_DIR to a folder that you can write, or use --no-guard"
    if ":" in str(folder):
        raise CouldNotCheck(f"PYTHONPATH cannot name {folder}, which has a colon in its name", hint=hint)
    missing = {name: data for name, data in files.items() if not _holds(folder / name, data)}
    try:
        if missing:
            session.system.make_folder(str(folder))
        for name, data in missing.items():
            session.system.write_file(str(folder / name), data)
    except OSError as error:
        raise CouldNotCheck(f"cannot write to {folder}: {error.strerror}", hint=hint) from error
    return str(folder)


def _holds(path: Path, data: bytes) -> bool:
    """Whether the file is there and has just this."""
    try:
        return path.read_bytes() == data
    except OSError:
        return False


def _target_of(asked: TargetOptions, words: tuple[str, ...]) -> TargetOptions:
    """The target that was named, else the program itself where it is a path to a Python."""
    first = words[0]
    is_python = "/" in first and Path(first).name.startswith("python") and Path(first).is_file()
    return replace(asked, python=first) if asked.python is None and is_python else asked


def _without_bad_preload(session: Session, target: Target, environ: dict[str, str]) -> dict[str, str]:
    """The environment without LD_PRELOAD where it holds what ideep4py does not survive (IDP401)."""
    if not session.environ.get("LD_PRELOAD"):
        return environ
    from ideepdoctor.facts.collect import Scope

    facts = examine(session, target, Scope(imports=False, interpreters=False))
    wrong = [item for item in judge_all(facts, frozenset({"IDP401"})).findings if "LD_PRELOAD holds" in item.found]
    if not wrong:
        return environ
    session.progress.note(f"IDP401: {wrong[0].found}; the program starts without LD_PRELOAD")
    return {name: value for name, value in environ.items() if name != "LD_PRELOAD"}
