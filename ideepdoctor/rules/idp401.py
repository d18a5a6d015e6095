"""IDP401: LD_PRELOAD brings a library that ideep4py does not survive."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, FixSafety, Severity
from ideepdoctor.model.native import Native, VariableSource
from ideepdoctor.model.plan import DisableLine, Step
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.deaths import killed
from ideepdoctor.rules.installed import fix_command
from ideepdoctor.rules.loading import (
    ENV,
    STRANGER,
    dead_child,
    describe,
    ending,
    native,
    own_taken,
    stranger,
    taken,
    what_happens,
    works,
)

_MKLDNN_NAME = re.compile(r"/lib(mkldnn|dnnl|onednn)[^/\s:]*\.so")
_ABORTS = "import ideep4py works, and the first operation ends the process with SIGABRT"
_EXPORT = {
    "name": "LD_PRELOAD",
    "value": STRANGER,
    "path": f"{ENV}/bin/activate",
    "line_number": 80,
    "line": f"export LD_PRELOAD={STRANGER}",
    "kind": "activation",
}
_PRELOADED: dict[str, Any] = {
    "variables": {"inherited": {"LD_PRELOAD": STRANGER}, "effective": {"LD_PRELOAD": STRANGER}},
    "native": {
        "files": [stranger()],
        "predicted": [taken(STRANGER, STRANGER, "LD_PRELOAD", by="LD_PRELOAD"), *own_taken("libmkldnn.so.0")],
        "started": dead_child(killed("SIGABRT", "mkldnn::error"), after=[STRANGER]),
    },
}


class IDP401(Rule):
    """LD_PRELOAD puts another MKL-DNN before ideep4py's own, or keeps Python from starting at all.

    What it checks
        The libraries in LD_PRELOAD and /etc/ld.so.preload, and the lines of activation scripts, shell start-up files
        and /etc that set it; a child with these variables that imports ideep4py and runs an operation.

    Why it matters
        A preloaded library comes before every other, DT_RPATH included. ideep 2 hands MKL-DNN a NULL handle that only
        its own MKL-DNN accepts: the import works, ``is_ideep_available()`` is True, and the first operation ends the
        process. That the symbols are all there proves nothing. A library whose own needs are not found keeps every
        program from starting.

    How to fix
        Start Python without it. ``ideepdoctor fix`` turns a line of an activation script or of your own start-up files
        into a comment; in a shell that has the variable already: ``unset LD_PRELOAD``.

    References
        man ld.so; apache/mxnet #15419.
    """

    title = "LD_PRELOAD brings a library that ideep4py does not survive"
    severity = Severity.ERROR
    requires = ("IDP101", "IDP102")
    ok = (
        Example("nothing preloaded"),
        Example(
            "an allocator",
            {
                "variables": {"inherited": {"LD_PRELOAD": "/usr/lib/libjemalloc.so.2"}},
                "native": {
                    "predicted": [
                        taken("/usr/lib/libjemalloc.so.2", "/usr/lib/libjemalloc.so.2", "LD_PRELOAD", by="LD_PRELOAD"),
                        *own_taken(),
                    ]
                },
            },
        ),
    )
    bad = (
        Example("another MKL-DNN", _PRELOADED),
        Example(
            "Python does not start",
            {
                **_PRELOADED,
                "native": {
                    **_PRELOADED["native"],
                    "started": {
                        "imported": {
                            "ok": False,
                            "seconds": 0.1,
                            "exit_code": 127,
                            "stderr_tail": "python: symbol lookup error: undefined symbol: cblas_gemm_s8u8s32_pack",
                        }
                    },
                },
            },
        ),
        Example("a line of the activation script", {"native": {"sources": [_EXPORT]}}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Judge what is preloaded now, then the lines that will preload it in the next shell."""
        found = native(facts)
        if found is None:
            return
        now = facts.variables.inherited.get("LD_PRELOAD", "")
        if works(found) is not True and (culprit := _culprit(found, now)):
            yield self._in_force(facts, found, now, culprit)
        elif line := next((item for item in _lines(found) if item.value != now), None):
            yield self._by_line(facts, line)

    def _in_force(self, facts: Facts, found: Native, now: str, culprit: str) -> Finding:
        lines = [item for item in _lines(found) if item.value == now]
        mend = bool(lines) and all(_changeable(facts, item) for item in lines)
        command = "unset LD_PRELOAD" if now else "remove it from /etc/ld.so.preload"
        return self.finding(
            found=f"{'LD_PRELOAD' if now else '/etc/ld.so.preload'} holds {describe(found, culprit)}",
            needed="nothing preloaded that is a MKL-DNN, or that keeps Python from starting",
            consequence=what_happens(found, _ABORTS),
            next_step=f"{fix_command(facts)}; in this shell: {command}" if mend else command,
            evidence=(
                Evidence("LD_PRELOAD comes before every other step of the search", culprit, "ideepdoctor libs --tree"),
                *(Evidence(f"set by line {item.line_number}", item.path, line=item.line_number) for item in lines),
            ),
            fix=FixSafety.SAFE if mend else FixSafety.MANUAL,
        )

    def _by_line(self, facts: Facts, line: VariableSource) -> Finding:
        ours = _changeable(facts, line)
        return self.finding(
            found=f"{line.path}, line {line.line_number}: {line.line.strip()}",
            needed="no MKL-DNN in LD_PRELOAD",
            consequence=f"in every shell that reads it {_ABORTS}",
            next_step=fix_command(facts) if ours else f"remove line {line.line_number} of {line.path}",
            evidence=(
                Evidence("not in force in this shell", line.path, f"grep -n LD_PRELOAD {line.path}", line.line_number),
            ),
            fix=FixSafety.SAFE if ours else FixSafety.MANUAL,
        )

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Turn the lines that set it into comments."""
        found = native(facts)
        lines = () if found is None else _lines(found)
        return tuple(
            DisableLine(item.path, item.line_number, item.line, "it preloads a library that ideep4py does not survive")
            for item in lines
            if item.kind != "system"
        )


def _culprit(found: Native, now: str) -> str | None:
    """The preloaded file that is a MKL-DNN; where Python does not start at all, the first one; None: all is well."""
    paths = [item.path or item.name for item in found.predicted if item.by in ("LD_PRELOAD", "/etc/ld.so.preload")]
    for path in paths:
        if any(path in (item.file.path, item.file.real_path) for item in found.files if item.kind == "mkldnn"):
            return path
    result = ending(found)
    dead = (
        result is not None
        and result.exit_code == 127
        and any(text in result.stderr_tail for text in ("symbol lookup error", "error while loading shared libraries"))
    )
    return (paths[0] if paths else now) if dead and (paths or now) else None


def _changeable(facts: Facts, line: VariableSource) -> bool:
    """Whether the doctor may change this line: not a system's file, nor the files of an interpreter of the system's."""
    return line.kind != "system" and facts.python.externally_managed is None


def _lines(found: Native) -> tuple[VariableSource, ...]:
    """Lines that preload a MKL-DNN: by what the file is, else by its name."""
    known = {path for item in found.files if item.kind == "mkldnn" for path in (item.file.path, item.file.real_path)}
    return tuple(
        item
        for item in found.sources
        if item.name == "LD_PRELOAD" and (_MKLDNN_NAME.search(item.value) or known & set(re.split("[ :]", item.value)))
    )
