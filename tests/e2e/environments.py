"""Real environments for the end-to-end tests: made once per run, copied before they are broken.

Known-good ones are made by ``ideepdoctor setup`` itself. A copy of an environment is an environment of its own only
for its interpreter (``bin/python``), which is all that these tests start.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

QEMU = "qemu-x86_64"


@dataclass(frozen=True)
class Answer:
    """What a run of the doctor's command line gave."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """Standard output as the one JSON document that it must be."""
        return json.loads(self.stdout)

    def codes(self, *severities: str) -> list[str]:
        """Codes of the findings of these severities (none named: errors and warnings)."""
        wanted = severities or ("error", "warning")
        return sorted({f["code"] for f in self.document["findings"] if f["severity"] in wanted})


def doctor(
    *words: str,
    environ: Mapping[str, str] | None = None,
    cwd: Path | str | None = None,
    unset: Sequence[str] = (),
    timeout_seconds: float = 300,
    stdin: str | None = None,
) -> Answer:
    """Run ``ideepdoctor`` as a user would, in a process of its own."""
    env = {name: value for name, value in os.environ.items() if name not in unset}
    env.update(environ or {})
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ideepdoctor")), *words],
        env=env,
        cwd=cwd,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def copy_environment(source: Path, destination: Path) -> Path:
    """Copy an environment, links as links, and make its commands start the copy; return the copy."""
    shutil.copytree(source, destination, symlinks=True)
    for script in (destination / "bin").iterdir():
        text = b"" if script.is_symlink() else script.read_bytes()
        if text.startswith(b"#!") and str(source).encode() in text:
            script.write_bytes(text.replace(str(source).encode(), str(destination).encode()))
    return destination


def uv(*words: str) -> None:
    """Run uv's pip interface with copies instead of links, so that a broken file cannot reach uv's cache."""
    from uv import find_uv_bin

    subprocess.run(
        [find_uv_bin(), *words, *([] if "uninstall" in words else ["--link-mode=copy"]), "--quiet"],
        check=True,
        timeout=300,
    )


def pip_install(environment: Path, *requirements: str, options: Sequence[str] = ()) -> None:
    """Install into an environment without looking at dependencies, to break it on purpose."""
    uv("pip", "install", "--python", str(environment / "bin" / "python"), "--no-deps", *options, *requirements)


def site_packages(environment: Path) -> Path:
    """The site-packages folder of an environment."""
    [found] = (environment / "lib").glob("python*/site-packages")
    return found
