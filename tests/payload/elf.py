"""Helpers of the tests of shared libraries: the payload as a module, and libraries made by the compiler."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

PAYLOAD = Path(__file__).parents[2] / "ideepdoctor" / "payload" / "libraries.py"


def payload_module() -> ModuleType:
    """The payload, loaded here; ``sys.path`` stays as it was."""
    spec = importlib.util.spec_from_file_location("ideepdoctor_payload_libraries", PAYLOAD)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.path", list(__import__("sys").path))
        spec.loader.exec_module(module)
    return module


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
