"""IDP403: symbols of another MKL-DNN are visible to every library."""

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
    dead_child,
    describe,
    is_own,
    native,
    own_file,
    stranger,
    what_happens,
    works,
)

_OTHER = "/opt/other/libdnnl.so.2"
_GLOBAL = {
    "files": [stranger(_OTHER, name="oneDNN 2.4.0"), own_file()],
    "started": dead_child(
        killed("SIGSEGV"), at_start=[_OTHER], after=[_OTHER, f"{LIB}/{MKLDNN}"], visible={"dnnl_version": _OTHER}
    ),
}
_SYMBOLS = {
    "files": [stranger("/opt/other/libmkldnn.so", name="MKL-DNN 0.20.2"), own_file()],
    "started": dead_child(
        killed("SIGABRT", "mkldnn::error"),
        after=["/opt/other/libmkldnn.so", f"{LIB}/{MKLDNN}"],
        visible={"mkldnn_memory_set_data_handle": "/opt/other/libmkldnn.so"},
    ),
}


class IDP403(Rule):
    """Something makes the symbols of another MKL-DNN or oneDNN global before ideep4py is imported.

    What it checks
        Whether the functions of MKL-DNN or oneDNN can be found in the whole process when Python has started and
        nothing was imported yet, in which file, and how an operation of ideep4py then ends.

    Why it matters
        A library that was opened with RTLD_GLOBAL comes before ideep4py's own: the own file is mapped, and its calls
        go to the other one. No second libmkldnn.so.0 is to be found. With MKL-DNN it ends in SIGABRT; with oneDNN, of
        which only the C++ internals clash, in SIGSEGV without a message.

    How to fix
        Open that library without RTLD_GLOBAL (no ``mode=ctypes.RTLD_GLOBAL``, no ``sys.setdlopenflags``), or import
        ideep4py before it.

    References
        man dlopen, RTLD_GLOBAL.
    """

    title = "Symbols of another MKL-DNN are visible to every library"
    severity = Severity.ERROR
    requires = ("IDP101", "IDP102", "IDP204", "IDP301", "IDP302", "IDP401", "IDP402")
    ok = (
        Example("none is visible"),
        Example(
            "visible and harmless", {"native": {**_GLOBAL, "started": dead_child({"ok": True}, visible={"x": _OTHER})}}
        ),
    )
    bad = (Example("oneDNN", {"native": _GLOBAL}), Example("MKL-DNN of another name", {"native": _SYMBOLS}))

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look at the symbols that are visible before the import."""
        found = native(facts)
        if found is None or found.started is None or works(found) is not False:
            return
        others = sorted({path for path in found.started.visible.values() if not is_own(found, path)})
        if not others:
            return
        names = sorted(name for name, path in found.started.visible.items() if path == others[0])
        yield self.finding(
            found=f"{describe(found, others[0])} makes {names[0]} global",
            needed="no symbol of MKL-DNN or oneDNN that is global before ideep4py is imported",
            consequence=what_happens(found, "the first operation ends the process"),
            next_step="open that library without RTLD_GLOBAL, or import ideep4py before it",
            evidence=tuple(
                Evidence(
                    f"has {', '.join(names)}" if path == others[0] else "global, too",
                    path,
                    python_command(facts, f"-c 'import ctypes; print(ctypes.CDLL(None).{names[0]})'"),
                )
                for path in others
            ),
        )
