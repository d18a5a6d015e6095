"""A build of ideep4py from source as data: what was asked, what was fetched, what went in, what came out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Layout(StrEnum):
    """How upstream's source gets its MKL-DNN."""

    CMAKE = "cmake"
    """A submodule ``mkl-dnn``, built by the CMakeLists.txt at the top (1.0.4 and later)."""
    PREPARE = "prepare"
    """``python/external/mkldnn`` clones and builds it while setup.py runs (1.0.3)."""


class Stage(StrEnum):
    """The steps of a build, in their order."""

    PREFLIGHT = "preflight"
    SOURCE = "source"
    TOOLS = "tools"
    MKL = "mkl"
    LIBRARY = "library"
    EXTENSION = "extension"
    WHEEL = "wheel"
    VERIFY = "verify"


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What ``build`` was asked.

    Attributes:
        source: git URL, folder or archive (tar, zip) of upstream's source; None: the public repository.
        ref: tag or commit (7 digits or more); None: the one that fits ``chainer``.
        python: absolute path of the interpreter to build for.
        march: ``native`` or a name that GCC's -march takes.
        mkl: ``wheel`` (MKL of the ideep4py wheel), ``none`` (the stub), ``auto`` (both, measured), or a folder that
            has include/mkl_cblas.h, lib/libmklml_intel.so and lib/libiomp5.so.
        jobs: compilers at once; None: by processors and memory.
        output: folder for the wheel.
        chainer: release of Chainer that it shall serve; None: the newest.
        mkldnn_source: where MKL-DNN is fetched from instead of the address in .gitmodules.
        verify: prove the wheel in a fresh environment before it is handed out.
        fresh: use nothing that an earlier run kept.
    """

    python: str
    output: str
    source: str | None = None
    ref: str | None = None
    march: str = "native"
    mkl: str = "wheel"
    jobs: int | None = None
    chainer: str | None = None
    mkldnn_source: str | None = None
    verify: bool = True
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class SourceTree:
    """Upstream's source, fetched, checked and complete.

    Attributes:
        folder: its top (holds ``python/setup.py``).
        commit: 40 hexadecimal digits; ``sha256:DIGEST`` of an archive, ``folder:DIGEST`` of a folder without git.
        mkldnn_folder: where MKL-DNN's source is.
        mkldnn_commit: 40 hexadecimal digits; empty where it came with ideep and without git, so that ``commit`` speaks
            for both; ``sha256:DIGEST`` or ``folder:DIGEST`` of an archive or folder that was given for it.
        layout: how it is built.
        version: of ideep4py, as the source declares it (``__version__`` where there is one, else setup.py's).
        release: key of ``builder.recipe.RELEASES`` that it is, or None for a source of somebody's own.
    """

    folder: str
    commit: str
    mkldnn_folder: str
    mkldnn_commit: str
    layout: Layout
    version: str
    release: str | None = None


@dataclass(frozen=True, slots=True)
class Tools:
    """The isolated toolchain of a build.

    Attributes:
        python: the environment's interpreter (same version as the target's), with NumPy, setuptools and wheel.
        bin_folder: first on PATH: cmake, swig and the wrappers of cc, c++ and make.
        numpy: version that the extension is compiled against.
        identity: digest of everything in it (pins, compiler, wrappers), for the cache.
        environ: the whole environment of every program of the build.
    """

    python: str
    bin_folder: str
    numpy: str
    identity: str
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Mkl:
    """What stands for MKL in a build.

    Attributes:
        kind: ``wheel``, ``none`` or ``folder``.
        include: folder of the headers (mkl_cblas.h, mkl_vsl.h, mkl_vml_functions.h...).
        libraries: paths of libmklml_intel.so and, where it has one, libiomp5.so.
        identity: digest of the files.
    """

    kind: str
    include: str
    libraries: tuple[str, ...]
    identity: str


@dataclass(frozen=True, slots=True)
class March:
    """Which processors compiled code runs on.

    Attributes:
        asked: what -march got.
        label: for the version of the wheel: ``v3``, ``v4``, ``haswell``; of native: the highest x86-64 level that the
            compiler made use of and its name of the processor, such as ``v4.znver4``.
        flags: flags of /proc/cpuinfo that a processor needs, sorted.
    """

    asked: str
    label: str
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BuiltWheel:
    """A wheel and what is true of it.

    Attributes:
        path: of the file.
        name: its file name.
        version: with the local part, such as ``2.0.0.post3+doctor.v3``.
        sha256: of the file.
        tag: such as ``cp311-cp311-linux_x86_64``.
        cpu_flags: what a processor needs to run it.
        numpy: compiled against.
        mkl: ``wheel``, ``none`` or ``folder``.
        commit: of ideep's source.
        mkldnn_commit: of MKL-DNN's.
        proof: what the verification found, a line each; empty: not verified.
    """

    path: str
    name: str
    version: str
    sha256: str
    tag: str
    cpu_flags: tuple[str, ...]
    numpy: str
    mkl: str
    commit: str
    mkldnn_commit: str
    proof: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LogHit:
    """A known signature in the log of a build.

    Attributes:
        code: of the rule that explains it, ``IDP8xx``.
        line_number: of the line, from 1.
        line: the line itself, shortened to 200 characters.
    """

    code: str
    line_number: int
    line: str


@dataclass(frozen=True, slots=True)
class BuildFacts:
    """What a build needs and what there is, collected before it starts; or what a log says (``hits``).

    Every value may be None: not looked at (a log alone was read).

    Attributes:
        request: what was asked.
        compiler: first line of ``c++ --version``; empty: there is none.
        compiler_version: such as (12, 2, 0); empty where it is not known.
        compiler_works: None: not tried; else empty for success or the last lines of what it said.
        headers: folder with Python.h of the target; empty: it has none.
        git: version; empty: there is none. None where the source needs none.
        make: version; empty: there is none.
        cmake: version of the cmake that the build will use (the pinned one), empty: it cannot be had.
        swig: version of the swig that the build will use, empty: it cannot be had.
        network: None: not needed; else empty for reachable or why it is not.
        disk_free_bytes: where the build's folder will be.
        memory_bytes: free to programs now, or the cgroup's limit if lower.
        jobs: compilers at once that will be started.
        mklroot: value of MKLROOT; None: not set.
        python_minor: of the target.
        march: what -march means with this compiler; None: it is not known, or not to be used.
        march_error: why; empty where it was not tried.
        cpu_vendor: of this machine.
        ref: what will be fetched.
        ref_found: whether the repository has such a tag or branch; None: not asked, or a commit.
        release: key of the release, where it is a known one.
        mkldnn_present: of a folder or archive: whether MKL-DNN's CMakeLists.txt is there. None: will be fetched.
        mkl_missing: files that ``--mkl PATH`` lacks.
        hits: known signatures in a log.
    """

    request: BuildRequest | None = None
    compiler: str | None = None
    compiler_version: tuple[int, ...] = ()
    compiler_works: str | None = None
    headers: str | None = None
    git: str | None = None
    make: str | None = None
    cmake: str | None = None
    swig: str | None = None
    network: str | None = None
    disk_free_bytes: int | None = None
    memory_bytes: int | None = None
    jobs: int | None = None
    mklroot: str | None = None
    python_minor: str | None = None
    march: March | None = None
    march_error: str = ""
    cpu_vendor: str | None = None
    ref: str | None = None
    ref_found: bool | None = None
    release: str | None = None
    mkldnn_present: bool | None = None
    mkl_missing: tuple[str, ...] = ()
    hits: tuple[LogHit, ...] = ()


@dataclass(frozen=True, slots=True)
class BuildInfo:
    """What the wheel of a build says of itself: ``ideepdoctor-build.json`` in its dist-info, read by the probe."""

    march: str
    cpu_flags: tuple[str, ...]
    mkl: str
    commit: str
    mkldnn_commit: str
    numpy: str
    verified: bool
    extra: Mapping[str, str] = field(default_factory=dict)
