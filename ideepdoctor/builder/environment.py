"""The surroundings of a build as data: its variables, and the texts of the programs that stand before the real ones.

Pure. Nothing of the person's own flags, MKLROOT, HOME or Python variables reaches a build; PATH alone does, behind the
folder of the tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ideepdoctor.model.build import Layout

JOBS = "IDEEPDOCTOR_BUILD_JOBS"
"""How many compilers the make of a build starts at once, whatever -j it is told."""
MARCH = "IDEEPDOCTOR_BUILD_MARCH"
"""What -march=native becomes; ``native`` leaves it alone."""

NO_WARNINGS = "-w"
"""Upstream makes errors of warnings, and later compilers have more of them."""
UNTRACK = "-D_PyObject_GC_UNTRACK=PyObject_GC_UnTrack"
"""SWIG 3 writes the name of a macro that Python 3.8 took away; the function does the same."""
ALIGNED = "-faligned-new"
"""Release 1.0.3 puts vectors of 64 bytes at addresses that new aligns to 16."""
OLD_TAGS = "-Wl,--disable-new-dtags"
"""With RPATH libiomp5.so is found for the libraries beside it, too; with RUNPATH it is not."""

COMPILERS = ("cc", "c++", "gcc", "g++")

_COMPILER = """#!/bin/sh
# Made by ideepdoctor for one build. Passes everything on, but for -march=native and for warnings.
for word
do
    shift
    case $word in
        -march=native) set -- "$@" "-march=${@MARCH@:-native}" ;;
        -mtune=native) [ "${@MARCH@:-native}" != native ] || set -- "$@" "$word" ;;
        *) set -- "$@" "$word" ;;
    esac
done
exec @REAL@ "$@" -w
"""

_MAKE = """#!/bin/sh
# Made by ideepdoctor for one build: the number of jobs is limited by memory, whatever the caller says.
number=
for word
do
    shift
    if [ -n "$number" ]; then
        number=
        case $word in
            *[!0-9]*) ;;
            *) continue ;;
        esac
    fi
    case $word in
        -j|--jobs) number=next ;;
        -j[0-9]*|--jobs=*) ;;
        *) set -- "$@" "$word" ;;
    esac
done
[ -n "$MAKELEVEL" ] || set -- "-j${@JOBS@:-1}" "$@"
exec @REAL@ "$@"
"""

_REFUSING = """#!/bin/sh
# Made by ideepdoctor for one build: everything was fetched and checked before.
echo "@NAME@: a build downloads nothing; this was to be there already: $*" >&2
exit 6
"""

_GIT = """#!/bin/sh
# Made by ideepdoctor for one build: everything was fetched and checked before.
case $1 in
    clone|fetch|pull|submodule|remote|reset)
        echo "git: a build downloads nothing; this was to be there already: $*" >&2
        exit 6 ;;
esac
exec @REAL@ "$@"
"""

SITECUSTOMIZE = '''"""Made by ideepdoctor for one build: what upstream's setup.py expects of a Python before 3.8."""

import platform


def _dist(*_arguments, **_options):
    """The name of no distribution: upstream calls another CMake on one of them, and ours is there under both names."""
    return ("", "", "")


platform.dist = _dist
if not hasattr(platform, "linux_distribution"):
    platform.linux_distribution = _dist
'''


@dataclass(frozen=True, slots=True)
class Real:
    """Programs of this machine that the tools stand before: absolute paths; empty where there is none."""

    cc: str
    cxx: str
    make: str
    git: str = ""


def quoted(path: str) -> str:
    """A path as one word of a shell."""
    return "'" + path.replace("'", "'\"'\"'") + "'"


def wrappers(real: Real) -> dict[str, str]:
    """Name and text of each program in the folder of tools that is ours (cmake and swig, which are linked, aside)."""
    texts = {name: _COMPILER.replace("@REAL@", quoted(real.cc)) for name in ("cc", "gcc")}
    texts |= {name: _COMPILER.replace("@REAL@", quoted(real.cxx)) for name in ("c++", "g++")}
    texts |= {name: _MAKE.replace("@REAL@", quoted(real.make)) for name in ("make", "gmake")}
    texts |= {name: _REFUSING.replace("@NAME@", name) for name in ("curl", "wget")}
    texts["git"] = _GIT.replace("@REAL@", quoted(real.git)) if real.git else _REFUSING.replace("@NAME@", "git")
    return {name: text.replace("@MARCH@", MARCH).replace("@JOBS@", JOBS) for name, text in texts.items()}


def flags(minor: tuple[int, int], layout: Layout, more: Sequence[str] = ()) -> str:
    """CFLAGS and CXXFLAGS of a build.

    Args:
        minor: of the target, such as (3, 11).
        layout: of the source.
        more: what the release needs besides.
    """
    words = [NO_WARNINGS]
    if minor >= (3, 8):
        words.append(UNTRACK)
    if layout is Layout.PREPARE:
        words.append(ALIGNED)
    return " ".join([*words, *(word for word in more if word not in words)])


def variables(
    *,
    bin_folder: str,
    site_folder: str,
    swig_library: str,
    home: str,
    temporary: str,
    path: str,
    compiler_flags: str,
    march: str,
    jobs: int,
) -> Mapping[str, str]:
    """The whole environment of every program of a build.

    Args:
        bin_folder: of the tools, first on PATH.
        site_folder: holds sitecustomize.py.
        swig_library: folder of SWIG's own library.
        home: an empty folder: old commits install into $HOME.
        temporary: folder for temporary files.
        path: the machine's PATH; relative folders in it are left out.
        compiler_flags: see ``flags``.
        march: ``native`` or what it is replaced by.
        jobs: compilers at once.
    """
    folders = [bin_folder, *(folder for folder in path.split(":") if folder.startswith("/"))]
    return {
        "PATH": ":".join(dict.fromkeys(folders)),
        "HOME": home,
        "TMPDIR": temporary,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "CC": f"{bin_folder}/cc",
        "CXX": f"{bin_folder}/c++",
        # conda's Python would link with an old linker of its own, which stumbles over a new C library.
        "LDSHARED": f"{bin_folder}/cc -pthread -shared",
        "CFLAGS": compiler_flags,
        "CXXFLAGS": compiler_flags,
        "LDFLAGS": OLD_TAGS,
        "SWIG_LIB": swig_library,
        "PYTHONPATH": site_folder,
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        JOBS: str(jobs),
        MARCH: march,
    }
