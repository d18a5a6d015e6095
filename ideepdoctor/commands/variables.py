"""``env``: the variables that are right for this machine, printed or written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ideepdoctor.commands.session import Session, TargetOptions, carry_out, examine, find_target
from ideepdoctor.errors import UsageError
from ideepdoctor.model.plan import EditBlock, Plan, Step, WriteFile
from ideepdoctor.model.report import Report

if TYPE_CHECKING:
    from ideepdoctor.model.facts import Facts
    from ideepdoctor.treatment.variables import Variable

_RC_FILES = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/config.fish", "tcsh": ".tcshrc", "csh": ".cshrc"}
_DIALECTS = {"fish": "fish", "tcsh": "csh", "csh": "csh"}
_FOR_HERE = ("github", "json")
"""Dialects without conditions: they get what holds on this machine alone."""


def variables(session: Session, options: TargetOptions) -> tuple[Facts, tuple[Variable, ...]]:
    """The variables recommended for a target on this machine.

    Raises:
        UsageError: the target is no Python.
        CouldNotCheck: it does not answer.
    """
    from ideepdoctor.facts.collect import BARE
    from ideepdoctor.treatment.variables import before_start, recommended

    facts = examine(session, find_target(session, options), BARE)
    return facts, (*recommended(facts), *before_start(facts))


def show(session: Session, options: TargetOptions, dialect: str) -> Report:
    """Print the variables.

    Args:
        session: this run.
        options: which Python.
        dialect: one of treatment.exports.FORMATS.
    """
    from ideepdoctor.treatment.exports import render
    from ideepdoctor.treatment.variables import for_any_machine

    facts, chosen = variables(session, options)
    data = [{"name": item.name, "value": item.value, "why": item.why} for item in chosen]
    text = render(chosen if dialect in _FOR_HERE else for_any_machine(chosen), dialect)
    return Report("env", facts=facts, text=text, extra={"variables": data})


def write(session: Session, options: TargetOptions, where: str, shell: str | None) -> Report:
    """Write the variables where they take effect, as a journalled and reversible plan.

    Args:
        session: this run.
        options: which Python.
        where: ``env`` (start-up file of the target's environment), ``rc`` (the shell's own start-up file), or the
            path of a shell start-up file.
        shell: dialect of that file (sh, fish, csh); None: by $SHELL or the file's name.
    """
    from ideepdoctor.treatment.leftover import startup_steps

    facts, chosen = variables(session, options)
    steps: tuple[Step, ...]
    if where == "env":
        if facts.python.purelib is None or facts.python.kind not in ("venv", "conda"):
            raise UsageError(
                f"{facts.python.executable} is no environment of its own",
                hint="write to your shell instead: ideepdoctor env --write rc",
            )
        steps = startup_steps(facts)
    else:
        steps = (_rc_step(session, chosen, where, shell),)
    steps = tuple(step for step in steps if not holds(step))
    if not steps:
        return Report("env", extra={"verdict": "nothing to write: it is there already", "applied": False})
    plan = Plan(f"variables for {facts.python.executable}", steps)
    before = Report("env", facts=facts, plan=plan)
    if not session.agrees(before):
        return Report("env", extra={"verdict": "nothing was changed", "applied": False})
    journal = carry_out(session, plan)
    return Report(
        "env",
        plan=plan,
        extra={"verdict": "written", "applied": True, "journal": journal, "next": [f"ideepdoctor undo {journal}"]},
    )


def holds(step: Step) -> bool:
    """Whether a file already is what the step would make of it."""
    from ideepdoctor.treatment.shellrc import put_block

    if not isinstance(step, EditBlock | WriteFile):
        return False
    try:
        text = Path(step.path).read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return False
    return text == (step.content if isinstance(step, WriteFile) else put_block(text, step.block))


def _rc_step(session: Session, chosen: tuple[Variable, ...], where: str, shell: str | None) -> EditBlock:
    from ideepdoctor.treatment.exports import render
    from ideepdoctor.treatment.variables import for_any_machine

    name = Path(session.environ.get("SHELL", "")).name
    if where == "rc":
        if name not in _RC_FILES or "HOME" not in session.environ:
            raise UsageError(
                f"no known start-up file for the shell {name or '(SHELL is not set)'}",
                hint="name the file: ideepdoctor env --write ~/.profile --format sh",
            )
        path = Path(session.environ["HOME"]) / _RC_FILES[name]
        dialect = shell or _DIALECTS.get(name, "sh")
    else:
        path = Path(session.cwd) / Path(where).expanduser()
        dialect = shell or _DIALECTS.get(path.suffix.lstrip("."), "csh" if path.name.endswith("cshrc") else "sh")
    if dialect not in ("sh", "fish", "csh"):
        raise UsageError(f"{dialect} is no shell", hint="a start-up file takes --format sh, fish or csh")
    return EditBlock(
        str(path), render(for_any_machine(chosen), dialect).rstrip("\n"), "variables for Chainer with iDeep"
    )
