"""The tables of the networks: shapes, parameters and work against what the publications and their users count."""

from __future__ import annotations

import pytest

from tests.payload.joined import load

NETS = load("nets")
# Parameters as published implementations count them; ResNet-50's convolutions have 26,560 biases here besides.
PARAMETERS = {"alexnet": 61_100_840, "vgga": 132_863_336, "resnet50": 25_557_032 + 26_560}
# Multiplications with addition of one image, forward, in 10^9, as far as they are published.
PRODUCTS = {"alexnet": 0.714, "vgga": 7.609, "resnet50": 3.86}


def made(name):
    return NETS["NETS"][name]()


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_and_work_are_those_of_the_publication(name: str) -> None:
    assert sum(NETS["parameters_of"](made(name)).values()) == PARAMETERS[name]
    forward = sum(pair[0] for pair in NETS["work_of"](made(name)).values())
    assert forward / 2e9 == pytest.approx(PRODUCTS[name], rel=0.005)


def test_the_trunk_of_googlenet_has_the_published_shapes() -> None:
    shapes = NETS["shapes_of"](made("googlenet"))
    expected = {
        "inc3a": (256, 28, 28),
        "inc3b": (480, 28, 28),
        "inc4a": (512, 14, 14),
        "inc4d": (528, 14, 14),
        "inc4e": (832, 14, 14),
        "inc5b": (1024, 7, 7),
        "inc4a_aux": (128, 4, 4),
        "inc4d_aux": (128, 4, 4),
    }
    assert {name: shapes[name] for name in expected} == expected
    shares = [node.options["share"] for node in made("googlenet").nodes if node.op == "logits"]
    assert shares == [0.3, 0.3, 1.0]


def test_overfeat_ends_with_six_by_six() -> None:
    shapes = NETS["shapes_of"](made("overfeat"))
    assert shapes["conv1"] == (96, 56, 56)
    assert shapes["conv2"] == (256, 24, 24)
    assert shapes["conv5"] == (1024, 12, 12)
    assert NETS["parameters_of"](made("overfeat"))["fc6"] == (1024 * 36 + 1) * 3072


@pytest.mark.parametrize("name", sorted(NETS["NETS"]))
def test_every_node_follows_one_that_is_there(name: str) -> None:
    net, known = made(name), set()
    for node in net.nodes:
        assert all(given in known for given in node.inputs), node.name
        assert node.name not in known
        known.add(node.name)
    assert {node.op for node in net.nodes} <= {
        "image", "conv", "relu", "add", "concat", "logits", "max", "average", "bn", "linear"
    }  # fmt: skip


def test_the_first_layer_has_no_gradient_of_its_input() -> None:
    work = NETS["work_of"](made("alexnet"))
    assert work["conv1"][1] == work["conv1"][0]
    assert work["conv2"][1] == 2 * work["conv2"][0]


def test_memory_grows_with_the_batch_and_with_unfolding() -> None:
    memory, net = NETS["memory_of"], made("vgga")
    parameters = 8 * PARAMETERS["vgga"]
    assert parameters < memory(net, 1, False) < memory(net, 8, False)
    # Twice the batch is twice the arrays, and no more parameters.
    assert memory(net, 16, False) - parameters == 2 * (memory(net, 8, False) - parameters)
    assert memory(net, 8, True) > 1.1 * memory(net, 8, False)


def test_a_window_may_stand_out_where_the_net_says_so() -> None:
    window = NETS["window"]
    assert window(112, {"kernel": 3, "stride": 2, "pad": 0}) == 55
    assert window(112, {"kernel": 3, "stride": 2, "pad": 0, "ceil": True}) == 56
