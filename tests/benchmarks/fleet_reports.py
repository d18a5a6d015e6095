"""Reports of a fleet that does not exist, from the recorded machines: for tests, and to measure ``fleet merge``.

``python tests/benchmarks/fleet_reports.py FOLDER COUNT`` writes COUNT reports; with ``--measure`` it merges them too
and prints time and peak memory, for a tenth of them first.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from ideepdoctor.facts.serialize import facts_from_json, facts_to_json
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.report import Failure, Report
from ideepdoctor.render.json import envelope
from ideepdoctor.rules import RULES
from ideepdoctor.rules.engine import judge
from ideepdoctor.rules.loading import MKLDNN, own_file, stranger, taken
from ideepdoctor.rules.overlay import apply

HOSTS = Path(__file__).parents[1] / "hosts"
BIG = {"logical_cpus": 64, "physical_cores": 32, "model_name": "AMD EPYC 9354 32-Core Processor"}
SMALL = {"logical_cpus": 16, "physical_cores": 8, "model_name": "AMD EPYC 7232P 8-Core Processor"}
TIMING = {"case": "(8,64,56,56) 3x3", "repeats": 20, "numpy_seconds": 0.2, "ideep_seconds": 0.02}
FLAGS = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")

KINDS: tuple[tuple[str, float, Mapping[str, Any]], ...] = (
    ("healthy", 0.885, {}),
    ("old NumPy", 0.04, {"packages": {"numpy": "1.15.4"}}),
    ("preload", 0.02, {}),
    ("never", 0.02, {"variables": {"effective": {"CHAINER_USE_IDEEP": "never"}, "set_by_doctor": []}}),
    ("altered", 0.01, {}),
    ("other library", 0.005, {}),
    ("no AVX-512", 0.005, {}),
    ("threads", 0.005, {}),
    ("slow", 0.004, {}),
    ("unreachable", 0.004, {}),
    ("timeout", 0.001, {}),
    ("failed", 0.001, {}),
)
"""What is the matter with a host, how many are so, and an overlay on the recorded machine."""

DAMAGED = ("cut", "binary", "empty", "foreign", "newer", "nan", "words")


def reports(count: int, seed: int = 1, *, damaged: int = 0, older: int = 0) -> Iterator[tuple[str, bytes]]:
    """Names and contents of files.

    Args:
        count: hosts.
        seed: the same seed gives the same files.
        damaged: files that say nothing about a host, besides.
        older: hosts that have an older report, besides.
    """
    random_ = random.Random(seed)
    width = len(str(count))
    for number in range(1, count + 1):
        name = f"node{number:0{width}d}"
        kind = random_.choices([kind for kind, _, _ in KINDS], [share for _, share, _ in KINDS])[0]
        document = report(name, kind, random_)
        if number <= older:
            yield f"{name}.before.json", _text(_at(document, "2026-11-01"))
        yield f"{name}.json", _text(_at(document, "2026-11-02"))
    for number in range(damaged):
        how = DAMAGED[number % len(DAMAGED)]
        yield f"damaged-{how}-{number}.json", damage(how)


def report(name: str, kind: str, random_: random.Random) -> dict[str, Any]:
    """The report of one host, as ``fleet diagnose`` writes it, with a smoke test."""
    about = {"name": name, "status": "ok", "message": "", "seconds": round(random_.uniform(4, 9), 2)}
    if kind in ("unreachable", "timeout", "failed"):
        address = ".".join(str(random_.randrange(1, 250)) for _ in range(4))
        words = {
            "unreachable": f"ssh: connect to host {name} ({address}) port 22: No route to host",
            "timeout": "no answer within 120 seconds",
            "failed": "there is no Python 3.7 on the host",
        }
        failure = Failure(f"host-{kind}", words[kind], "look at the host", 3)
        return envelope(
            Report("diagnose", failure=failure, extra={"host": {**about, "status": kind, "message": words[kind]}})
        )
    place = random_.choice(("/home/user", f"/home/u{random_.randrange(40)}", "/scratch/envs"))
    big = random_.random() < 0.75
    document = json.loads(_made(kind, big).replace("/home/user", place))
    facts = document["facts"]
    facts["limits"]["memory_available_bytes"] = random_.randrange(1 << 33, 1 << 36)
    speed = (320 if big else 90) * random_.gauss(1, 0.015) * (0.55 if kind == "slow" else 1)
    ratio = 9.5 * random_.gauss(1, 0.02)
    document["proof"]["timing"] = facts["smoke"]["timing"] = {
        **TIMING,
        "ratio": ratio,
        "ratio_low": ratio * 0.97,
        "ratio_high": ratio * 1.03,
        "ideep_gflops": speed,
    }
    return {**document, "host": about}


def _at(document: Mapping[str, Any], day: str) -> dict[str, Any]:
    """The document as of another day."""
    made = dict(document)
    for part in ("target", "facts"):
        if made.get(part):
            made[part] = {**made[part], "collected_at": f"{day}T03:00:00Z"}
    return made


def write_example(folder: Path) -> None:
    """The fleet that the README shows: 120 hosts of one kind, of which a few are odd."""
    odd = {17: "other library", 40: "old NumPy", 41: "old NumPy", 64: "unreachable", 90: "slow", 101: "threads"}
    random_ = random.Random(11)
    random_.random = lambda: 0.0  # type: ignore[method-assign]  # one kind of machine
    folder.mkdir(parents=True)
    for number in range(1, 121):
        name = f"node{number:03d}"
        (folder / f"{name}.json").write_bytes(_text(report(name, odd.get(number, "healthy"), random_)))
    (folder / "node120.json").write_bytes(damage("cut"))


def damage(how: str) -> bytes:
    """A file that is no report of a host."""
    whole = _made("healthy", True).encode()
    newer = whole.replace(
        b'"ideepdoctor-report", "schema_version": "1"', b'"ideepdoctor-report", "schema_version": "2"'
    )
    assert newer != whole
    return {
        "cut": whole[: len(whole) // 2],
        "binary": bytes(range(256)) * 40,
        "empty": b"",
        "foreign": b'{"name": "left-pad", "version": "1.0.0"}',
        "newer": newer,
        "nan": whole.replace(b'"seconds": 0.5', b'"seconds": NaN', 1),
        "words": b"Traceback (most recent call last):\n",
    }[how]


@cache
def _made(kind: str, big: bool) -> str:
    """The report of a machine of which this is the matter, but for what each host has of its own."""
    cpu = BIG if big else SMALL
    overlay = next(overlay for name, _share, overlay in KINDS if name == kind)
    base = json.loads((HOSTS / "py37-healthy.json").read_text("utf-8"))
    cpus = {"affinity_cpus": list(range(int(cpu["logical_cpus"])))}
    data = apply(apply(base, {"cpu": cpu, "limits": cpus, "smoke": _smoke(int(cpu["logical_cpus"]))}), overlay)
    facts = facts_from_json(_SPECIAL.get(kind, lambda data: data)(data))
    judgement = judge(facts, RULES)
    made = envelope(Report("smoke", facts=facts, judgement=judgement, smoke=facts.smoke))
    return json.dumps({**made, "facts": facts_to_json(facts)})


def _smoke(threads: int) -> dict[str, Any]:
    ops = ("convolution", "convolution backward", "relu", "max_pooling", "linear", "concat")
    check = {"case": "(8,16,56,56)", "threads": threads, "status": "right", "used_ideep": True, "tolerance": 1e-4}
    return {
        "threads": threads,
        "used": True,
        "kernel": "jit:avx512_common",
        "checks": [{**check, "op": op, "max_relative_error": 1.2e-6} for op in ops],
        "timing": {**TIMING, "ratio": 10.0, "ratio_low": 9.5, "ratio_high": 10.5, "ideep_gflops": 300.0},
        "seconds": 2.5,
    }


def _preload(data: dict[str, Any]) -> dict[str, Any]:
    changes = {
        "variables": {
            "inherited": {"LD_PRELOAD": "/opt/other/libmkldnn.so.0"},
            "effective": {"LD_PRELOAD": "/opt/other/libmkldnn.so.0"},
        },
        "native": {
            "files": [own_file(), stranger()],
            "predicted": [taken(MKLDNN, "/opt/other/libmkldnn.so.0", "LD_PRELOAD", by="LD_PRELOAD")],
            "started": None,
        },
    }
    return apply(data, changes)


def _altered(data: dict[str, Any]) -> dict[str, Any]:
    changed = deepcopy(data)
    row = next(row for row in changed["packages"] if row["name"] == "ideep4py")
    path = f"{row['location']}/ideep4py/lib/libiomp5.so"
    row["altered"] = [{"path": path, "problem": "size", "expected": "1440317", "found": "0"}]
    return changed


def _other_library(data: dict[str, Any]) -> dict[str, Any]:
    changed = deepcopy(data)
    for row in changed["native"]["files"]:
        if row["kind"] == "mkldnn":
            row["file"]["build_id"] = "ffff000011112222333344445555666677778888"
    return changed


def _without_avx512(data: dict[str, Any]) -> dict[str, Any]:
    cpu = {
        name: [f for f in data["cpu"][name] if not f.startswith("avx512")] for name in ("cpuid_flags", "cpuinfo_flags")
    }
    return apply(data, {"cpu": {**cpu, "xcr0": 7}, "smoke": {"kernel": "jit:avx2"}})


def _threads(data: dict[str, Any]) -> dict[str, Any]:
    variable = {"OMP_NUM_THREADS": "4"}
    return apply(data, {"variables": {"inherited": variable, "effective": variable}, "smoke": {"threads": 4}})


_SPECIAL = {
    "preload": _preload,
    "altered": _altered,
    "other library": _other_library,
    "no AVX-512": _without_avx512,
    "threads": _threads,
}


def _text(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document).encode()


def facts_of(name: str) -> Facts:
    """The recorded machine, for what wants facts alone."""
    return facts_from_json(json.loads((HOSTS / f"{name}.json").read_text("utf-8")))


def write(folder: Path, count: int, seed: int = 1, *, damaged: int = 0, older: int = 0) -> int:
    """Write the files into a folder; returns their bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    total = 0
    for name, data in reports(count, seed, damaged=damaged, older=older):
        total += (folder / name).write_bytes(data)
    return total


def measured(folder: Path, *words: str) -> tuple[float, float, int]:
    """Merge a folder in a process of its own: seconds, peak MB of memory, exit code."""
    script = (
        "import resource, sys; from ideepdoctor.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: sys.stderr.write('PEAK %d' % resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", script, "fleet", "merge", str(folder), *words],
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - begun
    return seconds, int(done.stderr.rpartition("PEAK ")[2]) / 1024, done.returncode


def main() -> None:
    """Write reports; measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("count", type=int)
    parser.add_argument("--damaged", type=int, default=0)
    parser.add_argument("--older", type=int, default=0)
    parser.add_argument("--measure", action="store_true")
    asked = parser.parse_args()
    for count in (asked.count // 10, asked.count) if asked.measure else (asked.count,):
        folder = asked.folder / str(count) if asked.measure else asked.folder
        size = write(folder, count, damaged=asked.damaged, older=asked.older)
        print(f"{count} reports, {size / 1e6:.0f} MB, {size / count / 1e3:.0f} kB each")
        for form in ("text", "json", "html") if asked.measure else ():
            seconds, peak, code = measured(folder, "--format", form, "-o", str(asked.folder / f"{count}.{form}"))
            print(f"  {form}: {seconds:.1f} s, peak {peak:.0f} MB, exit code {code}")


if __name__ == "__main__":
    main()
