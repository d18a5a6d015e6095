"""Compare what tune chose with the best of an exhaustive grid, interleaved, on a quiet machine.

    python tests/benchmarks/tune_exhaustive.py PYTHON [--net alexnet] [--batch 8] [--blocks 7] [--budget 300]

Every combination of the options of MKL's code, threads, layouts, places of threads and waiting is measured in short
blocks; the eight fastest, the default and tune's choice are then measured again in turn, and told as ratios with their
95 % intervals. Nothing is written into the environment. Ends with 1 where tune's choice is more than 5 % slower than
the best of the grid, by the lower end of the interval.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from ideepdoctor.commands.session import Session, TargetOptions, examine, find_target
from ideepdoctor.commands.tune import search
from ideepdoctor.commands.tune_environ import TunedEnviron
from ideepdoctor.facts.collect import BARE
from ideepdoctor.proof.statistics import Series, ratio_interval
from ideepdoctor.proof.tune_measure import Bench, Subject
from ideepdoctor.proof.tune_space import DEFAULT, Setting, dimensions
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.progress import Quiet

GRID = ("mkl", "threads", "layouts", "affinity", "blocktime")
WITHIN = 1.05


def main() -> int:
    """Search, measure the grid, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python")
    parser.add_argument("--net", default="alexnet")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--blocks", type=int, default=7)
    parser.add_argument("--budget", type=float, default=300.0)
    parser.add_argument("--dimensions", default=",".join(GRID), help="of the grid, with commas")
    asked = parser.parse_args()
    session = Session(RealSystem(), os.environ, str(Path.cwd()), Quiet(), lambda report: False)
    target = find_target(session, TargetOptions(asked.python))
    facts, subject = examine(session, target, BARE), Subject((asked.net,), asked.batch)
    chosen = search(session, target, facts, subject, asked.budget).choice
    print(f"tune: {chosen.setting.label} (gain {chosen.gain})", flush=True)
    space = [item for item in dimensions(facts) if item.name in asked.dimensions.split(",")]
    grid = [
        Setting(tuple(sorted((option for option in taken if option), key=lambda option: option.dimension)))
        for taken in product(*([None, *item.options] for item in space))
    ]
    bench = Bench(session.system, target, subject, TunedEnviron(os.environ, facts).variables, 0.5)
    try:
        times = {setting: seconds for setting in grid if (seconds := coarse(bench, setting)) is not None}
        best = sorted(times, key=times.__getitem__)[:8]
        print(f"grid: {len(times)} of {len(grid)} settings measured once; fastest: {best[0].label}", flush=True)
        return compare(bench, list(dict.fromkeys([*best, DEFAULT, chosen.setting])), chosen.setting, asked.blocks)
    finally:
        bench.close()


def coarse(bench: Bench, setting: Setting) -> float | None:
    """Median of a block of a setting; None where it cannot be measured."""
    answer = bench.measure([setting], 0)[setting]
    return None if isinstance(answer, str) else statistics.median(answer)


def compare(bench: Bench, settings: Sequence[Setting], chosen: Setting, blocks: int) -> int:
    """Measure in turn and print each setting's time by that of tune's choice; 1 where one is 5 % faster or more."""
    bench.keep = 4
    found: dict[Setting, tuple[list[float], list[int]]] = {setting: ([], []) for setting in settings}
    for block in range(blocks):
        for setting, answer in bench.measure(settings, block).items():
            if not isinstance(answer, str):
                found[setting][0].extend(answer)
                found[setting][1].extend([block] * len(answer))
    worst = 1.0
    for setting, (values, numbers) in sorted(found.items(), key=lambda row: statistics.median(row[1][0] or [9e9])):
        if not values:
            continue
        ratio = ratio_interval(Series(*found[chosen]), Series(values, numbers))
        worst = max(worst, ratio.low)
        mark = " <- tune" if setting == chosen else ""
        print(
            f"{1000 * statistics.median(values):8.1f} ms  tune's time / this: {ratio.median:.3f}"
            f" ({ratio.low:.3f} to {ratio.high:.3f})  {setting.label}{mark}"
        )
    verdict = "within" if worst <= WITHIN else "NOT within"
    print(f"tune's choice is {verdict} 5 % of the best of the grid")
    return 0 if worst <= WITHIN else 1


if __name__ == "__main__":
    sys.exit(main())
