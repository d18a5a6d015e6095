"""IDP404: another package and ideep4py do not get on in one process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, FixSafety, Severity
from ideepdoctor.model.native import PairCheck
from ideepdoctor.model.plan import Step
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.deaths import how_it_ended, killed, last_line
from ideepdoctor.rules.installed import fix_command, python_command, variable_steps
from ideepdoctor.rules.loading import ENV, elf, native
from ideepdoctor.treatment.order import packages_first

_BETTER = {"mxnet-mkl": "mxnet-mkl 1.6.0", "mxnet": "mxnet 1.6.0", "torch": "torch 1.7.1 or later"}
"""Releases that were measured to work beside ideep4py in either order."""
_FINE = {"ok": True, "seconds": 1.0}
_ABORT = {"seconds": 1.0, **killed("SIGABRT", "mkldnn::error")}


def _pair(package: str, module: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    pair = {"package": package, "module": module, "before": before, "after": after, "culprit": "ideep4py"}
    return {"native": {"pairs": [pair]}}


_LIBTORCH = elf(f"{ENV}/lib/python3.7/site-packages/torch/lib/libtorch.so", exports=["mkldnn_version"])
_CONTAINED = {"file": _LIBTORCH, "kind": "contained", "name": "MKL-DNN", "own": False}
_TORCH = {
    "packages": {"torch": "1.4.0"},
    "native": {
        **_pair("torch 1.4.0", "torch", _ABORT, _FINE)["native"],
        "files": [{**_CONTAINED, "owner": "torch 1.4.0", "places": ["site-packages"]}],
    },
}


class IDP404(Rule):
    """A package with a MKL-DNN of its own, and ideep4py, in one process: in one order of import or in both, one dies.

    What it checks
        Every installed package that ships or exports MKL-DNN: one child in each order of import runs one operation
        in both.

    Why it matters
        A MKL-DNN inside another library is no file that could be found or renamed: torch 1.0 to 1.4 contain one and
        make its symbols global, so that ideep4py, imported later, calls it and dies. mxnet-mkl 1.2 to 1.5 bring a
        libmkldnn.so.0 that ideep4py is bound to, or the other way round.

    How to fix
        Where one order works, keep to it: import ideep4py (or chainer) first. For torch, ``ideepdoctor fix`` leaves a
        start-up file in the environment that does so at ``import torch``. Where none works: two processes, or a
        release of the other package that does (mxnet-mkl 1.6).

    References
        apache/mxnet #15419; man dlopen, RTLD_GLOBAL.
    """

    title = "Another package and ideep4py cannot always be used in one process"
    severity = Severity.WARNING
    requires = ("IDP101", "IDP102", "IDP204", "IDP301", "IDP302", "IDP401", "IDP402", "IDP403", "IDP405", "IDP406")
    ok = (
        Example("no other package has a MKL-DNN"),
        Example("one that gets on with it", _pair("mxnet-mkl 1.6.0", "mxnet", _FINE, _FINE)),
        Example("nothing was tried", {"native": {"pairs": None}}),
    )
    bad = (
        Example("one order works", _TORCH),
        Example("one order works, of an unknown package", _pair("other 1.0", "other", _ABORT, _FINE)),
        Example("the other order works", _pair("other 1.0", "other", _FINE, _ABORT)),
        Example("none works", _pair("mxnet-mkl 1.5.0", "mxnet", _ABORT, _ABORT)),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the pairs that died."""
        found = native(facts)
        for pair in () if found is None else found.pairs or ():
            before, after = not pair.before.ok, not pair.after.ok
            if before or after:
                yield self._finding(facts, pair, before=before, after=after)

    def _finding(self, facts: Facts, pair: PairCheck, *, before: bool, after: bool) -> Finding:
        dead = pair.before if before else pair.after
        first, second = (pair.module, "ideep4py") if before else ("ideep4py", pair.module)
        curable = before and not after and pair.module in packages_first(facts) and _own_environment(facts)
        if before and after:
            name = pair.package.split()[0]
            better = _BETTER.get(name, f"another release of {name}")
            next_step = f"use them in two processes, or take {better}"
        elif curable:
            next_step = fix_command(facts)
        else:
            next_step = f"import {second} before {first}"
        return self.finding(
            found=f"{pair.package} and ideep4py: no order of import works"
            if before and after
            else f"{pair.package} and ideep4py: one dies when {first} is imported before {second}",
            needed="one operation in each, in either order of import",
            consequence=f"measured: {how_it_ended(dead)}",
            next_step=next_step,
            evidence=(
                Evidence(
                    f"{first} first: {last_line(dead)}",
                    None,
                    python_command(facts, f"-c 'import {first}, {second}'") + ", then an operation in each",
                ),
            ),
            fix=FixSafety.SAFE if curable else FixSafety.MANUAL,
        )

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Leave the start-up file that imports ideep4py first."""
        return variable_steps(facts) if packages_first(facts) else ()


def _own_environment(facts: Facts) -> bool:
    return facts.python.kind in ("venv", "conda") and facts.python.externally_managed is None
