"""IDP914: pickle of a model after to_intel64."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ideepdoctor.lint.base import Check, Note, Sample
from ideepdoctor.lint.flow import dotted
from ideepdoctor.lint.module import Module
from ideepdoctor.model.findings import Severity

_WRITERS = ("pickle.dump", "pickle.dumps", "dill.dump", "dill.dumps", "cloudpickle.dump", "cloudpickle.dumps")
_JOBLIB = ("joblib.dump", "sklearn.externals.joblib.dump")
_START = """\
import pickle
import chainer.links as L

model = L.Classifier(L.Linear(784, 10))
model.to_intel64()
"""


class IDP914(Check):
    """A model is pickled after ``to_intel64()``.

    What it checks
        pickle, cPickle, dill, cloudpickle and joblib, given an object that the same function converted before.

    Why it matters
        ``TypeError: can't pickle ideep4py.mdarray objects``, with every protocol, whatever the layers. On Python 2.7
        with protocol 2 it is worse: 673 bytes are written for 18 KB of weights, and loading them ends in SIGSEGV.

    How to fix
        ``serializers.save_npz``, which works; or ``model.to_cpu()`` before it and ``model.to_intel64()`` after it.
        copy.deepcopy works.

    References
        Chainer #7309. Measured with ideep4py 2.0.0.post3.
    """

    title = "A model is pickled after to_intel64()"
    severity = Severity.ERROR
    needed = "serializers.save_npz, or to_cpu() before it"
    ok = (
        Sample("made plain", _START + "model.to_cpu()\npickle.dump(model, f)\n"),
        Sample("something else", _START + "pickle.dump(history, f)\n"),
        Sample(
            "before it",
            "import pickle\nimport chainer.links as L\nmodel = L.Linear(2, 3)\n"
            "pickle.dump(model, f)\nmodel.to_intel64()\n",
        ),
    )
    bad = (
        Sample("pickle.dump", _START + "pickle.dump(model, f, protocol=2)\n"),
        Sample("cPickle", _START.replace("import pickle", "import cPickle as pickle") + "pickle.dumps(model)\n"),
        Sample("a part of it", _START + "pickle.dump(model.predictor, f)\n"),
    )

    def check(self, module: Module) -> Iterator[Note]:
        """Report each pickle that a conversion reaches."""
        for objects in module.functions():
            for step in objects.flow.calls():
                call = step.node
                assert isinstance(call, ast.Call)
                path = module.path(call)
                if path not in (*_WRITERS, *_JOBLIB) or not call.args:
                    continue
                event = objects.converted(objects.within(objects.places(call.args[0], step)), step)
                if event is None:
                    continue
                what = dotted(call.args[0]) or "model"
                line = module.source.line_of(event.step.node)
                yield Note(
                    call,
                    found=f"{path} of {what} after to_intel64() (line {line})",
                    consequence="it raises TypeError: can't pickle ideep4py.mdarray objects",
                    next_step=f"serializers.save_npz(path, {what}), or {what}.to_cpu() before it",
                )
