"""A plan is data: steps that say what they will do, how large it is, and whether it can be undone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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
class PackageSource:
    """Where distributions come from; by default the index that the machine is set to."""

    find_links: tuple[str, ...] = ()
    """Folders of wheels and archives (a wheelhouse) that are looked through first."""
    no_index: bool = False
    """Nothing but ``find_links``: no network is used."""
    index_url: str | None = None
    """A mirror instead of the index that the machine is set to; without its credentials (``***``), which are never kept
    and are asked of the environment when the mirror is used."""

    @property
    def words(self) -> str:
        """Where from, short; empty for the index that the machine is set to."""
        places = [*self.find_links, *([self.index_url] if self.index_url else [])]
        return ", ".join(places or (["the caches"] if self.no_index else []))


@dataclass(frozen=True, slots=True)
class CreateEnv:
    """Make a new environment in a folder that does not exist or is empty: a virtual one, or a Python of its own."""

    path: str
    python: str
    """Interpreter to make it from; of a Python of its own, the tool's program."""
    tool: str
    """``uv`` (3.6 and later) or ``virtualenv`` (2.7 and 3.5); ``conda``, ``mamba``, ``micromamba`` or ``pyenv``."""
    release: str = ""
    """Of the Python that one of the last four gets, such as 3.7; empty for a virtual environment."""
    source: PackageSource = field(default_factory=PackageSource)
    """Where the tool itself comes from, where it must be fetched (virtualenv)."""
    kind: str = field(default="create-env", init=False)
    reversible: Reversible = field(default=Reversible.FULL, init=False)

    @property
    def title(self) -> str:
        """One line for the plan."""
        if self.release:
            return f"get Python {self.release} with {self.tool} ({self.python}) into {self.path}"
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
    source: PackageSource = field(default_factory=PackageSource)
    """Where the files come from."""
    remove: tuple[str, ...] = ()
    """Names to be uninstalled; only with a snapshot."""
    kind: str = field(default="install", init=False)

    @property
    def reversible(self) -> Reversible:
        """Full: with the snapshot, or with the environment that is deleted whole."""
        return Reversible.FULL

    @property
    def title(self) -> str:
        """One line for the plan."""
        names = ", ".join(f"{item.name} {item.version}" for item in self.requirements)
        origin = f" (from {self.source.words})" if self.source.words else ""
        return f"install by hash: {names}{origin}" + (f"; uninstall {', '.join(self.remove)}" if self.remove else "")


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


@dataclass(frozen=True, slots=True)
class RenameFile:
    """Take a file out of every search: give it another name in the same folder. A link is renamed, not its target."""

    path: str
    why: str
    suffix: str = ".disabled-by-ideepdoctor"
    """Appended to the name. A file that has the new name already is in the way: the step refuses."""
    kind: str = field(default="rename-file", init=False)
    reversible: Reversible = field(default=Reversible.FULL, init=False)

    @property
    def new_path(self) -> str:
        """What the file is called afterwards."""
        return self.path + self.suffix

    @property
    def title(self) -> str:
        """One line for the plan."""
        return f"rename {self.path} to {self.new_path.rpartition('/')[2]}: {self.why}"


@dataclass(frozen=True, slots=True)
class SetRpath:
    """Give a shared library exactly this DT_RPATH, and no DT_RUNPATH.

    The library is replaced by a changed copy: other names of the same file (hard links, what a link points to) stay as
    they are, for a package manager's cache may own them.
    """

    path: str
    rpath: str
    """As the loader reads it: folders with colons between them, such as ``$ORIGIN/lib``."""
    why: str
    planned_size_bytes: int | None = None
    """Size of the file when this was planned; one of another size is refused. None: any."""
    kind: str = field(default="set-rpath", init=False)
    reversible: Reversible = field(default=Reversible.FULL, init=False)

    @property
    def title(self) -> str:
        """One line for the plan."""
        return f"set RPATH {self.rpath} in {self.path}: {self.why}"


@dataclass(frozen=True, slots=True)
class DisableLine:
    """Turn a line of a text file into a comment that says who did it and what the line was."""

    path: str
    line_number: int
    """From 1. Where the line has moved, the only other line that is equal to it is taken."""
    line: str
    """The whole line, without its end."""
    why: str
    kind: str = field(default="disable-line", init=False)
    reversible: Reversible = field(default=Reversible.FULL, init=False)

    @property
    def title(self) -> str:
        """One line for the plan."""
        return f"comment out line {self.line_number} of {self.path}: {self.why}"


Step = CreateEnv | Install | RenameFile | SetRpath | WriteFile | DisableLine | EditBlock


def changed_files(step: Step) -> tuple[str, ...]:
    """The single files that a step writes or renames; empty for one that fills folders."""
    match step:
        case CreateEnv() | Install():
            return ()
        case RenameFile():
            return (step.path, step.new_path)
        case SetRpath() | WriteFile() | DisableLine() | EditBlock():
            return (step.path,)


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in the order of their execution."""

    title: str
    steps: tuple[Step, ...]
    treats: tuple[str, ...] = ()
    """Codes of the findings that it treats."""


def with_source(plan: Plan, source: PackageSource) -> Plan:
    """The same plan, whose distributions (and the tools that make environments) come from a source."""
    steps = (replace(step, source=source) if isinstance(step, Install | CreateEnv) else step for step in plan.steps)
    return replace(plan, steps=tuple(steps))
