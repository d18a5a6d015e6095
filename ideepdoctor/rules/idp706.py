"""IDP706: NumPy computes without a real library for linear algebra."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.model.native import Started
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.installed import package, python_command

_FAST = re.compile(r"openblas|mkl|blis|atlas|accelerate|veclib|flexiblas|armpl|essl|nvblas|aocl", re.IGNORECASE)
"""What the file of a library for linear algebra that is worth its name, or its folder, is called."""
_REFERENCE = re.compile(r"/lib(ref)?blas(64)?\.so")
"""The reference implementation, which Debian has in a folder ``blas``. The links are followed: where an alternative is
chosen, the path is that one's."""
_NUMPY = re.compile(r"/numpy/_?core/")
_SITE = "/home/user/ideep/lib/python3.7/site-packages/numpy"
_PLAIN = [f"{_SITE}/core/_multiarray_umath.cpython-37m-x86_64-linux-gnu.so", "/usr/lib/x86_64-linux-gnu/libc.so.6"]
_DEBIAN = "/usr/lib/x86_64-linux-gnu"


def _mapped(*libraries: str, told: list[str] | None) -> dict[str, Any]:
    return {"native": {"started": {"with_numpy": [*_PLAIN, *libraries], "numpy_blas": told}}}


class IDP706(Rule):
    """NumPy was built without a library for linear algebra, or finds only the reference one.

    What it checks
        The libraries that are mapped after ``import numpy`` alone, and where none of them is one for linear algebra,
        which ones NumPy says it was built with. A NumPy that has its library inside is believed.

    Why it matters
        What iDeep does not compute, NumPy does: ``linear`` with float64, recurrent nets, the optimizers. Without a
        library its matrix products are plain loops on one thread.

    How to fix
        Install a wheel of the index: NumPy's wheels bring OpenBLAS. On Debian the package libopenblas0 takes the place
        of the reference library.

    References
        Measured on 2 CPUs: a product of two 512 x 512 matrices of float32 takes 149 ms with NumPy 1.16.6 built without
        a library, 2.2 ms with the wheel.

        Reports: espnet #276, #380.
    """

    title = "NumPy has no real library for linear algebra"
    severity = Severity.WARNING
    requires = ("IDP201", "IDP305")
    ok = (
        Example("OpenBLAS of the wheel"),
        Example("MKL", _mapped("/opt/conda/lib/libmkl_rt.so.2", "/opt/conda/lib/libmkl_core.so.2", told=["mkl_rt"])),
        Example("Debian's alternative", _mapped(f"{_DEBIAN}/openblas-pthread/libblas.so.3", told=["blas"])),
        Example("OpenBLAS inside of NumPy", _mapped(told=["openblas"])),
        Example("an older doctor's facts", _mapped(told=None)),
        Example("nothing was started", {"native": {"started": None}}),
    )
    bad = (
        Example("built without one", _mapped(told=[])),
        Example("the reference library", _mapped(f"{_DEBIAN}/blas/libblas.so.3.11.0", told=["blas", "lapack"])),
        Example("the reference library of conda", _mapped("/opt/conda/lib/libblas.so.3.9.0", told=["cblas", "blas"])),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look at what is mapped first, then at what NumPy says."""
        started = None if facts.native is None else facts.native.started
        if started is None or facts.platform.system != "Linux":
            return
        lacking = _lacking(started)
        numpy = package(facts, "numpy")
        if lacking is None or numpy is None:
            return
        what, path = lacking
        yield self.finding(
            found=f"NumPy {numpy.version} computes with {what}",
            needed="OpenBLAS or MKL",
            consequence="matrix products of NumPy are tens of times slower, on one thread",
            next_step=python_command(facts, f"-m pip install --force-reinstall --no-deps numpy=={numpy.version}"),
            evidence=(Evidence(what, path, python_command(facts, "-c 'import numpy; numpy.show_config()'")),),
        )


def _lacking(started: Started) -> tuple[str, str | None] | None:
    """What NumPy computes with instead of a library, and its path; None: it has one, or that is not known."""
    if not any(_NUMPY.search(path) for path in started.with_numpy):
        return None
    if any(_FAST.search("/".join(path.split("/")[-2:])) for path in started.with_numpy):
        return None
    reference = next((path for path in started.with_numpy if _REFERENCE.search(path)), None)
    if reference is not None:
        return f"the reference BLAS ({reference})", reference
    return ("plain loops, no BLAS at all", None) if started.numpy_blas == () else None
