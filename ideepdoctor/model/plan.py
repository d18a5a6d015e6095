"""A plan is data: steps that say what they will do, how large it is, and whether it can be undone."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Reversible(StrEnum):
    """What undo can promise for a step."""

    FULL = "full"
    BEST_EFFORT = "best-effort"
    NO = "no"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One pinned distribution with the hashes it may have."""

    name: str
    version: str
    sha256: tuple[str, ...]

    def line(self) -> str:
        """The line of a requirements file."""
        return f"{self.name}=={self.version} " + " ".join(f"--hash=sha256:{digest}" for digest in self.sha256)


@dataclass(frozen=True, slots=True)
class CreateEnv:
    """Make a new virtual environment in a folder that does not exist or is empty."""

    path: str
    python: str
    """Interpreter to make it from."""
    tool: str
    """``uv`` (3.6 and later) or ``virtualenv`` (2.7 and 3.5)."""
    kind: str = field(default="create-env", init=False)
    reversible: Reversible = field(default=Reversible.FULL, init=False)

    @property
    def title(self) -> str:
        """One line for the plan."""
        return f"create environment {self.path} from {self.python}"


@dataclass(frozen=True, slots=True)
class Install:
    """Install pinned distributions by hash into an environment."""

    python: str
    """Interpreter of the environment."""
    requirements: tuple[Requirement, ...]
    tool: str
    """``uv`` or ``pip`` (the environment's own: 2.7 and 3.5)."""
    first: tuple[str, ...] = ("setuptools", "wheel")
    """Names that must be there before the others are built."""
    snapshot: tuple[str, ...] = ()
    """Folders to be copied before and put back by undo; empty for an environment of our own."""
    reinstall: tuple[str, ...] = ()
    """Names to be installed anew although the version is there (altered files)."""
    size_bytes: int = 0
    """Installed size, as far as known."""
    kind: str = field(default="install", init=False)

    @property
    def reversible(self) -> Reversible:
        """Full: with the snapshot, or with the environment that is deleted whole."""
        return Reversible.FULL

    @property
    def title(self) -> str:
        """One line for the plan."""
        names = ", ".join(f"{item.name} {item.version}" for item in self.requirements)
        return f"install by hash: {names}"


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Write a file whole; what was there before is kept for undo."""

    path: str
    content: str
    why: str
    mode: int = 0o644
    kind: str = field(default="write-file", init=False)
    reversible: Reversible = field(default=Reversible.FULL, init=False)

    @property
    def title(self) -> str:
        """One line for the plan."""
        return f"write {self.path}: {self.why}"


@dataclass(frozen=True, slots=True)
class EditBlock:
    """Put a marked block into a text file (a shell's rc file), or replace the one that is there."""

    path: str
    block: str
    """The lines between the markers, without them."""
    why: str
    kind: str = field(default="edit-block", init=False)
    reversible: Reversible = field(default=Reversible.FULL, init=False)

    @property
    def title(self) -> str:
        """One line for the plan."""
        return f"edit a marked block in {self.path}: {self.why}"


Step = CreateEnv | Install | WriteFile | EditBlock


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in the order of their execution."""

    title: str
    steps: tuple[Step, ...]
    treats: tuple[str, ...] = ()
    """Codes of the findings that it treats."""
