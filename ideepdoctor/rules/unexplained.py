"""What is said of a death that nothing explains: all that a report of it needs, and no guess."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ideepdoctor.model.facts import Facts, Outcome
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.model.outcome import AT_END
from ideepdoctor.rules.base import Rule
from ideepdoctor.rules.deaths import explained, how_it_ended
from ideepdoctor.rules.reproduce import again

_LAST_LINES = 5
_STACK_LINES = 10
_HANG_HINT = "a lock that nobody gives back, or a folder on a network that does not answer, would look like this"
_HINTS = {
    "SIGKILL": "SIGKILL comes from outside: a kernel that is out of memory, or a limit of a container or a batch job",
    "SIGSYS": "SIGSYS comes from a filter of system calls, as containers have them",
}


@dataclass(frozen=True, slots=True)
class Death:
    """Something that died of a cause that no rule knows.

    Attributes:
        what: the act, in words.
        needed: what should have happened.
        result: how it ended.
        program: Python code that does the same.
    """

    what: str
    needed: str
    result: Outcome
    program: str


class UnexplainedDeath(Rule):
    """A death of unknown cause; the rule's own docstring explains it."""

    severity = Severity.ERROR

    def report(self, facts: Facts, death: Death) -> Finding:
        """The finding of a death."""
        result = death.result
        return self.finding(
            found=ascii_text(f"{death.what}: {how_it_ended(result)}"),
            needed=death.needed,
            consequence=_consequence(result),
            next_step=f"ideepdoctor report --python {facts.python.executable} -o report.md",
            evidence=tuple(_evidence(facts, death)),
        )


def unexplained(what: str, needed: str, result: Outcome | None, program: str) -> Death | None:
    """The death of what went wrong for no known reason; None where it went well, was not tried, or it is known."""
    if result is None or result.ok or explained(result):
        return None
    if result.stack == (AT_END,):
        return Death(f"{what}, while Python ends", "an exit code of 0", result, program)
    return Death(what, needed, result, program)


def ascii_text(text: str) -> str:
    """A text in ASCII: other letters as escapes."""
    return text.encode("ascii", "backslashreplace").decode("ascii")


def _consequence(result: Outcome) -> str:
    hint = _HANG_HINT if result.timed_out else _HINTS.get(result.signal or "")
    return "the cause is not known: no rule explains it" + (f"; {hint}" if hint else "")


def _evidence(facts: Facts, death: Death) -> Iterator[Evidence]:
    """All that a report needs: how to see it again, how it ended, the last words, where, what was loaded, versions."""
    result = death.result
    yield Evidence(f"ended: {how_it_ended(result)}", None, again(facts, death.program))
    lines = [line.rstrip() for line in result.stderr_tail.splitlines() if line.strip()]
    if not lines:
        yield Evidence("standard error: nothing was printed")
    for line in lines[-_LAST_LINES:]:
        yield Evidence(f"standard error: {line}")
    for frame in result.stack[:_STACK_LINES]:
        yield Evidence(f"stack: {frame}")
    if not result.stack:
        yield Evidence(f"stack: not known, {_why_no_stack(facts, result)}")
    for path in result.mapped:
        yield Evidence(f"loaded: {path.rpartition('/')[2]}", path)
    yield Evidence(f"versions: {_versions(facts)}")


def _why_no_stack(facts: Facts, result: Outcome) -> str:
    if result.signal == "SIGKILL":
        return "a process cannot say anything when SIGKILL comes"
    if facts.python.version.startswith("2."):
        return "Python 2 has no faulthandler and a second run did not end in the same way"
    return "the process left none"


def _versions(facts: Facts) -> str:
    names = ("ideep4py", "chainer", "numpy")
    found = [f"{one.name} {one.version}" for name in names if (one := facts.package(name)) is not None]
    libc = f"{facts.platform.libc} {facts.platform.libc_version or ''}".strip()
    cpu = facts.cpu.model_name or "a processor of unknown model"
    return ", ".join([f"Python {facts.python.version}", *found, libc, cpu])
