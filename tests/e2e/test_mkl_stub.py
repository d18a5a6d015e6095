"""The library in place of MKL's against MKL's own (of the wheel), and under ideep4py itself."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.builder import stub
from ideepdoctor.builder.cache import Store
from ideepdoctor.builder.compare import Measured, decide, measure
from ideepdoctor.builder.mkl import provide
from ideepdoctor.builder.recipe import RELEASES
from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.model.build import BuildRequest
from ideepdoctor.proof.noise import Monitor
from ideepdoctor.system import RealSystem
from ideepdoctor.targets.target import Target
from tests.builder.vectors import SPECIAL, M, ask, floats, numbers, same, single, ulps
from tests.e2e.environments import Answer

pytestmark = pytest.mark.e2e

Made = Callable[..., tuple[Path, Answer]]


@pytest.fixture(scope="module")
def wheel(made: Made) -> Path:
    """The folder of libraries of an ideep4py that setup installed."""
    environment, answer = made("3.7")
    assert answer.code == 0, answer.stderr
    [folder] = environment.glob("lib/python3.7/site-packages/ideep4py/lib")
    return folder


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("stub"))
    return stub.compile_stub(RealSystem(), stub.find_compiler(os.environ), "native", folder, os.environ)


def both(wheel: Path, library: str, requests: list[dict[str, Any]]) -> tuple[list[Any], list[Any]]:
    """What MKL answers, and what ours does."""
    real = ask(wheel / "libmklml_intel.so", requests, (wheel / "libiomp5.so",))
    return real, ask(library, requests)


def test_draws_are_those_of_mkl_bit_by_bit(wheel: Path, library: str) -> None:
    chance = random.Random(8)
    requests: list[dict[str, Any]] = []
    for number in range(400):
        p = chance.choice([0.5, 0.25, 0.0, 1.0, 1e-9, 1 - 1e-9, "nan"]) if number % 3 == 0 else chance.random()
        counts = [chance.choice([1, 2, 7, 31, 32, 33, 100, 1023, 1024, 1025]) for _ in range(chance.choice([1, 3]))]
        skip = chance.choice([0, 1, 7, 2**31 - 2, 12_345_678_901, 2**62, -1, -5, -(2**40)])
        seed = chance.choice([0, 1, M, chance.randrange(2**32), 17 + chance.randrange(4096)])
        requests.append({"do": "draws", "seed": seed, "counts": counts, "p": p, "skips": [skip]})
    for _ in range(200):  # u in the middle between two numbers of single precision, and beside it
        base = chance.randrange(2**30, M - 256) // 128 * 128
        seed = base + 64 + chance.choice([-1, 0, 1])
        p = chance.choice([base / 2**31, (base + 64) / 2**31, (base + 128) / 2**31, seed / M])
        requests.append({"do": "draws", "seed": seed, "counts": [3], "p": p})
    requests.append({"do": "draws", "seed": 4000, "counts": [500_000], "p": 0.5})
    real, own = both(wheel, library, requests)
    wrong = [request for request, one, other in zip(requests, real, own, strict=True) if one != other]
    assert wrong == []
    assert len(real[-1]["draws"]) == 500_000 and real[-1]["codes"] == []


def test_values_are_as_good_as_those_of_mkl(wheel: Path, library: str) -> None:
    chance = random.Random(9)
    a = [single(2.0 ** chance.uniform(-149, 127.9)) for _ in range(4000)]
    a += [single(1 + chance.gauss(0, 1e-3)) for _ in range(1000)]
    b = a[::-1]
    powers = [single(power) for power in (-0.5, 0.5, -0.75, 0.75, 1.0, 2.0, 3.0, -1.0, 1 / 3, 10.0, -7.25, 1000.0)]
    requests: list[dict[str, Any]] = [{"do": "powx", "a": floats(a), "b": power} for power in powers]
    requests.append({"do": "mul", "a": floats(a), "b": floats(b)})
    real, own = both(wheel, library, requests)
    assert real[-1] == own[-1]
    for power, one, other in zip(powers, real, own, strict=False):
        wanted = [exact(x, power) for x in a]
        worst = [max(map(ulps, numbers(found), wanted)) for found in (one, other)]
        assert worst[1] <= 0.501, (power, worst)
        assert worst[1] <= worst[0] + 0.001, (power, worst)
        assert worst[0] < 1, (power, worst)


def exact(x: float, power: float) -> float:
    try:
        return math.pow(x, power)
    except OverflowError:
        return math.inf


def test_special_numbers_give_what_mkl_gives(wheel: Path, library: str) -> None:
    special = [single(x) for x in SPECIAL]
    powers = [*special, 3.0, 2.5, -2.5, 1e30, -1e30, 16777217.0]
    requests: list[dict[str, Any]] = [{"do": "powx", "a": floats(special), "b": str(single(b))} for b in powers]
    pairs = [(x, y) for x in special for y in special]
    one, other = floats([x for x, _ in pairs]), floats([y for _, y in pairs])
    requests.append({"do": "mul", "a": one, "b": other})
    real, own = both(wheel, library, requests)
    for request, first, second in zip(requests, real, own, strict=True):
        for x, y in zip(numbers(first), numbers(second), strict=True):
            assert same(x, y) or abs(x - y) <= abs(x) * 2**-23, (request["b"], x, y)


def test_wrong_calls_get_the_codes_of_mkl(wheel: Path, library: str) -> None:
    [[real, real_idle], [own, own_idle]] = both(wheel, library, [{"do": "codes"}, {"do": "idle"}])
    assert {name: (real[name], own[name]) for name in real if real[name] != own[name]} == {}
    assert real_idle == own_idle


def test_generators_that_mkl_has_and_we_do_not(wheel: Path, library: str) -> None:
    """ideep asks for the first alone."""
    real, own = both(wheel, library, [{"do": "generator", "number": number << 20} for number in range(1, 18)])
    assert own == [[0, True]] + [[-1000, False]] * 16
    assert [number for number, answer in enumerate(real, 1) if answer != own[number - 1]] == [
        *range(2, 10),
        *range(13, 17),
    ]


UNDER_IDEEP = """
import ctypes, json, sys
import chainer, chainer.functions as F, numpy as np
from chainer.backends import intel64
chainer.config.use_ideep = "always"
path = sys.argv[1]
told = {}
with open("/proc/self/maps") as maps:
    ranges = [line.split()[0].split("-") for line in maps if path in line]
# Whose function the extension gets: the address that the loader finds first.
for name in ("vsMul", "vsPowx", "viRngBernoulli", "vslNewStream", "vslSkipAheadStream", "vslDeleteStream"):
    address = ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value
    told[name] = any(int(low, 16) <= address < int(high, 16) for low, high in ranges)
random = np.random.RandomState(0)
array = lambda *shape: random.standard_normal(shape).astype(np.float32)
x = chainer.Variable(array(64, 3, 64, 64))
y = F.dropout(x, 0.3)
kept = np.asarray(y.data) != 0
told["dropout"] = float(kept.mean())
told["scaled"] = float(np.abs(np.asarray(y.data)[kept] * 0.7 - x.data[kept]).max())
y.grad = np.ones_like(x.data)
y.backward()
told["gradient"] = bool((np.asarray(x.grad)[kept] != 0).all() and (np.asarray(x.grad)[~kept] == 0).all())
data, gamma, beta = array(8, 16, 5, 5), array(16), array(16)
with chainer.using_config("use_ideep", "never"):
    wanted = F.batch_normalization(data, gamma, beta).data
    mean, var = data.mean((0, 2, 3)), data.var((0, 2, 3))
    fixed = F.fixed_batch_normalization(data, gamma, beta, mean, var).data
told["normalized"] = float(np.abs(np.asarray(F.batch_normalization(data, gamma, beta).data) - wanted).max())
found = F.fixed_batch_normalization(data, gamma, beta, mean, var).data
told["fixed"] = float(np.abs(np.asarray(found) - fixed).max())
one, other = array(4, 8, 6, 6), array(4, 8, 6, 6)
product = intel64.ideep.array(one) * intel64.ideep.array(other)
told["product"] = float(np.abs(np.asarray(product) - one * other).max())
print(json.dumps(told))
"""


def test_ideep4py_computes_right_with_it(wheel: Path, made: Made, tmp_path: Path) -> None:
    """The extension of the wheel with our six functions before MKL's; MKL-DNN still calls MKL's others."""
    environment, _ = made("3.7")
    text, path = tmp_path / "stub.c", tmp_path / "libpreloaded.so"
    text.write_bytes(stub.source())
    argv = [stub.find_compiler(os.environ), *stub.FLAGS, "-shared", "-o", str(path), str(text), "-lm"]
    assert RealSystem().run(argv, timeout_seconds=60).ok
    argv = [str(environment / "bin" / "python"), "-c", UNDER_IDEEP, str(path)]
    done = subprocess.run(argv, env={**os.environ, "LD_PRELOAD": str(path)}, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    told = json.loads(done.stdout.decode().splitlines()[-1])
    assert all(told.pop(name) is True for name in list(told) if name.startswith("v"))
    count = 64 * 3 * 64 * 64
    assert abs(told.pop("dropout") - 0.7) < 5 * math.sqrt(0.21 / count)
    assert told.pop("gradient") is True
    assert all(value < 1e-5 for value in told.values()), told
    assert len(told) == 4


def told_slower(measured: tuple[Measured, ...]) -> bool:
    """Whether the same environment was taken for slower than itself: not that it could not be told."""
    kind, reason = decide(measured)
    return kind == "wheel" and "perhaps slower" not in reason


@pytest.mark.slow
def test_one_environment_is_not_slower_than_itself(made: Made) -> None:
    environment, _ = made("3.7")
    target = Target(str(environment / "bin" / "python"))
    monitor, before = Monitor(), sum(os.times()[:4])
    measured = measure(RealSystem(), target, target, lambda _text: None)
    noise = monitor.verdict(sum(os.times()[:4]) - before)
    assert [item.work for item in measured] == ["conv", "alexnet", "linear", "dropout"]
    assert all(item.ratio is not None for item in measured)
    if not noise.quiet:
        pytest.skip(f"nothing can be told here now: {noise.messages}")
    assert not told_slower(measured), decide(measured)


def test_mkl_of_the_wheel_and_without_it_are_provided(made: Made, tmp_path: Path) -> None:
    """The wheel of ideep4py is in uv's cache since the environment was made; the headers are 1 MB."""
    made("3.7")
    system, told = RealSystem(), []
    store = Store(system, str(tmp_path / "store"), told.append)
    release = RELEASES["2.0.0.post3"]
    found = {}
    for kind in ("wheel", "none"):
        request = BuildRequest("python", "out", mkl=kind, march="x86-64-v3")
        found[kind] = provide(system, request, release, str(tmp_path / kind), store, told.append)
    assert found["wheel"].include == found["none"].include
    assert (Path(found["none"].include) / "mkl_vsl.h").stat().st_size > 1000
    assert [Path(path).stat().st_size for path in found["wheel"].libraries] == [154033966, 1842723]
    assert Path(found["none"].libraries[0]).stat().st_size < 100_000
    assert len([text for text in told if text.startswith(("fetching", "compiling"))]) == 3, told


def test_without_network_and_cache_nothing_is_provided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    system = RealSystem()
    store = Store(system, str(tmp_path / "store"), lambda _text: None)
    request = BuildRequest("python", "out", mkl="none")
    with pytest.raises(CouldNotCheck, match="fetching mkl-include"):
        provide(system, request, RELEASES["2.0.0.post3"], str(tmp_path / "work"), store, lambda _text: None)
    left = [path for path in (tmp_path / "store").rglob("*") if path.is_file() and path.suffix != ".lock"]
    assert left == [] and not (tmp_path / "work").exists()
