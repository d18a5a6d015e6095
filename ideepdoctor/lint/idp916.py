"""IDP916: parts of Chainer that need protobuf 3."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ideepdoctor.lint.base import Check, Note, Sample
from ideepdoctor.lint.module import Module
from ideepdoctor.model.findings import Severity

_PARTS = ("chainer.links.caffe", "chainer.exporters", "onnx_chainer")


class IDP916(Check):
    """A part of Chainer that needs protobuf 3: Caffe models, exporters, onnx_chainer.

    What it checks
        The imports, and uses by their full name.

    Why it matters
        With protobuf 4 (what pip installs today, on Python 3.7 too) the import fails with ``Descriptors cannot be
        created directly``. Chainer itself works.

    How to fix
        ``pip install 'protobuf<3.21'``; the stacks that ``ideepdoctor setup`` installs have it.

    References
        Measured with Python 3.7 and protobuf 4.24.4.
    """

    title = "A part of Chainer that needs protobuf 3"
    severity = Severity.INFO
    needed = "protobuf 3 (3.20 or older)"
    ok = (
        Sample("links alone", "import chainer.links as L\nmodel = L.VGG16Layers()\n"),
        Sample("another caffe", "import caffe\nnet = caffe.Net(path)\n"),
    )
    bad = (
        Sample("CaffeFunction", "from chainer.links.caffe import CaffeFunction\nnet = CaffeFunction(path)\n"),
        Sample("by its full name", "import chainer.links as L\nnet = L.caffe.CaffeFunction(path)\n"),
        Sample("onnx_chainer", "import onnx_chainer\nonnx_chainer.export(model, x)\n"),
    )

    def check(self, module: Module) -> Iterator[Note]:
        """Report the first use of each part."""
        seen: set[str] = set()
        for node, path in module.names.imports():
            yield from self._note(node, path, seen)
        for call in module.names.calls():
            yield from self._note(call, module.path(call), seen)

    def _note(self, node: ast.AST, path: str, seen: set[str]) -> Iterator[Note]:
        part = next((item for item in _PARTS if path == item or path.startswith(f"{item}.")), None)
        if part is not None and part not in seen:
            seen.add(part)
            yield Note(
                node,
                found=f"{part} is used",
                consequence="its import fails with protobuf 4, which pip installs today",
                next_step="pip install 'protobuf<3.21'",
            )
