"""IDP910: LRN between different layouts."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ideepdoctor.lint.base import Check, Note, Sample
from ideepdoctor.lint.flow import Step
from ideepdoctor.lint.layout import Layouts, calls_with_layouts
from ideepdoctor.lint.module import Module
from ideepdoctor.lint.objects import Objects
from ideepdoctor.model.findings import Severity

_LRN = "chainer.functions.local_response_normalization"
_PLAIN_GRADIENT = ("sigmoid", "tanh", "linear", "reshape", "flatten", "softplus", "elu", "batch_normalization")
_LINKS_OF_PLAIN_GRADIENT = ("chainer.links.Linear", "chainer.links.BatchNormalization")

_START = """\
import chainer
import chainer.functions as F
import chainer.links as L

class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a = L.Convolution2D(3, 64, 3)
            self.b = L.Convolution2D(64, 64, 3)
            self.bn = L.BatchNormalization(64)
            self.fc = L.Linear(None, 10)

    def forward(self, x):
        h = F.relu(self.a(x))
"""


class IDP910(Check):
    """A local response normalization stands between a blocked and a plain array.

    What it checks
        ``F.local_response_normalization`` of a convolution's output whose result goes straight into sigmoid, tanh, a
        Linear, reshape or BatchNormalization; and that of a BatchNormalization, sigmoid or tanh of a convolution whose
        result goes straight into a convolution.

    Why it matters
        The gradient is wrong by 57 to 250 % where input and incoming gradient lie in different layouts, and no message
        is printed: every layer below learns from it. The forward pass is right; and so are convolution, relu, LRN,
        pooling, convolution (AlexNet, GoogLeNet), where both are blocked (measured: 6e-7).

    How to fix
        Make both plain: ``F.local_response_normalization(h + 0) * 1.0``.

    References
        Measured with Chainer 7.8.1 and ideep4py 2.0.0.post3. IDP609 shows it on this machine.
    """

    title = "LRN stands between different memory layouts"
    severity = Severity.WARNING
    needed = "both sides plain, or both blocked"
    ok = (
        Sample(
            "as in AlexNet",
            _START + "        return self.b(F.max_pooling_2d(F.local_response_normalization(h), 3, 2))\n",
        ),
        Sample("made plain", _START + "        return self.fc(F.local_response_normalization(h + 0) * 1.0)\n"),
        Sample("of the image", _START + "        return self.b(F.local_response_normalization(x))\n"),
    )
    bad = (
        Sample("then a Linear", _START + "        return self.fc(F.local_response_normalization(h))\n"),
        Sample(
            "then a sigmoid", _START + "        h = F.local_response_normalization(h)\n        return F.sigmoid(h)\n"
        ),
        Sample(
            "plain, then a convolution",
            _START + "        return self.b(F.lrn(self.bn(h)))\n".replace("F.lrn", "F.local_response_normalization"),
        ),
    )

    def check(self, module: Module) -> Iterator[Note]:
        """Look at what each consumer of an LRN is given."""
        for call, step, layouts, objects in calls_with_layouts(module):
            yield from self._consumer(module, layouts, objects, step, call)

    def _consumer(
        self, module: Module, layouts: Layouts, objects: Objects, step: Step, call: ast.Call
    ) -> Iterator[Note]:
        lrn = _lrn(module, objects, call.args[0], step) if call.args else None
        if lrn is None or not lrn.args:
            return
        inner = layouts.of(lrn.args[0], objects.flow.at[lrn])
        if inner is None:
            return
        path = module.path(call)
        name = path.rsplit(".", 1)[-1] if path.startswith("chainer.functions.") else ""
        if inner.blocked and (name in _PLAIN_GRADIENT or layouts.link(call, step) in _LINKS_OF_PLAIN_GRADIENT):
            why = "its input is blocked, its gradient is plain"
        elif not inner.blocked and layouts.is_convolution(call, step):
            why = "its input is plain, its gradient is blocked"
        else:
            return
        yield Note(
            lrn,
            found=f"local_response_normalization between two memory layouts ({why})",
            consequence="its gradient is wrong with iDeep, silently",
            next_step="F.local_response_normalization(h + 0) * 1.0",
        )


def _lrn(module: Module, objects: Objects, node: ast.expr, step: Step) -> ast.Call | None:
    """The LRN that an expression is, directly or by a name that holds nothing else."""
    if isinstance(node, ast.Name):
        held = objects.flow.held(node.id, step)
        if held is None or len(held) != 1 or held[0].value is None:
            return None
        node = held[0].value
    return node if isinstance(node, ast.Call) and module.path(node) == _LRN else None
