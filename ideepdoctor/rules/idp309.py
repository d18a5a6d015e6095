"""IDP309: files of ideep4py that are not what was installed."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, FixSafety, Severity
from ideepdoctor.model.plan import Step
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.installed import cure_command, ideep4py_fix, ideep4py_steps, package
from ideepdoctor.rules.loading import lost_by_runpath, own_missing, with_runpath

_WORDS = {"missing": "missing", "size": "of another size", "sha256": "of other content"}
_LIB = "/home/user/ideep/lib/python3.7/site-packages/ideep4py/lib"
_EMPTY = {"path": f"{_LIB}/libiomp5.so", "problem": "size", "expected": "1440317", "found": "0"}
_MISSING = {"path": f"{_LIB}/libmkldnn.so.0", "problem": "missing", "expected": "there", "found": "nothing"}


class IDP309(Rule):
    """Files of ideep4py are missing or differ from the list that came with them.

    What it checks
        Every file of the distribution against RECORD: there, of that size, with that sha256 (``--quick``: size alone).

    Why it matters
        An interrupted installation, a full disk, a library that somebody replaced or deleted: the import fails
        (``file too short``, ``cannot open shared object file``), or the process dies with SIGBUS, or another library
        computes.

    How to fix
        Install the same release again: ``ideepdoctor fix`` does so by hash.

    References
        intel/caffe #111, PaddlePaddle #5508.

        Reports: PaddlePaddle #3758 (a download that was cut off).
    """

    title = "Files of ideep4py were altered"
    severity = Severity.ERROR
    requires = ("IDP301", "IDP315")
    fix = FixSafety.SAFE
    ok = (
        Example("as installed"),
        Example("not compared", {"packages": {"ideep4py": {"integrity": None, "altered": []}}}),
    )
    bad = (
        Example("an emptied library", {"packages": {"ideep4py": {"altered": [_EMPTY]}}}),
        Example("a missing library", {"packages": {"ideep4py": {"altered": [_MISSING, _EMPTY]}}}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the altered files together."""
        found = package(facts, "ideep4py")
        if found is None or not found.altered or facts.planned_ideep4py is not None:
            return
        if facts.native is not None and facts.native.binding is not None and own_missing(facts.native):
            return  # IDP406 says what is missing and what is taken instead
        altered = [row for row in found.altered if row.path not in _told(facts)]
        if not altered:
            return
        first, safety = altered[0], ideep4py_fix(facts)
        more = f" and {len(altered) - 1} more" if len(altered) > 1 else ""
        yield self.finding(
            found=f"{first.path}: {_WORDS.get(first.problem, first.problem)}{more}",
            needed=f"the files of ideep4py {found.version} as its RECORD lists them",
            consequence="the import fails, the process dies, or another library computes",
            next_step=cure_command(facts, safety),
            evidence=tuple(
                Evidence(
                    f"{item.problem}: expected {item.expected}, found {item.found}", item.path, f"ls -l {item.path}"
                )
                for item in altered[:5]
            ),
            fix=safety,
        )

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Install the files again."""
        return ideep4py_steps(facts)


def _told(facts: Facts) -> frozenset[str]:
    """Files that IDP405 tells of: their DT_RPATH became DT_RUNPATH, and that is what does the harm."""
    found = facts.native
    if found is None or found.binding is None or lost_by_runpath(found) is None:
        return frozenset()
    return frozenset(with_runpath(found))
