"""IDP913: fixed_batch_normalization in training."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ideepdoctor.lint.base import Check, Note, Sample
from ideepdoctor.lint.module import Module
from ideepdoctor.model.findings import Severity

_START = "import chainer\nimport chainer.functions as F\n"


class IDP913(Check):
    """``F.fixed_batch_normalization`` raises in its backward pass where a convolution or a relu follows.

    What it checks
        Calls of it that no ``no_backprop_mode`` is around.

    Why it matters
        Fine-tuning with frozen statistics (ResNet) ends in ``TypeError: in method 'mdarray_sum', argument 3 of type
        'int'``: the gradient comes out of relu, pooling or a convolution as iDeep's array. A program that never calls
        ``backward`` is not concerned.

    How to fix
        ``F.fixed_batch_normalization(...) * 1.0``: the gradient is a plain array then.

    References
        Measured with Chainer 7.8.1 and ideep4py 2.0.0.post3; so is L.BatchNormalization with ``train`` False.
    """

    title = "fixed_batch_normalization raises in its backward pass"
    severity = Severity.INFO
    needed = "a plain gradient: F.fixed_batch_normalization(...) * 1.0"
    ok = (
        Sample("made plain", _START + "y = F.relu(F.fixed_batch_normalization(x, g, b, m, v) * 1.0)\n"),
        Sample(
            "no backward",
            _START + "with chainer.no_backprop_mode():\n    y = F.fixed_batch_normalization(x, g, b, m, v)\n",
        ),
    )
    bad = (
        Sample("then a relu", _START + "y = F.relu(F.fixed_batch_normalization(x, g, b, m, v))\n"),
        Sample("by name", _START + "h = F.fixed_batch_normalization(x, g, b, m, v)\nh = F.relu(h)\n"),
    )

    def check(self, module: Module) -> Iterator[Note]:
        """Report each call that can be part of a backward pass."""
        if module.never():
            return
        for call in module.names.calls():
            if module.path(call) != "chainer.functions.fixed_batch_normalization":
                continue
            parent = module.names.parents.get(call)
            if isinstance(parent, ast.BinOp) or module.around(call, "use_ideep") == "never":
                continue
            if module.around(call, "enable_backprop") is False:
                continue
            yield Note(
                call,
                found="fixed_batch_normalization",
                consequence="its backward pass raises TypeError with iDeep where relu or a convolution follows",
                next_step="F.fixed_batch_normalization(...) * 1.0",
            )
