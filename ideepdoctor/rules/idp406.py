"""IDP406: a library that ideep4py needs is missing, or does not fit."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, FixSafety, Severity
from ideepdoctor.model.native import Loaded, Native, VariableSource
from ideepdoctor.model.plan import DisableLine, RenameFile, Step
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.deaths import failed, killed
from ideepdoctor.rules.installed import cure_command, fix_command, ideep4py_fix, ideep4py_steps, package
from ideepdoctor.rules.loading import (
    LIB,
    MKLDNN,
    STRANGER,
    dead_child,
    describe,
    library,
    loading_evidence,
    native,
    needed_by,
    own_missing,
    own_taken,
    predicted,
    stranger,
    taken,
    what_happens,
    works,
)

_GONE = dict.fromkeys((f"{LIB}/{MKLDNN}", f"{LIB}/libmklml_intel.so", f"{LIB}/libiomp5.so"))
_ROW = {"path": f"{LIB}/{MKLDNN}", "problem": "missing", "expected": "there", "found": "nothing"}
_ALTERED = {"packages": {"ideep4py": {"altered": [_ROW]}}}
_NOT_FOUND = {
    "objects": _GONE,
    "files": [],
    "predicted": [taken(MKLDNN, None, "not found", problem="not found")],
    "started": dead_child(failed("ImportError", f"{MKLDNN}: cannot open shared object file"), imported=False),
}
_STDCXX = taken("libstdc++.so.6", "/opt/old/libstdc++.so.6", "LD_LIBRARY_PATH", by=f"{LIB}/{MKLDNN}")


class IDP406(Rule):
    """A library that ideep4py needs is not in its folder, is found nowhere, or is too old.

    What it checks
        Everything that the extension module needs, directly or behind it, in the order in which the dynamic loader
        searches: whether it is found, where, and whether it has the symbol versions that are asked for.

    Why it matters
        Without its own lib folder the import fails; where the interpreter's lib folder or LD_LIBRARY_PATH has a
        libmkldnn.so.0 (as in conda's and Intel's Python), it is worse: that one is taken, the import works, and the
        first operation ends with SIGABRT. An unversioned libmkldnn.so helps nobody: it is not searched at run time.

    How to fix
        ``ideepdoctor fix`` installs the same release again, by hash. Leave the other library alone: with its own lib
        folder in place ideep4py does not look at it.

    References
        man ld.so; intel/ideep #25.

        Reports: oneDNN #294, PaddlePaddle #11394 and #14784, chainer PR 4381 and 4385 (not found); BVLC/caffe #4953,
        apache/mxnet #1297 and ContinuumIO/anaconda-issues #483 (GLIBCXX).
    """

    title = "A library that ideep4py needs is missing, or does not fit"
    severity = Severity.ERROR
    requires = ("IDP101", "IDP102", "IDP103", "IDP204", "IDP301", "IDP302", "IDP401", "IDP405")
    fix = FixSafety.SAFE
    ok = (
        Example("all there"),
        Example("another one on LD_LIBRARY_PATH", {"native": {"files": [stranger(places=["LD_LIBRARY_PATH"])]}}),
    )
    bad = (
        Example("no lib folder", {**_ALTERED, "native": _NOT_FOUND}),
        Example("no lib folder in one's own build", {"native": _NOT_FOUND}),
        Example(
            "another MKL-DNN in its place",
            {
                **_ALTERED,
                "native": {
                    "objects": _GONE,
                    "files": [stranger()],
                    "predicted": [taken(MKLDNN, STRANGER, "DT_RPATH of python"), *own_taken(MKLDNN)],
                    "started": dead_child(killed("SIGABRT"), after=[STRANGER]),
                },
            },
        ),
        Example(
            "an old libstdc++",
            {
                "native": {
                    "predicted": [*own_taken(), {**_STDCXX, "problem": "version `GLIBCXX_3.4.18' not found"}],
                    "started": dead_child(failed("ImportError", "GLIBCXX_3.4.18"), imported=False),
                }
            },
        ),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """The wheel's own libraries first, then everything else."""
        found = native(facts)
        if found is None:
            return
        missing = own_missing(found)
        if missing:
            yield from self._own(facts, found, missing)
            return
        if works(found) is True:
            return
        broken = next((item for item in found.predicted if item.problem and _behind(found, item)), None)
        if broken is not None and not _altered(facts, broken):
            yield self._other(facts, found, broken)

    def _own(self, facts: Facts, found: Native, missing: tuple[str, ...]) -> Iterator[Finding]:
        first = predicted(found, missing[0])
        if first is None:
            return
        safety = ideep4py_fix(facts)
        if safety is not FixSafety.MANUAL and not ideep4py_steps(facts):
            safety = FixSafety.MANUAL  # not from a wheel: there is nothing to install anew
        if safety is FixSafety.MANUAL and _to_rename(facts, found, first) is not None:
            safety = FixSafety.UNSAFE
        users = [path for path in needed_by(found, MKLDNN) if first.path is not None]
        instead = "nothing else is found" if first.path is None else f"taken instead: {describe(found, first.path)}"
        expected = "the import fails" if first.path is None else "the first operation ends the process with SIGABRT"
        lucky = works(found) is True
        yield self.finding(
            found=f"{', '.join(missing)} not in ideep4py's folder; {instead}",
            needed="the libraries that came with ideep4py",
            consequence="it works by luck" if lucky else what_happens(found, expected),
            next_step=cure_command(facts, safety),
            evidence=(
                *loading_evidence(found, first),
                *(Evidence(f"needs {MKLDNN}, too: renaming it would break this", path) for path in users[:3]),
            ),
            severity=Severity.WARNING if lucky else Severity.ERROR,
            fix=safety,
        )

    def _other(self, facts: Facts, found: Native, broken: Loaded) -> Finding:
        lines = _lines(facts, found, broken)
        return self.finding(
            found=f"{broken.name}: {broken.problem}",
            needed=f"a {broken.name} that {broken.by.rpartition('/')[2]} can use",
            consequence=what_happens(found, "the import fails"),
            next_step=(
                f"install the package of your system that has {broken.name}"
                if broken.path is None
                else fix_command(facts, FixSafety.UNSAFE)
                if lines
                else "unset LD_LIBRARY_PATH"
                if broken.step == "LD_LIBRARY_PATH"
                else f"update the package that has {broken.path}"
            ),
            evidence=(
                *loading_evidence(found, broken),
                Evidence("needs it", broken.by, f"ldd {broken.by}"),
                *(
                    Evidence(f"line {item.line_number} sets LD_LIBRARY_PATH", item.path, line=item.line_number)
                    for item in lines
                ),
            ),
            fix=FixSafety.UNSAFE if lines else FixSafety.MANUAL,
        )

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Install the release that is right here again; else take away what was taken for it, or what led there."""
        found = native(facts)
        if found is None:
            return ()
        missing = own_missing(found)
        if not missing:
            broken = next((item for item in found.predicted if item.problem and _behind(found, item)), None)
            why = "it leads to a library that ideep4py cannot use"
            lines = () if broken is None else _lines(facts, found, broken)
            return tuple(DisableLine(item.path, item.line_number, item.line, why) for item in lines)
        first = predicted(found, missing[0])
        renamed = None if first is None else _to_rename(facts, found, first)
        again = () if ideep4py_fix(facts) is FixSafety.MANUAL else ideep4py_steps(facts)
        return again or (() if renamed is None else (renamed,))


def _to_rename(facts: Facts, found: Native, taken: Loaded) -> RenameFile | None:
    """Another MKL-DNN that nobody claims and nothing else needs: without it a program computes with NumPy and lives."""
    if taken.path is None or taken.name != MKLDNN or facts.python.externally_managed is not None:
        return None
    item = library(found, taken.path)
    if item is None or item.owner is not None or item.own or needed_by(found, MKLDNN):
        return None
    return RenameFile(taken.path, "it is taken for ideep4py's own MKL-DNN, which is missing, and ends the process")


def _lines(facts: Facts, found: Native, taken: Loaded) -> tuple[VariableSource, ...]:
    """Lines that may be changed and lead the search to the folder that this library was taken from."""
    if taken.step != "LD_LIBRARY_PATH" or taken.path is None or facts.python.externally_managed is not None:
        return ()
    folder = taken.path.rpartition("/")[0]
    return tuple(
        item
        for item in found.sources
        if item.name == "LD_LIBRARY_PATH" and item.kind != "system" and folder in item.value.split(":")
    )


def _behind(found: Native, item: Loaded) -> bool:
    """Whether something of ideep4py needs it (and not the interpreter, which runs)."""
    return item.by == found.binding or item.by.startswith(f"{(found.binding or '').rpartition('/')[0]}/")


def _altered(facts: Facts, item: Loaded) -> bool:
    """Whether IDP309 tells of this file already."""
    there = package(facts, "ideep4py")
    return there is not None and any(row.path == item.path for row in there.altered)
