"""The workers of bench for PyTorch and OpenCV, as far as they can be looked at without either."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from tests.payload.joined import load

TORCH, OPENCV = load("bench_torch"), load("bench_opencv")
WORKERS = pytest.mark.parametrize("worker", [TORCH, OPENCV], ids=["torch", "opencv"])


@WORKERS
@pytest.mark.parametrize(
    ("asked", "threads"), [("3", 3), (" 5 ", 5), ("4,2", 4), ("", None), ("0", None), ("many", None), (None, None)]
)
def test_threads_are_those_of_the_variable_else_of_the_cpus_that_are_open(
    worker: dict[str, Any], asked: str | None, threads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {0, 2, 4, 6, 8, 10, 12})
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if asked is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert worker["threads_allowed"]() == (threads or 7)


@WORKERS
@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"net": "lenet", "batch": 1}, "there is no network lenet; there are alexnet, conv, googlenet"),
        ({"net": "alexnet", "batch": 1, "model": ["net.py", "make"]}, "cannot run a model of Chainer"),
    ],
)
def test_what_cannot_be_loaded_is_refused(worker: dict[str, Any], request_: dict[str, Any], said: str) -> None:
    answer = worker["answer_of"]({"load": worker["Engine"]().load}, {"do": "load", **request_})
    assert answer["error"]["kind"] == "refused"
    assert said in answer["error"]["message"]


@WORKERS
def test_steps_before_a_load_are_refused(worker: dict[str, Any]) -> None:
    handlers = {"steps": lambda request: worker["timed_steps"](worker["Engine"]().step, request["count"])}
    answer = worker["answer_of"](handlers, {"do": "steps", "count": 1})
    assert answer["error"] == {"kind": "refused", "message": "nothing is loaded"}


def test_work_and_parameters_are_those_of_the_tables() -> None:
    net, batch, told = TORCH["asked_net"]({"net": "vgga", "batch": 3}, "PyTorch")
    assert (net.name, batch, told["batch"]) == ("vgga", 3, 3)
    assert told["parameters"] == 132_863_336  # of VGG's publication: 133 million
    assert told["flops"][0] == 3 * sum(forward for forward, _ in TORCH["work_of"](net).values())
    assert told["flops"][1] < 2 * told["flops"][0]  # no gradient of the images
    assert (told["used"], told["guard"], told["loss"]) == (None, False, None)


BUILT = """PyTorch built with:
  - GCC 7.3
  - Intel(R) Math Kernel Library Version 2019.0.4 Product Build 20190411
  - Intel(R) MKL-DNN v0.21.1 (Git Hash 7d2fd500bc78936d1d648ca713b901012f470dbc)
  - Build settings: BLAS=MKL, BUILD_TYPE=Release"""


@pytest.mark.parametrize(
    ("built", "dnn"), [(BUILT, "0.21.1"), ("  - oneDNN v3.7.1 (Git Hash 8d263)", "3.7.1"), ("", None)]
)
def test_versions_of_pytorch_and_of_the_onednn_in_it(built: str, dnn: str | None) -> None:
    engine = TORCH["Engine"]()
    engine.torch = SimpleNamespace(__version__="1.4.0", __config__=SimpleNamespace(show=lambda: built))
    assert engine.versions() == {"torch": "1.4.0", **({"mkldnn": dnn} if dnn else {})}


def test_a_pytorch_without_channels_last_says_so() -> None:
    class Tensor:
        def dim(self) -> int:
            return 4

        def contiguous(self, **_: object) -> None:
            raise TypeError("unexpected keyword argument 'memory_format'")

    model = TORCH["Model"].__new__(TORCH["Model"])
    model.torch, model.channels_last = SimpleNamespace(__version__="1.0", channels_last=1), True
    with pytest.raises(TORCH["CannotDo"], match=r"PyTorch 1\.0 has no channels last"):
        model.ordered(Tensor())
    model.channels_last, tensor = False, Tensor()
    assert model.ordered(tensor) is tensor
