"""Collect facts: run the probe in the target, and turn what it tells into facts."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ideepdoctor import __version__
from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.facts.answer import Answer
from ideepdoctor.facts.built import read_built
from ideepdoctor.facts.cpu import build_cpu
from ideepdoctor.facts.host import container_kind, parse_libc, parse_os_name
from ideepdoctor.facts.host_limits import with_host_limits
from ideepdoctor.facts.limits import Level, build_limits
from ideepdoctor.facts.outcomes import read_chainer, read_guard, read_imports, read_libraries, read_shadows, shadow_rows
from ideepdoctor.facts.packages import read_duplicates, read_packages
from ideepdoctor.facts.pip_settings import read_pip_settings
from ideepdoctor.facts.profile import read_profile
from ideepdoctor.facts.variables import read_variables
from ideepdoctor.model.facts import (
    Cpu,
    Facts,
    Interpreter,
    Limits,
    PipScript,
    Platform,
    Python,
    TargetRef,
)
from ideepdoctor.model.native import Native
from ideepdoctor.system import System
from ideepdoctor.targets.target import Target, run_payload
from ideepdoctor.trail import timed

CHILD_SECONDS = 30.0
"""For each child of the probe: importing Chainer takes 0.7 s here, minutes are a hang."""
EMULATED_CHILD_SECONDS = 180.0
_ROUNDS = 4
"""The probe's children come one round for the static facts and two for the imports; one more for the rest."""


@dataclass(frozen=True, slots=True)
class Scope:
    """How much is collected.

    Attributes:
        start: import modules and run operations; else static facts alone.
        deep: look for libraries on whole disks, and try every package that ships one in both orders of import.
        imports: what the modules say when they are imported.
        libraries: the shared libraries.
        interpreters: the other Pythons of this machine (never for a target on another machine).
    """

    start: bool = True
    deep: bool = False
    imports: bool = True
    libraries: bool = True
    interpreters: bool = True


FULL = Scope()
QUICK = Scope(start=False, imports=False)
BARE = Scope(start=False, imports=False, libraries=False, interpreters=False)
"""The interpreter, its machine and its packages."""


def collect(
    system: System,
    target: Target,
    environ: Mapping[str, str],
    scope: Scope = FULL,
    *,
    cwd: str | None = None,
    child_seconds: float | None = None,
) -> Facts:
    """Collect the facts of a target.

    Args:
        system: starts the processes.
        target: whose facts.
        environ: the environment that the user has; the target is started with it.
        scope: how much.
        cwd: folder in which the user would start Python; None: where the doctor was started. On another machine it
            is always where one lands there.
        child_seconds: time limit of each import; None: 30 s, under an emulator 180 s.

    Raises:
        CouldNotCheck: the target does not start, does not answer, or answers nonsense.
    """
    limit = child_seconds or (EMULATED_CHILD_SECONDS if target.emulator else CHILD_SECONDS)
    cwd = None if target.transport else cwd
    full = scope.imports
    request: dict[str, Any] = {
        "phase": "full" if full else "static",
        "quick": not full,
        "timeout_seconds": limit,
        "cwd": cwd,
    }
    with ThreadPoolExecutor(max_workers=2) as pool:
        others = pool.submit(_find, system, environ) if scope.interpreters and not target.transport else None
        libraries = None
        if scope.libraries:
            from ideepdoctor.facts.libraries import collect_native

            libraries = pool.submit(
                collect_native,
                system,
                target,
                environ,
                start=scope.start,
                deep=scope.deep,
                cwd=cwd,
                child_seconds=limit,
            )
        with timed("stage", "probe the target"):
            told = run_payload(system, target, "probe", request, timeout_seconds=limit * _ROUNDS + 30, env=environ)
        found = None if others is None else others.result()
    facts = read_facts(told, target, quick=not full, interpreters=found)
    if libraries is None:
        return facts
    try:
        native = libraries.result()
    except CouldNotCheck:
        if scope.imports or not scope.start:
            return facts  # what rests on the libraries is unknown then; ``libs`` says why
        raise
    return replace(facts, native=_with_pairs(system, target, environ, facts, native, scope, cwd=cwd, limit=limit))


def _with_pairs(
    system: System,
    target: Target,
    environ: Mapping[str, str],
    facts: Facts,
    native: Native,
    scope: Scope,
    *,
    cwd: str | None,
    limit: float,
) -> Native:
    """Try the packages that have a MKL-DNN beside ideep4py, where ideep4py itself works."""
    from ideepdoctor.facts.pairs import check_pairs, suspicious

    if not scope.start or native.started is None or native.started.first_op is None or not native.started.first_op.ok:
        return native
    wanted = suspicious(native.files, facts.packages or (), deep=scope.deep)
    if not wanted:
        return replace(native, pairs=())
    return replace(native, pairs=check_pairs(system, target, environ, wanted, cwd=cwd, child_seconds=limit))


def read_facts(
    told: Mapping[str, Any],
    target: Target,
    *,
    quick: bool,
    interpreters: tuple[Interpreter, ...] | None = None,
) -> Facts:
    """Turn the probe's answer into facts. Raises CouldNotCheck where it is not what a probe says."""
    answer = Answer(told)
    machine = answer.part("machine")
    cpu = _cpu(answer, machine)
    imports = answer.maybe_part("imports")
    outcomes, first_op = read_imports(imports, bool(target.emulator)) if imports else (None, None)
    return Facts(
        tool_version=__version__,
        collected_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        mode="quick" if quick else "full",
        target=TargetRef(target.python, target.transport, target.emulator, target.reason, target.address),
        platform=_platform(machine, answer.maybe_text("loader_help")),
        cpu=cpu,
        limits=_limits(machine, answer.maybe_text("executable_memory")),
        python=_python(answer.part("python")),
        variables=read_variables(answer.part("variables")),
        packages=read_packages(answer),
        duplicates=read_duplicates(answer),
        pip_settings=read_pip_settings(answer),
        imports=outcomes,
        first_op=first_op,
        shadows=read_shadows(imports) if imports else shadow_rows(answer, "possible_shadows"),
        chainer=read_chainer(imports) if imports else None,
        guard=read_guard(answer, imports),
        profile=read_profile(answer),
        libraries=read_libraries(imports) if imports else None,
        interpreters=interpreters,
        built=read_built(answer),
    )


def _find(system: System, environ: Mapping[str, str]) -> tuple[Interpreter, ...]:
    """Look for the other interpreters."""
    from ideepdoctor.targets.find import find_interpreters

    with timed("stage", "look for interpreters"):
        return find_interpreters(system, environ)


def _cpu(answer: Answer, machine: Answer) -> Cpu:
    """The processor."""
    found = build_cpu(
        machine.maybe_text("cpuinfo"),
        machine.maybe_text("topology") or "",
        answer.maybe_text("cpuid"),
        answer.maybe_text("loader_help"),
        answer.maybe_text("host_cpuid"),
    )
    signature = machine.maybe_text("modalias")
    return replace(found, signature=signature) if signature and not found.emulated else found


def _platform(machine: Answer, loader_help: str | None) -> Platform:
    """The operating system."""
    libc, version = parse_libc(machine.maybe_text("libc"), machine.maybe_text("loader"), loader_help)
    signs = machine.part("container")
    return Platform(
        system=machine.text("system"),
        machine=machine.text("machine"),
        kernel=machine.maybe_text("kernel"),
        os_name=parse_os_name(machine.maybe_text("os_release") or ""),
        libc=libc,
        libc_version=version,
        container=container_kind(
            files=signs.texts("files"),
            systemd=signs.maybe_text("systemd"),
            init=signs.maybe_text("init_container"),
            init_cgroup=signs.maybe_text("init_cgroup"),
            kubernetes=signs.flag("kubernetes"),
        ),
    )


def _limits(machine: Answer, executable_memory: str | None) -> Limits:
    """What the target may use, and what the system refuses it."""
    levels = tuple(
        Level(item.integer("version"), item.text("controller"), item.text_by_name("texts") or {})
        for item in machine.parts("cgroups")
    )
    limits = build_limits(
        machine.maybe_text("status"), machine.maybe_text("meminfo"), levels, machine.maybe_integer("disk_free_bytes")
    )
    return with_host_limits(limits, machine, levels, executable_memory)


def _python(part: Answer) -> Python:
    """The interpreter."""
    return Python(
        executable=part.text("executable"),
        real_path=part.text("real_path"),
        version=part.text("version"),
        implementation=part.text("implementation"),
        abi=part.text("abi"),
        bits=part.integer("bits"),
        prefix=part.text("prefix"),
        base_prefix=part.text("base_prefix"),
        kind=part.text("kind"),
        externally_managed=part.maybe_text("externally_managed"),
        purelib=part.maybe_text("purelib"),
        platlib=part.maybe_text("platlib"),
        scripts=part.maybe_text("scripts"),
        user_site=part.maybe_text("user_site"),
        pip_scripts=tuple(PipScript(*row) for row in part.rows("pip_scripts", 3)),
    )
