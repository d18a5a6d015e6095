"""IDP907: a variable that is set too late."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ideepdoctor.lint.base import Check, Note, Sample
from ideepdoctor.lint.module import Module
from ideepdoctor.lint.settings import environment
from ideepdoctor.model.findings import Severity

_READ_AT_IMPORT = ("CHAINER_USE_IDEEP", "CHAINER_DTYPE", "OMP_NUM_THREADS")
_STARTS_PROGRAMS = frozenset({"subprocess", "multiprocessing", "mpi4py", "sh", "pexpect", "ray", "joblib"})
_STARTING = ("os.exec", "os.spawn", "os.system", "os.popen", "os.posix_spawn")


class IDP907(Check):
    """``os.environ`` is given a variable after ``import chainer``, which has read it already.

    What it checks
        CHAINER_USE_IDEEP, CHAINER_DTYPE and OMP_NUM_THREADS in ``os.environ``, set below an ``import chainer`` (or
        ideep4py) at the module's own level. Programs that start others are left alone: those inherit it.

    Why it matters
        Chainer reads its variables when it is imported, and ideep4py's OpenMP is loaded by that import: what is set
        later changes nothing, and no message is printed.

    How to fix
        Set it above the import; or ``chainer.config.use_ideep = 'auto'``, which works at any time.

    References
        Measured with Chainer 7.8.1 and ideep4py 2.0.0.post3: OMP_NUM_THREADS=1 set after the import leaves two threads
        on two CPUs. MKLDNN_VERBOSE works at any time before the first function.
    """

    title = "A variable is set after the import that reads it"
    severity = Severity.WARNING
    needed = "the variable before the import"
    ok = (
        Sample("before it", "import os\nos.environ['CHAINER_USE_IDEEP'] = 'auto'\nimport chainer\n"),
        Sample("for another program", "import chainer, os, subprocess\nos.environ['CHAINER_USE_IDEEP'] = 'auto'\n"),
        Sample(
            "imported later, in a function",
            "import os\ndef main():\n    import chainer\nos.environ['CHAINER_USE_IDEEP'] = 'auto'\n",
        ),
    )
    bad = (
        Sample("after it", "import os\nimport chainer\nos.environ['CHAINER_USE_IDEEP'] = 'auto'\n"),
        Sample(
            "in a function",
            "import os\nimport chainer.links as L\ndef main():\n    os.environ.setdefault('OMP_NUM_THREADS', '1')\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Note]:
        """Report each variable that is set below the import."""
        first = first_import(module, ("chainer", "ideep4py"))
        if first is None or module.imported & _STARTS_PROGRAMS:
            return
        if any(module.path(call).startswith(_STARTING) for call in module.names.calls()):
            return
        for name in _READ_AT_IMPORT:
            for node, _value in environment(module, name):
                if getattr(node, "lineno", 0) > first[1].lineno:
                    yield Note(
                        node,
                        found=f"{name} is set after import chainer (line {module.source.line_of(first[1])})",
                        consequence="it was read there: this changes nothing, silently",
                        next_step=_next_step(name),
                    )


def _next_step(name: str) -> str:
    if name == "CHAINER_USE_IDEEP":
        return "set it above the import, or write chainer.config.use_ideep = 'auto'"
    return "set it above the import"


def first_import(module: Module, packages: tuple[str, ...]) -> tuple[int, ast.stmt] | None:
    """The first import of one of these packages that every run of the module makes.

    Returns:
        Its number among all imports, and the statement; None where there is none.
    """
    steps = module.objects(module.source.tree).flow.steps
    always = {step.node for step in steps if not step.guards and not step.blocks}
    for number, (node, path) in enumerate(module.names.imports()):
        if node in always and path.split(".")[0] in packages:
            return number, node
    return None
