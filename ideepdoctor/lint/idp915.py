"""IDP915: layers that iDeep does not have."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ideepdoctor.lint.base import Check, Note, Sample
from ideepdoctor.lint.idp904 import takes_arrays
from ideepdoctor.lint.links import Links
from ideepdoctor.lint.module import Module, argument
from ideepdoctor.model.findings import Severity

_TWO_DIMENSIONS = (
    "chainer.links.Convolution2D",
    "chainer.links.Deconvolution2D",
    "chainer.links.DilatedConvolution2D",
    "chainer.functions.convolution_2d",
    "chainer.functions.deconvolution_2d",
)
_OTHERS = {
    "DepthwiseConvolution2D": "a depthwise convolution",
    "depthwise_convolution_2d": "a depthwise convolution",
    "SeparableConvolution2D": "a depthwise convolution",
    "Convolution1D": "a one-dimensional convolution",
    "convolution_1d": "a one-dimensional convolution",
    "Deconvolution1D": "a one-dimensional convolution",
    "deconvolution_1d": "a one-dimensional convolution",
    "Convolution3D": "a three-dimensional convolution",
    "convolution_3d": "a three-dimensional convolution",
    "Deconvolution3D": "a three-dimensional convolution",
    "deconvolution_3d": "a three-dimensional convolution",
    "ConvolutionND": "an N-dimensional convolution",
    "convolution_nd": "an N-dimensional convolution",
    "DeconvolutionND": "an N-dimensional convolution",
    "deconvolution_nd": "an N-dimensional convolution",
}
_HALVES = ("numpy.float16", "numpy.half")
_START = "import numpy as np\nimport chainer.functions as F\nimport chainer.links as L\n"


class IDP915(Check):
    """A layer or a type that iDeep does not compute: NumPy does it.

    What it checks
        Convolutions with ``groups``, depthwise ones, those of one, three or N dimensions, and ``astype(float16)`` where
        a link or a function is given the result.

    Why it matters
        Nothing is wrong: these are computed by NumPy, as they would be without iDeep. A network that consists of them
        (MobileNet, C3D, WaveNet) gains little.

    How to fix
        Nothing, if the layer has to be this one. Dilated convolutions, other strides, pads and kernels are all
        computed by iDeep.

    References
        Chainer #5403, #4572. Measured with Chainer 7.8.1.
    """

    title = "A layer that iDeep does not accelerate"
    severity = Severity.INFO
    needed = "a two-dimensional convolution of one group, in float32"
    ok = (
        Sample("one group", _START + "a = L.Convolution2D(3, 64, 3, groups=1)\n"),
        Sample("dilated", _START + "a = L.DilatedConvolution2D(3, 64, 3, dilate=2)\n"),
        Sample("float16 in a file", _START + "np.save('a.npy', x.astype(np.float16))\n"),
        Sample("another library", "import torch.nn as L\na = L.Convolution3D(3, 64, 3)\n"),
    )
    bad = (
        Sample("groups", _START + "a = L.Convolution2D(32, 64, 3, groups=4)\n"),
        Sample("depthwise", _START + "y = F.depthwise_convolution_2d(x, w)\n"),
        Sample("three dimensions", _START + "a = L.Convolution3D(3, 64, 3)\n"),
        Sample("float16", _START + "y = F.relu(x.astype(np.float16))\n"),
    )

    def check(self, module: Module) -> Iterator[Note]:
        """Report each such layer."""
        if module.never() or not module.imported & {"chainer", "chainercv", "chainerrl", "chainermn"}:
            return
        links = Links(module)
        for call in module.names.calls():
            what = self._what(module, call) or ("an array of float16" if self._half(module, links, call) else "")
            if what:
                yield Note(
                    call,
                    found=what,
                    consequence="NumPy computes it, iDeep does not",
                    next_step="nothing, if it has to be this layer",
                )

    def _what(self, module: Module, call: ast.Call) -> str:
        path = module.path(call)
        if path in _TWO_DIMENSIONS:
            groups = next((item.value for item in call.keywords if item.arg == "groups"), None)
            told = module.word(groups)
            return f"a convolution with groups={told}" if isinstance(told, int) and told > 1 else ""
        if path.startswith(("chainer.links.", "chainer.functions.")):
            return _OTHERS.get(path.rsplit(".", 1)[1], "")
        return ""

    def _half(self, module: Module, links: Links, call: ast.Call) -> bool:
        """Whether a link or a function is given an array that was just made float16."""
        given = call.args[0] if call.args else None
        if not isinstance(given, ast.Call) or not isinstance(given.func, ast.Attribute):
            return False
        dtype = argument(given, 0, "dtype") if given.func.attr == "astype" else None
        if module.path(dtype) not in _HALVES and module.word(dtype) not in ("float16", "e", "half"):
            return False
        objects = module.objects(call)
        return call in objects.flow.at and takes_arrays(module, links, objects, call, objects.flow.at[call])
