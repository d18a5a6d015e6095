"""What is claimed of speed, measured: run on a quiet machine with

    python -m tests.benchmarks.speed_claims ENV [--batch 8] [--peer torch] [--nets alexnet,vgga] [--file RESULT.json]

ENV is an environment that ``ideepdoctor setup`` made. All engines take turns in one run of ``ideepdoctor bench``; each
claim is a ratio with its 95 % interval, and holds where the interval says so. Ends with 1 where a claim does not hold.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from ideepdoctor.model.bench import Result, Row
from ideepdoctor.proof.bench_file import read
from ideepdoctor.proof.statistics import Series, ratio_interval

FASTER = {"alexnet": 2.0, "vgga": 1.25}
"""How many times as fast as ideep4py's default an environment of setup's is at least, where the CPU is AMD's."""
NOISE = 0.03
"""What two runs of one setting may differ by here."""
OF_CEILING = {"vgga": 0.85, "overfeat": 0.85}
FROM_BATCH = 32
"""With fewer images the linear layers wait for their weights, hundreds of megabytes: no claim is made there."""
PEER = "torch"
BEATEN = ("alexnet", "vgga")


def measure(words: argparse.Namespace, path: Path) -> Result:
    """One interleaved run."""
    argv = [sys.executable, "-m", "ideepdoctor", "bench", "--python", words.env, "--format", "json", "-o", str(path)]
    argv += ["--net", words.nets, "--batch", str(words.batch), "--engine", "ideep,tuned,numpy", "--yes", "--no-details"]
    argv += ["--blocks", str(words.blocks)]
    for peer in words.peer:
        argv += ["--peer", peer]
    subprocess.run(argv, check=True)
    return read(str(path))


def series(row: Row) -> Series:
    """The steps of a row with their blocks."""
    return Series(row.steps, row.blocks)


def against(result: Result, over: str, under: str, claim: dict[str, float], name: str) -> list[tuple[bool | None, str]]:
    """Claims that ``over`` takes at least so many times the time of ``under``; None: measured without a claim."""
    said = []
    keys = result.keys()
    for key in keys:
        slow, fast = result.row(over, key), result.row(under, key)
        if slow is None or fast is None or not (slow.measured and fast.measured):
            continue
        ratio = ratio_interval(series(slow), series(fast))
        least = claim.get(key[0])
        holds = None if least is None else ratio.high >= least and ratio.median >= least * (1 - NOISE)
        text = f"{name} {key[0]} batch {key[1]}: {ratio.median:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"
        said.append((holds, text if least is None else f"{text}, claimed {least:.2f}"))
    return said


def of_ceiling(result: Result) -> list[tuple[bool | None, str]]:
    """How near each net comes to the best matrix product that was measured."""
    said = []
    for row in result.results:
        if row.engine == "tuned" and row.of_ceiling is not None:
            least = OF_CEILING.get(row.net) if row.batch >= FROM_BATCH else None
            text = f"of the ceiling ({result.ceiling.gflops:.0f} GFLOP/s) {row.net} batch {row.batch}: "
            text += f"{row.of_ceiling:.2f}, {row.gflops:.0f} GFLOP/s"
            said.append((None if least is None else row.of_ceiling >= least, text))
    return said


def main() -> int:
    """Measure (or read), judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("env")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--nets", default="alexnet,googlenet,vgga,overfeat,resnet50")
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--blocks", type=int, default=7)
    parser.add_argument("--file", help="a result file to judge instead of measuring")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = read(words.file) if words.file else measure(words, Path(folder) / "bench.json")
    never_slower = dict.fromkeys((net.net for net in result.nets), 1.0) | FASTER
    claims = against(result, "ideep", "tuned", never_slower, "as installed / after setup,")
    claims += against(result, "numpy", "tuned", {}, "NumPy / after setup,")
    for peer in (engine.id for engine in result.engines if engine.kind == PEER):
        claims += against(result, peer, "tuned", dict.fromkeys(BEATEN, 1.0), f"{peer} / after setup,")
    claims += of_ceiling(result)
    for holds, text in claims:
        print({True: "holds ", False: "FAILS ", None: "      "}[holds] + text)
    if not result.noise.quiet:
        print(f"the machine was not quiet: {'; '.join(result.noise.messages)}")
    return 1 if any(holds is False for holds, _ in claims) else 0


if __name__ == "__main__":
    sys.exit(main())
