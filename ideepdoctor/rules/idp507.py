"""IDP507: variables that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.installed import package
from ideepdoctor.rules.loading import stranger
from ideepdoctor.rules.variable_names import meant

_LATER = ("DNNL_", "ONEDNN_", "MKLDNN_")
_READ = ("MKLDNN_JIT_DUMP", "MKLDNN_VERBOSE")
"""All that the MKL-DNN of ideep4py's wheels, 0.12 and 0.14, reads."""
_READERS = (
    "ctranslate2",
    "intel-extension-for-pytorch",
    "intel-tensorflow",
    "mxnet",
    "mxnet-mkl",
    "onednn",
    "onednn-cpu-gomp",
    "onednn-cpu-iomp",
    "onnxruntime",
    "openvino",
    "paddlepaddle",
    "tensorflow",
    "tensorflow-cpu",
    "torch",
)
"""Packages with a oneDNN inside, which may be the ones that the variable is for."""


def _sets(**values: str) -> dict[str, Any]:
    return {"variables": {"inherited": values, "effective": values}}


class IDP507(Rule):
    """A variable is set that nothing here reads: a slip of the pen, or one of a later MKL-DNN.

    What it checks
        The variables of the families of Chainer, OpenMP, MKL, MKL-DNN and OpenBLAS. A name that is nearly one that is
        read was meant to be that one; one that is near to none may be yours, and is left alone. Those of DNNL and
        oneDNN are no matter where another package has an oneDNN of its own.

    Why it matters
        What you meant to set is not set, and nothing says so: CHAINER_USE_IDEEEP=auto leaves iDeep off, and
        DNNL_MAX_CPU_ISA=AVX2 leaves AVX-512 on.

    How to fix
        Set the variable that the finding names. MKL-DNN 0.14 knows MKLDNN_VERBOSE and MKLDNN_JIT_DUMP and no other; its
        instruction set cannot be chosen.

    References
        oneDNN #500. The names are those in the sources of Chainer 4.0.0 to 7.8.1 and in the libraries themselves.
    """

    title = "A variable is set that nothing reads"
    severity = Severity.WARNING
    requires = ("IDP301",)
    ok = (
        Example("none"),
        Example("read by MKL-DNN 0.14", _sets(MKLDNN_VERBOSE="1", MKLDNN_JIT_DUMP="1")),
        Example("one's own", _sets(CHAINER_VERSION="7.8.1", MKL_ROOT_FOLDER="/opt/mkl", OMP_NUM_THREADS_ALL="2")),
        Example("for another package's oneDNN", {**_sets(DNNL_VERBOSE="1"), "packages": {"torch": "1.7.1"}}),
        Example("for another oneDNN that is there", {**_sets(ONEDNN_VERBOSE="1"), "native": {"files": [stranger()]}}),
    )
    bad = (
        Example("a letter too many", _sets(CHAINER_USE_IDEEEP="auto")),
        Example("a letter too few", _sets(OMP_NUM_THREAD="4")),
        Example("of a later MKL-DNN", _sets(DNNL_MAX_CPU_ISA="AVX2")),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Slips first, each with the name that was meant, then those of later releases together."""
        known = facts.variables.inherited if facts.variables.effective is None else facts.variables.effective
        for name in sorted(known):
            right = meant(name)
            if right is None:
                continue
            yield self.finding(
                found=f"{name} is set, which nothing reads",
                needed=right,
                consequence=f"{right} has its value all the same, and what you meant to set is not set"
                if right in known
                else f"{right} is not set",
                next_step=f'export {right}="${name}"',
                evidence=(Evidence("the variable", None, f"env | grep {name}"),),
            )
        later = [name for name in sorted(known) if name.startswith(_LATER) and name not in _READ and not meant(name)]
        if later and package(facts, "ideep4py") is not None and not _another_engine(facts):
            yield self.finding(
                found=f"{', '.join(later)} set, which ideep4py's MKL-DNN does not read",
                needed="MKLDNN_VERBOSE or MKLDNN_JIT_DUMP, the two that it reads",
                consequence="it does what it does without them",
                next_step=f"unset {' '.join(later)}",
                evidence=(Evidence("the variables", None, "env | grep -E 'DNNL_|ONEDNN_|MKLDNN_'"),),
                severity=Severity.INFO,
            )


def _another_engine(facts: Facts) -> bool:
    """Whether something else here has a oneDNN that may read them."""
    if any(package(facts, name) is not None for name in _READERS):
        return True
    files = () if facts.native is None else facts.native.files
    return any(item.kind in ("mkldnn", "contained") and not item.own for item in files)
