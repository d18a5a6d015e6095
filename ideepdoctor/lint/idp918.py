"""IDP918: names that newer releases of NumPy do not have."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ideepdoctor.lint.base import Check, Note, Sample
from ideepdoctor.lint.module import Module
from ideepdoctor.model.findings import Severity

_GONE_IN_1_24 = {
    "bool": "bool",
    "complex": "complex",
    "float": "float",
    "int": "int",
    "long": "int",
    "object": "object",
    "str": "str",
    "unicode": "str",
}
"""What each was another name of, and so what to write."""
_GONE_IN_2_0 = {
    "Inf": "numpy.inf",
    "Infinity": "numpy.inf",
    "NINF": "-numpy.inf",
    "NZERO": "-0.0",
    "NaN": "numpy.nan",
    "PINF": "numpy.inf",
    "PZERO": "0.0",
    "alltrue": "numpy.all",
    "asfarray": "numpy.asarray(..., dtype=float)",
    "cast": "numpy.asarray(..., dtype=...)",
    "cfloat": "numpy.complex128",
    "clongfloat": "numpy.clongdouble",
    "complex_": "numpy.complex128",
    "cumproduct": "numpy.cumprod",
    "find_common_type": "numpy.result_type",
    "float_": "numpy.float64",
    "infty": "numpy.inf",
    "issubclass_": "issubclass",
    "longcomplex": "numpy.clongdouble",
    "longfloat": "numpy.longdouble",
    "mat": "numpy.asmatrix",
    "msort": "numpy.sort(..., axis=0)",
    "product": "numpy.prod",
    "round_": "numpy.round",
    "sctypes": "the types by name: numpy.float32, numpy.int64",
    "singlecomplex": "numpy.complex64",
    "sometrue": "numpy.any",
    "string_": "numpy.bytes_",
    "unicode_": "numpy.str_",
}
_BREAKS_IN_1_24 = "chainer.functions.resize_images"


class IDP918(Check):
    """A name of NumPy that newer releases do not have, or a function of Chainer's that needs one.

    What it checks
        Uses of such names through any alias, and imports of them. What a program gives back itself
        (``numpy.float = float``) or tries (``except AttributeError``) is left alone.

    Why it matters
        ``numpy.float``, ``int``, ``bool``, ``object``, ``complex``, ``str``, ``long`` and ``unicode`` are gone from
        1.24 on (``bool`` and ``long`` came back in 2.0 as something else), ``numpy.float_``, ``numpy.Inf`` and others
        from 2.0 on: AttributeError. With the NumPy of a wheel's environment (at most 1.21) all of them work, so this
        says how far the program goes, not that it is wrong. Of Chainer 7.8.1 ``F.resize_images`` uses one.

    How to fix
        Write what the name stood for: ``float`` for ``numpy.float``. For ``F.resize_images`` keep ``numpy<1.24``.

    References
        Tried with NumPy 1.23.5, 1.26.4 and 2.0.2; Chainer 7.8.1 with 1.24.4 and 1.26.4. The same in other programs:
        zai-org/GLM-130B #72.
    """

    title = "A name that newer NumPy does not have"
    severity = Severity.INFO
    needed = "names that every NumPy has"
    ok = (
        Sample("Python's own type", "import chainer\nimport numpy as np\nx = np.zeros(3, dtype=float)\n"),
        Sample("given back", "import chainer\nimport numpy as np\nnp.float = float\nx = np.zeros(3, np.float)\n"),
        Sample(
            "tried",
            "import chainer\nimport numpy as np\ntry:\n    kind = np.float\nexcept AttributeError:\n    kind = float\n",
        ),
        Sample("names that stay", "import chainer\nimport numpy as np\nx = np.float32(np.inf) + np.bool_(1)\n"),
        Sample("of another module", "import chainer\nimport torch\nx = torch.float\n"),
    )
    bad = (
        Sample("numpy.float", "import chainer\nimport numpy as np\nx = np.zeros(3, dtype=np.float)\n"),
        Sample("imported", "import chainer\nfrom numpy import Inf as infinite\n"),
        Sample("numpy.float_", "import chainer\nimport numpy\nx = numpy.float_(1)\n"),
        Sample("resize_images", "import chainer.functions as F\ny = F.resize_images(x, (8, 8))\n"),
    )

    def check(self, module: Module) -> Iterator[Note]:
        """Report each use."""
        uses = [(node, module.path(node)) for node in module.names.nodes if isinstance(node, ast.Attribute)]
        given = {path for node, path in uses if not isinstance(node.ctx, ast.Load)}
        imports: list[tuple[ast.AST, str]] = [
            (node, path) for node, path in module.names.imports() if isinstance(node, ast.ImportFrom)
        ]
        for node, path in [*imports, *uses]:
            if path not in given and not _tried(module, node):
                yield from _notes(node, path)


def _notes(node: ast.AST, path: str) -> Iterator[Note]:
    package, _, name = path.rpartition(".")
    if path == _BREAKS_IN_1_24:
        yield Note(
            node,
            found="F.resize_images is used",
            consequence="it works up to NumPy 1.23 and raises AttributeError from 1.24 on",
            next_step="pip install 'numpy<1.24'",
        )
    elif package == "numpy" and name in _GONE_IN_1_24:
        yield Note(
            node,
            found=f"numpy.{name} is used",
            consequence="it works up to NumPy 1.23 and raises AttributeError from 1.24 on",
            next_step=f"write {_GONE_IN_1_24[name]}",
        )
    elif package == "numpy" and name in _GONE_IN_2_0:
        yield Note(
            node,
            found=f"numpy.{name} is used",
            consequence="it works up to NumPy 1.26 and raises AttributeError from 2.0 on",
            next_step=f"write {_GONE_IN_2_0[name]}",
        )


def _tried(module: Module, node: ast.AST) -> bool:
    """Whether a ``try`` around it is ready for a name that is not there."""
    at: ast.AST | None = node
    while at is not None:
        above = module.names.parents.get(at)
        if isinstance(above, ast.Try) and at in above.body and any(_ready(item.type) for item in above.handlers):
            return True
        at = above
    return False


def _ready(kind: ast.expr | None) -> bool:
    words = {node.id for node in ast.walk(kind) if isinstance(node, ast.Name)} if kind is not None else {"Exception"}
    return bool(words & {"AttributeError", "ImportError", "Exception", "BaseException"})
