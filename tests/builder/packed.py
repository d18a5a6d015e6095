"""A wheel packed from a staging folder of small libraries, without uv and without auditwheel."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from ideepdoctor.builder.levels import flags_through
from ideepdoctor.builder.wheel import pack
from ideepdoctor.model.build import BuiltWheel, Layout, March, Mkl, SourceTree, Tools
from ideepdoctor.system import Completed, RealSystem
from ideepdoctor.treatment.installers import tool_folder

COMMIT, MKLDNN_COMMIT = "0123456789" * 4, "abcdef0123" * 4


class Packer(RealSystem):
    """Writes for real; ``auditwheel show --json`` gets a prepared answer (None: the tool cannot be had)."""

    def __init__(self, cache: Path, found: Mapping[str, Any] | None) -> None:
        super().__init__()
        self.cache, self.found = cache, found
        self.commands: list[tuple[str, ...]] = []
        if found is not None:
            pins = (files("ideepdoctor") / "builder" / "auditwheel.txt").read_bytes()
            folder = tool_folder(str(cache), "auditwheel", pins)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "complete").touch()

    def run(self, argv: Sequence[str], **_options: Any) -> Completed:
        self.commands.append(tuple(argv))
        if self.found is None:
            return Completed(tuple(argv), 2, b"", b"error: error sending request: dns error", 0.1)
        assert argv[1:6] == ["-I", "-m", "auditwheel", "show", "--json"] and Path(argv[6]).is_file()
        return Completed(tuple(argv), 0, json.dumps(self.found).encode(), b"", 0.1)


V3 = March("x86-64-v3", "v3", flags_through(3))
LINUX = {"overall_tag": "linux_x86_64", "external_libs": {"libgomp.so.1": "/lib/libgomp.so.1", "libiomp5.so": None}}


def packed(
    staging: Path,
    output: Path,
    *,
    abi: str = "cp37m",
    version: str = "2.0.0.post3",
    tree: Path | None = None,
    march: March = V3,
    found: Mapping[str, Any] | None = LINUX,
    told: list[str] | None = None,
    numpy: str = "1.16.6",
) -> BuiltWheel:
    """Pack it."""
    top = tree or output / "no-tree"
    lines = [] if told is None else told
    return pack(
        Packer(output / "cache", found),
        str(staging),
        abi,
        SourceTree(str(top), COMMIT, str(top / "mkl-dnn"), MKLDNN_COMMIT, Layout.CMAKE, version, None),
        Tools("/env/bin/python", "/env/bin", numpy, "tools-digest", {}),
        Mkl("wheel", "/mkl/include", (), "mkl-digest"),
        march,
        str(output / "wheels"),
        lines.append,
        cache=str(output / "cache"),
    )
