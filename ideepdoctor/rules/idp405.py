"""IDP405: ideep4py finds its libraries by DT_RUNPATH."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, FixSafety, Severity
from ideepdoctor.model.native import Native
from ideepdoctor.model.plan import SetRpath, Step
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.deaths import failed, killed
from ideepdoctor.rules.installed import fix_command, ideep4py_fix, ideep4py_steps, new_environment_command, package
from ideepdoctor.rules.loading import (
    BINDING,
    LIB,
    MKLDNN,
    STRANGER,
    dead_child,
    describe,
    loading_evidence,
    lost_by_runpath,
    native,
    own_folder,
    own_taken,
    stranger,
    taken,
    what_happens,
    why,
    with_runpath,
    works,
)

_BUILT = {BINDING: {"rpath": None, "runpath": "$ORIGIN/lib"}}
_LOST = {
    "objects": _BUILT,
    "predicted": [
        taken(MKLDNN, f"{LIB}/{MKLDNN}", f"DT_RUNPATH of {BINDING}"),
        taken("libiomp5.so", None, "not found", by=f"{LIB}/{MKLDNN}", problem="not found"),
    ],
    "started": dead_child(failed("ImportError", "libiomp5.so: cannot open shared object file"), imported=False),
}
_BY_LUCK = {
    "objects": _BUILT,
    "predicted": [*own_taken("libiomp5.so"), taken("libiomp5.so", "/opt/conda/lib/libiomp5.so", "DT_RPATH of python")],
    "started": dead_child({"ok": True}),
}


class IDP405(Rule):
    """The extension module has DT_RUNPATH where the wheel has DT_RPATH.

    What it checks
        The dynamic section of ``_ideep4py`` and of the libraries in its folder, which files the loader takes because
        of it, and a child that imports and computes.

    Why it matters
        DT_RPATH is searched before LD_LIBRARY_PATH and is inherited by the libraries that are needed; DT_RUNPATH is
        neither. Built with the compilers of Debian and Ubuntu, ideep4py gets DT_RUNPATH: then libmkldnn does not find
        libiomp5 (ImportError), or LD_LIBRARY_PATH or the interpreter's own lib folder brings another MKL-DNN, and the
        first operation ends with SIGABRT. The ImportError may name the wrong file.

    How to fix
        ``ideepdoctor fix`` turns it into DT_RPATH (patchelf). When you build: ``-Wl,--disable-new-dtags``. Renaming
        the other library would cure it as well, and break the package that needs it.

    References
        man ld.so, "Rpath token expansion"; binutils, --enable-new-dtags.
    """

    title = "ideep4py finds its libraries by RUNPATH"
    severity = Severity.ERROR
    requires = ("IDP101", "IDP102", "IDP204", "IDP301", "IDP302", "IDP401")
    fix = FixSafety.SAFE
    ok = (
        Example("a wheel"),
        Example(
            "LD_LIBRARY_PATH leads to its own folder",
            {"native": {"objects": _BUILT, "predicted": own_taken(), "started": dead_child({"ok": True})}},
        ),
    )
    bad = (
        Example("libiomp5 is not found", {"native": _LOST}),
        Example("another OpenMP by luck", {"native": _BY_LUCK}),
        Example(
            "another MKL-DNN",
            {
                "native": {
                    "objects": _BUILT,
                    "files": [stranger()],
                    "predicted": [taken(MKLDNN, STRANGER, "LD_LIBRARY_PATH"), *own_taken(MKLDNN)],
                    "started": dead_child(killed("SIGABRT"), after=[STRANGER]),
                }
            },
        ),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Where the tag is DT_RUNPATH: is anything taken from elsewhere?"""
        found = native(facts)
        lost = None if found is None else lost_by_runpath(found)
        if found is None or lost is None:
            return
        fine = works(found)
        first = lost[0] if lost else None
        lucky = fine is True
        mendable = facts.python.externally_managed is None
        yield self.finding(
            found=f"{found.binding} has DT_RUNPATH, not DT_RPATH" + (f"; {why(found, first)}" if first else ""),
            needed="DT_RPATH, which comes before LD_LIBRARY_PATH and holds for the libraries behind it, too",
            consequence=(
                f"it works by luck, with {describe(found, first.path)}"
                if lucky and first and first.path
                else what_happens(found, "the import fails, or another library computes and the process dies")
            ),
            next_step=fix_command(facts) if mendable else new_environment_command(facts),
            fix=FixSafety.SAFE if mendable else FixSafety.MANUAL,
            evidence=(
                Evidence("DT_RUNPATH", found.binding, f"readelf -d {found.binding} | grep -i path"),
                *(loading_evidence(found, first) if first else ()),
            ),
            severity=Severity.WARNING if lucky else Severity.ERROR,
        )

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Give the module and the libraries in its folder the tag that the wheel has."""
        found = native(facts)
        if found is None:
            return ()
        there = package(facts, "ideep4py")
        altered = {row.path for row in there.altered} if there is not None else set()
        if altered & set(with_runpath(found)) and ideep4py_fix(facts) is not FixSafety.MANUAL:
            return ideep4py_steps(facts)  # a wheel's file that somebody has changed: the wheel has the right tag
        return tuple(_set_rpath(found, path) for path in with_runpath(found))


def _set_rpath(found: Native, path: str) -> SetRpath:
    """Its own folder first, then no other: as the wheel has it."""
    rpath = "$ORIGIN/lib" if path.rpartition("/")[0] == own_folder(found) else "$ORIGIN"
    return SetRpath(
        path, rpath, "finds its own libraries first, however Python is started", found.objects[path].size_bytes
    )
