"""Wheels of other packages that ship MKL-DNN or its relatives, unpacked as they are on PyPI, by hash.

They are fetched when first asked for and at most once per run; uv's cache keeps them between runs, so that a second
run only makes links. Those links share their data with uv's cache: change a copy, never a file of these folders.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Stranger:
    """One wheel, and where its libraries lie."""

    distribution: str
    sha256: str
    libraries: str
    """Folder of the libraries inside the unpacked wheel."""
    python: str = "3.7"

    @property
    def requirement(self) -> str:
        """The line of a requirements file that allows this wheel and no other."""
        return f"{self.distribution} --hash=sha256:{self.sha256}"


STRANGERS = {
    "0.12": Stranger(
        "ideep4py==1.0.4",
        "98e9b6a75dc45df4cb4aaa7530926d29c2b8c8b71c5626d94d8b2a10ec4c990a",
        "ideep4py/lib",
        python="3.6",
    ),
    "0.14": Stranger(
        "ideep4py==2.0.0.post3",
        "8f7931075c0eb15518c322c0599c76274d400e5ce287a77da3719d0e8c3ed4af",
        "ideep4py/lib",
        python="3.6",
    ),
    "0.19": Stranger("mxnet-mkl==1.5.0", "0ce9bf4a35312a6ef2f8276370969dea2317423487a170a90cd742cb5d9f5f4c", "mxnet"),
    "0.20.2": Stranger(
        "ngraph-core==0.26.0", "94cbeed3b25f9eb3838d6981cfda322e70417eb7bfe748ac848b72af02a48e5e", "lib"
    ),
    "0.21": Stranger("mxnet-mkl==1.6.0", "f7926f02dd7bee3c4500484764a83de67625f2f42bb3520eb5111b221739bda5", "mxnet"),
    "DNNL 1.3": Stranger(
        "paddlepaddle==1.8.5", "39d7a076f7f4d646813f97bc499ae78e7498b0e9ca777eb5b29a3e8fecb61ca7", "paddle/libs"
    ),
    "oneDNN 2.4": Stranger(
        "onednn-cpu-gomp==2021.4.0", "7bbf077522afcf3167ba71e50aaf49df23252a86a482916697c5e0b6979260af", "lib"
    ),
}
"""By the version of MKL-DNN inside. 0.14 is that of the cp36 wheel, which is another file than the cp37 one."""

Folder = Callable[[str], Path]
"""``folder("0.19")``: the folder of that stranger's libraries."""


def fetch(stranger: Stranger, folder: Path) -> Path:
    """Unpack a wheel into this folder, from uv's cache where it has it; return the folder of its libraries."""
    from uv import find_uv_bin

    folder.mkdir(parents=True)
    listed = folder / "requirement.txt"
    listed.write_text(f"{stranger.requirement}\n")
    target = folder / "unpacked"
    argv = [
        find_uv_bin(),
        "pip",
        "install",
        "--python",
        sys.executable,
        "--target",
        str(target),
        "--no-deps",
        "--quiet",
    ]
    argv += ["--python-version", stranger.python, "--python-platform", "x86_64-manylinux2014"]
    argv += ["--only-binary", ":all:", "--require-hashes", "-r", str(listed)]
    if subprocess.run([*argv, "--offline"], capture_output=True, timeout=300).returncode:
        subprocess.run(argv, check=True, timeout=600)
    return target / stranger.libraries


@pytest.fixture(scope="session", name="strangers")
def fetched_strangers(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """See ``Folder``."""
    known: dict[str, Path] = {}

    def folder(version: str) -> Path:
        if version not in known:
            parent = tmp_path_factory.mktemp("stranger")
            known[version] = fetch(STRANGERS[version], parent / version.replace(" ", "-"))
        return known[version]

    return folder
