"""IDP411: the MKL that NumPy uses is a mixture of two, or lacks parts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.model.native import Native
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.deaths import how_it_ended
from ideepdoctor.rules.installed import outcome, package, python_command
from ideepdoctor.rules.loading import elf

_PART = re.compile(r"/(libmkl_\w+)\.so((?:\.\d+)*)$")
_KERNEL = re.compile(r"libmkl_(def|mc3?|avx\w*)$")
_LAYER = re.compile(r"libmkl_(\w+_thread|sequential)$")
_RELEASE = re.compile(r"(conda )?mkl \d\S*$")
"""An owner that tells a release: Debian's packages of single parts do not."""
_FATAL = 2
"""Exit code of a process that MKL ends after ``Intel MKL FATAL ERROR``; the words are on standard output."""
_LIB, _OTHER = "/home/user/ideep/lib", "/opt/intel/mkl/lib/intel64"
_DEAD = {"ok": False, "seconds": 0.3, "exit_code": _FATAL}
_NAMES = ("libmkl_rt", "libmkl_core", "libmkl_intel_lp64", "libmkl_intel_thread", "libmkl_def", "libmkl_avx2")


def _mkl(
    *left_out: str, other: tuple[str, ...] = (), dead: bool = False, owners: tuple[str, ...] = ()
) -> dict[str, Any]:
    """NumPy with a MKL in the prefix: without some parts, or with some from elsewhere, or of another owner."""
    names = [name for name in _NAMES if name not in left_out]
    there = [f"{_LIB}/{name}.so" for name in names] + [f"{_OTHER}/{name}.so" for name in other]
    rows = [
        {
            "file": elf(path, identity=path),
            "kind": "mkl",
            "name": "MKL",
            "own": False,
            "owner": "conda mkl 2018.0.3" if path.rpartition("/")[2].split(".")[0] in owners else "mkl 2019.0",
            "places": ["prefix"],
        }
        for path in there
    ]
    rt = {"name": "libmkl_rt.so", "path": f"{_LIB}/libmkl_rt.so", "by": "numpy", "step": "DT_RPATH of numpy"}
    started: dict[str, Any] = (
        {"with_numpy": [] if dead else there, "imported": _DEAD} if dead else {"with_numpy": there}
    )
    imports = dict.fromkeys(("numpy", "ideep4py", "chainer"), _DEAD) if dead else {}
    return {
        "imports": imports,
        "chainer": None if dead else {},
        "native": {"files": rows, "predicted": [rt], "started": {**started, "first_op": None} if dead else started},
    }


class IDP411(Rule):
    """NumPy's MKL consists of parts of two, or lacks some.

    What it checks
        Where NumPy uses MKL by its library libmkl_rt: from which folders its parts are mapped after ``import numpy``,
        whom the parts beside libmkl_rt belong to, and, where NumPy's import ends with exit code 2, which of them are
        missing. A second MKL on LD_LIBRARY_PATH alone is no fault: libmkl_rt takes its neighbours.

    Why it matters
        libmkl_rt opens its parts by name when they are needed first. One that is missing ends the process with "Intel
        MKL FATAL ERROR: Cannot load libmkl_avx2.so or libmkl_def.so"; one of another release is found out by nobody:
        a Fourier transform ends with SIGSEGV or raises "Internal error occurred", while matrix products go on.

    How to fix
        One MKL from one place: take the other out of LD_PRELOAD, and install MKL again with the one tool, pip or conda,
        that has installed NumPy.

    References
        ContinuumIO/anaconda-issues #698, #720, #1641; conda #2248. Measured with intel-numpy 1.15.1 and MKL 2019.0:
        each of libmkl_core, libmkl_intel_thread and the kernel of this CPU missing: exit code 2; each of them from MKL
        2018.0.3: SIGSEGV in numpy.fft, products right; libmkl_rt from 2018.0.3: numpy.fft raises, products right;
        another MKL, 2018.0.3 or 2021.4, on LD_LIBRARY_PATH: no effect. ideep4py's own MKL (libmklml_intel)
        has no such parts.
    """

    title = "NumPy's MKL is a mixture, or lacks parts"
    severity = Severity.ERROR
    requires = ("IDP101", "IDP102", "IDP204", "IDP302", "IDP305", "IDP401")
    ok = (
        Example("no MKL but ideep4py's"),
        Example("a whole MKL", _mkl()),
        Example(
            "another MKL that nobody has opened", {**_mkl(), "variables": {"effective": {"LD_LIBRARY_PATH": _OTHER}}}
        ),
        Example("nothing was started", {"native": {**_mkl()["native"], "started": None}}),
    )
    bad = (
        Example("a part of another MKL is mapped", _mkl("libmkl_core", other=("libmkl_core",))),
        Example("a part of another owner", _mkl(owners=("libmkl_avx2",))),
        Example("parts are missing", _mkl("libmkl_core", "libmkl_intel_thread", dead=True)),
        Example("no kernel", _mkl("libmkl_def", "libmkl_avx2", dead=True)),
        Example("ended for a reason that the files do not tell", _mkl(dead=True)),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """A process that has died first, then what will kill it."""
        found = facts.native
        place = None if found is None else _place(found)
        if found is None or place is None:
            return
        path, suffix = place
        folder = path.rpartition("/")[0]
        numpy = outcome(facts, "numpy")
        dead = numpy is not None and numpy.exit_code == _FATAL and numpy.error_type is None
        # A process that has ended tells nothing of what it had mapped: what is there is asked instead.
        what = _missing(found, folder, suffix) if dead else _mixed(found, folder, suffix)
        if what is None:
            return
        yield self.finding(
            found=f"NumPy's MKL in {folder}: {what}",
            needed="all parts of one MKL, from one place",
            consequence=f"measured: {how_it_ended(numpy)}"
            if dead and numpy is not None
            else "numpy.fft may end the process with SIGSEGV, while matrix products go on",
            next_step="unset LD_PRELOAD"
            if what.startswith("mapped") and "LD_PRELOAD" in facts.variables.inherited
            else _again(facts),
            evidence=(Evidence("NumPy uses it", path, "ideepdoctor libs"),),
            severity=Severity.ERROR if dead else Severity.WARNING,
        )


def _place(found: Native) -> tuple[str, str] | None:
    """Path of the libmkl_rt that NumPy takes, links followed, and the suffix of its names; None: NumPy uses none."""
    mapped = () if found.started is None else found.started.with_numpy
    expected = (item.path for item in found.predicted if item.path is not None)
    for path in (*mapped, *expected):
        part = _PART.search(path)
        if part is not None and part.group(1) == "libmkl_rt":
            real = found.objects[path].real_path if path in found.objects else path
            return real, part.group(2)
    return None


def _beside(found: Native, folder: str, suffix: str) -> dict[str, str | None]:
    """By name, the owners of the parts in a folder: only those that this libmkl_rt would open."""
    parts = ((_PART.search(item.file.real_path), item) for item in found.files)
    return {
        part.group(1): item.owner
        for part, item in parts
        if part is not None and part.group(2) == suffix and item.file.real_path.rpartition("/")[0] == folder
    }


def _missing(found: Native, folder: str, suffix: str) -> str:
    """Which parts are not beside libmkl_rt, in words."""
    names = _beside(found, folder, suffix)
    missing = [] if "libmkl_core" in names else ["libmkl_core"]
    missing += [] if any(_LAYER.match(name) for name in names) else ["libmkl_intel_thread"]
    missing += [] if any(_KERNEL.match(name) for name in names) else ["libmkl_def", "libmkl_avx2"]
    return f"{', '.join(missing)} missing" if missing else "it ended the process; a part for this CPU may be missing"


def _again(facts: Facts) -> str:
    """The command that installs MKL anew, by the tool that has it on record."""
    mkl = package(facts, "mkl")
    if mkl is None or mkl.installer == "conda":
        return "conda install --force-reinstall mkl"
    return python_command(facts, f"-m pip install --force-reinstall --no-deps mkl=={mkl.version}")


def _mixed(found: Native, folder: str, suffix: str) -> str | None:
    """Which parts come from elsewhere, in words; None where all are of one MKL."""
    mapped = () if found.started is None else found.started.with_numpy
    strange = [path for path in mapped if _PART.search(path) and path.rpartition("/")[0] != folder]
    if strange:
        return f"mapped with it: {', '.join(strange)}"
    owners = sorted({owner for owner in _beside(found, folder, suffix).values() if owner and _RELEASE.match(owner)})
    return f"its parts belong to {' and '.join(owners)}" if len(owners) > 1 else None
