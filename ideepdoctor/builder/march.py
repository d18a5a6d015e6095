"""Which processors compiled code runs on: what the compiler itself says that a -march means."""

from __future__ import annotations

import re

from ideepdoctor.builder.levels import LOWEST, flags_of, flags_through, label_of, level_of, macros_of, processor_of
from ideepdoctor.errors import CouldNotCheck, UsageError
from ideepdoctor.model.build import March
from ideepdoctor.model.facts import Cpu
from ideepdoctor.rules.compat import lacking
from ideepdoctor.system import Completed, System

_SECONDS = 20.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]*")
_REFUSED = re.compile(r"(?i)\bmarch\b|unknown target cpu|bad value|unsupported argument")
_KNOWN = re.compile(r"(?:valid arguments to .*? are|valid target CPU values are): ?(.*)")
_TARGET = re.compile(r"^\s*-march=\s+(\S+)", re.MULTILINE)


class UnusableMarch(UsageError, ValueError):
    """A -march that the compiler does not know, or that ideep4py's source does not compile for."""

    code = "march"


def march_of(system: System, compiler: str, asked: str, cpu: Cpu) -> March:
    """Ask the compiler what a -march means.

    Args:
        system: starts the compiler.
        compiler: its path or name, such as ``c++`` (GCC, or one that takes GCC's options).
        asked: ``native`` or a name that its -march takes.
        cpu: of this machine, which ``native`` stands for.

    Raises:
        UnusableMarch: the compiler does not know it; it is below x86-64-v3; ``native`` and this processor is.
        CouldNotCheck: the compiler does not start, or fails otherwise.
    """
    if _NAME.fullmatch(asked) is None:
        raise UnusableMarch(f"{asked!r} is no name of a processor", hint="such as --march native or x86-64-v3")
    done = _ask(system, compiler, asked, "-dM", "-E", "-x", "c++", "-")
    if not done.ok:
        raise _refusal(done, compiler, asked)
    macros = macros_of(done.text())
    if "__x86_64__" not in macros:
        raise CouldNotCheck(
            f"{compiler} does not compile for x86-64 with -march={asked}",
            hint="iDeep is for x86-64 alone; look at what the name c++ stands for",
        )
    flags = flags_of(macros)
    level = level_of(flags)
    if level < LOWEST:
        lacks = ""
        if asked == "native" and (missing := lacking(cpu, flags_through(LOWEST))):
            lacks = f" (this processor lacks {', '.join(missing)})"
        raise UnusableMarch(
            f"-march={asked} is x86-64-v{level}: ideep4py's source compiles for x86-64-v{LOWEST} and higher{lacks}",
            hint="on a processor without AVX2 take the wheel of the index: ideepdoctor setup",
        )
    if asked != "native":
        return March(asked, label_of(asked, level, ""), flags)
    # A kernel older than the processor does not list all that it has; who has such a kernel cannot be asked for it.
    unlisted = lacking(cpu, flags) or ()
    listed = tuple(flag for flag in flags if flag not in unlisted)
    return March(asked, label_of(asked, level, _processor(system, compiler, macros)), listed)


def runs_on(march: March, cpu: Cpu) -> tuple[str, ...]:
    """Flags that a processor lacks for code of this -march; empty: it runs, or nothing is known of the processor."""
    return lacking(cpu, march.flags) or ()


def _ask(system: System, compiler: str, asked: str, *words: str) -> Completed:
    return system.run([compiler, f"-march={asked}", *words], timeout_seconds=_SECONDS)


def _processor(system: System, compiler: str, macros: frozenset[str]) -> str:
    """What the compiler calls this machine's processor. GCC tells; of another one the macros do."""
    told = _TARGET.search(_ask(system, compiler, "native", "-Q", "--help=target").text())
    return told[1] if told else processor_of(macros)


def _refusal(done: Completed, compiler: str, asked: str) -> UnusableMarch | CouldNotCheck:
    said = done.error_text()
    first = next((line for line in said.splitlines() if "error" in line.lower()), said.strip()[:300])
    if done.error or done.timed_out or _REFUSED.search(said) is None:
        return CouldNotCheck(
            f"the C++ compiler {compiler} does not answer: {first or f'it ended with {done.returncode}'}",
            hint="install one (Debian: apt install g++)",
            context={"standard error": said[-2000:]},
        )
    known = _KNOWN.search(said)
    hint = "such as --march native or x86-64-v3"
    return UnusableMarch(
        f"{compiler} knows no -march={asked}: {first}",
        hint=f"{hint}; it knows: {known[1].split(';')[0]}" if known else hint,
    )
