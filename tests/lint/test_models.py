"""Models: converted, loaded, trained and pickled, in which order and whether at all."""

from __future__ import annotations

import pytest

from ideepdoctor.lint.engine import lint
from ideepdoctor.lint.source import read
from ideepdoctor.model.findings import Severity
from tests.lint.sources import HEAD, codes, faults, found

NET = """
class Net(chainer.Chain):
    def __init__(self):
        super(Net, self).__init__()
        with self.init_scope():
            self.a = L.Convolution2D(3, 64, 3)
"""
PERCEPTRON = NET.replace("L.Convolution2D(3, 64, 3)", "L.Linear(None, 10)")
LOAD = "serializers.load_npz('a.npz', model)\n"
CONVERT = "model.to_intel64()\n"


def loads(text: str) -> list[Severity]:
    return [item.finding.severity for item in found(HEAD + text) if item.finding.code == "IDP902"]


@pytest.mark.parametrize(
    "text",
    [
        f"{NET}model = Net()\n{CONVERT}{LOAD}",
        f"{NET}model = Net().to_intel64()\n{LOAD}",
        f"{NET}model = L.Classifier(Net())\n{CONVERT}serializers.load_npz('a', model.predictor)\n",
        f"{NET}net = Net()\nmodel = L.Classifier(net)\n{CONVERT}serializers.load_npz('a', net)\n".replace(
            "serializers.load_npz('a', net)", "serializers.load_npz('a', model)"
        ),
        f"{NET}net = Net()\nnet.to_intel64()\nmodel = L.Classifier(net)\n{LOAD}",
        f"{NET}model = chainer.Sequential(Net(), F.relu)\n{CONVERT}serializers.load_hdf5('a', obj=model)\n",
        f"{NET}model = Net()\nif ideep:\n    {CONVERT}{LOAD}",
        f"{NET}model = Net()\nif gpu >= 0:\n    model.to_gpu()\nelse:\n    {CONVERT}if resume:\n    {LOAD}",
        f"{NET}model = Net()\nmodel.to_device('@intel64')\n{LOAD}",
        f"{NET}model = Net()\nmodel.to_device(chainer.get_device('@intel64'))\n{LOAD}",
        f"{NET}def main():\n    model = Net()\n    {CONVERT}    {LOAD}",
        f"{NET}model = Net()\n{CONVERT}other = model\nserializers.load_npz('a', other)\n",
        f"{NET}model = Net()\n{CONVERT}serializers.NpzDeserializer(f).load(model)\n",
        f"{NET}model = Net()\ntarget = Net()\ntarget.to_intel64()\ntarget.copyparams(model)\n",
        f"{NET}model = Net()\nideep and model.to_intel64()\n{LOAD}",
        f"{NET}model = L.VGG16Layers(None)\n{CONVERT}{LOAD}".replace(
            "L.VGG16Layers(None)", "L.Inception(3, 1, 1, 1, 1, 1, 1)"
        ),
        NET.replace("self.a = L", "self.a = L") + "        self.to_intel64()\nmodel = Net()\n" + LOAD,
        f"import chainer as c\n{NET}model = Net()\n{CONVERT}c.serializers.npz.load_npz('a', model)\n",
        f"from chainer.serializers import load_npz as read\n{NET}model = Net()\n{CONVERT}read('a', model)\n",
        f"{NET}class T:\n    def f(self):\n        self.m = Net()\n        self.m.to_intel64()\n"
        "        serializers.load_npz('a', self.m)\n",
        f"{NET}model = Net()\n{CONVERT}if a:\n    model.to_cpu()\n    save(model)\n    sys.exit(0)\n{LOAD}",
    ],
)
def test_a_load_that_a_conversion_reaches_is_found(text: str):
    assert len(loads(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        f"{NET}model = Net()\n{LOAD}{CONVERT}",
        f"{NET}model = Net()\nif a:\n    {CONVERT}else:\n    {LOAD}",
        f"{NET}model = Net()\nif a:\n    {CONVERT}if not a:\n    {LOAD}",
        f"{NET}model = Net()\nif gpu < 0:\n    {CONVERT}if gpu >= 0:\n    {LOAD}",
        f"{NET}model = Net()\nif a is None:\n    {CONVERT}if a is not None:\n    {LOAD}",
        f"{NET}model = Net()\ntry:\n    {CONVERT}except ValueError:\n    {LOAD}",
        f"{NET}def f():\n    model = Net()\n    if a:\n        {CONVERT}        return model\n    {LOAD}",
        f"{NET}model = Net()\nif a:\n    {CONVERT}    raise SystemExit\n{LOAD}",
        f"{NET}for path in paths:\n    model = Net()\n    {LOAD}    {CONVERT}",
        f"{NET}model = Net()\n{CONVERT}model = Net()\n{LOAD}",
        f"{NET}model = Net()\n{CONVERT}del model\nmodel = make()\n{LOAD}",
        f"{NET}model = Net()\n{CONVERT}other = Net()\nserializers.load_npz('a', other)\n",
        f"{NET}model = Net()\n{CONVERT}model.to_cpu()\n{LOAD}{CONVERT}",
        f"{NET}model = Net()\n{CONVERT}if a:\n    model.to_gpu()\n{LOAD}",
        f"{NET}model = Net()\n{CONVERT}optimizer = optimizers.Adam()\noptimizer.setup(model)\n"
        "serializers.load_npz('a', optimizer)\n",
        f"{NET}model = Net()\n{CONVERT}np.load('a', model)\nserializers.save_npz('a', model)\n",
        f"{NET}def f(model):\n    {CONVERT}def g(model):\n    {LOAD}",
        f"{NET}model = Net()\n{CONVERT}data = {{}}\nserializers.load_npz('a', data)\n",
        f"{PERCEPTRON}model = L.Classifier(Net())\n{CONVERT}{LOAD}",
        f"{PERCEPTRON}net = Net()\nmodel = L.Classifier(net)\n{CONVERT}{LOAD}",
        f"model = L.Classifier(L.Convolution2D(3, 10, 5))\n{CONVERT}{LOAD}",
        f"model = L.BatchNormalization(64)\n{CONVERT}model.copyparams(other)\n",
        f"from mine import load_npz\n{NET}model = Net()\n{CONVERT}load_npz('a', model)\n",
        f"{NET}model = Net()\nprint(model.to_intel64)\n{LOAD}",
        f"{NET}model = Net()\n{CONVERT}def later():\n    model = Net()\n    {LOAD}",
        f"{NET}gen = Net()\ndis = Net()\ngen.to_intel64()\nserializers.load_npz('a', dis)\n",
    ],
)
def test_a_load_that_none_reaches_is_not(text: str):
    assert loads(text) == []


def test_a_model_that_is_not_known_here_is_a_warning():
    assert loads(f"from models import Net\nmodel = Net()\n{CONVERT}{LOAD}") == [Severity.WARNING]
    assert loads(f"def f(model):\n    {CONVERT}    {LOAD}") == [Severity.WARNING]
    assert loads(f"{NET.replace('chainer.Chain', 'Base')}model = Net()\n{CONVERT}{LOAD}") == [Severity.WARNING]


RESUME = f"{NET}model = Net()\n{{0}}optimizer = optimizers.Adam()\noptimizer.setup(model)\n"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("u = training.StandardUpdater(i, optimizer)\nt = training.Trainer(u)\nserializers.load_npz('a', t)\n", 1),
        ("u = training.updaters.StandardUpdater(i, {'main': optimizer})\nserializers.load_npz('a', u)\n", 1),
        (
            "u = training.StandardUpdater(i, optimizer)\nt = training.Trainer(u)\n"
            "serializers.load_npz('a', t.updater)\n",
            0,
        ),
        ("u = training.StandardUpdater(i, other)\nt = training.Trainer(u)\nserializers.load_npz('a', t)\n", 0),
        (
            "class U(training.updaters.StandardUpdater):\n    pass\nu = U(iterator=i, optimizer=optimizer)\n"
            "t = training.Trainer(u)\nif args.resume:\n    serializers.load_npz('a', t)\n",
            1,
        ),
    ],
)
def test_a_trainer_holds_the_model_of_its_optimizer(text: str, count: int):
    assert len(loads(RESUME.format(CONVERT) + text)) == count
    assert loads(RESUME.format("") + text + CONVERT) == []


def test_an_optimizer_that_is_made_and_set_up_in_one_holds_it_too():
    text = f"{NET}model = Net()\n{CONVERT}o = optimizers.Adam().setup(model)\nu = training.StandardUpdater(i, o)\n"
    assert len(loads(text + "serializers.load_npz('a', u)\n")) == 1


TRAINED = "model = L.Classifier(Net())\noptimizer = optimizers.SGD()\noptimizer.setup(model)\n"


def forgotten(text: str) -> list[Severity]:
    return [item.finding.severity for item in found(HEAD + NET + text) if item.finding.code == "IDP901"]


@pytest.mark.parametrize(
    "text",
    [
        TRAINED,
        "def main():\n" + "".join(f"    {line}\n" for line in TRAINED.splitlines()),
        "model = Net()\noptimizers.MomentumSGD().setup(model)\n",
        "model = Net()\no = optimizers.CorrectedMomentumSGD(0.1)\no.setup(model)\n",
        "model = chainer.Sequential(L.Linear(1))\no = chainer.optimizers.SGD()\no.setup(model)\n",
        "model = Net()\nif a:\n    o = optimizers.SGD()\nelse:\n    o = optimizers.Adam()\no.setup(model)\n",
        TRAINED + "if gpu >= 0:\n    model.to_gpu()\n",
        TRAINED + "if gpu >= 0:\n    chainer.cuda.check_cuda_available()\n    model.to_gpu()\n",
        "model = Net()\nserializers.load_npz('a', model)\ny = model(x)\n",
        "model = Net()\nserializers.load_npz('a', model)\ny = model.a(x)\n",
    ],
)
def test_a_forgotten_conversion_is_a_warning(text: str):
    assert forgotten(text) == [Severity.WARNING]


@pytest.mark.parametrize("optimizer", ["Adam", "RMSprop", "AdaDelta", "NesterovAG"])
def test_it_is_a_note_where_the_optimizer_gains_nothing(optimizer: str):
    assert forgotten(TRAINED.replace("SGD", optimizer)) == [Severity.INFO]


def test_it_is_a_note_where_the_device_is_an_option():
    text = TRAINED + "device = chainer.get_device(args.device)\nmodel.to_device(device)\n"
    assert forgotten(text) == [Severity.INFO]
    [item] = found(HEAD + NET + text)
    assert "@intel64" in item.finding.next_step


@pytest.mark.parametrize(
    "text",
    [
        TRAINED + "model.to_intel64()\n",
        TRAINED + "getattr(model, 'to_intel64')()\n",
        TRAINED + "convert_to_intel64(model)\n",
        TRAINED + "model.to_gpu()\n",
        TRAINED + "model.to_gpu(0)\n",
        TRAINED + "model.to_device('@cupy:0')\n",
        TRAINED + "chainer.cuda.check_cuda_available()\n",
        TRAINED + "chainer.config.use_ideep = 'never'\n",
        TRAINED + "u = training.updaters.ParallelUpdater(i, optimizer)\n",
        TRAINED.replace("SGD", "AdaGrad"),
        TRAINED.replace("optimizers.SGD", "mine.SGD"),
        "model = Net()\noptimizer = make()\noptimizer.setup(model)\n",
        "def f(model):\n    optimizer = optimizers.SGD()\n    optimizer.setup(model)\n",
        "model = make()\noptimizer = optimizers.SGD()\noptimizer.setup(model)\n",
        "model = Net()\nserializers.load_npz('a', model)\n",
        "model = Net()\nserializers.load_npz('a', model)\nserializers.save_npz('b', model)\n",
        "model = Net()\nserializers.load_npz('a', model)\nfor p in model.params():\n    print(p)\n",
        "model = Net()\ny = model(x)\n",
        "model = Net()\nprint(model.a)\n",
    ],
)
def test_nothing_is_said_where_it_would_be_wrong_or_is_not_known(text: str):
    assert forgotten(text) == []


def test_a_module_given_with_it_that_converts_is_trusted():
    text = (HEAD + NET + "import common\n" + TRAINED).encode()
    assert [item.finding.code for item in lint(read("a.py", text)).found] == ["IDP901"]
    assert lint(read("a.py", text), converting=frozenset({"common"})).found == ()
    relative = text.replace(b"import common", b"from .common import prepare")
    assert lint(read("a.py", relative), converting=frozenset({"common"})).found == ()
    assert lint(read("a.py", text), converting=frozenset({"uncommon"})).found != ()


def test_two_models_are_two_findings():
    text = "gen, dis = Net(), Net()\nfor_gen = optimizers.SGD()\nfor_gen.setup(gen)\n"
    text += "for_dis = optimizers.SGD()\nfor_dis.setup(dis)\n"
    assert [item.finding.found.split()[0] for item in found(HEAD + NET + text)] == ["gen", "dis"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("o = optimizers.AdaGrad()\no.setup(model)\nmodel.to_intel64()\n", ["IDP903"]),
        ("o = optimizers.MSVAG()\nmodel.to_intel64()\no.setup(model)\n", ["IDP903"]),
        ("net = L.Classifier(model)\nmodel.to_intel64()\noptimizers.AdaGrad().setup(net)\n", ["IDP903"]),
        ("o = optimizers.AdaGrad()\no.setup(model)\nif a:\n    model.to_intel64()\n", ["IDP903"]),
        (
            "if a:\n    o = optimizers.AdaGrad()\nelse:\n    o = optimizers.SGD()\n"
            "o.setup(model)\nmodel.to_intel64()\n",
            ["IDP903"],
        ),
        ("if a:\n    optimizers.AdaGrad().setup(model)\nelse:\n    model.to_intel64()\n", []),
        ("o = optimizers.Adam()\no.setup(model)\nmodel.to_intel64()\n", []),
        ("o = optimizers.AdaGrad()\no.setup(model)\nother.to_intel64()\n", []),
        ("o = optimizers.AdaGrad()\nmodel.to_intel64()\n", []),
        ("o = {'adagrad': optimizers.AdaGrad}[name]()\no.setup(model)\nmodel.to_intel64()\n", []),
    ],
)
def test_optimizers_that_are_wrong_after_it(text: str, expected: list[str]):
    assert faults(HEAD + NET + "model = Net()\n" + text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import pickle\nmodel.to_intel64()\npickle.dump(model, f)\n", ["IDP914"]),
        ("import cPickle\nmodel.to_intel64()\ncPickle.dumps(model, 2)\n", ["IDP914"]),
        ("from six.moves import cPickle as p\nmodel.to_intel64()\np.dump(model, f)\n", ["IDP914"]),
        (
            "try:\n    import cPickle as pickle\nexcept ImportError:\n    import pickle\n"
            "model.to_intel64()\npickle.dump(model, f)\n",
            ["IDP914"],
        ),
        ("import joblib\nmodel.to_intel64()\nif a:\n    joblib.dump(model, 'f')\n", ["IDP914"]),
        ("import pickle\npickle.dump(model, f)\nmodel.to_intel64()\n", []),
        ("import pickle\nmodel.to_intel64()\nmodel.to_cpu()\npickle.dump(model, f)\n", []),
        ("import pickle\nmodel.to_intel64()\npickle.dump(other, f)\n", []),
        ("import copy\nmodel.to_intel64()\ncopy.deepcopy(model)\nserializers.save_npz('a', model)\n", []),
        ("import mine as pickle\nmodel.to_intel64()\npickle.dump(model, f)\n", []),
    ],
)
def test_pickles(text: str, expected: list[str]):
    assert codes(HEAD + NET + "model = Net()\n" + text) == expected
