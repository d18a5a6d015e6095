"""Time operations that are right anyway with and without the guard, in turn: they must take the same time.

    .venv/bin/python tests/benchmarks/certify_guard_ratio.py --python ENVIRONMENT/bin/python [--rounds 21]

Two processes stand by, one with the guard and one without, and take each case of certify's catalogue in turn, forward
and backward, so that what else the machine does falls on both. What counts is the processor's time, with one thread,
which others on the machine disturb less. A case runs as often as makes about 20 ms. Prints the median ratio of guarded
to unguarded for each operation, with its quartiles, and of all rounds together; and the ratio of operations of which
the guard looks at every element.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ideepdoctor.targets.target import payload_source

# Valid on Python 2.7: reads a case (JSON) in a line and tells the seconds of one pass; a number repeats the last case.
PROGRAM = r"""
import json, sys, time
space = {"__name__": "payload"}
exec(compile(open(sys.argv[1]).read(), "certify", "exec"), space)
lab = space["Lab"](False)
now = getattr(time, "process_time", None) or time.clock


def prepare(case):
    operation = space["OPERATIONS"][case["op"]]
    function = operation.make(lab.F, case.get("options") or {})
    arrays = space["arrays_for"](lab, case, operation)
    with lab.ideep():
        inputs = [space["laid_out"](lab, array, letter)[0] for array, letter in zip(arrays, space["letters"](case))]

    def once():
        with lab.ideep(), lab.chainer.using_config("train", True):
            marks = {}
            evaluation = space["Evaluation"](lab, case, operation.names, lambda phase: marks.update({phase: now()}))
            evaluation.run(function, inputs, lab.np.float32)
            end = now()
        # The gradient that arrives is made between the two.
        return marks["between"] - marks["forward"] + end - marks["backward"]

    return once


once = None
while True:
    line = sys.stdin.readline()
    if not line:
        break
    asked = json.loads(line)
    if isinstance(asked, dict):
        once = prepare(asked)
        once()
        spent = min(once(), once())
    else:
        spent = sum(once() for _ in range(asked))
    sys.stdout.write("%r\n" % spent)
    sys.stdout.flush()
"""

CASES: dict[str, list[dict[str, Any]]] = {
    "convolution": [
        {"op": "convolution_2d", "shapes": [[4, 64, 28, 28], [64, 64, 3, 3], [64]], "options": {"pad": 1}},
        {
            "op": "convolution_2d",
            "shapes": [[4, 64, 28, 28], [64, 64, 3, 3], [64]],
            "options": {"pad": 1},
            "inputs": "bw",
            "gradient": "b",
        },
    ],
    "deconvolution": [
        {"op": "deconvolution_2d", "shapes": [[2, 64, 14, 14], [64, 32, 4, 4]], "options": {"stride": 2}}
    ],
    "linear": [{"op": "linear", "shapes": [[64, 512], [512, 512], [512]], "inputs": "bw"}],
    "relu": [{"op": "relu", "shapes": [[8, 64, 28, 28]], "inputs": "b", "gradient": "b"}],
    "leaky_relu": [{"op": "leaky_relu", "shapes": [[8, 64, 28, 28]], "inputs": "b", "gradient": "b"}],
    "average_pooling": [
        {
            "op": "average_pooling_2d",
            "shapes": [[8, 64, 28, 28]],
            "options": {"ksize": 3, "stride": 2},
            "inputs": "b",
            "gradient": "b",
        }
    ],
    "max_pooling": [
        {
            "op": "max_pooling_2d",
            "shapes": [[8, 64, 28, 28]],
            "options": {"ksize": 3, "stride": 2},
            "inputs": "b",
            "gradient": "b",
        }
    ],
    "lrn": [{"op": "local_response_normalization", "shapes": [[4, 64, 28, 28]], "inputs": "b", "gradient": "b"}],
    "batch_norm": [{"op": "batch_normalization", "shapes": [[8, 64, 14, 14], [64], [64]], "inputs": "b"}],
    "concat": [{"op": "concat", "shapes": [[8, 64, 28, 28], [8, 32, 28, 28]], "inputs": "bb", "gradient": "b"}],
    "add": [{"op": "add", "shapes": [[8, 64, 28, 28], [8, 64, 28, 28]], "inputs": "bb", "gradient": "b"}],
    "sum of two": [{"op": "h + g", "shapes": [[8, 64, 28, 28], [8, 64, 28, 28]], "inputs": "bb", "gradient": "b"}],
    "lstm": [{"op": "lstm", "shapes": [[64, 256], [64, 1024]], "inputs": "bb"}],
}

LOOKED_AT = ("relu", "max_pooling")
"""The guard looks for NaN in what these return."""


class Worker:
    """A process that times a case when asked."""

    def __init__(self, python: str, program: Path, folder: str, guarded: bool) -> None:
        start = f"import sys; sys.path.append({folder!r}); import _ideepdoctor_guard\n" if guarded else ""
        env = {**os.environ, "OMP_NUM_THREADS": "1", "IDEEPDOCTOR_GUARD": "" if guarded else "off"}
        command = [python, "-c", start + PROGRAM, str(program)]
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, what: Any) -> float:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit("a process ended early")
        return float(line)


def measure(workers: dict[str, Worker], case: dict[str, Any], rounds: int) -> list[float]:
    """Ratios of guarded to unguarded, round by round; who begins changes."""
    times = max(1, round(0.02 / max(worker.ask(case) for worker in workers.values())))
    ratios = []
    for turn in range(rounds):
        order = list(workers) if turn % 2 else list(workers)[::-1]
        spent = {name: workers[name].ask(times) for name in order}
        ratios.append(spent["guarded"] / spent["unguarded"])
    return ratios


def quartiles(values: list[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.3f} (quartiles {low:.3f} to {high:.3f})"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True)
    parser.add_argument("--rounds", type=int, default=21)
    options = parser.parse_args()
    every: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "_ideepdoctor_guard.py").write_bytes(payload_source("guard"))
        program = Path(folder) / "certify"
        program.write_bytes(payload_source("certify"))
        workers = {
            name: Worker(options.python, program, folder, name == "guarded") for name in ("guarded", "unguarded")
        }
        for name, cases in CASES.items():
            ratios = [ratio for case in cases for ratio in measure(workers, case, options.rounds)]
            every += [] if name in LOOKED_AT else ratios
            print(f"{name:<16} {quartiles(ratios)}{' (looked at)' if name in LOOKED_AT else ''}")
        print(f"{'not looked at':<16} {quartiles(every)}")


if __name__ == "__main__":
    main()
