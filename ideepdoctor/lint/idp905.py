"""IDP905: a dtype is configured that iDeep does not have."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.lint.base import Check, Note, Sample
from ideepdoctor.lint.idp904 import names_double
from ideepdoctor.lint.module import Module
from ideepdoctor.lint.settings import configured, environment, values
from ideepdoctor.model.findings import Severity

_HALVES = ("numpy.float16", "numpy.half", "chainer.mixed16")
_WORDS = ("float16", "float64", "mixed16", "half", "e", "d")


class IDP905(Check):
    """The program sets Chainer's default dtype to float64, float16 or mixed16.

    What it checks
        ``chainer.global_config.dtype``, ``chainer.config.dtype``, ``using_config('dtype', ...)`` and CHAINER_DTYPE in
        ``os.environ``.

    Why it matters
        All parameters and initial arrays take that type, and iDeep takes float32 alone: everything is computed by
        NumPy, and no message is printed.

    How to fix
        Leave the dtype at float32 on a CPU.

    References
        Measured with Chainer 7.8.1.
    """

    title = "The default dtype keeps iDeep out"
    severity = Severity.WARNING
    needed = "float32"
    ok = (
        Sample("float32", "import chainer\nimport numpy as np\nchainer.global_config.dtype = np.float32\n"),
        Sample("an option", "import chainer\nchainer.global_config.dtype = args.dtype\n"),
        Sample("another configuration", "import config\nconfig.dtype = 'float64'\n"),
    )
    bad = (
        Sample("float64", "import chainer\nimport numpy as np\nchainer.global_config.dtype = np.float64\n"),
        Sample("mixed16", "from chainer import mixed16, global_config\nglobal_config.dtype = mixed16\n"),
        Sample("the variable", "import os\nos.environ['CHAINER_DTYPE'] = 'float64'\nimport chainer\n"),
        Sample("for a while", "import chainer\nwith chainer.using_config('dtype', 'float16'):\n    train()\n"),
    )

    def check(self, module: Module) -> Iterator[Note]:
        """Report each place that sets it."""
        for places, name in (
            (configured(module, "dtype"), "dtype"),
            (environment(module, "CHAINER_DTYPE"), "CHAINER_DTYPE"),
        ):
            for node, given in places:
                for value in values(given):
                    if not (
                        names_double(module, value) or module.path(value) in _HALVES or module.word(value) in _WORDS
                    ):
                        continue
                    told = module.word(value)
                    word = module.path(value) if told is ... else str(told)
                    yield Note(
                        node,
                        found=f"{name} is set to {word or 'float'}",
                        consequence="iDeep computes float32 alone: NumPy does all the work, silently",
                        next_step="leave it at float32 on a CPU",
                    )
                    break
