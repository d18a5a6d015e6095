"""IDP902: weights are loaded after to_intel64."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ideepdoctor.lint.base import Check, Note, Sample
from ideepdoctor.lint.flow import Step, dotted
from ideepdoctor.lint.links import Links
from ideepdoctor.lint.module import Module, argument
from ideepdoctor.lint.objects import Objects, Places
from ideepdoctor.model.findings import Severity

_START = """\
import chainer
import chainer.links as L
from chainer import serializers, training
from chainer.training import extensions

model = L.Classifier(L.Convolution2D(3, 64, 3))
"""
_TRAINER = """\
optimizer = chainer.optimizers.Adam()
optimizer.setup(model)
updater = training.updaters.StandardUpdater(iterator, optimizer)
trainer = training.Trainer(updater, (20, 'epoch'))
"""


class IDP902(Check):
    """Weights are loaded into a model after ``to_intel64()``: those of convolutions arrive in the wrong order.

    What it checks
        ``to_intel64()`` (or ``to_device('@intel64')``), and after it, on the same object, ``load_npz``, ``load_hdf5``,
        a deserializer's ``load``, ``copyparams``, ``load_npz(path, trainer)``, or a snapshot extension with
        ``autoload=True``. Models whose layers are known to have no convolution in blocked memory are left out; a model
        whose layers are not known here is a warning.

    Why it matters
        Plain memory is copied into blocked weights. The model computes something else (off by 100 to 190 % in the
        cases measured: Convolution2D and Deconvolution2D to 32 and 64 channels, kernels of 1, 3 and 7), and no
        message is printed. Linear and BatchNormalization are right, and so are convolutions whose channels do not
        fill a block.

    How to fix
        Load first, then ``to_intel64()``. To resume a Trainer: make model, optimizer and Trainer, load the snapshot,
        then ``to_intel64()``. Where it has to be later: ``model.to_cpu()`` before the load, ``model.to_intel64()``
        after it (measured right).

    References
        IDP604 shows it on this machine.
    """

    title = "Weights are loaded after to_intel64()"
    severity = Severity.ERROR
    needed = "the load first, then to_intel64()"
    ok = (
        Sample("loaded first", _START + "serializers.load_npz('a.npz', model)\nmodel.to_intel64()\n"),
        Sample(
            "back to plain arrays for it",
            _START + "model.to_intel64()\nmodel.to_cpu()\nserializers.load_npz('a.npz', model)\nmodel.to_intel64()\n",
        ),
        Sample(
            "one or the other",
            _START + "if new:\n    model.to_intel64()\nelse:\n    serializers.load_npz('a.npz', model)\n",
        ),
        Sample(
            "no convolution",
            "import chainer.links as L\nfrom chainer import serializers\n"
            "model = L.Classifier(L.Linear(784, 10))\nmodel.to_intel64()\nserializers.load_npz('a.npz', model)\n",
        ),
        Sample(
            "another model", _START + "model.to_intel64()\nserializers.load_npz('a.npz', L.Convolution2D(3, 8, 3))\n"
        ),
    )
    bad = (
        Sample("load_npz", _START + "model.to_intel64()\nserializers.load_npz('a.npz', model)\n"),
        Sample(
            "on one way through",
            _START + "if args.gpu < 0:\n    model.to_intel64()\nserializers.load_npz('a.npz', model.predictor)\n",
        ),
        Sample("resume", _START + "model.to_intel64()\n" + _TRAINER + "serializers.load_npz(args.resume, trainer)\n"),
        Sample(
            "autoload",
            _START + "model.to_intel64()\n" + _TRAINER + "trainer.extend(extensions.snapshot(autoload=True))\n",
        ),
        Sample("copyparams", _START + "target = L.Convolution2D(16, 32, 3).to_intel64()\ntarget.copyparams(model)\n"),
        Sample(
            "a model of another module",
            "from chainer import serializers\nfrom models import Net\n"
            "model = Net()\nmodel.to_intel64()\nserializers.load_npz('a.npz', model)\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Note]:
        """Report each load that a conversion reaches."""
        links = Links(module)
        for objects in module.functions():
            for step in objects.flow.calls():
                assert isinstance(step.node, ast.Call)
                yield from self._load(module, links, objects, step, step.node)

    def _load(self, module: Module, links: Links, objects: Objects, step: Step, call: ast.Call) -> Iterator[Note]:
        loaded = _loaded(module, objects, call)
        if loaded is None:
            return
        verb, target = loaded
        places = objects.within(objects.places(target, step), through_optimizers=False)
        event = objects.converted(places, step)
        if event is None:
            return
        convolution = _has_convolution(links, event.places)
        if convolution is False:
            return
        what = dotted(target) or "the model"
        line = module.source.line_of(event.step.node)
        yield Note(
            call,
            found=f"{verb} into {what} after to_intel64() (line {line})",
            consequence=(
                "the weights of its convolutions come out wrong, silently"
                if convolution
                else "if it has convolutions, their weights come out wrong, silently"
            ),
            next_step=_advice(verb, line),
            severity=None if convolution else Severity.WARNING,
        )


def _advice(verb: str, line: int) -> str:
    if verb == "snapshot(autoload=True)":
        return "load_npz(snapshot, trainer) instead of autoload, and to_intel64() after it"
    return f"{verb} before the to_intel64() of line {line}, or to_cpu() before it and to_intel64() after it"


def _loaded(module: Module, objects: Objects, call: ast.Call) -> tuple[str, ast.expr] | None:
    """What a call loads weights into, and how it is called; None where it loads none."""
    path = module.path(call)
    if path in ("chainer.serializers.load_npz", "chainer.serializers.load_hdf5"):
        target = argument(call, 1, "obj")
        return None if target is None else (path.rsplit(".", 1)[1], target)
    if not isinstance(call.func, ast.Attribute):
        return None
    if call.func.attr == "copyparams" and call.args:
        return "copyparams", call.func.value
    if call.func.attr == "load" and len(call.args) == 1:
        makers = objects.made(objects.places(call.func.value, objects.flow.at[call]))
        if any(module.path(maker).startswith("chainer.serializers.") for maker in makers):
            return "load", call.args[0]
    if call.func.attr == "extend" and call.args and _autoloads(module, call.args[0]):
        return "snapshot(autoload=True)", call.func.value
    return None


def _autoloads(module: Module, node: ast.expr) -> bool:
    path = module.path(node) if isinstance(node, ast.Call) else ""
    if not path.startswith("chainer.training.extensions.") or not path.endswith(("snapshot", "snapshot_object")):
        return False
    assert isinstance(node, ast.Call)
    return any(item.arg == "autoload" and module.word(item.value) is True for item in node.keywords)


def _has_convolution(links: Links, places: Places) -> bool | None:
    """Whether one of the converted objects has a convolution in blocked memory; None: not known."""
    answers = [
        links.has_convolution(item.root) if isinstance(item.root, ast.Call) and not item.way else None
        for item in places
    ]
    return True if True in answers else None if None in answers else False
