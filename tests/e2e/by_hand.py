"""Upstream's documented commands on the stand-in repository, with the tools that a person happens to have.

What they print is what a person has in hand when a build fails.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tests.builder.standin import MKLML, StandIn, make_standin
from tests.conftest import legacy_python

DOCUMENTED = """
cd {tree}
mkdir -p build
cd build
cmake {cmake} ..
cd ../python
python setup.py install
"""
"""As the README of upstream's time has it, after the submodule."""
PREPARING = """
cd {tree}/python
python setup.py build
python setup.py install
"""
"""The same of release 1.0.3."""
HEADERS = {
    "mkl_cblas.h": "void *cblas_sgemm_alloc(int, int, int, int);",
    "mkl_vml_functions.h": "void vsMul(int, const float *, const float *, float *);\n"
    "void vsPowx(int, const float *, float, float *);",
    "mkl_vsl.h": "int vslNewStream(void **, int, unsigned);\nint vslSkipAheadStream(void *, long long);\n"
    "int vslDeleteStream(void **);\nint viRngBernoulli(int, void *, int, int *, double);",
}
OPENMP = """
int omp_get_thread_num(void) { return 0; }
int omp_get_num_threads(void) { return 1; }
void GOMP_parallel(void (*work)(void *), void *data, unsigned threads, unsigned flags) { work(data); }
"""
"""What the stand-in takes of an OpenMP runtime."""
FUNCTIONS = re.compile(r"(\w+)\(")


def python_environment(folder: Path, python: str, *packages: str) -> Path:
    """A virtual environment of ``python`` with these packages; its folder."""
    from uv import find_uv_bin

    uv = find_uv_bin()
    subprocess.run([uv, "venv", "--quiet", "--python", python, str(folder)], check=True)
    if packages:
        command = [uv, "pip", "install", "--quiet", "--link-mode=copy", "--python", str(folder / "bin" / "python")]
        subprocess.run([*command, *packages], check=True)
    return folder


@dataclass
class Workshop:
    """Everything that the cases share, each thing made when it is first asked for.

    Attributes:
        folder: holds all of it.
    """

    folder: Path
    _tools: dict[str, Path] = field(default_factory=dict)

    @cached_property
    def standin(self) -> StandIn:
        """The repositories."""
        return make_standin(self.folder / "repositories")

    @cached_property
    def mkl(self) -> Path:
        """A folder of the downloaded archive's shape: include, lib/libmklml_intel.so, lib/libiomp5.so."""
        return make_mkl(self.folder / "mklml", "libmklml_intel.so")

    @cached_property
    def full_mkl(self) -> Path:
        """A folder of a whole MKL's shape: no libmklml_intel.so."""
        return make_mkl(self.folder / "full-mkl", "libmkl_rt.so")

    @cached_property
    def new_mkl(self) -> Path:
        """A whole MKL of later years: it has no cblas_sgemm_alloc."""
        return make_mkl(self.folder / "new-mkl", "libmkl_rt.so", without="mkl_cblas.h")

    def python(self, version: str, *packages: str) -> Path:
        """The ``bin`` folder of an environment of this version with these packages."""
        return self._environment(f"python{version}", legacy_python(version), packages)

    def tool(self, requirement: str) -> Path:
        """The ``bin`` folder of an environment that holds cmake or swig alone."""
        return self._environment("tool", sys.executable, (requirement,))

    def _environment(self, kind: str, python: str, packages: Sequence[str]) -> Path:
        name = re.sub(r"[^\w.]+", "-", "-".join([kind, *packages]))
        if name not in self._tools:
            self._tools[name] = python_environment(self.folder / name, python, *packages)
        return self._tools[name] / "bin"

    def add(self, bin_folder: Path, *packages: str) -> None:
        """Install more into an environment, built with what it has."""
        from uv import find_uv_bin

        command = [find_uv_bin(), "pip", "install", "--quiet", "--link-mode=copy", "--no-build-isolation"]
        subprocess.run([*command, "--python", str(bin_folder / "python"), *packages], check=True)

    def only(self, name: str, *programs: str) -> Path:
        """A folder with links to these programs of the machine alone, to be the whole PATH behind the tools."""
        folder = self.folder / f"only-{name}"
        if not folder.exists():
            folder.mkdir()
            for program in programs:
                found = subprocess.run(["/bin/sh", "-c", f"command -v {program}"], capture_output=True, text=True)
                (folder / program).symlink_to(found.stdout.strip())
        return folder


def make_mkl(folder: Path, library: str, *, without: str = "") -> Path:
    """A folder with the headers and libraries that a build takes for MKL's; they compute nothing."""
    for name in ("include", "lib"):
        (folder / name).mkdir(parents=True)
    functions = []
    for header, text in HEADERS.items():
        if header != without:
            functions += FUNCTIONS.findall(text)
        declared = f'extern "C" {{\n{"" if header == without else text}\n}}\n'
        (folder / "include" / header).write_text(f"#pragma once\n{declared}", "utf-8")
    source = "".join(f"int {name}(void) {{ return 0; }}\n" for name in functions)
    for name, text in (("libiomp5.so", OPENMP), (library, source)):
        command = ["cc", "-shared", "-fPIC", "-w", f"-Wl,-soname,{name}", "-o", str(folder / "lib" / name)]
        needs = [] if name == "libiomp5.so" else ["-Wl,--no-as-needed", f"-L{folder / 'lib'}", "-liomp5"]
        subprocess.run([*command, "-x", "c", "-", "-x", "none", *needs], input=text, text=True, check=True)
    return folder


def place_mkl(tree: Path, mkl: Path, *, release: str = "v0.14") -> None:
    """Put MKL where the download would have left it."""
    external = tree / "mkl-dnn" / "external"
    external.mkdir(parents=True, exist_ok=True)
    (external / MKLML[release]).symlink_to(mkl)


def by_hand(
    script: str, *bins: Path, environ: Mapping[str, str] | None = None, system: Path | str | None = None
) -> str:
    """Run a person's commands, one after the other whatever each says; what all of them print.

    Args:
        script: a shell's.
        bins: folders first on PATH.
        environ: more variables.
        system: PATH behind ``bins``; None: the usual one.
    """
    path = ":".join([*(str(folder) for folder in bins), str(system or "/usr/bin:/bin")])
    variables = {"PATH": path, "HOME": "/nonexistent", "LANG": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1", **(environ or {})}
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600
    )
    return done.stdout.decode("utf-8", "replace")


def excerpt(log: str, folder: Path, *, lines: int = 40) -> str:
    """The telling part of a log: the lines around its first hits, with neutral paths."""
    from ideepdoctor.rules.signatures import find

    rows = log.splitlines()
    marks = [hit.line_number for hit in find(rows)][:4] or [len(rows)]
    wanted = {number for mark in marks for number in range(mark - 7, mark + 5)}
    kept = [row for number, row in enumerate(rows, 1) if number in wanted][:lines]
    return neutral("\n".join(row[:400] for row in kept) + "\n", folder)


def neutral(text: str, folder: Path) -> str:
    """A log without the paths of the machine that wrote it."""
    text = re.sub(rf"{re.escape(str(folder))}/[^/\s]+(?=/(?:ideep|mkl-dnn)\b)", "/home/user", text)
    text = re.sub(rf"{re.escape(str(folder))}/(?:python|tool)[^/\s]*(?=/(?:bin|lib|include)\b)", "/home/user/env", text)
    text = text.replace(str(folder), "/home/user").replace(str(folder).lstrip("/"), "home/user")
    return text.replace(f"{Path.home()}/.pyenv", "/opt/pyenv").replace(str(Path.home()), "/home/user")
