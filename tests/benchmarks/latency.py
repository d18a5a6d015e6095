"""Time what a person waits for: ``--help`` against a bare import of typer and rich, ``diagnose``, ``libs``.

    .venv/bin/python tests/benchmarks/latency.py --python ENVIRONMENT [--rounds 11]

Interleaved in one run; prints medians with their range and the ratio of --help to the bare import.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

DOCTOR = [sys.executable, "-m", "ideepdoctor"]


def seconds(command: list[str]) -> float:
    """Wall time of one run."""
    started = time.monotonic()
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - started


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True)
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args()
    commands = {
        "import typer, rich": [sys.executable, "-c", "import typer, rich"],
        "ideepdoctor --help": [*DOCTOR, "--help"],
        "diagnose --quick": [*DOCTOR, "diagnose", "--quick", "--python", options.python],
        "diagnose": [*DOCTOR, "diagnose", "--python", options.python],
        "libs": [*DOCTOR, "libs", "--python", options.python],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(options.rounds + 1):
        for name, command in commands.items():
            times[name].append(seconds(command))
    for name, found in times.items():
        kept = found[1:]
        print(f"{name:<20} {statistics.median(kept):.3f} s (median; {min(kept):.3f} to {max(kept):.3f})")
    ratios = [a / b for a, b in zip(times["ideepdoctor --help"][1:], times["import typer, rich"][1:], strict=True)]
    print(f"--help / bare import: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
