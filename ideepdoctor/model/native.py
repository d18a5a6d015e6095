"""Facts about shared libraries: what lies where, what the dynamic loader takes, and what became of it. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ideepdoctor.model.outcome import Outcome


@dataclass(frozen=True, slots=True)
class ElfFile:
    """What the headers of a file say. One that no loader can use has a ``problem`` and little else."""

    path: str
    """As a loader would open it; links are not followed."""
    real_path: str
    size_bytes: int | None = None
    identity: str | None = None
    """``device:inode``: two paths with the same identity are one file."""
    problem: str | None = None
    """empty, truncated, not ELF, folder, broken link, link loop, no permission, not a regular file, or ``unreadable:``
    and the system's words; None: its headers were read."""
    bits: int | None = None
    little_endian: bool | None = None
    machine: int | None = None
    """e_machine: 62 is x86-64."""
    soname: str | None = None
    needed: tuple[str, ...] = ()
    rpath: str | None = None
    """DT_RPATH as written; None: the file has none."""
    runpath: str | None = None
    """DT_RUNPATH as written; a loader ignores DT_RPATH of a file that has it."""
    no_default_folders: bool = False
    """DF_1_NODEFLIB: cache and default folders are not searched for its needs."""
    interpreter: str | None = None
    """PT_INTERP of a program."""
    build_id: str | None = None
    """Hexadecimal, 40 digits as a rule."""
    executable_stack: bool | None = None
    exports: tuple[str, ...] = ()
    """Those of the symbols of interest (payload/libraries.py) that it defines, by its hash table."""
    version: str | None = None
    """Version that the file itself tells without being loaded, such as ``0.19.0`` or ``5.0.20170525``."""
    versions_needed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By library, the symbol versions that it needs: ``{"libstdc++.so.6": ("GLIBCXX_3.4.18",)}``."""
    versions_defined: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LibraryFile:
    """A library of interest that the target can meet."""

    file: ElfFile
    kind: str
    """mkldnn (MKL-DNN, DNNL, oneDNN), mklml, mkl, iomp (Intel's OpenMP), omp (LLVM's), gomp, openblas, or contained:
    another library that contains MKL-DNN and exports its symbols."""
    name: str
    """What it is: ``MKL-DNN 0.14``, ``DNNL 1.3.0``, ``MKL 2019.0``; without a number where that is not known."""
    own: bool = False
    """Whether it came with the ideep4py of this target."""
    owner: str | None = None
    """``mxnet-mkl 1.5.0``, ``conda mkl 2019.0``, ``dpkg libgomp1``; None: nobody claims it."""
    places: tuple[str, ...] = ()
    """Where it was met: ideep4py, site-packages, prefix, conda, /opt/intel, LD_LIBRARY_PATH, LD_PRELOAD, ld.so cache,
    other environment, disk."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """One library that is needed, and what a loader takes for it."""

    name: str
    """What is asked for: a name of DT_NEEDED, or a path."""
    path: str | None
    """The file that wins; None: none was found."""
    by: str
    """Path of the file that needs it; ``LD_PRELOAD`` or ``already loaded`` for what comes first."""
    step: str
    """The search step that decided, in words: ``DT_RPATH of FILE``, ``LD_LIBRARY_PATH``, ``DT_RUNPATH of FILE``,
    ``ld.so cache``, ``default folder``, ``LD_PRELOAD``, ``already loaded``, ``named by path``, ``not found``."""
    problem: str | None = None
    """Why the loader stops here: ``not found``, the problem of the file, or a symbol version that it lacks."""
    passed_over: tuple[str, ...] = ()
    """Other files of this name that a later step would have found, in the order of the search."""


@dataclass(frozen=True, slots=True)
class Started:
    """A child that imported ideep4py and ran an operation, as the user's Python would."""

    at_start: tuple[str, ...] = ()
    """Real paths of the shared objects that were mapped before anything was imported."""
    with_numpy: tuple[str, ...] = ()
    """Real paths of those mapped after ``import numpy`` alone."""
    numpy_blas: tuple[str, ...] | None = None
    """The libraries for linear algebra that NumPy says it was built with, in its own words: ``openblas``, ``mkl_rt``;
    empty: none; None: not told."""
    after: tuple[str, ...] = ()
    """Real paths of those mapped after the import (after the operation, where that succeeded)."""
    visible: Mapping[str, str] = field(default_factory=dict)
    """Before the import: symbols of MKL-DNN and oneDNN that every later library would be bound to, each with the file
    that has it. Empty on a healthy machine."""
    bound: Mapping[str, str] = field(default_factory=dict)
    """After the import: symbols of OpenMP that MKL-DNN uses, each with the file that it is bound to."""
    imported: Outcome | None = None
    first_op: Outcome | None = None
    """None where the import failed."""


@dataclass(frozen=True, slots=True)
class PairCheck:
    """Another package and ideep4py in one process, one operation in both, in each order of import."""

    package: str
    """Distribution and version: ``torch 1.4.0``."""
    module: str
    before: Outcome
    """The package was imported before ideep4py."""
    after: Outcome
    """ideep4py was imported before the package."""
    culprit: str | None = None
    """Which side failed where it is known: ``ideep4py`` or the module's name; of the first order that failed."""


@dataclass(frozen=True, slots=True)
class VariableSource:
    """A line of a file that sets a variable of the dynamic loader for later programs."""

    name: str
    """LD_PRELOAD or LD_LIBRARY_PATH."""
    value: str
    """As the line has it, quotes removed, variables of the shell not expanded."""
    path: str
    line_number: int
    """From 1."""
    line: str
    """The whole line, without its end."""
    kind: str
    """activation (of this environment), rc (of this user), system."""


@dataclass(frozen=True, slots=True)
class Native:
    """The shared libraries of a target."""

    binding: str | None
    """Path of ideep4py's extension module; None: there is none."""
    files: tuple[LibraryFile, ...] = ()
    objects: Mapping[str, ElfFile] = field(default_factory=dict)
    """By path, every file that takes part in loading the extension module: itself, what it needs, what needs the same
    names."""
    predicted: tuple[Loaded, ...] = ()
    """What the static model of the dynamic loader says, in the order of loading."""
    started: Started | None = None
    """None where nothing was started (quick mode)."""
    disagreements: tuple[str, ...] = ()
    """Where ``started`` did not take what was predicted, in words."""
    pairs: tuple[PairCheck, ...] | None = None
    """None where none was tried."""
    sources: tuple[VariableSource, ...] = ()
    entries: int = 0
    """Folder entries that were looked at."""
    complete: bool = True
    """False where the walk was cut short."""
