"""IDP903: an optimizer that is wrong after to_intel64."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.lint.base import Check, Note, Sample
from ideepdoctor.lint.flow import contradict
from ideepdoctor.lint.module import Module
from ideepdoctor.lint.objects import Objects, meet
from ideepdoctor.model.findings import Severity

_WRONG = ("chainer.optimizers.AdaGrad", "chainer.optimizers.MSVAG")
_START = """\
import chainer
import chainer.links as L

model = L.Classifier(L.Convolution2D(3, 64, 3))
optimizer = chainer.optimizers.AdaGrad()
optimizer.setup(model)
"""


class IDP903(Check):
    """AdaGrad or MSVAG trains a model that went through ``to_intel64()``.

    What it checks
        ``setup`` of one of these optimizers with a model that the same function converts, before or after it.

    Why it matters
        Both multiply the gradient by itself, which is wrong for arrays in blocked memory (IDP603): the steps are
        wrong, and no message is printed. With Chainer 5.0.0 and 5.4.0 Adam does the same.

    How to fix
        Leave ``to_intel64()`` out: functions use iDeep all the same. Or another optimizer: SGD, MomentumSGD,
        NesterovAG, CorrectedMomentumSGD, RMSprop, RMSpropGraves, AdaDelta and SMORMS3 are right.

    References
        Measured with ideep4py 2.0.0.post3.
    """

    title = "The optimizer is wrong after to_intel64()"
    severity = Severity.WARNING
    needed = "a model without to_intel64(), or another optimizer"
    ok = (
        Sample("not converted", _START),
        Sample("another optimizer", _START.replace("AdaGrad", "SGD") + "model.to_intel64()\n"),
        Sample("another model", _START + "L.Convolution2D(3, 8, 3).to_intel64()\n"),
    )
    bad = (
        Sample("AdaGrad", _START + "model.to_intel64()\n"),
        Sample("converted before", _START.replace("optimizer =", "model.to_intel64()\noptimizer =")),
        Sample("MSVAG", _START.replace("AdaGrad", "MSVAG") + "if args.gpu < 0:\n    model.to_intel64()\n"),
    )

    def check(self, module: Module) -> Iterator[Note]:
        """Report the setup."""
        for objects in module.functions():
            yield from self._function(module, objects)

    def _function(self, module: Module, objects: Objects) -> Iterator[Note]:
        for step, optimizer, model in objects.setups:
            wrong = [path for path in map(module.path, objects.made(optimizer)) if path in _WRONG]
            everything = objects.within(model)
            events = [
                event
                for event in objects.conversions
                if meet(event.places, everything) and not contradict(event.step, step)
            ]
            if not wrong or not events:
                continue
            name = wrong[0].rsplit(".", 1)[1]
            line = module.source.line_of(events[0].step.node)
            yield Note(
                step.node,
                found=f"{name} trains a model that to_intel64() (line {line}) converts",
                consequence="its steps are wrong for the weights of convolutions, silently",
                next_step=f"leave out to_intel64() with {name}, or take SGD, MomentumSGD or RMSprop",
            )
