"""What rules ask of the facts about packages, and the treatments that several of them share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ideepdoctor.model.facts import Facts, Outcome, Package
from ideepdoctor.model.findings import Evidence, FixSafety
from ideepdoctor.model.plan import Step
from ideepdoctor.rules.base import Unknown
from ideepdoctor.rules.compat import RELEASES, Pair, Release, built_window, is_built, numpy_window, pair, released
from ideepdoctor.rules.elsewhere import command_there

if TYPE_CHECKING:
    from ideepdoctor.stacks.catalog import Lock, Stack


def package(facts: Facts, name: str) -> Package | None:
    """The installed distribution of this normalised name, or None. Raises Unknown where packages could not be read."""
    if facts.packages is None:
        raise Unknown("the installed distributions could not be read")
    return facts.package(name)


def release(facts: Facts) -> Release | None:
    """The ideep4py that is planned, else the one that is installed; None where neither is a known release.

    A build of ours counts as the release that its source is.
    """
    if facts.planned_ideep4py is not None:
        return RELEASES.get(released(facts.planned_ideep4py))
    found = package(facts, "ideep4py")
    return None if found is None else RELEASES.get(released(found.version))


def is_build(facts: Facts) -> bool:
    """Whether the ideep4py that is planned, else the one that is installed, is a build of ours."""
    if facts.planned_ideep4py is not None:
        return is_built(facts.planned_ideep4py)
    return (found := facts.package("ideep4py")) is not None and is_built(found.version)


def needed_numpy(facts: Facts) -> tuple[str, str] | None:
    """Lowest and highest NumPy for the ideep4py of this environment; None where nothing is known."""
    if facts.built is not None and facts.planned_ideep4py is None:
        return built_window(facts.built.numpy)
    return numpy_window(facts.python.minor)


def installed_pair(facts: Facts) -> tuple[str | None, str | None]:
    """The installed releases of Chainer and ideep4py; None for one that is not there."""
    chainer, ideep4py = facts.package("chainer"), facts.package("ideep4py")
    return None if chainer is None else chainer.version, None if ideep4py is None else ideep4py.version


def outcome(facts: Facts, module: str) -> Outcome | None:
    """How the import of a module ended; None where it was not tried (quick mode, or not installed)."""
    return None if facts.imports is None else facts.imports.get(module)


def tried(facts: Facts, module: str) -> Outcome | None:
    """How the import of an installed module ended; None in quick mode. Raises Unknown where a full run lacks it."""
    result = outcome(facts, module)
    if result is None and facts.mode != "quick" and facts.planned_ideep4py is None:
        raise Unknown(f"the import of {module} was not tried")
    return result


def python_command(facts: Facts, arguments: str) -> str:
    """A command line that the reader can copy: the target's interpreter with these arguments."""
    command = " ".join([*facts.target.emulator, facts.python.executable, arguments])
    if facts.target.transport[:1] == ("ssh",):
        return command_there(facts.target, command)
    return " ".join([*facts.target.transport, command])


def metadata_evidence(facts: Facts, name: str) -> tuple[Evidence, ...]:
    """Where the version of a distribution was read, and how to see it."""
    found = facts.package(name)
    if found is None:
        return ()
    show = python_command(facts, f"-m pip show {name}")
    return (Evidence(f"{name} {found.version} is installed", found.location, show),)


def fix_command(facts: Facts, code: FixSafety = FixSafety.SAFE) -> str:
    """The command that treats a finding of this target."""
    unsafe = " --unsafe" if code is FixSafety.UNSAFE else ""
    return f"ideepdoctor fix{unsafe} --python {facts.python.executable}"


def cure_command(facts: Facts, safety: FixSafety) -> str:
    """The command for a finding about packages: ``fix`` where it treats it, else a new environment beside this one."""
    return new_environment_command(facts) if safety is FixSafety.MANUAL else fix_command(facts, safety)


def stack_fix(facts: Facts) -> FixSafety:
    """How safe it is to install what the stack nearest to the installed Chainer pins; MANUAL where there is none."""
    managed = facts.python.externally_managed is not None
    return FixSafety.MANUAL if _nearest_stack(facts) is None or managed else FixSafety.SAFE


def new_environment_command(facts: Facts) -> str:
    """The command that makes a new environment, with the interpreter where it is usable."""
    usable = facts.python.abi in {abi for item in RELEASES.values() for abi in item.abis}
    if not usable and is_build(facts):
        return build_command(facts) or "ideepdoctor setup"
    return f"ideepdoctor setup --python {facts.python.minor}" if usable else "ideepdoctor setup"


def build_command(facts: Facts) -> str | None:
    """The command that makes a new environment with an ideep4py built for this Python; None where that cannot be."""
    from ideepdoctor.stacks.catalog import all_stacks

    python = facts.python
    if python.implementation != "CPython" or python.bits != 64:
        return None
    locked = any(stack.lock_to_build(python.abi) is not None for stack in all_stacks())
    return f"ideepdoctor setup --build --python {python.minor}" if locked else None


def ideep4py_fix(facts: Facts) -> FixSafety:
    """How safe it is to bring ideep4py to the release that is right for the installed Chainer."""
    chainer, found = facts.package("chainer"), _nearest_stack(facts)
    if found is None or facts.python.externally_managed is not None:
        return FixSafety.MANUAL
    keeps = chainer is None or _keeps_chainer(chainer, found[0].ideep4py)
    return FixSafety.SAFE if keeps else FixSafety.UNSAFE


def ideep4py_steps(facts: Facts) -> tuple[Step, ...]:
    """Install the right ideep4py by hash; NumPy too where it is outside the window; Chainer only where it must be."""
    from ideepdoctor.rules.compat import outside

    chainer, numpy, found = facts.package("chainer"), facts.package("numpy"), _nearest_stack(facts)
    if found is None:
        return ()
    names = ["ideep4py"] if _keeps_chainer(chainer, found[0].ideep4py) else ["ideep4py", "chainer"]
    window = numpy_window(facts.python.minor)
    if numpy is None or (window is not None and outside(numpy.version, window)):
        names.append("numpy")
    return stack_steps(facts, names)


def stack_steps(facts: Facts, names: Iterable[str] | None) -> tuple[Step, ...]:
    """Install distributions as the stack nearest to the installed Chainer pins them (None: all of them but pip)."""
    from ideepdoctor.treatment.plan import install_steps

    found = _nearest_stack(facts)
    if found is None:
        return ()
    held = [item.name for item in found[1].requirements]
    return install_steps(facts, found[1], [name for name in (names or held) if name in held])


def variable_steps(facts: Facts) -> tuple[Step, ...]:
    """Write the start-up files: the recommended variables, the order of imports, and the guard."""
    from ideepdoctor.treatment.leftover import startup_steps

    return startup_steps(facts)


def guard_fix(facts: Facts) -> FixSafety:
    """Whether ``fix`` would bring the guard, or a newer one, and this environment would be right with it."""
    from ideepdoctor.treatment.leftover import guard_holds, wants_guard

    folder = facts.python.purelib or facts.python.platlib
    ours_to_change = folder is not None and facts.python.externally_managed is None
    helps = ours_to_change and facts.guard is not None and wants_guard(facts) is True and not guard_holds(facts)
    return FixSafety.SAFE if helps else FixSafety.MANUAL


def guard_command(facts: Facts) -> str | None:
    """The command after which the guard corrects this environment; None where nobody left it out."""
    if guard_fix(facts) is FixSafety.SAFE:
        return fix_command(facts)
    if facts.guard is not None and facts.guard.choice is False:
        return f"ideepdoctor guard enable --python {facts.python.executable}"
    return "unset IDEEPDOCTOR_GUARD" if variable(facts, "IDEEPDOCTOR_GUARD") else None


def variable(facts: Facts, name: str) -> str | None:
    """What a program of the target sees in a variable: the effective value where it is known, else the inherited."""
    known = facts.variables.inherited if facts.variables.effective is None else facts.variables.effective
    return known.get(name)


def set_by_user(facts: Facts, name: str) -> bool:
    """Whether the user has set a variable (a default of ours cannot change it)."""
    return name in facts.variables.inherited and name not in facts.variables.set_by_doctor


def variable_fix(facts: Facts, name: str) -> FixSafety:
    """A default cures a variable that is not set, and only in an environment of its own."""
    own = facts.python.kind in ("venv", "conda") and facts.python.externally_managed is None
    return FixSafety.SAFE if own and not set_by_user(facts, name) else FixSafety.MANUAL


def _keeps_chainer(chainer: Package | None, ideep4py: str) -> bool:
    return chainer is not None and pair(chainer.version, ideep4py) is Pair.RIGHT


def _nearest_stack(facts: Facts) -> tuple[Stack, Lock] | None:
    """The stack that is right here and changes the installed Chainer least; None where there is none."""
    from ideepdoctor.stacks.catalog import nearest

    chainer = facts.package("chainer")
    return nearest(facts.python.abi, facts.cpu, None if chainer is None else chainer.version)
