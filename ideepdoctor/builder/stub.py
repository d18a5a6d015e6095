"""A library of our own in place of libmklml_intel.so: the six functions of MKL that ideep4py's extension calls.

Its text is ``stub/mklml_stub.c``; it is compiled with the compiler of the build and needs no OpenMP runtime.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from ideepdoctor.errors import BuildFailed
from ideepdoctor.system import System

LIBRARY = "libmklml_intel.so"
"""File name and SONAME."""
MARK = "ideepdoctor_mkl_stub"
"""A symbol that MKL's own library does not have."""
COMPILERS = ("cc", "gcc", "clang")
"""Looked for in this order; C alone is needed."""
# Without errno and traps the loops over square roots and comparisons are turned into vector instructions.
FLAGS = ("-std=gnu11", "-O3", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-w")
_LINK = ("-shared", "-fvisibility=hidden", f"-Wl,-soname,{LIBRARY}")
_SECONDS = 120.0


def source() -> bytes:
    """The text of the library."""
    return (files("ideepdoctor") / "builder" / "stub" / "mklml_stub.c").read_bytes()


def identity(march: str, compiler: str) -> str:
    """What the library comes from: a digest of its text, the flags, ``-march`` and the compiler's first line."""
    words = "\n".join([hashlib.sha256(source()).hexdigest(), *FLAGS, *_LINK, march, compiler])
    return hashlib.sha256(words.encode("utf-8")).hexdigest()


def find_compiler(environ: Mapping[str, str]) -> str:
    """Path of a C compiler on PATH. Raises BuildFailed: there is none."""
    path = environ.get("PATH", os.defpath)
    found = next((there for name in COMPILERS if (there := shutil.which(name, path=path))), None)
    if found is None:
        raise BuildFailed(
            f"no C compiler on PATH ({', '.join(COMPILERS)}): the library in place of MKL is compiled here",
            hint="apt install gcc g++, or dnf install gcc-c++; or take MKL's own: --mkl wheel",
        )
    return found


def compile_stub(system: System, compiler: str, march: str, folder: str, environ: Mapping[str, str]) -> str:
    """Compile the library.

    Args:
        system: writes the text and starts the compiler.
        compiler: path of a C compiler.
        march: what its -march gets.
        folder: that exists; the text and the library are put there.
        environ: whole environment of the compiler.

    Returns:
        The path of the library.

    Raises:
        BuildFailed: the compiler does not end well.
    """
    text, library = f"{folder}/mklml_stub.c", f"{folder}/{LIBRARY}"
    system.write_file(text, source())
    argv = [compiler, *FLAGS, f"-march={march}", *_LINK, "-o", library, text, "-lm"]
    done = system.run(argv, timeout_seconds=_SECONDS, env=environ, cwd=folder)
    if not done.ok or not Path(library).is_file():
        said = done.error_text().strip()
        last = next((line for line in said.splitlines() if "error" in line.lower()), said[-300:])
        why = last[:300] or f"{compiler} ended with {done.returncode}"
        raise BuildFailed(
            f"the library in place of MKL could not be compiled: {why}",
            hint="take MKL's own: --mkl wheel; -v shows the command",
            context={"command": " ".join(argv), "output": said[-4000:]},
        )
    return library


def compiler_line(system: System, compiler: str, environ: Mapping[str, str]) -> str:
    """First line of what the compiler says of its version; its path where it says nothing."""
    done = system.run([compiler, "--version"], timeout_seconds=30.0, env=environ)
    return next(iter(done.text().splitlines()), "") or compiler
