"""Fake machines for the tests of targets/: files that look like interpreters, and a System that speaks for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.doubles import FakeSystem, payload_answer

SHIM = '#!/usr/bin/env bash\nset -e\nexport PYENV_ROOT="/nowhere"\nexec "/nowhere/libexec/pyenv" exec "${0##*/}" "$@"\n'


def identity(path: Path | str, version: str = "3.7.16", **changes: Any) -> dict[str, Any]:
    """What the ``identify`` payload would answer for a CPython of this version at this path."""
    major, minor = version.split(".")[:2]
    suffix = {"27": "mu", "35": "m", "36": "m", "37": "m"}.get(major + minor, "")
    prefix = str(Path(path).parent.parent)
    return {
        "version": version,
        "implementation": "CPython",
        "abi": f"cp{major}{minor}{suffix}",
        "bits": 64,
        "libc": "glibc 2.36",
        "platform": "linux-x86_64",
        "executable": str(path),
        "prefix": prefix,
        "base_prefix": prefix,
        **changes,
    }


class Machine:
    """A folder in the place of a machine: PATH, HOME and the cache lie in it; only its own files answer."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.system = FakeSystem()
        self.environ = {"PATH": str(root / "bin"), "HOME": str(root / "home"), "IDEEPDOCTOR_CACHE_DIR": str(root / "c")}
        (root / "home").mkdir()
        (root / "bin").mkdir()

    def file(self, path: str, text: str = "\x7fELF", mode: int = 0o755) -> Path:
        """A file, by default one that looks like a program."""
        made = self.root / path
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(text)
        made.chmod(mode)
        return made

    def python(self, path: str, version: str = "3.7.16", **changes: Any) -> Path:
        """An interpreter that answers."""
        made = self.file(path)
        self.system.on(str(made), payload_answer(identity(made, version, **changes)))
        return made

    def link(self, path: str, to: Path | str) -> Path:
        """A symbolic link."""
        made = self.root / path
        made.parent.mkdir(parents=True, exist_ok=True)
        made.symlink_to(to)
        return made

    def virtual(self, path: str, base: Path, version: str = "3.7.16") -> Path:
        """A virtual environment made from ``base``; returns its interpreter."""
        made = self.link(f"{path}/bin/python", base)
        other = self.link(f"{path}/bin/python3", "python")
        self.file(f"{path}/pyvenv.cfg", f"home = {base.parent}\n", 0o644)
        for python in (made, other):
            self.system.on(str(python), payload_answer(identity(python, version, base_prefix=str(base.parent.parent))))
        return made

    def started(self) -> set[str]:
        """The programs that were started."""
        return {argv[0] for argv in self.system.commands()}
