"""Helpers of the tests that start programs with ``run``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

DOCTOR = str(Path(sys.executable).with_name("ideepdoctor"))
OURS = "import sys; print(sorted(name[13:] for name in sys.modules if name.startswith('_ideepdoctor_')))"
"""A program that tells which modules of ours it has."""


def run_words(python: str, *words: str | bytes) -> list[str | bytes]:
    return [DOCTOR, "run", "--python", python, "--", *words]


def start(words: list[Any], **options: Any) -> subprocess.CompletedProcess[bytes]:
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(words, capture_output=True, timeout=120, **options)


def program(folder: Path, text: str, name: str = "program.py") -> str:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return str(path)
