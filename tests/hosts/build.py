"""Build machines that nobody here has: raw texts of shapes/NAME.toml through the doctor's own readers.

    python tests/hosts/build.py [NAME ...]

A shape holds what the probe would have read on that machine, in the form in which such machines show it: the first
block of /proc/cpuinfo, os-release, control groups and so on. It is laid over what a probe really told of an environment
(raw/BASE.json, made by record.py) and read by ``facts.collect.read_facts``, as an answer from there would be. Without
names, the recorded machines get the fields that facts have had since, with their defaults. Fields of a shape:

    about      one line: which machine this is
    base       name of the environment (raw/BASE.json; its libraries are those of BASE.json)
    healthy    true: the environment has the variables that the doctor recommends for the machine
    topology   sockets, cores (of each socket) and threads (of each core): made into rows as Linux numbers them; or
               rows, as text
    cpuid      xcr0 (hexadecimal), hypervisor: CPUID's registers are made from vendor, family, model and flags of
               cpuinfo; ``lines``: as text; without this table nobody could run CPUID
    machine    the probe's part of that name
    python     what differs in the probe's part of that name
    variables  what the user has set
    executable_memory  what became of code that a process wrote and ran; "runs" where CPUID could be run
    facts      fields of the facts themselves that the probe does not bring
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ideepdoctor.facts.collect import read_facts
from ideepdoctor.facts.cpu import CPUID_FLAGS, parse_cpuinfo
from ideepdoctor.facts.serialize import facts_from_json, facts_to_json
from ideepdoctor.model.facts import Facts, Interpreter, Variables
from ideepdoctor.rules.overlay import apply
from ideepdoctor.targets.target import Target
from ideepdoctor.treatment.variables import recommended

HERE = Path(__file__).parent
SHAPES = HERE / "shapes"
KNOWN = frozenset(
    (
        "about",
        "base",
        "healthy",
        "topology",
        "cpuid",
        "machine",
        "python",
        "variables",
        "facts",
        "loader_help",
        "executable_memory",
    )
)
LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max stack size            8388608              unlimited            bytes
Max processes             63432                63432                processes
Max address space         unlimited            unlimited            bytes
"""
_MACHINE: dict[str, Any] = {
    "system": "Linux",
    "machine": "x86_64",
    "loader": "/lib64/ld-linux-x86-64.so.2",
    "modalias": "",
    "cgroups": [],
    "disk_free_bytes": 64 << 30,
    "host_limits": {
        "limits": LIMITS,
        "uid_map": "         0          0 4294967295\n",
        "shared_memory_bytes": 8 << 30,
        "prefix_noexec": False,
    },
    "container": {
        "files": [],
        "systemd": None,
        "init_cgroup": "0::/init.scope\n",
        "init_container": None,
        "kubernetes": False,
    },
}
"""What plain machines have in common."""


def main() -> None:
    """Write the named machines, or all; then the recorded ones get the fields that facts have had since."""
    for path in sorted(HERE.glob("*.json")):
        if not sys.argv[1:] and not path.is_symlink() and not (SHAPES / f"{path.stem}.toml").exists():
            path.write_text(filled(path), "utf-8")
    for path in sorted(SHAPES.glob("*.toml")):
        if not sys.argv[1:] or path.stem in sys.argv[1:]:
            (HERE / f"{path.stem}.json").write_text(built(path), "utf-8")


def filled(path: Path) -> str:
    """The text of a recorded machine's JSON file, as facts are written today."""
    facts = facts_from_json(json.loads(path.read_text("utf-8")))
    return json.dumps(facts_to_json(facts), indent=1, sort_keys=True) + "\n"


def built(path: Path) -> str:
    """The text of a machine's JSON file: a line for each part of the facts."""
    document = facts_to_json(machine(tomllib.loads(path.read_text("utf-8"))))
    rows = [f" {json.dumps(name)}: {_lines(document[name])}" for name in sorted(document)]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _lines(value: Any) -> str:
    """JSON with the items of the outermost object or list on lines of their own."""
    if isinstance(value, dict) and value:
        rows = (f"  {json.dumps(name)}: {json.dumps(value[name], sort_keys=True)}" for name in sorted(value))
        return "{\n" + ",\n".join(rows) + "\n }"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"  {json.dumps(item, sort_keys=True)}" for item in value) + "\n ]"
    return json.dumps(value)


def machine(shape: Mapping[str, Any]) -> Facts:
    """The facts of a shape. Raises KeyError or ValueError where the shape is none."""
    unknown = set(shape) - KNOWN
    if unknown:
        raise ValueError(f"unknown fields: {sorted(unknown)}")
    target = Target("/home/user/ideep/bin/python")
    found = read_facts(answer(shape), target, quick=False, interpreters=())
    python = found.python
    path = f"{python.base_prefix}/bin/python{python.minor}"
    libc = f"{found.platform.libc} {found.platform.libc_version}"
    source = "pyenv" if "/.pyenv/" in path else "conda" if python.kind == "conda" else "PATH"
    base = Interpreter(path, path, python.version, python.implementation, python.abi, python.bits, libc, source)
    same_kind = found.platform.system == "Linux" and found.platform.libc == "glibc"
    recorded = facts_from_json(json.loads((HERE / f"{shape['base']}.json").read_text("utf-8")))
    native = recorded.native if same_kind and found.platform.machine == "x86_64" else None
    facts = replace(
        found,
        tool_version=recorded.tool_version,
        collected_at="2026-01-01T00:00:00Z",
        target=replace(found.target, python=python.executable),
        interpreters=(base,) if same_kind else (),
        native=native,
    )
    if shape.get("healthy"):
        facts = replace(facts, variables=_recommended(facts))
    return facts_from_json(apply(facts_to_json(facts), shape.get("facts", {})))


def answer(shape: Mapping[str, Any]) -> dict[str, Any]:
    """What a probe would have told of a shape."""
    told: dict[str, Any] = json.loads((HERE / "raw" / f"{shape['base']}.json").read_text("utf-8"))
    told["machine"] = apply(_MACHINE, shape["machine"])
    if told["machine"]["system"] != "Linux":
        told["machine"]["host_limits"] = {}  # the probe asks Linux alone
    told["machine"]["topology"] = topology(shape.get("topology", {}))
    told["python"] = {**told["python"], **shape.get("python", {})}
    told["cpuid"] = None if "cpuid" not in shape else cpuid(told["machine"]["cpuinfo"], shape["cpuid"])
    told["host_cpuid"] = None
    told["executable_memory"] = shape.get("executable_memory", None if told["cpuid"] is None else "runs")
    told["loader_help"] = shape.get("loader_help")
    told["variables"] = {"inherited": shape.get("variables", {}), "effective": shape.get("variables", {})}
    return told


def _recommended(facts: Facts) -> Variables:
    chosen = {variable.name: variable.value for variable in recommended(facts)}
    return Variables({}, {**chosen, "IDEEPDOCTOR_SET": ",".join(chosen)}, tuple(sorted({*chosen, "IDEEPDOCTOR_SET"})))


def topology(told: Mapping[str, Any]) -> str:
    """Rows of ``processor socket core``; Linux counts the first thread of every core before any second one."""
    if "rows" in told:
        return str(told["rows"]).strip()
    cores = [(socket, core) for socket in range(told.get("sockets", 0)) for core in range(told["cores"])]
    places = [place for _ in range(told.get("threads", 1)) for place in cores]
    return "\n".join(f"{number} {socket} {core}" for number, (socket, core) in enumerate(places))


def cpuid(cpuinfo: str, told: Mapping[str, Any]) -> str:
    """Registers as the probe's CPUID child prints them, for what a block of /proc/cpuinfo says."""
    if "lines" in told:
        return str(told["lines"])
    info = parse_cpuinfo(cpuinfo)
    flags = {*(info.flags or ()), *told.get("more_flags", ())}
    registers: dict[tuple[int, int], list[int]] = {}
    for (leaf, subleaf, register), bits in CPUID_FLAGS.items():
        row = registers.setdefault((leaf, subleaf), [0, 0, 0, 0])
        row[register] |= sum(1 << bit for bit, name in bits.items() if name in flags)
    ebx, edx, ecx = _numbers((info.vendor or "").ljust(12)[:12])
    registers[0, 0] = [0xD, ebx, ecx, edx]
    registers[1, 0][0] = _signature(info.family or 0, info.model or 0)
    if "hypervisor" in told:
        registers[0x40000000, 0] = [0x40000001, *_numbers(str(told["hypervisor"]).ljust(12, "\0"))]
    lines = [
        f"{leaf:08x} {subleaf:x} " + " ".join(f"{number:08x}" for number in row)
        for (leaf, subleaf), row in sorted(registers.items())
    ]
    return "\n".join([*lines, *([f"xcr0 {told['xcr0']}"] if "xcr0" in told else [])])


def _signature(family: int, model: int) -> int:
    """CPUID leaf 1, eax, for a family and a model."""
    base = min(family, 15)
    return (family - base) << 20 | model >> 4 << 16 | base << 8 | (model & 15) << 4


def _numbers(letters: str) -> list[int]:
    return [int.from_bytes(letters[start : start + 4].encode("ascii"), "little") for start in (0, 4, 8)]


if __name__ == "__main__":
    main()
