"""What every command is given: the machine, the surroundings, and the two ways to talk to a person."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ideepdoctor.errors import UsageError
from ideepdoctor.model.findings import Judgement
from ideepdoctor.model.report import Report
from ideepdoctor.system import System
from ideepdoctor.trail import timed

if TYPE_CHECKING:
    from ideepdoctor.facts.collect import Scope
    from ideepdoctor.model.facts import Facts
    from ideepdoctor.model.plan import Plan
    from ideepdoctor.targets.target import Target
    from ideepdoctor.treatment.progress import Progress


@dataclass(frozen=True, slots=True)
class Session:
    """One run of a command.

    Attributes:
        system: starts processes and writes files.
        environ: the doctor's environment variables.
        cwd: the folder that relative paths refer to.
        progress: told of each step as it happens.
        agrees: shown a report with a plan, says whether to go on; raises UsageError where nobody can be asked.
        command_line: the words that started this run, for the journal.
    """

    system: System
    environ: Mapping[str, str]
    cwd: str
    progress: Progress
    agrees: Callable[[Report], bool]
    command_line: str = ""


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """How a command names its target.

    Attributes:
        python: path of an interpreter, a version, or an environment folder; None: the default order.
        emulator: words that the interpreter is started under (``qemu-x86_64 -cpu Haswell``).
        address: where it is: ``ssh:HOST``, ``docker:NAME``...; None: this machine.
    """

    python: str | None = None
    emulator: tuple[str, ...] = ()
    address: str | None = None

    @property
    def named(self) -> bool:
        """Whether a person named it."""
        return self.python is not None or self.address is not None


def find_target(session: Session, options: TargetOptions) -> Target:
    """Choose the target.

    Raises:
        UsageError: the one that was named is no Python, or there is no such place.
        CouldNotCheck: the place that was named is not reached, or has no Python that answers.
    """
    from ideepdoctor.targets.choose import resolve

    if options.address is None:
        return resolve(session.system, session.environ, options.python, emulator=options.emulator)
    from ideepdoctor.targets.address import CONDA, parse_address

    address = parse_address(options.address)
    if address.kind == CONDA:
        from ideepdoctor.targets.conda import conda_python

        if options.python is not None:
            raise UsageError("--target conda:NAME and --python exclude each other", hint="leave one of them out")
        python = conda_python(session.system, session.environ, address)
        found = resolve(session.system, session.environ, python, emulator=options.emulator)
        return replace(found, reason=f"asked for: {address.text}")
    from ideepdoctor.targets.remote import reach

    session.progress.detail(f"looking for Python at {address.text}")
    return reach(session.system, session.environ, address, options.python, emulator=options.emulator)


def refuse_elsewhere(command: str, options: TargetOptions) -> None:
    """Refuse a command that writes into its target, or is about the machine that it runs on, for one elsewhere.

    Raises:
        UsageError: the target is on another machine or in a container; says what to run there.
    """
    if options.address is None:
        return
    from ideepdoctor.targets.address import CONDA, parse_address

    address = parse_address(options.address)
    if address.kind == CONDA and command != "setup":
        return
    if address.kind == CONDA:
        raise UsageError(
            f"setup makes a new environment; it does not take {address.text}",
            hint="to make one from another Python: --python PATH; to change this one: --in-place --python PATH",
        )
    python = "" if options.python is None else f" --python {options.python}"
    raise UsageError(
        f"ideepdoctor {command} works on the machine that it runs on, not at {address.text}",
        hint=f"run it there, where the doctor is installed: ideepdoctor {command}{python}",
    )


@dataclass(frozen=True, slots=True)
class Person:
    """Whose target it is, for what may be shown to strangers: names that must not be in it."""

    home: str
    user: str
    host: str


def persons(session: Session, target: Target | None) -> tuple[Person, ...]:
    """The person who runs the doctor here, and, for a target elsewhere, the one who the target runs as there."""
    import platform

    environ = session.environ
    user = environ.get("USER") or environ.get("LOGNAME") or Path(environ.get("HOME", "")).name
    here = Person(environ.get("HOME", ""), user, platform.node())
    link = None if target is None else target.link
    if link is None:
        return (here,)
    return (here, Person(link.home, link.user, link.host), Person("", link.address.user, link.address.name))


def examine(session: Session, target: Target, scope: Scope | None = None) -> Facts:
    """Collect the facts of a target, all of them where no scope is given. Raises CouldNotCheck: it does not answer."""
    from ideepdoctor.facts.collect import FULL, collect

    session.progress.detail(f"examining {target.python}")
    return collect(session.system, target, session.environ, scope or FULL, cwd=session.cwd)


def model_place(session: Session, text: str) -> tuple[str, str]:
    """File and function of ``FILE:FUNCTION``. Raises UsageError."""
    path, colon, function = text.rpartition(":")
    if not colon or not path or not function.isidentifier():
        raise UsageError(f"{text!r} is not FILE:FUNCTION", hint="such as --model net.py:make")
    whole = Path(session.cwd, Path(path).expanduser())
    if not whole.is_file():
        raise UsageError(f"there is no file {whole}", hint="--model FILE:FUNCTION: a file of Python")
    return str(whole), function


def judge_all(facts: Facts, wanted: frozenset[str] | None = None) -> Judgement:
    """Apply every rule; report those that are wanted (None: all)."""
    from ideepdoctor.rules import RULES
    from ideepdoctor.rules.engine import judge

    with timed("stage", "judge the facts"):
        judgement = judge(facts, RULES, wanted)
    if not facts.target.address:
        return judgement
    from ideepdoctor.rules.elsewhere import finding_there

    return replace(judgement, findings=tuple(finding_there(facts.target, one) for one in judgement.findings))


def carry_out(session: Session, plan: Plan) -> str:
    """Apply a plan, journalled; return the name of the run. Raises as ``treatment.apply.apply_plan``."""
    from ideepdoctor.treatment.apply import apply_plan
    from ideepdoctor.treatment.state import state_folder

    state = state_folder(session.environ)
    return apply_plan(session.system, plan, state, session.progress, command=session.command_line)


def wanted_codes(
    select: tuple[str, ...], ignore: tuple[str, ...], codes: Sequence[str] | None = None
) -> frozenset[str] | None:
    """Turn ``--select`` and ``--ignore`` into codes.

    Args:
        select: codes (IDP305) or families (IDP3, 3xx); empty: all.
        ignore: the same; taken away.
        codes: to choose from; None: those of the rules about environments.

    Returns:
        The codes to report; None where all are.

    Raises:
        UsageError: a word that fits no rule, or nothing is left.
    """
    from ideepdoctor.rules import BUILD_RULES, RULES

    environments = [rule.code() for rule in RULES if rule not in BUILD_RULES]
    known = environments if codes is None else list(codes)
    if not select and not ignore:
        return None
    chosen = {code for word in select for code in _matching(word, known)} if select else set(known)
    left = frozenset(chosen - {code for word in ignore for code in _matching(word, known)})
    if not left:
        raise UsageError("--select and --ignore leave no rule to look at", hint="all codes: ideepdoctor explain")
    return left


def _matching(word: str, codes: list[str]) -> list[str]:
    prefix = word.strip().upper().rstrip("X")
    if not prefix.startswith("IDP"):
        prefix = f"IDP{prefix}"
    found = [code for code in codes if code.startswith(prefix)]
    if prefix == "IDP" or not found:
        raise UsageError(f"no rule fits {word!r}", hint="a code (IDP305) or a family (IDP3, 3xx); ideepdoctor explain")
    return found
