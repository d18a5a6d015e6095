"""IDP201: no wheel for this Python."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts, Interpreter
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.built_host import built_host
from ideepdoctor.rules.compat import RELEASES, WHEEL_PYTHONS, is_built
from ideepdoctor.rules.installed import build_command

_ABIS = {abi for release in RELEASES.values() for abi in release.abis}


class IDP201(Rule):
    """ideep4py has wheels for CPython 2.7, 3.5, 3.6 and 3.7, 64-bit, and for no other Python.

    What it checks
        Implementation, version, ABI and word size of the target's interpreter; not where an ideep4py that somebody
        built for it is installed and can be imported, or one is about to be built.

    Why it matters
        ``pip install ideep4py`` says ``No matching distribution found`` and not why. Chainer itself works on Python
        3.8 to 3.11 with NumPy alone, so where Chainer is installed this is a warning.

    How to fix
        An environment with an older Python: ``ideepdoctor setup`` makes one beside what is there. Or an ideep4py that
        is built for this Python, 3.8 to 3.13: ``ideepdoctor setup --build`` makes an environment with it.

    References
        intel/ideep #45 and #25; pypa/pip #10501.
    """

    title = "There is no ideep4py for this Python"
    severity = Severity.ERROR
    requires = ("IDP101", "IDP102")
    ok = (
        Example("CPython 3.7"),
        Example("CPython 2.7", host="py27-healthy"),
        Example("a build of your own for 3.8", {"python": {"version": "3.8.18", "abi": "cp38"}}),
        Example("built for 3.11", built_host()),
        Example("about to be built for 3.11", {**built_host(ideep4py=None), "planned_ideep4py": "2.0.0.post3+doctor"}),
    )
    bad = (
        Example("CPython 3.11", host="py311-nothing"),
        Example("a 32-bit Python", {"python": {"bits": 32}, "packages": {"ideep4py": None}}),
        Example(
            "3.9 with Chainer",
            {"python": {"version": "3.9.18", "abi": "cp39"}, "packages": {"ideep4py": None}},
        ),
        Example(
            "PyPy",
            {"python": {"implementation": "PyPy", "abi": "pypy37_pp73"}, "packages": {"ideep4py": None}},
        ),
        Example(
            "files copied from another Python",
            {
                "python": {"version": "3.8.18", "abi": "cp38"},
                "imports": {"ideep4py": {"ok": False, "error_text": "No module named 'ideep4py._ideep4py'"}},
            },
        ),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look for the ABI among those of the wheels."""
        python = facts.python
        if python.abi in _ABIS and python.bits == 64 and python.implementation == "CPython":
            return
        planned = facts.planned_ideep4py
        if is_built(planned) if planned is not None else _built_for_it(facts):
            return
        works_without = facts.package("chainer") is not None and planned is None
        near = _nearest(facts)
        beside = "" if near is None else f"; Python {near.version} is at {near.path}"
        build = build_command(facts)
        setup = "ideepdoctor setup" if near is None else f"ideepdoctor setup --python {near.path}"
        yield self.finding(
            found=f"{python.implementation} {python.version} ({python.abi}, {python.bits} bits)",
            needed=f"CPython 3.7, 3.6, 2.7 or 3.5 of 64 bits{beside}",
            consequence="pip finds no ideep4py for it; Chainer, where it works, uses NumPy alone",
            next_step=f"{setup}; or have one built for this Python: {build}" if build else setup,
            severity=Severity.WARNING if works_without else None,
        )


def _built_for_it(facts: Facts) -> bool:
    """Whether an ideep4py is installed that nothing but a build can have brought here, and its import did not fail."""
    result = None if facts.imports is None else facts.imports.get("ideep4py")
    return facts.package("ideep4py") is not None and (result is None or result.ok)


def _nearest(facts: Facts) -> Interpreter | None:
    usable = [
        item
        for item in facts.interpreters or ()
        if item.abi in _ABIS and item.bits == 64 and item.implementation == "CPython"
    ]
    order = list(WHEEL_PYTHONS)
    return min(usable, key=lambda item: order.index(".".join(item.version.split(".")[:2])), default=None)
