"""IDP911: concat of unequal blocks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ideepdoctor.lint.base import Check, Note, Sample
from ideepdoctor.lint.layout import Layout, axis_is_channels, ideep_calls
from ideepdoctor.lint.module import Module, argument
from ideepdoctor.model.findings import Severity

_START = """\
import chainer.functions as F
import chainer.links as L

a = L.Convolution2D(16, 64, 3)
b = L.Convolution2D(16, 8, 3)
"""


class IDP911(Check):
    """``F.concat`` along the channels of convolution outputs whose channels do not all fill the same blocks.

    What it checks
        The channels of each input, where the source says them. Where it does not, and at least two inputs come out of
        convolutions, it is a note.

    Why it matters
        SIGABRT, ``mkldnn::error``, which Python cannot catch, where the first input is blocked and a later one does
        not fill such blocks. A block is 16 channels on AVX-512 where the first input's channels are a multiple of 16,
        else 8. Measured: (16,8), (16,5), (24,12), (8,5), (48,8) die; (16,16), (8,16), (24,8), (10,16) do not.

    How to fix
        NumPy for that concat alone: ``with chainer.using_config('use_ideep', 'never'):``; or ``h + 0`` for the first
        input, which makes it plain; or an input whose channels are no multiple of 8 as the first.

    References
        Measured with Chainer 7.8.1 and ideep4py 2.0.0.post3. IDP605 shows it on this machine.
    """

    title = "concat of convolution outputs of unequal blocks"
    severity = Severity.WARNING
    needed = "a first input that is plain, or channels that all fill its blocks"
    ok = (
        Sample("equal", _START + "y = F.concat([a(x), F.relu(a(x))])\n"),
        Sample("the first is made plain", _START + "y = F.concat([a(x) + 0, b(x)])\n"),
        Sample(
            "kept on NumPy",
            "import chainer\n"
            + _START
            + "with chainer.using_config('use_ideep', 'never'):\n    y = F.concat([a(x), b(x)])\n",
        ),
        Sample("along the batch", _START + "y = F.concat([a(x), a(z)], axis=0)\n"),
        Sample("the small one first", _START + "y = F.concat([b(x), a(x)])\n"),
    )
    bad = (
        Sample("64 and 8 channels", _START + "y = F.concat([a(x), b(x)])\n"),
        Sample("by names", _START + "h = F.relu(a(x))\ng = F.sigmoid(b(x))\ny = F.concat((h, g), axis=1)\n"),
        Sample("not known", _START.replace("64", "n") + "y = F.concat([a(x), b(x)])\n"),
    )

    def check(self, module: Module) -> Iterator[Note]:
        """Compare the channels of the inputs."""
        for call, step, layouts in ideep_calls(module, "chainer.functions.concat"):
            items = argument(call, 0, "xs")
            if isinstance(items, ast.List | ast.Tuple) and axis_is_channels(call):
                yield from self._concat(call, [layouts.of(item, step) for item in items.elts])

    def _concat(self, call: ast.Call, parts: list[Layout | None]) -> Iterator[Note]:
        first = parts[0] if parts else None
        if first is None or not first.blocked or len(parts) < 2:
            return
        counts = [None if part is None else part.channels for part in parts]
        words = ", ".join("?" if count is None else str(count) for count in counts)
        head = counts[0]
        if head is not None:
            block = 16 if head % 16 == 0 else 8
            odd = [count for count in counts[1:] if count is not None and count % block]
            if odd:
                where = "on AVX-512" if not any(count % 8 for count in odd) else "with iDeep"
                yield Note(
                    call,
                    found=f"concat of {words} channels, the first of them a convolution's output",
                    consequence=f"the process dies with SIGABRT {where}",
                    next_step="with chainer.using_config('use_ideep', 'never'): around it, or h + 0 for the first",
                )
                return
        if None in counts and sum(part is not None for part in parts) > 1:
            yield Note(
                call,
                found=f"concat of convolution outputs of {words} channels",
                consequence="the process dies where the first fills blocks of 16 or 8 channels and another does not",
                next_step="make sure that all channels are multiples of 16",
                severity=Severity.INFO,
            )
