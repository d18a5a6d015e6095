"""IDP402: another MKL-DNN is there before ideep4py's own."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.deaths import killed
from ideepdoctor.rules.installed import python_command
from ideepdoctor.rules.loading import (
    LIB,
    MKLDNN,
    STRANGER,
    dead_child,
    describe,
    is_own,
    mapped_mkldnn,
    native,
    own_file,
    own_taken,
    predicted,
    stranger,
    taken,
    what_happens,
    works,
)

_FIRST = {
    "files": [stranger()],
    "predicted": [taken(MKLDNN, STRANGER, "already loaded"), *own_taken(MKLDNN)],
    "started": dead_child(killed("SIGABRT", "mkldnn::error"), at_start=[STRANGER], after=[STRANGER]),
}
_BOTH = {
    "native": {
        "files": [stranger(), own_file()],
        "started": dead_child(killed("SIGSEGV"), at_start=[STRANGER], after=[STRANGER, f"{LIB}/{MKLDNN}"]),
    }
}
_RENAMED = "/opt/other/libmkldnn.so"


class IDP402(Rule):
    """A library with the SONAME of ideep4py's MKL-DNN is in the process before ideep4py is imported.

    What it checks
        What is mapped when this Python has started and nothing was imported yet, and the MKL-DNN that is mapped after
        ``import ideep4py``: by file, not by name.

    Why it matters
        The loader never maps a second library of one SONAME: ideep4py is bound to the one that is there. File names
        lie; a file called libmkldnn.so may have the SONAME libmkldnn.so.0. The import works and the first operation
        ends with SIGABRT. Another ideep4py's MKL-DNN 0.14 is harmless, and is not reported.

    How to fix
        Do not load that library in a start-up file (sitecustomize.py, usercustomize.py, a .pth file), or import
        ideep4py there first. Do not rename the library: the package that it came with needs it.

    References
        man dlopen; apache/mxnet #15419; PaddlePaddle #14784.

        Reports: NervanaSystems/neon #457.
    """

    title = "Another MKL-DNN is loaded before ideep4py's own"
    severity = Severity.ERROR
    requires = ("IDP101", "IDP102", "IDP204", "IDP301", "IDP302", "IDP401")
    ok = (
        Example("ideep4py's own"),
        Example(
            "the same MKL-DNN of another ideep4py",
            {
                "native": {
                    **_FIRST,
                    "files": [stranger(name="MKL-DNN 0.14", owner="ideep4py 2.0.0.post3")],
                    "started": dead_child({"ok": True}, at_start=[STRANGER], after=[STRANGER]),
                }
            },
        ),
        Example(
            "both are mapped",
            _BOTH,
        ),
    )
    bad = (
        Example("a start-up file loaded it", {"native": _FIRST}),
        Example(
            "under another file name",
            {
                "native": {
                    "files": [stranger(_RENAMED)],
                    "predicted": [taken(MKLDNN, _RENAMED, "already loaded"), *own_taken(MKLDNN)],
                    "started": dead_child(killed("SIGABRT"), at_start=[_RENAMED], after=[_RENAMED]),
                }
            },
        ),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Compare what computes with ideep4py's own."""
        found = native(facts)
        if found is None or found.started is None or works(found) is not False:
            return
        computes, step = mapped_mkldnn(found), predicted(found, MKLDNN)
        if computes is None or is_own(found, computes) or computes not in found.started.at_start:
            return
        yield self.finding(
            found=f"{describe(found, computes)} is mapped when Python starts",
            needed="ideep4py's own MKL-DNN, or nothing, before it is imported",
            consequence=what_happens(found, "the first operation ends the process with SIGABRT"),
            next_step="take it out of the start-up file that loads it, or import ideep4py there first",
            evidence=(
                Evidence(f"{MKLDNN}: {'already loaded' if step is None else step.step}", computes),
                Evidence(
                    "mapped before anything is imported",
                    None,
                    python_command(facts, "-c 'print(open(\"/proc/self/maps\").read())' | grep mkldnn"),
                ),
                Evidence("start-up files", None, python_command(facts, "-v -c pass 2>&1 | grep customize")),
            ),
        )
