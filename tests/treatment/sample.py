"""Facts to plan with: a small healthy environment whose parts a test replaces."""

from __future__ import annotations

from collections.abc import Mapping

from ideepdoctor.model.facts import Cpu, Facts, Guard, Limits, Package, Platform, Python, TargetRef, Variables

SITE = "/env/lib/python3.7/site-packages"
AMD = Cpu(
    vendor="AuthenticAMD",
    cpuinfo_flags=("avx", "avx2", "sse2"),
    physical_cores=4,
    logical_cpus=4,
)
INTEL = Cpu(vendor="GenuineIntel", cpuinfo_flags=("avx", "avx2", "sse2"), physical_cores=4, logical_cpus=4)


def facts(
    *,
    cpu: Cpu = INTEL,
    limits: Limits | None = None,
    packages: Mapping[str, str] | None = None,
    abi: str = "cp37m",
    externally_managed: str | None = None,
    variables: Variables | None = None,
    guard: Guard | None = None,
) -> Facts:
    return Facts(
        tool_version="0",
        collected_at="2020-01-01T00:00:00Z",
        mode="full",
        target=TargetRef("/env/bin/python"),
        platform=Platform("Linux", "x86_64"),
        cpu=cpu,
        limits=limits or Limits(affinity_cpus=(0, 1, 2, 3)),
        python=Python(
            executable="/env/bin/python",
            real_path="/usr/bin/python3.7",
            version="3.7.16",
            implementation="CPython",
            abi=abi,
            bits=64,
            prefix="/env",
            base_prefix="/usr",
            kind="venv",
            externally_managed=externally_managed,
            purelib=SITE,
            platlib=SITE,
            scripts="/env/bin",
        ),
        variables=variables or Variables(),
        guard=guard,
        packages=tuple(Package(name, version, SITE) for name, version in (packages or {}).items()),
    )
