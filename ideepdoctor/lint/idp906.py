"""IDP906: a wrong word for use_ideep."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ideepdoctor.lint.base import Check, Note, Sample
from ideepdoctor.lint.module import Module
from ideepdoctor.lint.settings import configured, environment, values
from ideepdoctor.model.findings import Severity

_WORDS = ("always", "auto", "never")


class IDP906(Check):
    """``use_ideep`` is set to something that is none of ``'always'``, ``'auto'``, ``'never'``.

    What it checks
        ``chainer.config.use_ideep``, ``chainer.global_config.use_ideep``, ``using_config('use_ideep', ...)`` and
        CHAINER_USE_IDEEP in ``os.environ``, where the value stands in the source.

    Why it matters
        The program starts; the first function raises ``ValueError: invalid use_ideep configuration: True``.

    How to fix
        ``'auto'``.

    References
        Measured with 1, true, yes and on. IDP502 looks at the variable itself.
    """

    title = "use_ideep is set to a word that Chainer does not know"
    severity = Severity.ERROR
    needed = "'always', 'auto' or 'never'"
    ok = (
        Sample("auto", "import chainer\nchainer.global_config.use_ideep = 'auto'\n"),
        Sample("an option", "import chainer\nchainer.config.use_ideep = 'auto' if args.ideep else 'never'\n"),
        Sample("the variable", "import os\nos.environ['CHAINER_USE_IDEEP'] = 'always'\nimport chainer\n"),
        Sample("not Chainer's", "import settings as chainer\nchainer.config.use_ideep = True\n"),
    )
    bad = (
        Sample("True", "import chainer\nchainer.config.use_ideep = True\n"),
        Sample("for a while", "import chainer\nwith chainer.using_config('use_ideep', 'on'):\n    train()\n"),
        Sample("the variable", "from os import environ\nenviron['CHAINER_USE_IDEEP'] = '1'\nimport chainer\n"),
        Sample("one of two", "import chainer\nchainer.config.use_ideep = 'Auto' if args.ideep else 'never'\n"),
    )

    def check(self, module: Module) -> Iterator[Note]:
        """Report each place that sets it to a constant that is none of the words."""
        places = [
            *((node, given, "use_ideep") for node, given in configured(module, "use_ideep")),
            *((node, given, "CHAINER_USE_IDEEP") for node, given in environment(module, "CHAINER_USE_IDEEP")),
        ]
        for node, given, name in places:
            for value in values(given):
                word = module.word(value)
                if word is ... or (isinstance(word, str) and word in _WORDS):
                    continue
                yield Note(
                    node,
                    found=f"{name} is set to {word!r}",
                    consequence="the first function raises ValueError: invalid use_ideep configuration",
                    next_step=_next_step(name, node),
                )
                break


def _next_step(name: str, node: ast.AST) -> str:
    if name == "CHAINER_USE_IDEEP":
        return "os.environ['CHAINER_USE_IDEEP'] = 'auto'"
    if isinstance(node, ast.Call):
        return "chainer.using_config('use_ideep', 'auto')"
    return "chainer.config.use_ideep = 'auto'"
