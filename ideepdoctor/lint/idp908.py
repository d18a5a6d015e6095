"""IDP908: torch or mxnet before chainer."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.lint.base import Check, Note, Sample
from ideepdoctor.lint.idp907 import first_import
from ideepdoctor.lint.module import Module
from ideepdoctor.model.findings import Severity


class IDP908(Check):
    """``import torch`` (or mxnet) stands above ``import chainer``.

    What it checks
        The order of the imports at the module's own level.

    Why it matters
        torch 1.0 to 1.4 contain a MKL-DNN of their own and make its symbols global: ideep4py, imported later (by
        ``import chainer``), calls it and dies with SIGABRT at the first operation. mxnet-mkl 1.2 to 1.5 bring a
        libmkldnn of another version. With later releases (measured: torch 1.7.1, mxnet 1.6.0 and 1.9.1) either order
        works.

    How to fix
        Import chainer first: that works with torch. mxnet-mkl 1.2 to 1.5 and ideep4py need two processes, or
        mxnet-mkl 1.6.

    References
        IDP404 tries what is installed, in both orders.
    """

    title = "Another library with a MKL-DNN is imported before chainer"
    severity = Severity.WARNING
    needed = "import chainer first"
    ok = (
        Sample("after it", "import chainer\nimport torch\n"),
        Sample("alone", "import torch\nimport torchvision\n"),
        Sample("ideep4py first", "import ideep4py\nimport torch\nimport chainer\n"),
        Sample("perhaps", "try:\n    import torch\nexcept ImportError:\n    torch = None\nimport chainer\n"),
    )
    bad = (
        Sample("torch", "import torch\nimport chainer\n"),
        Sample("a part of it", "from torch import nn\nfrom chainer import links as L\n"),
        Sample("mxnet", "import mxnet as mx\nimport chainer\n"),
    )

    def check(self, module: Module) -> Iterator[Note]:
        """Compare the first imports."""
        ours = first_import(module, ("chainer", "ideep4py"))
        for package in ("torch", "mxnet"):
            theirs = first_import(module, (package,))
            if ours is None or theirs is None or theirs[0] > ours[0]:
                continue
            releases = "torch 1.0 to 1.4" if package == "torch" else "mxnet-mkl 1.2 to 1.5"
            yield Note(
                theirs[1],
                found=f"{package} is imported before chainer (line {module.source.line_of(ours[1])})",
                consequence=f"with {releases} the process dies at iDeep's first operation",
                next_step="import chainer above it"
                + ("" if package == "torch" else "; with mxnet-mkl 1.2 to 1.5 use two processes"),
            )
