"""IDP912: split_axis into pieces that fill no blocks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from ideepdoctor.lint.base import Check, Note, Sample
from ideepdoctor.lint.layout import axis_is_channels, ideep_calls
from ideepdoctor.lint.module import Module, argument
from ideepdoctor.model.findings import Severity

_START = """\
import chainer.functions as F
import chainer.links as L

a = L.Convolution2D(16, 16, 3)
"""


class IDP912(Check):
    """``F.split_axis`` cuts the channels of a convolution's output into pieces that do not fill its blocks.

    What it checks
        The channels and the pieces, where the source says them. Where it does not it is a note.

    Why it matters
        SIGABRT, ``mkldnn::error``, which Python cannot catch. Measured on AVX-512: 16 channels in 2 or 4, 24 in 2, 32
        in 4, 40 in 2, 48 in 2, 64 in 8 die; 32 in 2, 24 in 3, 48 in 3, 64 in 4 and 8 in 2 do not.

    How to fix
        ``F.split_axis(h + 0, ...)``: the sum is a plain array.

    References
        Measured with Chainer 7.8.1 and ideep4py 2.0.0.post3.
    """

    title = "split_axis cuts through blocks"
    severity = Severity.WARNING
    needed = "a plain array, or pieces of 16 channels or a multiple"
    ok = (
        Sample("made plain", _START + "y, z = F.split_axis(a(x) + 0, 2, 1)\n"),
        Sample("pieces of 16", _START.replace("16, 16", "16, 32") + "y, z = F.split_axis(a(x), 2, 1)\n"),
        Sample("along the batch", _START + "y, z = F.split_axis(a(x), 2, 0)\n"),
        Sample("not of a convolution", _START + "y, z = F.split_axis(F.sigmoid(a(x)), 2, 1)\n"),
    )
    bad = (
        Sample("16 in 2", _START + "y, z = F.split_axis(a(x), 2, axis=1)\n"),
        Sample("at 8", _START.replace("16, 16", "16, 32") + "y, z = F.split_axis(F.relu(a(x)), [8], 1)\n"),
        Sample("not known", _START.replace("16, 16", "16, n") + "y, z = F.split_axis(a(x), 2, 1)\n"),
    )

    def check(self, module: Module) -> Iterator[Note]:
        """Compare the pieces with the blocks."""
        for call, step, layouts in ideep_calls(module, "chainer.functions.split_axis"):
            layout = layouts.of(argument(call, 0, "x"), step)
            if layout is not None and layout.blocked and axis_is_channels(call, 2, given=True):
                pieces = _pieces(argument(call, 1, "indices_or_sections"), layout.channels)
                yield from self._split(call, layout.channels, pieces)

    def _split(self, call: ast.Call, channels: int | None, pieces: list[int] | None) -> Iterator[Note]:
        if channels is not None and pieces is not None:
            block = 16 if channels % 16 == 0 else 8
            if channels == 8 or not any(piece % block for piece in pieces):
                return
            where = "on AVX-512" if not any(piece % 8 for piece in pieces) else "with iDeep"
            yield Note(
                call,
                found=f"split_axis of a convolution's {channels} channels into {', '.join(map(str, pieces))}",
                consequence=f"the process dies with SIGABRT {where}",
                next_step="F.split_axis(h + 0, ...)",
            )
            return
        yield Note(
            call,
            found="split_axis of the channels of a convolution's output",
            consequence="the process dies where the pieces do not fill blocks of 16 or 8 channels",
            next_step="make sure that all pieces are multiples of 16, or F.split_axis(h + 0, ...)",
            severity=Severity.INFO,
        )


def _pieces(node: ast.expr | None, channels: int | None) -> list[int] | None:
    """Channels of each piece; None where the source does not say."""
    if channels is None or node is None:
        return None
    try:
        told = ast.literal_eval(node)
    except ValueError:
        return None
    if isinstance(told, int) and told > 0:
        return [channels // told] * told
    if isinstance(told, list | tuple) and told and all(isinstance(item, int) for item in told):
        edges = [0, *told, channels]
        return [end - start for start, end in pairwise(edges)]
    return None
