"""What ``build`` prints between what was examined and the verdict. Pure: lines from JSON-ready data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_COST = (
    ("disk", "1.5 GB while it builds, 0.8 GB of that the source and what is compiled; the wheel stays"),
    ("time", "230 processor seconds for MKL-DNN, 13 to 38 for the extension, about a minute for the proof"),
)
_MKL = {
    "wheel": "of the ideep4py wheel of the same release, by hash",
    "none": "a small library of ours in its place; MKL-DNN computes everything itself",
    "auto": "both ways, and the better one is kept",
}


def _row(name: str, text: str) -> str:
    return f"  {name:<8} {text}"


def plan_lines(data: Mapping[str, Any]) -> Iterator[str]:
    """What a dry run tells: what would be fetched, made, and what it costs."""
    yield "build"
    ref = f" at {data['ref']}" if data["ref"] else ""
    yield _row("source", f"{data['source']}{ref}, with its submodule MKL-DNN")
    yield _row("tools", "cmake 3.18.4, swig 3.0.12, numpy, setuptools and wheel by hash, 40 MB")
    yield _row("mkl", _MKL.get(str(data["mkl"]), f"of the folder {data['mkl']}"))
    yield _row("march", f"{data['march']}")
    yield _row("jobs", f"{data['jobs']['count']} (by {data['jobs']['because']})")
    for name, text in _COST:
        yield _row(name, text)
    yield _row("proof", "smoke and certify in a fresh environment" if data["verify"] else "none (--no-verify)")
    yield _row("output", str(data["output"]))
    yield _row("cache", f"{data['cache']}/build")


def lines(data: Mapping[str, Any]) -> Iterator[str]:
    """What a build tells of the wheel that it made."""
    wheel = data["wheel"]
    yield "build"
    yield _row("wheel", wheel["path"])
    yield _row("sha256", wheel["sha256"])
    yield _row(
        "source", f"{data['source']} at {wheel['commit'][:17]}, MKL-DNN {wheel['mkldnn_commit'][:10] or 'as it came'}"
    )
    yield _row("made for", f"{wheel['tag']}, NumPy {wheel['numpy']} and later")
    yield _row("runs on", "processors with " + " ".join(wheel["cpu_flags"]))
    yield _row("mkl", data["choice"] or wheel["mkl"])
    for number, text in enumerate(wheel["proof"]):
        yield _row("proof" if number == 0 else "", text)
    spent = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in data["seconds"].items())
    yield _row("time", spent)
    yield _row("log", data["log"])
