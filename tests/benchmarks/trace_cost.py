"""Time whole training steps with and without trace, in turn.

    .venv/bin/python tests/benchmarks/trace_cost.py --python ENVIRONMENT/bin/python [--rounds 15] [--net NAME]

The environment has Chainer with ideep4py. One process traced, one traced that records every call (``--chrome``), and
one untraced stand by and take a step in turn, so that what else the machine does falls on all. Prints the median time
of a step and the ratios, round by round, with their quartiles and range: of the time that passed, and of the time of
all processors together, which others on the machine disturb less.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from guard_cost import NETS, PROGRAM, Stepper, quartiles

from ideepdoctor.targets.target import payload_source

KINDS = ("untraced", "traced", "every call")
FEW_LAYERS = "FewLayers"
SMALL = PROGRAM.replace(
    'sizes = {"Plain"',
    '''class FewLayers(chainer.Chain):  # the worst case: calls that take little longer than their recording
    def __init__(self):
        super(FewLayers, self).__init__()
        with self.init_scope():
            self.a, self.b = L.Linear(None, 100), L.Linear(100, 100)

    def __call__(self, x):
        return self.b(F.relu(self.a(x)))


sizes = {"FewLayers": 16, "Plain"''',
).replace('net = {"Plain"', 'net = {"FewLayers": FewLayers, "Plain"')


def worker(python: str, start: str, records: str, net: str, batch: int, kind: str) -> Stepper:
    """A process that is traced, or not."""
    env = {**os.environ, "CHAINER_USE_IDEEP": "auto", "KMP_BLOCKTIME": "0", "IDEEPDOCTOR_GUARD": "off"}
    if kind != "untraced":
        env.update(PYTHONPATH=start, IDEEPDOCTOR_RUN="_ideepdoctor_trace", IDEEPDOCTOR_TRACE=records)
    if kind == "every call":
        env["IDEEPDOCTOR_TRACE_EVENTS"] = "1000000"
    return Stepper([python, "-c", SMALL, net, str(batch)], env)


def measure(python: str, folder: Path, net: str, batch: int, rounds: int) -> None:
    records = folder / net
    records.mkdir()
    workers = {kind: worker(python, str(folder / "start"), str(records), net, batch, kind) for kind in KINDS}
    seconds: dict[str, list[tuple[float, ...]]] = {kind: [] for kind in KINDS}
    for turn in range(rounds + 1):
        for kind in KINDS if turn % 2 else KINDS[::-1]:
            spent = workers[kind].step()
            if turn:
                seconds[kind].append(spent)
    for each in workers.values():
        each.end()
    if len(list(records.glob("*.rows0"))) != 2:
        sys.exit("what was to be traced left no records")
    print(f"{net}, batch {batch}")
    for index, what in enumerate(("passed", "of all processors")):
        series = {kind: [spent[index] for spent in found] for kind, found in seconds.items()}
        times = ", ".join(f"{kind} {1000 * statistics.median(spent):.2f}" for kind, spent in series.items())
        print(f"  milliseconds {what}: {times}")
        for kind in KINDS[1:]:
            ratios = [a / b for a, b in zip(series[kind], series["untraced"], strict=True)]
            print(f"    {kind} / untraced: {quartiles(ratios)}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--net", choices=(*NETS, FEW_LAYERS), action="append")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "start").mkdir()
        for source, file in (("run_start", "sitecustomize.py"), ("trace", "_ideepdoctor_trace.py")):
            (folder / "start" / file).write_bytes(payload_source(source))
        started = time.monotonic()
        for net in options.net or ("Plain", "BN", FEW_LAYERS):
            measure(options.python, folder, net, options.batch, options.rounds)
        print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
