"""IDP909: products of convolution outputs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ideepdoctor.lint.base import Check, Note, Sample
from ideepdoctor.lint.flow import Step, dotted
from ideepdoctor.lint.layout import Layout, Layouts
from ideepdoctor.lint.links import Links
from ideepdoctor.lint.module import Module
from ideepdoctor.model.findings import Severity

_START = """\
import chainer
import chainer.functions as F
import chainer.links as L

class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a = L.Convolution2D(3, 64, 3)
            self.b = L.Convolution2D(3, 64, 3)

    def forward(self, x):
"""


class IDP909(Check):
    """Outputs of two convolutions are multiplied or divided element by element.

    What it checks
        ``h * g``, ``h / g``, ``h *= g`` where both come out of two-dimensional convolutions in the same function, by
        way of relu, pooling, dropout, LRN, concat or sums at most; for g also by way of sigmoid, tanh and their like.
        Channels that are known not to fill a block, and known to differ, are left out.

    Why it matters
        With ideep4py 2.0.0.post3 and Chainer 5 or later the kernel reads the blocked memory as if it were plain: the
        product is off by 100 % and more, and no message is printed. Right are a sigmoid on the left
        (``F.sigmoid(g) * h``), an array of another shape on the right, scalars, ``h ** 2`` and F.square.

    How to fix
        ``F.square(h)`` for ``h * h``; ``(h + 0) * (g + 0)`` for a product, likewise for a quotient: the sum is a plain
        array. ``use_ideep='never'`` around the product does not help.

    References
        Measured with Chainer 7.8.1; IDP603 shows it on this machine.
    """

    title = "Outputs of convolutions are multiplied"
    severity = Severity.WARNING
    needed = "plain arrays in the product: (h + 0) * (g + 0)"
    ok = (
        Sample("plain arrays", _START + "        return (self.a(x) + 0) * (self.b(x) + 0)\n"),
        Sample("a gate on the left", _START + "        return F.sigmoid(self.a(x)) * self.b(x)\n"),
        Sample("a number", _START + "        return self.a(x) * 0.5\n"),
        Sample("not from here", _START + "        return x * self.scale\n"),
        Sample("ten channels", _START.replace("64", "10") + "        return self.a(x) * self.b(x)\n"),
    )
    bad = (
        Sample("a product", _START + "        return self.a(x) * self.b(x)\n"),
        Sample("by names", _START + "        h = F.relu(self.a(x))\n        g = self.b(x)\n        return h / g\n"),
        Sample("a gate", _START + "        h = self.a(x)\n        h *= F.sigmoid(self.b(x))\n        return h\n"),
        Sample("a square", _START + "        h = self.a(x)\n        return F.sum(h * h)\n"),
    )

    def check(self, module: Module) -> Iterator[Note]:
        """Look at every product and quotient."""
        if module.never():
            return
        links = Links(module)
        for objects in module.functions():
            layouts = Layouts(module, links, objects)
            for node, step in objects.flow.at.items():
                if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Mult | ast.Div):
                    yield from self._product(layouts, node, step)

    def _product(self, layouts: Layouts, node: ast.BinOp | ast.AugAssign, step: Step) -> Iterator[Note]:
        left, right = (node.left, node.right) if isinstance(node, ast.BinOp) else (_load(node.target), node.value)
        first, second = layouts.of(left, step), layouts.of(right, step)
        if first is None or second is None or not first.blocked or _differ(first, second):
            return
        sign = "*" if isinstance(node.op, ast.Mult) else "/"
        one, other = dotted(left) or "h", dotted(right) or "g"
        square = sign == "*" and ast.dump(left) == ast.dump(right)
        yield Note(
            node,
            found=f"{one} {sign} {other}: both are outputs of convolutions",
            consequence="the result is wrong with iDeep, silently",
            next_step=f"F.square({one})" if square else f"({one} + 0) {sign} ({other} + 0)",
        )


def _load(node: ast.expr) -> ast.expr:
    return ast.Name(node.id, ast.Load()) if isinstance(node, ast.Name) else node


def _differ(first: Layout, second: Layout) -> bool:
    return None not in (first.channels, second.channels) and first.channels != second.channels
