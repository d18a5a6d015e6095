"""Time ``ideepdoctor setup`` against the same by hand, interleaved in one run.

By hand: ``python -m venv``, ``pip install`` of the same pins (setuptools and wheel first, then all, by hash), then the
same smoke test. Both with warm caches: one round of each is thrown away first.

    .venv/bin/python tests/benchmarks/setup_time.py [--python 3.7] [--rounds 5]

Prints each round and the median ratio with its range.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ideepdoctor.stacks.catalog import Lock, all_stacks
from ideepdoctor.system import RealSystem
from ideepdoctor.targets.choose import base_for_new_environment

DOCTOR = [sys.executable, "-m", "ideepdoctor"]


def timed(*commands: list[str]) -> float:
    """Run the commands one after the other and return the seconds that they took together."""
    started = time.monotonic()
    for command in commands:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - started


def by_hand(python: str, lock: Lock, folder: Path) -> float:
    """Seconds for venv, pip and smoke."""
    env = folder / "by-hand"
    first = folder / "first.txt"
    everything = folder / "all.txt"
    first.write_text("\n".join(r.line() for r in lock.requirements if r.name in ("setuptools", "wheel")) + "\n")
    everything.write_text("\n".join(r.line() for r in lock.requirements) + "\n")
    pip = [str(env / "bin" / "python"), "-m", "pip", "install", "--require-hashes", "--disable-pip-version-check"]
    seconds = timed(
        [python, "-m", "venv", str(env)],
        [*pip, "-r", str(first)],
        [*pip, "--no-build-isolation", "-r", str(everything)],
        [*DOCTOR, "smoke", "--python", str(env)],
    )
    shutil.rmtree(env)
    return seconds


def with_doctor(python: str, folder: Path) -> float:
    """Seconds for setup, which ends with the same smoke test."""
    env = folder / "doctor"
    seconds = timed([*DOCTOR, "setup", "--no-tune", "--python", python, "--env", str(env)])
    shutil.rmtree(env)
    return seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default="3.7")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    base = base_for_new_environment(RealSystem(), os.environ, options.python)
    lock = next(lock for stack in all_stacks() for lock in stack.locks if base.abi in lock.abis)
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["IDEEPDOCTOR_STATE_DIR"] = str(folder / "state")
        by_hand(base.path, lock, folder)
        with_doctor(base.path, folder)
        for number in range(options.rounds):
            hand, doctor = by_hand(base.path, lock, folder), with_doctor(base.path, folder)
            ratios.append(doctor / hand)
            print(f"round {number + 1}: by hand {hand:.1f} s, setup {doctor:.1f} s, ratio {ratios[-1]:.2f}")
    print(f"setup / by hand: {statistics.median(ratios):.2f} (median; {min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
