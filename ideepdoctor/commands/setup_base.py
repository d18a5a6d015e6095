"""The interpreter that ``setup`` makes its environment from: one that is here, that a tool gets, or to build for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ideepdoctor.commands.fix import DRY_RUN
from ideepdoctor.commands.session import Session, carry_out
from ideepdoctor.commands.setup_wheels import built_abis, index_abis
from ideepdoctor.errors import DoctorError, NotPossibleHere, UsageError
from ideepdoctor.model.facts import Interpreter
from ideepdoctor.model.plan import CreateEnv, Plan
from ideepdoctor.model.report import Report
from ideepdoctor.system import is_executable_file
from ideepdoctor.targets.advice import WHEEL_ABIS, Way, pyenv_root, ways_here, ways_to_get
from ideepdoctor.targets.choose import base_for_new_environment

if TYPE_CHECKING:
    from ideepdoctor.commands.setup import SetupOptions


@dataclass(frozen=True, slots=True)
class Base:
    """An interpreter, and what it needs.

    Attributes:
        interpreter: to make the environment from.
        built: its ideep4py is none of an index: it is built, or a wheel of the wheelhouse.
        journal: of the run that got the interpreter; None: it was here.
    """

    interpreter: Interpreter
    built: bool = False
    journal: str | None = None


def find_base(
    session: Session, options: SetupOptions, abis: Sequence[str] | None, folders: Sequence[str]
) -> Base | Report:
    """Choose the interpreter, or get it.

    Args:
        session: this run.
        options: of the command.
        abis: ABI tags that the asked stack is locked for; None: any.
        folders: wheelhouses.

    Returns:
        The interpreter; or the report that ends the command (a dry run, or the person said no).

    Raises:
        UsageError: what was asked for is no Python, or options exclude each other.
        NotPossibleHere: nothing here can hold iDeep; the hint offers what can be done, with time and size.
        Others as ``treatment.apply``, where an interpreter is got.
    """
    asked = options.target.python
    if options.build:
        from ideepdoctor.commands.build_target import interpreter_for

        return Base(interpreter_for(session, asked), built=True)
    if options.get_python is not None:
        return _got(session, options, abis)
    wheels = built_abis(folders)
    # Without a network a wheelhouse of built wheels alone decides.
    theirs = wheels if options.source.offline and not index_abis(folders) else ()
    if theirs and asked is None:
        return Base(base_for_new_environment(session.system, session.environ, None, theirs), built=True)
    try:
        found = base_for_new_environment(session.system, session.environ, asked, abis)
        return Base(found, built=found.abi in theirs)
    except (NotPossibleHere, UsageError) as error:
        if not wheels:
            raise
        try:
            found = base_for_new_environment(session.system, session.environ, asked, wheels)
        except (NotPossibleHere, UsageError):
            error.hint += f"\n({', '.join(folders)} has ideep4py built for {', '.join(wheels)})"
            raise error from None
        return Base(found, built=True)


def _got(session: Session, options: SetupOptions, abis: Sequence[str] | None) -> Base | Report:
    """The interpreter that a tool gets, after asking; or gave in an earlier run."""
    from ideepdoctor.targets.asked import minor_asked

    usable = [WHEEL_ABIS[abi] for abi in WHEEL_ABIS if abis is None or abi in abis]
    asked = options.target.python
    minor = minor_asked(asked) if asked is not None else next(iter(usable), None)
    if minor not in usable:
        names = ", ".join(dict.fromkeys(usable)) or "no Python"
        raise UsageError(
            f"--get-python gets a Python that an ideep4py wheel exists for, and {asked or 'this stack'} is none",
            hint=f"--python VERSION, of {names}; for newer ones: ideepdoctor setup --build",
        )
    if options.source.offline:
        raise UsageError("--offline and --get-python exclude each other", hint="no Python comes without a network")
    way = next((way for way in ways_here(session.environ, minor) if way.kind == options.get_python), None)
    if way is None:
        tools = "micromamba, mamba or conda" if options.get_python == "conda" else "pyenv"
        raise NotPossibleHere(
            f"there is no {tools} on PATH to get Python {minor} with",
            hint="\n".join(ways_to_get(session.environ, minor, glibc=True)),
        )
    folder = _folder(session, way, minor)
    journal = None
    if not is_executable_file(folder / "bin" / "python"):
        plan = Plan(
            f"get Python {way.release} with {way.tool}",
            (CreateEnv(str(folder), way.program, way.tool, release=way.release),),
        )
        before = Report("setup", plan=plan, body=(f"  {way.tool}: {way.cost}",))
        if options.dry_run:
            then = "then an environment is made from it: the same command without --dry-run shows that plan, too"
            return Report("setup", plan=plan, body=before.body, extra={**DRY_RUN, "next": [then]})
        if not session.agrees(before):
            return Report("setup", extra={"verdict": "nothing was changed", "applied": False})
        journal = carry_out(session, plan)
    try:
        found = base_for_new_environment(session.system, session.environ, str(folder / "bin" / "python"), abis)
    except DoctorError as error:
        raise with_way_back(error, journal) from None
    return Base(found, journal=journal)


def with_way_back(error: DoctorError, journal: str | None) -> DoctorError:
    """The error, with how the interpreter that was got is taken back."""
    if journal is not None:
        error.hint = "\n".join(
            part for part in (error.hint, f"the Python that was got stays; {_back(journal)}") if part
        )
    return error


def _back(journal: str) -> str:
    return f"take it back: ideepdoctor undo {journal}"


def _folder(session: Session, way: Way, minor: str) -> Path:
    """Where a tool puts the interpreter."""
    if way.tool == "pyenv":
        return pyenv_root(session.environ, way.program) / "versions" / way.release
    from ideepdoctor.treatment.state import state_folder

    return Path(state_folder(session.environ)) / "pythons" / f"conda-{minor}"
