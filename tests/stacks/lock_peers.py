"""Write ideepdoctor/stacks/peers/*.toml: the peers of bench, pinned by hash, installed and run.

    python tests/stacks/lock_peers.py [NAME...]

What the index serves for Linux x86_64 is asked of uv (pip for Python 2.7 and 3.6); the environments are then made with
the product's own code, and a step of AlexNet is taken in each. Where this machine lacks a Python, the lock says so.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from ideepdoctor.model.plan import Requirement
from ideepdoctor.proof.peer_environments import Recipe, make
from ideepdoctor.proof.peers import KINDS
from ideepdoctor.proof.worker import Worker
from ideepdoctor.stacks.peer_catalog import Peer, peer_from_toml
from ideepdoctor.system import RealSystem
from ideepdoctor.targets.target import Target
from tests.stacks import lock
from tests.stacks.wanted import ABIS, COMMON, SIX, TYPING

FOLDER = lock.STACKS / "peers"
DOCTORS = ("3.14", "3.13", "3.12", "3.11")
"""Versions of Python that the doctor runs in."""

# Of 2.7, Intel's NumPy has a wheel for wide characters alone.
LEGACY_ABIS = {**ABIS, "2.7": ("cp27mu",)}
# Intel's NumPy for 3.7 needs glibc 2.17.
PLATFORMS = (*lock.PLATFORMS, "manylinux2014_x86_64", "manylinux_2_17_x86_64")
# Read from the NEEDED entries of the wheel's libraries; the test of the environment shows that none is missing.
CUDA = (
    "libcublas.so.13",
    "libcublasLt.so.13",
    "libcudnn.so.9",
    "libcufft.so.12",
    "libcufile.so.0",
    "libcupti.so.13",
    "libcurand.so.10",
    "libcusparse.so.12",
    "libcusparseLt.so.0",
    "libnccl.so.2",
    "libnvrtc.so.13",
    "libnvshmem_host.so.3",
)


@dataclass(frozen=True)
class WantedPeer:
    """A peer to be locked: its pins for each version of Python."""

    name: str
    label: str
    pins: Mapping[str, Mapping[str, str]]
    stand_ins: tuple[str, ...] = ()


def chainer(python: str, version: str, **more: str) -> dict[str, str]:
    """Chainer and what it needs but NumPy, for one Python."""
    pins = {"chainer": version, **COMMON[python], **SIX, **TYPING[python]}
    return pins | {name.replace("_", "-"): value for name, value in more.items()}


MKL_2019 = {"mkl": "2019.0", "intel_openmp": "2020.0.133", "icc_rt": "2020.0.133"}
MKL_2019 |= {"intel_numpy": "1.15.1", "mkl_fft": "1.0.6", "mkl_random": "1.0.1.1"}
MKL_2024 = {"mkl": "2024.2.2", "intel_openmp": "2024.2.2", "intel_cmplr_lib_rt": "2024.2.2"}
MKL_2024 |= {"intel_numpy": "1.21.4", "mkl_service": "2.4.0"}
TORCH = {
    "torch": "2.13.0",
    "nvidia-cuda-runtime": "13.0.96",
    "typing-extensions": "4.16.0",
    "sympy": "1.14.0",
    "mpmath": "1.3.0",
}
OPENCV = {
    "opencv-python-headless": "5.0.0.93",
    "numpy": "2.4.6",
    "onnx": "1.23.2",
    "protobuf": "7.36.2",
    "ml-dtypes": "0.6.0",
    "typing-extensions": "4.16.0",
}
WANTED = (
    WantedPeer("torch", "PyTorch {torch}", dict.fromkeys(DOCTORS, TORCH), CUDA),
    WantedPeer("opencv", "OpenCV {opencv-python-headless} DNN", dict.fromkeys(DOCTORS, OPENCV)),
    WantedPeer(
        "mkl",
        "Chainer {chainer} + NumPy {intel-numpy} with MKL {mkl}",
        {
            "3.7": chainer("3.7", "7.8.1", **MKL_2024),
            "3.6": chainer("3.6", "7.8.1", **MKL_2019),
            "2.7": chainer("2.7", "6.7.0", **MKL_2019),
        },
    ),
)


def of_index(pins: Mapping[str, str], python: str) -> tuple[list[Requirement], int]:
    """The wheels that uv takes for Linux x86_64, with their hashes, and their size in bytes."""
    words = ("--no-deps", "--python-version", python, "--python-platform", "x86_64-manylinux_2_28")
    words += ("--only-binary", ":all:", "--format", "pylock.toml")
    with tempfile.TemporaryDirectory(prefix="lock-") as scratch:
        asked = Path(scratch) / "asked.in"
        asked.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()))
        found = tomllib.loads(lock.run(lock.UV, "pip", "compile", "-q", *words, asked))
    requirements, size = [], 0
    for package in found["packages"]:
        # Several where a release has files for more than one C library: each is good.
        wheels = package["wheels"]
        digests = tuple(wheel["hashes"]["sha256"] for wheel in wheels)
        requirements.append(Requirement(package["name"], package["version"], digests))
        size += max(wheel["size"] for wheel in wheels)
    if {item.name for item in requirements} != set(pins):
        raise SystemExit(f"asked for {sorted(pins)}, found {sorted(item.name for item in requirements)}")
    return requirements, size


def of_downloads(pip: Path, folder: Path, pins: Mapping[str, str], python: str) -> tuple[list[Requirement], int]:
    """As ``of_index``, by downloading the files: for versions of Python that uv does not lock."""
    requirements, size = [], 0
    for name, version in sorted(pins.items()):
        digests: list[str] = []
        for abi in LEGACY_ABIS[python]:
            file = lock.download(pip, folder / python / name / abi, name, version, python, abi, PLATFORMS)
            size += file.stat().st_size if abi == LEGACY_ABIS[python][0] else 0
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            digests += [digest] if digest not in digests else []
        requirements.append(Requirement(name, version, tuple(digests)))
    return requirements, size


def table(python: str, requirements: Sequence[Requirement], download: int, installed: int, proved: str) -> str:
    """One lock's part of the TOML."""
    lines = [
        "",
        "[[lock]]",
        f'python = "{python}"',
        f"abis = {json.dumps(list(LEGACY_ABIS.get(python, ('cp' + python.replace('.', ''),))))}",
        f'installer = "{"virtualenv" if python == "2.7" else "uv"}"',
        f"download_bytes = {download}",
        f"installed_bytes = {installed}",
        f"proved = {json.dumps(proved)}",
        "[lock.requirements]",
    ]
    lines += [f"{item.name} = {json.dumps([item.version, *item.sha256])}" for item in requirements]
    return "\n".join(lines) + "\n"


def head(wanted: WantedPeer) -> str:
    """The TOML's beginning."""
    lines = ["# Written by tests/stacks/lock_peers.py; do not edit.", f"name = {json.dumps(wanted.name)}"]
    lines.append(f"label = {json.dumps(wanted.label)}")
    if wanted.stand_ins:
        lines += ["", "[stand_ins]", 'folder = "torch/lib"', 'model = "libtorch_global_deps.so"']
        lines += ['unneeded = ["libcudart.so.13"]', "names = [", *(f'    "{name}",' for name in wanted.stand_ins), "]"]
    return "\n".join(lines) + "\n"


def prove(peer: Peer, name: str, base: str) -> tuple[int, str]:
    """Make the environment of a peer's only lock, take a step; bytes on the disk, and what was seen."""
    system, kind = RealSystem(), KINDS[name]
    lock_here = replace(peer.locks[0], installed_bytes=peer.locks[0].download_bytes)
    recipe = Recipe(name, peer.label_of(lock_here), lock_here, base, kind.check, peer.stand_ins)
    with tempfile.TemporaryDirectory(prefix=f"peer-{secrets.token_hex(4)}-") as cache:
        python = make(system, [recipe], cache, print, lambda _plan: True)[name]
        installed = lock.tree_bytes(Path(python).parent.parent)
        with Worker(system, Target(python), kind.payload) as worker:
            request = {"do": "load", "net": "alexnet", "batch": 2, **kind.options}
            answer = worker.ask(request, timeout_seconds=300)
            steps = worker.ask({"do": "steps", "count": 1}, timeout_seconds=300)
        version = lock.python_version(Path(python))
    passes = "forward and backward" if steps["backward"] else "forward"
    versions = ", ".join(f"{key} {value}" for key, value in sorted(answer["versions"].items()))
    return installed, f"a step of alexnet, {passes}; {versions}; CPython {version} on {lock.cpu_vendor()}"


def interpreter(python: str) -> str | None:
    """A Python of this minor version that can make environments, or None."""
    found = lock.interpreter(python)
    probe = [str(found), "-c", f"import sys; assert sys.version_info[:2] == {tuple(map(int, python.split('.')))}"]
    return found if found and subprocess.run(probe, check=False).returncode == 0 else None


def one_lock(wanted: WantedPeer, python: str, pip: Path | None, scratch: Path) -> str:
    """Ask for, install and prove one lock; its part of the TOML."""
    pins = wanted.pins[python]
    if pip is None:
        requirements, download = of_index(pins, python)
    else:
        requirements, download = of_downloads(pip, scratch / wanted.name, pins, python)
    base, installed, proved = interpreter(python), 0, "untried: no interpreter"
    if base is not None:
        text = head(wanted) + table(python, requirements, download, 0, "being tried")
        installed, proved = prove(peer_from_toml(tomllib.loads(text)), wanted.name, base)
    print(f"{wanted.name} {python}: {download / 1e6:.0f} MB, {installed / 1e6:.0f} MB; {proved}", flush=True)
    return table(python, requirements, download, installed, proved)


def main(names: Sequence[str]) -> None:
    """Lock the peers of these names; all where none is given."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lock-") as scratch:
        for wanted in WANTED:
            if names and wanted.name not in names:
                continue
            legacy = any(python in ABIS for python in wanted.pins)
            pip = lock.downloader(Path(scratch) / "downloader") if legacy else None
            tables = [one_lock(wanted, python, pip, Path(scratch)) for python in wanted.pins]
            (FOLDER / f"{wanted.name}.toml").write_text(head(wanted) + "".join(tables))


if __name__ == "__main__":
    os.environ.pop("IDEEPDOCTOR_STATE_DIR", None)
    main(sys.argv[1:])
