"""IDP901: to_intel64 is forgotten."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ideepdoctor.lint.base import Check, Note, Sample
from ideepdoctor.lint.flow import Step, dotted
from ideepdoctor.lint.links import Links
from ideepdoctor.lint.module import Module
from ideepdoctor.lint.objects import Objects, Places, meet
from ideepdoctor.model.findings import Severity

_FAST = ("SGD", "MomentumSGD", "CorrectedMomentumSGD")
_WRONG = ("AdaGrad", "MSVAG")
_GPU_ONLY = ("check_cuda_available", "ParallelUpdater", "MultiprocessParallelUpdater")
_NO_INFERENCE = ("save", "dump", "to_", "copy", "params", "children", "links", "namedparams", "zerograds", "cleargrads")

_TRAINED = """\
import chainer
import chainer.links as L

model = L.Classifier(L.Linear(784, 10))
optimizer = chainer.optimizers.MomentumSGD(0.1)
optimizer.setup(model)
"""
_USED = """\
import chainer.links as L
from chainer import serializers

def main(args):
    model = L.Convolution2D(3, 64, 3)
    serializers.load_npz(args.model, model)
    return model(args.x)
"""


class IDP901(Check):
    """A model is trained, or loaded and used, and never gets ``to_intel64()``.

    What it checks
        ``optimizer.setup(model)`` with a model made in the same function, or ``load_npz(path, model)`` and then a call
        of it, in a program that never says intel64. Nothing is said where the model always goes to a GPU, where a
        module of the same folder that is imported converts, and where the optimizer is wrong after it (IDP903).

    Why it matters
        Without it functions use iDeep, but the weights are laid out anew at every call, and optimizers compute with
        NumPy. Measured, three convolutions and two linear layers at 2 threads: a step with MomentumSGD 36.1 against
        19.1 ms (batch 1) and 109 against 71 ms (batch 16), with SGD 29.3 against 15.6 ms; a forward pass alone 6.4
        against 3.4 ms (batch 1). Adam and RMSprop gain nothing: that is only a note.

    How to fix
        ``model.to_intel64()`` after the weights were loaded (IDP902). In a program whose device is an option (Chainer
        6 or later), give it ``@intel64``.

    References
        Chainer's documentation: optimizers use iDeep if and only if the model was converted.
    """

    title = "A model never gets to_intel64()"
    severity = Severity.WARNING
    needed = "model.to_intel64(), after the weights were loaded"
    ok = (
        Sample("converted", _TRAINED + "model.to_intel64()\n"),
        Sample("always on a GPU", _TRAINED + "model.to_gpu()\n"),
        Sample("the model comes from elsewhere", "def train(optimizer, model):\n    optimizer.setup(model)\n"),
        Sample("another library's optimizer", "import keras\noptimizer = keras.SGD()\noptimizer.setup(keras.Net())\n"),
    )
    bad = (
        Sample("trained", _TRAINED),
        Sample("loaded and used", _USED),
        Sample("a GPU is only an option", _TRAINED + "if args.gpu >= 0:\n    model.to_gpu()\n"),
        Sample("Adam gains little", _TRAINED.replace("MomentumSGD(0.1)", "Adam()")),
    )

    def check(self, module: Module) -> Iterator[Note]:
        """Report each model once, where its optimizer is set up or its weights are loaded."""
        if module.mentions("intel64") or module.never() or self._converts_elsewhere(module):
            return
        if _needs_gpu(module):
            return
        links = Links(module)
        trains = any(objects.setups for objects in module.functions())
        for objects in module.functions():
            for step, optimizer, model in objects.setups:
                yield from self._trained(module, links, objects, step, optimizer, model)
            if not trains:
                yield from self._used(module, links, objects)

    def _converts_elsewhere(self, module: Module) -> bool:
        return any(part in module.converting for _, path in module.names.imports() for part in path.split("."))

    def _trained(
        self, module: Module, links: Links, objects: Objects, step: Step, optimizer: Places, model: Places
    ) -> Iterator[Note]:
        kinds = [module.path(call) for call in objects.made(optimizer)]
        names = [path.rsplit(".", 1)[1] for path in kinds if path.startswith("chainer.optimizers.")]
        if not names or len(names) != len(optimizer) or set(names) & set(_WRONG):
            return
        if not _here(links, objects, model) or _leaves(module, objects, model):
            return
        assert isinstance(step.node, ast.Call)
        what = dotted(step.node.args[0]) or "the model"
        fast = sorted(set(names) & set(_FAST))
        yield self._note(
            module,
            step,
            found=f"{what} is trained by {' or '.join(sorted(set(names)))} and never gets to_intel64()",
            consequence=(
                f"{fast[0]} computes with NumPy, and weights are laid out anew at every call"
                if fast
                else "weights are laid out anew at every call"
            ),
            what=what,
            severity=None if fast else Severity.INFO,
        )

    def _used(self, module: Module, links: Links, objects: Objects) -> Iterator[Note]:
        for step in objects.flow.calls():
            call = step.node
            if not isinstance(call, ast.Call) or len(call.args) < 2:
                continue
            if module.path(call) not in ("chainer.serializers.load_npz", "chainer.serializers.load_hdf5"):
                continue
            model = objects.places(call.args[1], step)
            if not _here(links, objects, model) or _leaves(module, objects, model):
                continue
            if not _called(objects, model, step):
                continue
            what = dotted(call.args[1]) or "the model"
            yield self._note(
                module,
                step,
                found=f"{what} is loaded and used, and never gets to_intel64()",
                consequence="weights are laid out anew at every call",
                what=what,
            )

    def _note(
        self,
        module: Module,
        step: Step,
        *,
        found: str,
        consequence: str,
        what: str,
        severity: Severity | None = None,
    ) -> Note:
        next_step = f"{what}.to_intel64(), after its weights were loaded"
        if _device_is_an_option(module):
            return Note(step.node, found, consequence, "give the program the device @intel64", Severity.INFO)
        return Note(step.node, found, consequence, next_step, severity)


def _here(links: Links, objects: Objects, model: Places) -> bool:
    """Whether every object that this can be is a model made in this very function."""
    made = objects.made(model)
    return bool(made) and len(made) == len(model) and all(links.makes_model(call) for call in made)


def _leaves(module: Module, objects: Objects, model: Places) -> bool:
    """Whether the model goes to another device whatever happens."""
    leaving = ("to_gpu",) if _device_is_an_option(module) else ("to_gpu", "to_device", "to_chx")
    everything = objects.within(model)
    return any(
        objects.method(event.step) in leaving and not event.step.guards and meet(event.places, everything)
        for event in objects.departures
    )


def _needs_gpu(module: Module) -> bool:
    """Whether no run of the program is one on a CPU."""
    return any(
        module.path(step.node).endswith(_GPU_ONLY) and not step.guards
        for objects in module.functions()
        for step in objects.flow.calls()
    )


def _called(objects: Objects, model: Places, load: Step) -> bool:
    """Whether the model computes something after it was loaded."""
    for step in objects.flow.calls():
        call = step.node
        if not isinstance(call, ast.Call) or not objects.flow.reaches(load, step):
            continue
        if meet(objects.places(call.func, step), model) and not objects.method(step).startswith(_NO_INFERENCE):
            return True
    return False


def _device_is_an_option(module: Module) -> bool:
    """Whether the device comes out of a variable, so that ``@intel64`` can be given."""
    return any(
        module.path(call) == "chainer.get_device" and call.args and module.word(call.args[0]) is ...
        for call in module.names.calls()
    )
