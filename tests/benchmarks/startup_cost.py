"""Time what the start-up file adds to a start of Python, and the guard to an import of Chainer.

    .venv/bin/python tests/benchmarks/startup_cost.py --python ENVIRONMENT [--rounds 41]

ENVIRONMENT is one that ``setup`` made. Printed are the milliseconds that the start-up file takes within a process (the
quickest of 15 runs of it), and the ratio of whole processes that import Chainer, with the guard and without what it
corrects, interleaved.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import time
from pathlib import Path

WITHIN = """
import sys, time, gc
def once():
    sys.modules.pop("_ideepdoctor_startup", None)
    start = time.perf_counter() if hasattr(time, "perf_counter") else time.time()
    import _ideepdoctor_startup
    return (time.perf_counter() if hasattr(time, "perf_counter") else time.time()) - start
print(min(once() for _ in range(15)) * 1e3)
"""


def wall(words: list[str], **environ: str) -> float:
    """Seconds of a process."""
    started = time.perf_counter()
    subprocess.run(words, check=True, env={**os.environ, **environ}, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True)
    parser.add_argument("--rounds", type=int, default=41)
    asked = parser.parse_args()
    python = f"{asked.python}/bin/python" if Path(asked.python).is_dir() else asked.python
    within = [
        float(subprocess.run([python, "-c", WITHIN], check=True, capture_output=True, text=True).stdout)
        for _ in range(9)
    ]
    low, middle, high = statistics.quantiles(within)
    print(f"start-up file, in a process that runs: {middle:.2f} ms (quartiles {low:.2f} to {high:.2f})")
    guarded, plain = [], []
    for _ in range(asked.rounds):
        guarded.append(wall([python, "-c", "import chainer"]))
        plain.append(wall([python, "-c", "import chainer"], IDEEPDOCTOR_GUARD="off"))
    low, middle, high = statistics.quantiles([a / b for a, b in zip(guarded, plain, strict=True)])
    print(f"import chainer, guard on / off: {middle:.3f} (quartiles {low:.3f} to {high:.3f})")


if __name__ == "__main__":
    main()
