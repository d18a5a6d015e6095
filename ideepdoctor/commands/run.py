"""``run``: start a program with the right variables, the guard, and to_intel64() called for it."""

from __future__ import annotations

import hashlib
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
    environ = variables(session.environ, facts)
    environ = _without_bad_preload(session, target, environ)
    if modules:
        environ["IDEEPDOCTOR_RUN"] = ",".join(f"_ideepdoctor_{name}" for name in modules)
        parts = (start_folder(session), environ.get("PYTHONPATH", ""))
        environ["PYTHONPATH"] = ":".join(part for part in parts if part)
    scripts = str(Path(facts.python.executable).parent)
    environ["PATH"] = ":".join(part for part in (scripts, environ.get("PATH", "")) if part)
    argv = command_line(words, facts.python.executable)
    if shutil.which(argv[0], path=environ["PATH"]) is None:
        raise UsageError(f"{argv[0]} cannot be started", hint=f"name a program: {example}")
    return Prepared(argv, environ, facts)


def cannot_start(program: str, error: OSError) -> UsageError:
    """The error for a program that the system refuses to start."""
    return UsageError(
        f"{program} cannot be started: {error.strerror}", hint="see whether it is a program for this machine"
    )


def command_line(words: tuple[str, ...], python: str) -> list[str]:
    """The program and its arguments; a script, and options alone, are given to the target's Python."""
    script = words[0].endswith((".py", ".pyw")) and not Path(words[0]).is_dir()
    return [python, *words] if script or words[0].startswith("-") else list(words)


def variables(environ: Mapping[str, str], facts: Facts) -> dict[str, str]:
    """The environment with what is right for this machine where the user has set nothing."""
    from ideepdoctor.treatment.variables import recommended

    result = dict(environ)
    ours = [name for name in environ.get(_MARK, "").split(",") if name in environ]
    for variable in recommended(facts):
        if variable.name not in result:
            result[variable.name] = variable.value
            ours.append(variable.name)
    if ours:
        result[_MARK] = ",".join(dict.fromkeys(ours))
    return result


def start_folder(session: Session) -> str:
    """A folder in the doctor's cache with what the program's Python loads at its start; its name is its content's."""
    from ideepdoctor.targets.target import payload_source
    from ideepdoctor.treatment.state import cache_folder

    files = {
        "sitecustomize.py": payload_source("run_start"),
        "_ideepdoctor_guard.py": payload_source("guard"),
        "_ideepdoctor_auto.py": payload_source("auto"),
        "_ideepdoctor_trace.py": payload_source("trace"),
    }
    digest = hashlib.sha256(b"\0".join(files.values())).hexdigest()[:16]
    folder = Path(cache_folder(session.environ)) / "run" / digest
    try:
        session.system.make_folder(str(folder))
        for name, data in files.items():
            path = folder / name
            if not path.is_file() or path.read_bytes() != data:
                session.system.write_file(str(path), data)
    except OSError as error:
        raise CouldNotCheck(
            f"cannot write to {folder}: {error.strerror}",
            hint="set IDEEPDOCTOR_CACHE_DIR to a folder that you can write, or use --no-guard",
        ) from error
    return str(folder)


def _target_of(asked: TargetOptions, words: tuple[str, ...]) -> TargetOptions:
    """The target that was named, else the program itself where it is a path to a Python."""
    first = words[0]
    is_python = "/" in first and Path(first).name.startswith("python") and Path(first).is_file()
    return replace(asked, python=first) if asked.python is None and is_python else asked


def _without_bad_preload(session: Session, target: Target, environ: dict[str, str]) -> dict[str, str]:
    """The environment without LD_PRELOAD where it holds what ideep4py does not survive (IDP401)."""
    if not environ.get("LD_PRELOAD"):
        return environ
    from ideepdoctor.facts.collect import Scope

    facts = examine(session, target, Scope(imports=False, interpreters=False))
    wrong = [item for item in judge_all(facts, frozenset({"IDP401"})).findings if "LD_PRELOAD holds" in item.found]
    if not wrong:
        return environ
    session.progress.step(1, 1, f"IDP401: {wrong[0].found}; the program starts without LD_PRELOAD")
    return {name: value for name, value in environ.items() if name != "LD_PRELOAD"}
