"""The interpreter that ``build`` builds for."""

from __future__ import annotations

from ideepdoctor.builder.pins import MINORS
from ideepdoctor.commands.session import Session
from ideepdoctor.errors import NotPossibleHere
from ideepdoctor.model.facts import Interpreter

PLATFORM = "linux-x86_64"
PREFERRED = ("cp311", "cp310", "cp39", "cp38", "cp37m", "cp36m", "cp312", "cp313", "cp27mu", "cp27m", "cp35m")
"""First those that have Chainer but no ready wheel, newest first."""


def interpreter_for(session: Session, asked: str | None) -> Interpreter:
    """Choose.

    Args:
        session: this run.
        asked: a path, a version, a command or an environment; None: the best of ``PREFERRED`` on this machine.

    Raises:
        UsageError: what was asked for is no Python.
        NotPossibleHere: ideep4py cannot be built for it, or for none that is here.
    """
    from ideepdoctor.targets.asked import listing, look_up
    from ideepdoctor.targets.find import Found, discover, version_key

    def why_not(found: Found) -> str:
        who = found.identity
        if who.implementation != "CPython":
            return f"it is {who.implementation}, and ideep4py is for CPython"
        if who.platform != PLATFORM or who.bits != 64:
            return f"it is for {who.platform} of {who.bits} bits, and iDeep is for Linux x86_64"
        if who.libc is not None and not who.libc.startswith("glibc"):
            return f"its C library is {who.libc}, and MKL needs glibc"
        if who.abi not in MINORS:
            return f"it is Python {who.version} ({who.abi}); ideep4py builds for {_pythons()}"
        return ""

    if asked is not None:
        found = look_up(session.system, session.environ, asked, suitable=PREFERRED)
        if reason := why_not(found):
            raise NotPossibleHere(
                f"ideep4py cannot be built for {found.place.path}: {reason}",
                hint=listing(discover(session.system, session.environ)),
            )
        return found.interpreter
    everything = discover(session.system, session.environ)
    usable = [each for each in everything if not why_not(each)]
    if not usable:
        raise NotPossibleHere(
            f"no interpreter here that ideep4py builds for (CPython {_pythons()})", hint=listing(everything)
        )
    newest_first = sorted(usable, key=lambda each: version_key(each.identity.version), reverse=True)
    # What is no environment first: an environment may be gone tomorrow, and is the doctor's own, perhaps.
    best = min(newest_first, key=lambda each: (PREFERRED.index(each.identity.abi), each.identity.is_virtual))
    return best.interpreter


def _pythons() -> str:
    names = list(dict.fromkeys(MINORS.values()))
    return f"{', '.join(names[:-1])} and {names[-1]}"
