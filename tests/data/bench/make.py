"""Make the example result files: ``python tests/data/bench/make.py``. Medians are of real runs; steps are drawn.

The medians of the small machine were measured on two cores of an AMD server with AVX-512; the other two machines are
made up around the proportions of a well-known talk (28 cores, 18 cores, a GPU) and say so in their names.
"""

from __future__ import annotations

import math
import random
import zlib
from dataclasses import replace
from pathlib import Path

from ideepdoctor.model.bench import (
    Ceiling,
    Engine,
    Layer,
    Machine,
    Method,
    Net,
    Noise,
    Reorder,
    Result,
    Row,
    Scaling,
    Sgemm,
    Theoretical,
    Tool,
)
from ideepdoctor.proof.bench_file import dumps
from ideepdoctor.proof.statistics import median_interval

HERE = Path(__file__).parent
NETS = {  # operations of one image forward, parameters
    "alexnet": (1.43e9, 61_100_840),
    "googlenet": (3.19e9, 13_378_280),
    "vgga": (15.2e9, 132_863_336),
    "overfeat": (5.6e9, 145_920_872),
    "resnet50": (8.2e9, 25_557_032),
}
VERSIONS = {"chainer": "7.8.1", "ideep4py": "2.0.0.post3", "numpy": "1.21.6"}
ENGINES = {
    "ideep": Engine("ideep", "Chainer 7.8.1 + iDeep 2.0.0.post3", "ideep", "3.7.16", VERSIONS, {}, 2),
    "tuned": Engine(
        "tuned",
        "Chainer 7.8.1 + iDeep 2.0.0.post3, tuned",
        "ideep",
        "3.7.16",
        VERSIONS,
        {"MKL_DEBUG_CPU_TYPE": "7", "OMP_NUM_THREADS": "2"},
        2,
        guard=True,
    ),
    "numpy": Engine("numpy", "Chainer 7.8.1, NumPy 1.21.6 with OpenBLAS", "numpy", "3.7.16", VERSIONS, {}, 2),
    "mkl": Engine(
        "mkl", "Chainer 7.8.1, NumPy 1.15.1 with MKL", "numpy", "3.6.15", {**VERSIONS, "numpy": "1.15.1"}, {}, 2
    ),
    "torch": Engine("torch", "PyTorch 2.13.0", "torch", "3.11.7", {"torch": "2.13.0"}, {}, 2),
    "opencv": Engine("opencv", "OpenCV 4.12.0 DNN", "opencv", "3.11.7", {"cv2": "4.12.0"}, {}, 2, forward_only=True),
    "caffe": Engine("caffe", "Caffe 1.1.6 with MKL-DNN", "caffe", "2.7.18", {"caffe": "1.1.6"}, {}, 28),
    "cupy": Engine("cupy", "Chainer 3.5, CuPy on P100", "cupy", "3.6.15", {"cupy": "2.5.0"}, {}, 1),
}
SMALL = {
    "alexnet": {"ideep": 0.347, "tuned": 0.110, "numpy": 0.54, "mkl": 0.60, "torch": 0.196, "opencv": 0.038},
    "googlenet": {"ideep": 0.304, "tuned": 0.275, "numpy": 2.55, "mkl": 2.4, "torch": 0.267, "opencv": 0.07},
    "vgga": {"ideep": 1.465, "tuned": 0.95, "numpy": 5.6, "mkl": 5.2, "torch": 1.40, "opencv": None},
    "overfeat": {"ideep": 0.89, "tuned": 0.385, "numpy": 1.43, "mkl": 1.5, "torch": 0.69},
    "resnet50": {"ideep": 1.06, "tuned": 1.04, "torch": 0.77},
}


def steps(median: float, engine: str, net: str, noise: float) -> tuple[list[float], list[int]]:
    """Seconds of four steps in each of five blocks; a block's luck is the machine's and hits every engine."""
    moments, chance = (random.Random(zlib.crc32(name.encode("ascii"))) for name in (net, engine + net))
    values, numbers = [], []
    for block in range(5):
        luck = moments.gauss(0, noise)
        for _ in range(4):
            values.append(median * math.exp(luck + chance.gauss(0, noise / 2)))
            numbers.append(block)
    return values, numbers


def row(engine: str, net: str, batch: int, seconds: float, ceiling: float | None, noise: float = 0.012) -> Row:
    """A measured row around a median."""
    values, blocks = steps(seconds, engine, net, noise)
    values = [round(value, 6) for value in values]
    part = 1.0 if ENGINES[engine].forward_only else 0.36
    forward = tuple(round(value * part, 6) for value in values)
    backward = () if part == 1.0 else tuple(round(v - f, 6) for v, f in zip(values, forward, strict=True))
    both = [f + b for f, b in zip(forward, backward, strict=True)] if backward else list(forward)
    seen = median_interval(both, blocks)
    flops = NETS[net][0] * batch * (1 if part == 1.0 else 3)
    gflops = flops / seen.median / 1e9
    return Row(
        engine,
        net,
        batch,
        forward=forward,
        backward=backward,
        blocks=tuple(blocks),
        median=seen.median,
        low=seen.low,
        high=seen.high,
        forward_median=sorted(forward)[len(forward) // 2],
        backward_median=sorted(backward)[len(backward) // 2] if backward else None,
        images_per_second=batch / seen.median,
        gflops=gflops,
        of_ceiling=None if ceiling is None else gflops / ceiling,
    )


def nets(names: list[str], batch: int) -> tuple[Net, ...]:
    """Nets with their operations."""
    return tuple(Net(name, batch, NETS[name][0] * batch, 2 * NETS[name][0] * batch, NETS[name][1]) for name in names)


def layers() -> tuple[Layer, ...]:
    """What a verbose run of AlexNet at batch 8 says, added up by problem."""
    shapes = [  # layer, Gflop of one pass, MB, ms forward, backward data, backward weights
        ("conv1", 1.12, 12.6, 4.6, 0.0, 5.2),
        ("conv2", 3.58, 12.1, 8.9, 9.6, 10.1),
        ("conv3", 1.79, 6.1, 4.2, 4.4, 5.0),
        ("conv4", 2.39, 6.2, 5.6, 5.8, 6.6),
        ("conv5", 1.59, 5.0, 3.8, 3.9, 4.5),
    ]
    found = []
    for name, gflop, megabytes, *times in shapes:
        passes = ("forward_training", "backward_data", "backward_weights")
        for propagation, milliseconds in zip(passes, times, strict=True):
            if milliseconds:
                found.append(
                    Layer(
                        "tuned", "alexnet", "convolution", milliseconds, "jit:avx512_common", propagation,
                        f"mb8_{name}", name, 1, gflop * 1e9, megabytes * 1e6,
                    )
                )  # fmt: skip
    for propagation, milliseconds in (("forward_training", 1.9), ("backward_data", 2.4)):
        found.append(
            Layer("tuned", "alexnet", "pooling", milliseconds, "jit:avx512_common", propagation, "", "", 3, None, 1.9e7)
        )
    found.append(Layer("tuned", "alexnet", "reorder", 2.2, "jit:uni", "", "", "", 14, None, 3.1e7))
    return tuple(found)


def small() -> Result:
    """The two cores, six engines, five nets."""
    rows = []
    for net, medians in SMALL.items():
        for engine, seconds in medians.items():
            if seconds is None:
                rows.append(Row(engine, net, 8, "failed", "needs 9.1 GB, 7.8 GB are free"))
            else:
                rows.append(row(engine, net, 8, seconds, 467.0))
    rows.append(Row("mkl", "resnet50", 8, "skipped", "not enough time left of --budget 10m"))
    return Result(
        id="20261130T162233Z-1a2b3c",
        started="2026-11-30T16:22:33Z",
        tool=Tool("ideepdoctor", "0.1.0"),
        seconds=312.4,
        machine=Machine("two-cores", "AMD EPYC", "AuthenticAMD", "avx512", 1, 2, 2, 2, None, 8_300_000_000),
        noise=Noise(True, 0.1, 2.0, 0.4, (3600.0, 4100.0), False, 3.4, ()),
        ceiling=Ceiling(
            (
                Sgemm("MKLML 2018.0.3", 467.0, 1536, 2, {"MKL_DEBUG_CPU_TYPE": "7"}),
                Sgemm("MKLML 2018.0.3", 240.0, 1536, 2, {"MKL_DEBUG_CPU_TYPE": "5"}),
                Sgemm("MKLML 2018.0.3", 88.0, 1536, 2, {}),
                Sgemm("OpenBLAS 0.3.17", 235.0, 1536, 2, {}),
                Sgemm("PyTorch 2.13.0", 205.0, 1536, 2, {}),
            ),
            467.0,
            Theoretical(524.0, "2 cores x 4.1 GHz x 64 flop per cycle (AVX-512, 2 FMA units)"),
        ),
        method=Method(2, 5, (0, 1), 1.0),
        engines=tuple(ENGINES[name] for name in ("ideep", "tuned", "numpy", "mkl", "torch", "opencv")),
        nets=nets(list(SMALL), 8),
        results=tuple(rows),
        layers=layers(),
        reorders=(Reorder("tuned", "alexnet", 0.023),),
        scaling=tuple(
            Scaling(engine, "alexnet", 8, threads, seconds, seconds * 0.985, seconds * 1.02)
            for engine, times in (("tuned", (0.187, 0.110)), ("torch", (0.33, 0.196)))
            for threads, seconds in enumerate(times, 1)
        ),
    )


def other(name: str, cores: int, factors: dict[str, float], when: str) -> Result:
    """A machine of the talk's kind: batch 8, times as factors of the small one's tuned iDeep."""
    rows = [
        row(engine, net, 8, SMALL[net]["tuned"] * factor * (1 + 0.15 * number), None)
        for number, net in enumerate(["alexnet", "googlenet", "vgga", "overfeat"])
        for engine, factor in factors.items()
    ]
    return Result(
        id=f"{when.replace('-', '').replace(':', '')}-0f0f0f",
        started=when,
        tool=Tool("ideepdoctor", "0.1.0"),
        seconds=100.0,
        machine=Machine(name, "Intel Xeon (made up)", "GenuineIntel", "avx512", 2, cores, 2 * cores, cores),
        method=Method(2, 5, (), 1.0),
        engines=tuple(ENGINES[engine] for engine in factors),
        nets=nets(["alexnet", "googlenet", "vgga", "overfeat"], 8),
        results=tuple(rows),
    )


def scaled(result: Result, factor: float, run: str, started: str) -> Result:
    """A later run of the same machine in which every step took ``factor`` times as long."""
    rows = []
    for item in result.results:
        if not item.measured:
            rows.append(item)
            continue
        forward, backward = (tuple(value * factor for value in part) for part in (item.forward, item.backward))
        times = {name: getattr(item, name) for name in ("median", "low", "high", "forward_median", "backward_median")}
        times = {name: None if value is None else value * factor for name, value in times.items()}
        rows.append(replace(item, forward=forward, backward=backward, **times))
    return replace(result, id=run, started=started, results=tuple(rows))


def interrupted(result: Result) -> Result:
    """The run as it is after Ctrl-C in its second net: no layers, no scaling."""
    rows = tuple(item for item in result.results if item.net == "alexnet" or item.engine == "ideep")[:8]
    return replace(
        result, id="20261130T170000Z-dead00", complete=False, results=rows, layers=(), scaling=(), reorders=()
    )


BIG = other("28-cores", 28, {"tuned": 0.11, "mkl": 9.0, "caffe": 0.15}, "2026-11-29T10:00:00Z")
MIDDLE = other("18-cores", 18, {"tuned": 0.16, "mkl": 5.5}, "2026-11-29T11:00:00Z")
GPU = other("gpu-server", 8, {"cupy": 0.05}, "2026-11-29T12:00:00Z")

if __name__ == "__main__":
    whole = small()
    for file, result in {
        "two-cores": whole, "28-cores": BIG, "18-cores": MIDDLE, "gpu": GPU, "interrupted": interrupted(whole)
    }.items():  # fmt: skip
        (HERE / f"{file}.json").write_text(dumps(result), "utf-8")
