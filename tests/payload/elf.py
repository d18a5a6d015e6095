"""Helpers of the tests of shared libraries: the payload as a module, and libraries made by the compiler."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from ideepdoctor.targets.target import payload_source


def payload_module() -> ModuleType:
    """The payload with its parts, loaded here; ``sys.path`` stays as it was."""
    module = ModuleType("ideepdoctor_payload_libraries")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.path", list(sys.path))
        exec(compile(payload_source("libraries"), "libraries.py and its parts", "exec"), module.__dict__)
    return module


def joined_file(folder: Path) -> Path:
    """A file with the payload and its parts, for a process of its own."""
    path = folder / "joined_libraries.py"
    path.write_bytes(payload_source("libraries"))
    return path


def compiler() -> str:
    """The C compiler; the test is skipped where there is none."""
    found = shutil.which("gcc") or shutil.which("cc")
    if found is None:
        pytest.skip("no C compiler")
    return found


def make_library(path: Path, source: str = "", *options: str, needs: Sequence[Path] = (), soname: str = "") -> Path:
    """Compile a small shared library; ``needs`` are libraries that it is linked to by their SONAMEs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    given = path.parent / (path.name + ".c")
    given.write_text(source)
    argv = [compiler(), "-shared", "-fPIC", "-nostdlib", "-O1", "-o", str(path), str(given), "-Wl,--no-as-needed"]
    argv += [f"-Wl,-soname,{soname}"] if soname else []
    done = subprocess.run([*argv, *map(str, needs), *options], capture_output=True, text=True)
    given.unlink()
    assert done.returncode == 0, done.stderr
    return path
