"""What a build from source needs and what there is, tried before anything is fetched: seconds, and nothing is kept."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ideepdoctor import __version__
from ideepdoctor.builder.jobs import cpus_of, jobs_for, memory_of
from ideepdoctor.builder.march import UnusableMarch, march_of
from ideepdoctor.builder.mkl import look
from ideepdoctor.builder.mkldnn import is_repository
from ideepdoctor.builder.pins import program_pins, version_of
from ideepdoctor.builder.recipe import SOURCE_URL, is_commit, release_for, release_of
from ideepdoctor.builder.source import Kind, kind_of
from ideepdoctor.builder.urls import is_address
from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.facts.build_network import missing_tools, reach_source, source_is_kept
from ideepdoctor.facts.cpu import build_cpu
from ideepdoctor.facts.limits import build_limits
from ideepdoctor.model.build import BuildFacts, BuildRequest, LogHit, March
from ideepdoctor.model.facts import Cpu, Facts, Limits, Platform, Python, TargetRef, Variables
from ideepdoctor.system import Completed, System
from ideepdoctor.treatment.state import cache_folder, existing_ancestor

_SECONDS = 20.0
_TOLD = 600
"""Characters of what a compiler says that are kept."""
_VERSION = re.compile(r"\d+(?:\.\d+)+|\d+")

PROGRAM = b"""#include <omp.h>
#include <cmath>
#include <memory>
#include <vector>
int main() {
    std::vector<float> values(64, 2.0f);
    auto root = [&values](int place) { return std::sqrt(values[place]); };
    float sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int place = 0; place < 64; ++place) sum += root(place);
    std::unique_ptr<int> threads(new int(omp_get_max_threads()));
    return sum > 0 && *threads > 0 ? 0 : 1;
}
"""
"""What a compiler must be able to do for ideep4py: C++11, OpenMP, its own library, linking."""

_HEADERS = (
    "import sys, os, sysconfig; paths = [sysconfig.get_path(name) for name in ('include', 'platinclude')]; "
    "sys.stdout.write(([p for p in paths if p and os.path.isfile(os.path.join(p, 'Python.h'))] + [''])[0] + chr(10) + "
    "'%d.%d' % sys.version_info[:2])"
)


def collect_build(
    system: System, environ: Mapping[str, str], request: BuildRequest, *, facts: Facts | None = None
) -> BuildFacts:
    """Look at everything that a build needs. Downloads nothing and leaves nothing behind.

    Args:
        system: starts the compiler, git, uv and the interpreter.
        environ: the person's variables (PATH, MKLROOT, the cache folder, the package index).
        request: what was asked.
        facts: of the target, where they are known: processor and limits.

    Raises:
        UsageError: there is no such source, or no release of ideep4py for the Chainer that was asked for.
        OSError: no temporary folder can be made.
    """
    path = environ.get("PATH", os.defpath)
    cpu, limits = (_cpu(), _limits()) if facts is None else (facts.cpu, facts.limits)
    kind = kind_of(request.source or SOURCE_URL, request.ref)
    ref = request.ref or (release_for(request.chainer).ref if kind is Kind.GIT else None)
    release = release_of(ref) if ref else None
    cache = cache_folder(environ)
    tree = Path(request.source or "")
    brought = request.mkldnn_source is not None and not is_repository(request.mkldnn_source)
    mkldnn = _has_mkldnn(tree) if kind is Kind.FOLDER and not brought else None
    fetched = kind is Kind.GIT and not source_is_kept(cache, request)
    url = (request.source or SOURCE_URL) if fetched else None
    if mkldnn is False:
        url = request.mkldnn_source or _named_mkldnn(tree)
    needs_git = fetched or mkldnn is False
    git = _first(path, "git") if needs_git else ""
    with ThreadPoolExecutor(max_workers=4) as pool:
        compiling = pool.submit(_compiling, system, path, request.march, cpu)
        headers = pool.submit(_headers, system, request.python)
        wanted = ref if fetched and ref and not is_commit(ref) else None
        source = pool.submit(reach_source, system, environ, git, url, wanted) if url else None
        tools = pool.submit(missing_tools, system, environ, cache, request)
        folder, minor = headers.result()
        trouble, ref_found = (None, None) if source is None else source.result()
        index_trouble, absent = tools.result()
        compiler = compiling.result()
    troubles = [text for text in (trouble, index_trouble) if text]
    memory = memory_of(limits)
    needless = trouble is None and index_trouble is None
    return BuildFacts(
        request=request,
        compiler=compiler.name,
        compiler_version=compiler.version,
        compiler_works=compiler.works,
        headers=folder,
        git=_version_of(system, git) if needs_git else None,
        make=_version_of(system, _first(path, "make", "gmake")),
        cmake="" if "cmake" in absent else version_of(program_pins(), "cmake"),
        swig="" if "swig" in absent else version_of(program_pins(), "swig"),
        network="; ".join(troubles) if troubles else None if needless else "",
        disk_free_bytes=_free(cache, request.output),
        memory_bytes=memory,
        jobs=jobs_for(cpus_of(limits), memory, request.jobs).count,
        mklroot=environ.get("MKLROOT") or None,
        python_minor=minor,
        march=compiler.march,
        march_error=compiler.march_error,
        cpu_vendor=cpu.vendor,
        ref=ref,
        ref_found=ref_found,
        release=release.version if release else None,
        mkldnn_present=mkldnn,
        mkl_missing=look(request.mkl)[1] if request.mkl not in ("wheel", "none", "auto") else (),
    )


def facts_of_log(hits: tuple[LogHit, ...], *, own: bool = False) -> Facts:
    """Facts that hold nothing but what a log says, for the rules; nothing is known of the machine that wrote it.

    Args:
        hits: known signatures in it.
        own: it is a log of ``ideepdoctor build``.
    """
    return Facts(
        tool_version=__version__,
        collected_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        mode="log",
        target=TargetRef(""),
        platform=Platform("", ""),
        cpu=Cpu(),
        limits=Limits(),
        python=Python("", "", "", "", "", 0, "", "", ""),
        variables=Variables(),
        build=BuildFacts(request=BuildRequest("", "") if own else None, hits=hits),
    )


@dataclass(frozen=True, slots=True)
class _Compiler:
    """What was learned of the compilers; the fields are those of BuildFacts."""

    name: str
    version: tuple[int, ...] = ()
    works: str | None = None
    march: March | None = None
    march_error: str = ""


def _compiling(system: System, path: str, march: str, cpu: Cpu) -> _Compiler:
    """The compilers on PATH, which a build takes whatever CC and CXX say."""
    cxx = _first(path, "c++", "g++")
    if not cxx:
        return _Compiler("")
    told = system.run([cxx, "--version"], timeout_seconds=_SECONDS)
    lines = told.text().splitlines()
    if not told.ok or not lines:
        return _Compiler(cxx, works=_words(told))
    numbers = _numbers(re.sub(r"\([^)]*\)", "", lines[0]))
    works = "there is no C compiler (cc or gcc) on PATH" if not _first(path, "cc", "gcc") else _try(system, cxx)
    if works:
        return _Compiler(lines[0], numbers, works)
    try:
        return _Compiler(lines[0], numbers, "", march_of(system, cxx, march, cpu))
    except (UnusableMarch, CouldNotCheck) as error:
        return _Compiler(lines[0], numbers, "", None, f"{error.message}; {error.hint}" if error.hint else error.message)


def _try(system: System, cxx: str) -> str:
    """Compile and link a program; empty, or the last lines of what the compiler said."""
    folder = system.make_temporary_folder()
    try:
        words = ["-std=c++11", "-fopenmp", "-x", "c++", "-", "-o", f"{folder}/program"]
        done = system.run([cxx, *words], timeout_seconds=_SECONDS, stdin=PROGRAM)
    finally:
        system.remove_tree(folder)
    return "" if done.ok else _words(done)


def _words(done: Completed) -> str:
    said = done.error_text().strip() or done.text().strip()
    if done.timed_out:
        return f"it did not end within {_SECONDS:.0f} s"
    return said[-_TOLD:] if said else f"it ended with {done.returncode} and said nothing"


def _headers(system: System, python: str) -> tuple[str | None, str | None]:
    """Folder with the interpreter's Python.h (empty: none) and its version 3.11; None where it does not answer."""
    done = system.run([python, "-B", "-E", "-s", "-c", _HEADERS], timeout_seconds=_SECONDS)
    lines = done.text().splitlines()
    return (lines[-2], lines[-1]) if done.ok and len(lines) >= 2 else (None, None)


def _version_of(system: System, program: str) -> str:
    """Version of a program; empty: there is none, or it does not start."""
    done = system.run([program, "--version"], timeout_seconds=_SECONDS) if program else None
    found = _VERSION.search(done.text()) if done is not None and done.ok else None
    return found.group() if found else ""


def _numbers(line: str) -> tuple[int, ...]:
    found = _VERSION.search(line)
    return tuple(int(part) for part in found.group().split(".")) if found else ()


def _has_mkldnn(tree: Path) -> bool:
    """Whether a folder of upstream's source holds MKL-DNN's, where either layout has it."""
    return any((tree / inner / "CMakeLists.txt").is_file() for inner in ("mkl-dnn", "python/external/mkldnn/source"))


def _named_mkldnn(tree: Path) -> str | None:
    """Where a folder of the source says that MKL-DNN is to be fetched from; None: it does not say."""
    found = re.search(r'\[submodule "mkl-dnn"\][^[]*?\burl *= *(\S+)', _read(str(tree / ".gitmodules")))
    return found[1] if found and is_address(found[1]) else None


def _first(path: str, *names: str) -> str:
    """Path of the first of these programs that is there; empty: none is."""
    return next((found for name in names if (found := shutil.which(name, path=path))), "")


def _free(*folders: str) -> int | None:
    """Free bytes for this user where the folders are or will be: the least."""
    found: list[int] = []
    for folder in folders:
        with contextlib.suppress(OSError):
            found.append(shutil.disk_usage(existing_ancestor(folder)).free)
    return min(found, default=None)


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""


def _cpu() -> Cpu:
    """This machine's processor, by what the kernel says."""
    return build_cpu(_read("/proc/cpuinfo"), "", None, None)


def _limits() -> Limits:
    """What this process may use, without control groups."""
    return build_limits(_read("/proc/self/status"), _read("/proc/meminfo"), (), None)
