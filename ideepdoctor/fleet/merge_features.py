"""What a host is compared with its twins by, from its facts: small texts and numbers, nothing that is its own."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ideepdoctor.model.facts import ConvTiming, Facts, Smoke
from ideepdoctor.rules.loading import library, mapped_mkldnn

Value = str | Mapping[str, str] | None
"""A text; texts by name, where an absent name is a value too; None: not known."""

UNSET = "(none)"
"""What has no value: an unset variable, a package that is not installed."""
_ISA = re.compile(r"(avx|amx|sse4|fma|f16c|bmi|ssse3|movbe|abm|aes|pclmulqdq).*")
_OWN_VARIABLES = frozenset({"IDEEPDOCTOR_SET", "CONDA_PREFIX", "VIRTUAL_ENV"})
"""They say where an environment is and what the doctor set, which the values themselves show."""
STACK = (("python", "Python"), ("chainer", "Chainer"), ("ideep4py", "ideep4py"), ("numpy", "NumPy"))


@dataclass(frozen=True, slots=True)
class Measure:
    """A speed of a host; more is better.

    Attributes:
        what: in words: ``convolution (8,16,56,56), forward + backward``.
        unit: of the value.
        value: greater than 0.
    """

    what: str
    unit: str
    value: float


@dataclass(frozen=True, slots=True)
class Features:
    """What two hosts must have in common to be twins, what else they should, and how fast they are.

    Attributes:
        machine: processor model and number of CPUs: hosts of one machine should have the same versions.
        versions: of Python, Chainer, ideep4py and NumPy: hosts of one machine with the same ones are twins.
        values: what twins should have in common, by name.
        measures: what twins should be as fast in.
    """

    machine: Mapping[str, str]
    versions: Mapping[str, str]
    values: Mapping[str, Value]
    measures: tuple[Measure, ...]


def features_of(facts: Facts, smoke: Smoke | None, host: str) -> Features | None:
    """What a host is compared by; None where its processor or its packages are not known.

    Args:
        facts: of the host.
        smoke: its smoke test, where there was one.
        host: its name, which must not make it differ.
    """
    model = facts.cpu.model_name or facts.cpu.vendor
    if model is None or facts.cpu.logical_cpus is None or facts.packages is None:
        return None
    machine = {
        "processor": " ".join(model.split()),
        "CPUs": str(facts.cpu.logical_cpus),
        "machine": facts.platform.machine,
    }
    return Features(machine, _versions(facts), _values(facts, smoke, host), tuple(_measures(facts, smoke)))


def _versions(facts: Facts) -> dict[str, str]:
    found = {shown: facts.package(name) for name, shown in STACK[1:]}
    return {
        "Python": f"{facts.python.implementation} {facts.python.version}",
        **{shown: UNSET if package is None else package.version for shown, package in found.items()},
    }


def _values(facts: Facts, smoke: Smoke | None, host: str) -> dict[str, Value]:
    own = {name for name, _shown in STACK}
    flags, platform, limits = facts.cpu.flags, facts.platform, facts.limits
    variables = facts.variables.effective if facts.variables.effective is not None else facts.variables.inherited
    libc = " ".join(part for part in (platform.libc, platform.libc_version) if part)
    return {
        "MKL-DNN": _mkldnn(facts),
        "instructions": None if flags is None else " ".join(sorted(flag for flag in flags if _ISA.fullmatch(flag))),
        "kernel of the convolution": smoke.kernel if smoke else None,
        "threads": str(smoke.threads) if smoke and smoke.used is not None else None,
        "CPUs open to it": None if limits.affinity_cpus is None else str(len(limits.affinity_cpus)),
        "CPU quota": UNSET if limits.quota_cpus is None else f"{limits.quota_cpus:g}",
        "hypervisor": facts.cpu.hypervisor or UNSET,
        "system": platform.os_name,
        "kernel": platform.kernel,
        "libc": libc or None,
        "guard": _guard(facts),
        "variable": {
            name: value.replace(host, "HOST") if len(host) > 3 else value
            for name, value in variables.items()
            if name not in _OWN_VARIABLES
        },
        "package": {item.name: item.version for item in facts.packages or () if item.name not in own},
    }


def _mkldnn(facts: Facts) -> str | None:
    """Which MKL-DNN computes: what it is, whose, and its build; never where it lies."""
    found = facts.native
    if found is None or found.binding is None:
        return None
    path = mapped_mkldnn(found)
    if path is None:
        return UNSET
    item = library(found, path)
    if item is None:
        return None
    whose = "ideep4py's own" if item.own else f"of {item.owner}" if item.owner else "of nobody known"
    build = f", build {item.file.build_id[:12]}" if item.file.build_id else ""
    return f"{item.name}, {whose}{build}"


def _guard(facts: Facts) -> str | None:
    guard = facts.guard
    if guard is None or guard.corrections is None:
        return None if guard is None or guard.choice is None else "on" if guard.choice else "off"
    return ", ".join(item.name for item in guard.corrections if item.active) or UNSET


def _measures(facts: Facts, smoke: Smoke | None) -> list[Measure]:
    timing = smoke.timing if smoke else None
    found = [] if timing is None else _of_timing(timing)
    steps = facts.bench.steps if facts.bench else ()
    found += [Measure(f"{item.engine}, {item.subject}", "steps/s", _inverse(item.seconds)) for item in steps]
    return [item for item in found if math.isfinite(item.value) and item.value > 0]


def _of_timing(timing: ConvTiming) -> list[Measure]:
    return [
        Measure(f"smoke convolution {timing.case}", "GFLOP/s", timing.ideep_gflops),
        Measure(f"smoke convolution {timing.case}, iDeep against NumPy", "times", timing.ratio),
    ]


def _inverse(seconds: float) -> float:
    return 1 / seconds if seconds > 0 else 0.0
