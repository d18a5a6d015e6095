"""Which stack ``setup`` means, and how an environment differs from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ideepdoctor.errors import UsageError
from ideepdoctor.model.facts import Facts
from ideepdoctor.rules.compat import released

if TYPE_CHECKING:
    from ideepdoctor.commands.setup import SetupOptions
    from ideepdoctor.stacks.catalog import Lock, Stack


def asked_abis(options: SetupOptions) -> tuple[str, ...] | None:
    """ABIs that the asked stack is locked for; None where nothing was asked. Raises UsageError where none fits."""
    from ideepdoctor.stacks.catalog import all_stacks

    if not (options.stack or options.chainer or options.ideep4py):
        return None
    fitting = [
        stack
        for stack in all_stacks()
        if options.stack in (None, stack.name)
        and options.chainer in (None, stack.chainer)
        and options.ideep4py in (None, stack.ideep4py)
    ]
    if not fitting:
        known = "\n".join(stack.name for stack in all_stacks())
        asked = " ".join(
            f"--{name} {value}"
            for name, value in (("stack", options.stack), ("chainer", options.chainer), ("ideep", options.ideep4py))
            if value
        )
        raise UsageError(f"no known stack has {asked}", hint=f"known stacks:\n{known}")
    return tuple(abi for stack in fitting for lock in stack.index_locks for abi in lock.abis)


def chosen(options: SetupOptions, abi: str, facts: Facts, *, built: bool) -> tuple[Stack, Lock]:
    """The stack and its lock. ``built``: also one whose ideep4py is to be built. Raises as ``catalog.choose``."""
    from ideepdoctor.stacks.catalog import choose

    return choose(abi, facts.cpu, name=options.stack, chainer=options.chainer, ideep4py=options.ideep4py, built=built)


def differences(facts: Facts, stack: Stack, lock: Lock) -> str:
    """What an environment lacks of a lock, in words; empty: nothing."""
    wanted = {item.name: item.version for item in lock.requirements} | {"ideep4py": stack.ideep4py}
    wrong = []
    for name, version in sorted(wanted.items()):
        package = facts.package(name)
        # What was built is what was asked for, as a wheel of the index is.
        if package is None or released(package.version) != version:
            wrong.append(f"{name} {'missing' if package is None else package.version}, not {version}")
    return "; ".join(wrong[:3])


def stack_data(stack: Stack, lock: Lock) -> dict[str, object]:
    """The stack for the report, JSON-ready."""
    return {
        "name": stack.name,
        "python": lock.python,
        "proved": lock.proved,
        "known": [*stack.known, *lock.known],
        "download_bytes": lock.download_bytes,
        "installed_bytes": lock.installed_bytes,
    }
