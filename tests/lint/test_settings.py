"""Configuration, variables, the order of imports, types, and parts that need something else."""

from __future__ import annotations

import pytest

from tests.lint.sources import HEAD, codes


@pytest.mark.parametrize(
    "text",
    [
        "chainer.config.use_ideep = True",
        "chainer.global_config.use_ideep = 1",
        "chainer.config.use_ideep = None",
        "chainer.configuration.config.use_ideep = 'AUTO'",
        "from chainer import config\nconfig.use_ideep = 'yes'",
        "setattr(chainer.config, 'use_ideep', 'on')",
        "with chainer.using_config('use_ideep', False):\n    pass",
        "with chainer.using_config(name='use_ideep', value='on'):\n    pass",
        "MODE = 'on'\nchainer.config.use_ideep = MODE",
        "chainer.config.use_ideep = 'auto' if x else False",
    ],
)
def test_a_wrong_word_is_found(text: str):
    assert codes(f"import chainer\n{text}\n") == ["IDP906"]


@pytest.mark.parametrize(
    "text",
    [
        "chainer.config.use_ideep = 'auto'",
        "chainer.config.use_ideep = args.ideep",
        "chainer.config.use_ideep = 'auto' if x else 'never'",
        "with chainer.using_config('use_ideep', 'never'):\n    pass",
        "with chainer.using_config('train', False):\n    pass",
        "mine.config.use_ideep = True",
        "MODE = 'on'\nMODE = 'auto'\nchainer.config.use_ideep = MODE",
        "chainer.config.use_cudnn = 'on'",
        "def f(chainer):\n    chainer.config.use_ideep = True",
        "x = {'use_ideep': True}",
    ],
)
def test_another_word_or_thing_is_not(text: str):
    assert codes(f"import chainer\n{text}\n") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import os\nos.environ['CHAINER_USE_IDEEP'] = 'on'\nimport chainer\n", ["IDP906"]),
        ("import os\nos.environ.setdefault('CHAINER_USE_IDEEP', '1')\nimport chainer\n", ["IDP906"]),
        ("import os\nos.environ.update({'CHAINER_USE_IDEEP': '1'})\nimport chainer\n", ["IDP906"]),
        ("import os\nos.environ.update(CHAINER_USE_IDEEP='1')\nimport chainer\n", ["IDP906"]),
        ("import os\nos.putenv('CHAINER_USE_IDEEP', 'true')\nimport chainer\n", ["IDP906"]),
        ("import os\nos.environ['CHAINER_USE_IDEEP'] = 'auto'\nimport chainer\n", []),
        ("import os, chainer\nos.environ['CHAINER_USE_IDEEP'] = 'auto'\n", ["IDP907"]),
        ("import os, chainer\nos.environ['CHAINER_USE_IDEEP'] = '1'\n", ["IDP906", "IDP907"]),
        ("import os\nfrom chainer import links\nif a:\n    os.environ['OMP_NUM_THREADS'] = '1'\n", ["IDP907"]),
        ("import os, ideep4py\nos.environ['OMP_NUM_THREADS'] = '1'\n", ["IDP907"]),
        ("import os, chainer\nos.environ['CHAINER_DTYPE'] = 'float32'\n", ["IDP907"]),
        ("import os, chainer\nos.environ['MKLDNN_VERBOSE'] = '1'\nos.environ['PATH'] = ''\n", []),
        ("import os, chainer, subprocess\nos.environ['CHAINER_USE_IDEEP'] = 'auto'\n", []),
        ("import os, chainer\nos.environ['CHAINER_USE_IDEEP'] = 'auto'\nos.execv(a, b)\n", []),
        ("import os, chainer\nos.environ['CHAINER_USE_IDEEP'] = 'auto'\nos.system('python b.py')\n", []),
        (
            "import os\ntry:\n    import chainer\nexcept ImportError:\n    pass\n"
            "os.environ['CHAINER_USE_IDEEP'] = 'auto'\n",
            [],
        ),
        ("import os, chainer\nprint(os.environ['CHAINER_USE_IDEEP'])\n", []),
        ("import os, chainer\nenv = dict(os.environ, CHAINER_USE_IDEEP='auto')\n", []),
    ],
)
def test_variables(text: str, expected: list[str]):
    assert codes(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import torch\nimport chainer\n", ["IDP908"]),
        ("import torch.nn as nn, chainer\n", ["IDP908"]),
        ("from torch.utils import data\nimport numpy\nfrom chainer import links\n", ["IDP908"]),
        ("import mxnet\nimport ideep4py\n", ["IDP908"]),
        ("import chainer, torch\n", []),
        ("import ideep4py\nimport torch\nimport chainer\n", []),
        ("import torch\n", []),
        ("import torchvision_like\nimport chainer\n", []),
        ("if a:\n    import torch\nimport chainer\n", []),
        ("def f():\n    import torch\nimport chainer\n", []),
        ("import torch\ndef f():\n    import chainer\n", []),
        ("from .torch import x\nimport chainer\n", []),
    ],
)
def test_the_order_of_imports(text: str, expected: list[str]):
    assert codes(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("chainer.global_config.dtype = np.float64", ["IDP905"]),
        ("chainer.config.dtype = 'float64'", ["IDP905"]),
        ("chainer.config.dtype = np.dtype('float64')", ["IDP905"]),
        ("chainer.global_config.dtype = chainer.mixed16", ["IDP905"]),
        ("chainer.global_config.dtype = np.float16", ["IDP905"]),
        ("chainer.global_config.dtype = float", ["IDP905"]),
        ("chainer.global_config.dtype = np.float32 if a else np.float64", ["IDP905"]),
        ("with chainer.using_config('dtype', np.float64):\n    pass", ["IDP905"]),
        ("chainer.global_config.dtype = np.float32", []),
        ("chainer.global_config.dtype = args.dtype", []),
        ("mine.dtype = np.float64", []),
        ("x = np.zeros(3, dtype=np.float64)", []),
    ],
)
def test_the_default_dtype(text: str, expected: list[str]):
    assert codes(f"{HEAD}{text}\n") == expected


LINK = "c = L.Convolution2D(3, 64, 3)\n"


@pytest.mark.parametrize(
    "text",
    [
        "c(np.random.rand(1, 3, 8, 8))",
        "c(np.random.normal(size=(1, 3, 8, 8)))",
        "c(np.zeros((1, 3, 8, 8)))",
        "c(np.ones(shape, dtype='d'))",
        "c(np.array(x, dtype=np.float64))",
        "c(np.asarray(x, np.float64, dtype=float))",
        "c(y.astype(np.float64))",
        "c(y.astype('float64'))",
        "x = np.random.rand(1, 3, 8, 8)\nx = x * 2 - 1\nc(x)",
        "x = np.random.rand(192).reshape(1, 3, 8, 8)\nc(x)",
        "c(chainer.Variable(np.random.rand(1, 3, 8, 8)))",
        "F.relu(np.random.rand(3, 4))",
        "F.linear(np.zeros((3, 4)), w)",
        "m = L.Classifier(L.Linear(3))\nm(np.random.rand(3, 4), t)",
    ],
)
def test_an_array_of_float64_is_found(text: str):
    assert codes(HEAD + LINK + text + "\n") == ["IDP904"]


@pytest.mark.parametrize(
    "text",
    [
        "c(np.random.rand(1, 3, 8, 8).astype(np.float32))",
        "c(np.random.rand(1, 3, 8, 8).astype('f'))",
        "c(np.zeros((1, 3, 8, 8), np.float32))",
        "c(np.zeros((1, 3, 8, 8), dtype=np.float32))",
        "c(np.array(x))",
        "c(np.asarray(x, dtype=dtype))",
        "x = np.random.rand(1, 3, 8, 8)\nx = x.astype('f')\nc(x)",
        "x = np.random.rand(1, 3, 8, 8)\nif a:\n    x = x.astype('f')\nc(x)",
        "x = np.random.rand(1, 3, 8, 8) * scale\nc(x)",
        "x = np.random.rand(1, 3, 8, 8)\nfor i in y:\n    c(x)\n    x = x.astype('f')",
        "F.softmax_cross_entropy(y, np.zeros(3))",
        "F.sum(np.random.rand(3, 4))",
        "g(np.random.rand(1, 3, 8, 8))",
        "mine.Convolution2D(3)(np.random.rand(3))",
        "np.random.seed(0)\nc(x)",
        "import chainer.testing\nc(np.random.rand(1, 3, 8, 8))",
        "import unittest\nc(np.random.rand(1, 3, 8, 8))",
        "class N(chainer.Chain):\n    def forward(self, x):\n        return F.relu(x.astype('f'))\nn = N()\n"
        "n(np.random.rand(3))",
    ],
)
def test_an_array_that_is_cast_or_not_known_is_not(text: str):
    assert codes(HEAD + LINK + text + "\n") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("L.Convolution2D(32, 32, 3, groups=32)", ["IDP915"]),
        ("F.convolution_2d(x, w, groups=2)", ["IDP915"]),
        ("L.DepthwiseConvolution2D(3, 1, 3)", ["IDP915"]),
        ("L.Convolution1D(3, 4, 3)", ["IDP915"]),
        ("L.ConvolutionND(3, 3, 4, 3)", ["IDP915"]),
        ("F.deconvolution_3d(x, w)", ["IDP915"]),
        ("F.relu(x.astype(np.float16))", ["IDP915"]),
        ("F.relu(x.astype('float16'))", ["IDP915"]),
        ("L.Convolution2D(32, 32, 3)", []),
        ("L.Convolution2D(32, 32, 3, groups=n)", []),
        ("L.Convolution2D(32, 32, 3, groups=1, dilate=2)", []),
        ("x.astype(np.float16)", []),
        ("np.save(f, x.astype(np.float16))", []),
        ("mine.Convolution3D(3)", []),
        ("import onnx_chainer", ["IDP916"]),
        ("from chainer.links.caffe import CaffeFunction\nCaffeFunction(f)", ["IDP916"]),
        ("from chainer.links import caffe", ["IDP916"]),
        ("L.caffe.CaffeFunction(f)\nL.caffe.CaffeFunction(g)", ["IDP916"]),
        ("from chainer.exporters import caffe", ["IDP916"]),
        ("L.VGG16Layers()", []),
        ("import caffe\nimport google.protobuf", []),
    ],
)
def test_what_is_not_accelerated_and_what_needs_protobuf(text: str, expected: list[str]):
    assert codes(f"{HEAD}{text}\n") == expected
