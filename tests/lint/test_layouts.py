"""Values in blocked memory: what the output of a convolution goes through, and what is done with it."""

from __future__ import annotations

import pytest

from tests.lint.sources import HEAD, codes, found

NET = """
class Net(chainer.Chain):
    def __init__(self, n):
        super(Net, self).__init__()
        with self.init_scope():
            self.a = L.Convolution2D(3, 64, 3)
            self.b = L.Convolution2D(64, 64, 3)
            self.ten = L.Convolution2D(64, 10, 3)
            self.eight = L.Convolution2D(64, 8, 3)
            self.four_in = L.Convolution2D(4, 64, 3)
            self.any = L.Convolution2D(None, n, 3)
            self.grouped = L.Convolution2D(64, 64, 3, groups=2)
            self.dilated = L.DilatedConvolution2D(64, 64, 3, dilate=2)
            self.bn = L.BatchNormalization(64)
            self.dc = L.Deconvolution2D(64, 64, 3)
            self.fc = L.Linear(None, 10)
            if n:
                self.both = L.Convolution2D(64, 64, 3)
            else:
                self.both = L.Linear(64)
        self.other = n

    def forward(self, x, z):
"""
OLD = """
class Net(chainer.Chain):
    def __init__(self):
        super(Net, self).__init__(a=L.Convolution2D(3, 64, 3), b=L.Convolution2D(64, 64, 3))
        self.add_link('ten', L.Convolution2D(64, 10, 3))

    def __call__(self, x):
"""


NEVER = "with chainer.using_config('use_ideep', 'never'):"


def body(*lines: str, net: str = NET) -> list[str]:
    text = HEAD + net + "".join(f"        {line}\n" for line in lines)
    return [code for code in codes(text) if code != "IDP915"]


@pytest.mark.parametrize(
    "lines",
    [
        ["return self.a(x) * self.b(z)"],
        ["h = F.relu(self.a(x))", "return h * h"],
        ["return F.max_pooling_2d(self.a(x), 2) / F.average_pooling_2d(self.b(z), 2)"],
        ["return F.dropout(F.leaky_relu(self.a(x))) * self.dilated(z)"],
        ["return self.a(x) * F.sigmoid(self.b(z))"],
        ["return self.a(x) * self.bn(self.b(z))"],
        ["return (self.a(x) + self.b(z)) * self.b(z)"],
        ["return F.concat([self.a(x), self.b(z)]) * F.concat([self.b(z), self.a(x)])"],
        ["h = self.a(x)", "h *= self.b(z)", "return h"],
        ["h = self.any(x)", "return h * self.any(z)"],
        ["if x is None:", "    h = self.a(z)", "else:", "    h = self.b(x)", "return h * self.b(z)"],
        ["h = F.convolution_2d(x, z)", "return h * h"],
        ["conv = self.a", "return self.a(x) * self.a(z)"],
        ["return self.eight(x) * self.eight(z)"],
    ],
)
def test_a_product_of_two_convolutions_is_found(lines: list[str]):
    assert body(*lines) == ["IDP909"]


@pytest.mark.parametrize(
    "lines",
    [
        ["return self.a(x) * z"],
        ["return z * self.a(x)"],
        ["return self.a(x) * 2"],
        ["return self.a(x) ** 2"],
        ["return F.square(self.a(x))"],
        ["return self.a(x) + self.b(z) - self.a(x)"],
        ["return F.sigmoid(self.a(x)) * self.b(z)"],
        ["return F.tanh(self.a(x)) * F.sigmoid(self.b(z))"],
        ["return self.bn(self.a(x)) * self.b(z)"],
        ["return (self.a(x) + 0) * self.b(z)"],
        ["return self.ten(x) * self.ten(z)"],
        ["return self.four_in(x) * self.four_in(z)"],
        ["return self.grouped(x) * self.grouped(z)"],
        ["return self.dc(x) * self.dc(z)"],
        ["return self.fc(x) * self.fc(z)"],
        ["return self.both(x) * self.both(z)"],
        ["return self.other(x) * self.other(z)"],
        ["return self.missing(x) * self.missing(z)"],
        ["return self.a(x) * self.eight(z)"],
        ["return self.a(x).array * self.b(z).array"],
        ["h = self.a(x)", "h = F.sigmoid(h)", "return h * self.b(z)"],
        ["h = self.a(x)", "if z is None:", "    h = z", "return h * self.b(x)"],
        ["h = self.a(x)", "for i in z:", "    y = h * self.b(x)", "    h = F.sigmoid(y)", "return h"],
        ["h = x", "for i in z:", "    h = self.b(h)", "return h * self.b(z)"],
        ["h, g = self.a(x), z", "return h * g"],
        ["return F.broadcast_to(self.a(x), z.shape) * self.b(z)"],
        ["w = 2 * self.a(x)", "return w * self.b(z)"],
    ],
)
def test_another_product_is_not(lines: list[str]):
    assert body(*lines) == []


def test_links_of_the_old_way_and_of_other_scopes_are_known():
    assert body("return self.a(x) * self.b(x)", net=OLD) == ["IDP909"]
    assert body("return self.ten(x) * self.ten(x)", net=OLD) == []
    assert codes(HEAD + "c = L.Convolution2D(3, 64, 3)\ny = c(x) * c(z)\n") == ["IDP909"]
    assert codes(HEAD + "c = L.Convolution2D(3, 64, 3)\ndef f(x):\n    return c(x) * c(x)\n") == ["IDP909"]
    assert codes(HEAD + "c = L.Convolution2D(3, 64, 3)\nc = make(c)\ny = c(x) * c(z)\n") == []
    inner = HEAD + NET + "        return x\nnet = Net(3)\ny = net.a(x) * net.b(x)\n"
    assert [code for code in codes(inner) if code != "IDP915"] == ["IDP909"]
    derived = (
        HEAD
        + NET
        + "        return x\nclass More(Net):\n    def more(self, x):\n        return self.a(x) * self.b(x)\n"
    )
    assert [code for code in codes(derived) if code != "IDP915"] == ["IDP909"]


def test_nothing_is_said_where_ideep_is_off():
    assert codes(HEAD + "chainer.config.use_ideep = 'never'\nc = L.Convolution2D(3, 64, 3)\ny = c(x) * c(z)\n") == []


def test_the_advice_names_the_values():
    [item] = found(HEAD + OLD + "        h = self.a(x)\n        g = self.b(x)\n        return h * g\n")
    assert item.finding.next_step == "(h + 0) * (g + 0)"
    [item] = found(HEAD + OLD + "        h = self.a(x)\n        return h * h\n")
    assert item.finding.next_step == "F.square(h)"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["return F.concat([self.b(x), self.eight(x)])"], ["IDP911"]),
        (["return F.concat((self.b(x), self.ten(x)), axis=1)"], ["IDP911"]),
        (["return F.concat([F.relu(self.b(x)), F.sigmoid(self.ten(x))], 1)"], ["IDP911"]),
        (["return F.concat([self.eight(x), self.ten(x)])"], ["IDP911"]),
        (["h = F.concat([self.b(x), self.b(x)])", "return F.concat([h, self.eight(x)])"], ["IDP911"]),
        (["return F.concat([self.any(x), self.b(x)])"], ["IDP911"]),
        ([NEVER, "    return F.concat([self.b(x), self.eight(x)])"], []),
        ([NEVER, "    return F.split_axis(self.b(x), 8, 1)"], []),
        ([NEVER, "    h = self.b(x)", "return F.concat([h, self.eight(x)]) * (h * h)"], []),
        (["with chainer.using_config('train', False):", "    return F.split_axis(self.b(x), 8, 1)"], ["IDP912"]),
        (["return F.concat([self.b(x), self.b(x)])"], []),
        (["return F.concat([self.eight(x), self.b(x)])"], []),
        (["return F.concat([self.eight(x), self.eight(x)])"], []),
        (["return F.concat([self.ten(x), self.b(x)])"], []),
        (["return F.concat([F.sigmoid(self.b(x)), self.ten(x)])"], []),
        (["return F.concat([self.b(x) + 0, self.ten(x)])"], []),
        (["return F.concat([self.b(x), self.b(x)], axis=0)"], []),
        (["return F.concat([self.b(x), self.ten(x)], axis=2)"], []),
        (["return F.concat([self.b(x), self.ten(x)], axis=z)"], []),
        (["return F.concat([self.b(x), z])"], []),
        (["return F.concat([z, self.b(x)])"], []),
        (["return F.concat([f(x) for f in z])"], []),
        (["return np.concatenate([self.b(x), self.ten(x)])"], []),
        (["return F.split_axis(self.eight(x), 2, 1)"], []),
        (["return F.split_axis(self.b(x), 8, axis=1)"], ["IDP912"]),
        (["return F.split_axis(self.b(x), [8], axis=1)"], ["IDP912"]),
        (["return F.split_axis(F.relu(self.b(x)), 64, 1)"], ["IDP912"]),
        (["return F.split_axis(self.b(x), z, axis=1)"], ["IDP912"]),
        (["return F.split_axis(self.any(x), 2, axis=1)"], ["IDP912"]),
        (["return F.split_axis(self.b(x), 4, axis=1)"], []),
        (["return F.split_axis(self.b(x), [16, 48], axis=1)"], []),
        (["return F.split_axis(self.b(x), 8, axis=0)"], []),
        (["return F.split_axis(self.b(x) + 0, 8, axis=1)"], []),
        (["return F.split_axis(self.ten(x), 2, axis=1)"], []),
        (["return F.split_axis(z, 2, axis=1)"], []),
    ],
)
def test_concat_and_split_axis(lines: list[str], expected: list[str]):
    assert body(*lines) == expected


def test_what_is_not_known_is_a_note_and_what_is_known_a_warning():
    def severity(line: str) -> str:
        [item] = [item for item in found(HEAD + NET + f"        {line}\n") if item.finding.code != "IDP915"]
        return str(item.finding.severity)

    assert severity("return F.concat([self.any(x), self.b(x)])") == "info"
    assert severity("return F.concat([self.b(x), self.ten(x)])") == "warning"
    assert severity("return F.split_axis(self.any(x), 2, axis=1)") == "info"
    assert severity("return F.split_axis(self.b(x), 8, axis=1)") == "warning"


LRN = "F.local_response_normalization"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([f"return self.fc({LRN}(F.relu(self.a(x))))"], ["IDP910"]),
        ([f"h = {LRN}(self.a(x))", "return self.bn(h)"], ["IDP910"]),
        ([f"return F.tanh({LRN}(F.max_pooling_2d(self.a(x), 2)))"], ["IDP910"]),
        ([f"return self.b({LRN}(F.sigmoid(self.a(x))))"], ["IDP910"]),
        ([f"return self.b({LRN}(self.bn(self.a(x))))"], ["IDP910"]),
        ([f"return self.b({LRN}(F.relu(self.a(x))))"], []),
        ([f"return self.b(F.max_pooling_2d({LRN}(F.relu(self.a(x))), 3, 2))"], []),
        ([f"return self.b(F.max_pooling_2d(F.relu({LRN}(self.a(x))), 3, 2))"], []),
        ([f"return self.fc({LRN}(self.a(x) + 0) * 1.0)"], []),
        ([f"return self.b({LRN}(x))"], []),
        ([f"return self.fc({LRN}(x))"], []),
        ([f"return self.fc({LRN}(self.ten(x)))"], []),
        ([f"h = {LRN}(self.a(x))", "h = F.relu(h)", "return self.b(h)"], []),
    ],
)
def test_lrn(lines: list[str], expected: list[str]):
    assert body(*lines) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["return F.fixed_batch_normalization(x, 1, 1, 0, 1)"], ["IDP913"]),
        (["with chainer.no_backprop_mode():", "    return F.fixed_batch_normalization(x, 1, 1, 0, 1)"], []),
        (
            [
                "with chainer.using_config('enable_backprop', False):",
                "    return F.fixed_batch_normalization(x, 1, 1, 0, 1)",
            ],
            [],
        ),
        (
            [
                "with chainer.using_config('use_ideep', 'never'):",
                "    return F.fixed_batch_normalization(x, 1, 1, 0, 1)",
            ],
            [],
        ),
        (["return F.fixed_batch_normalization(x, 1, 1, 0, 1) * 1.0"], []),
        (["return F.batch_normalization(x, 1, 1)"], []),
    ],
)
def test_fixed_batch_normalization(lines: list[str], expected: list[str]):
    assert body(*lines) == expected
