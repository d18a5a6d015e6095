"""What is known of the releases, pair by pair and edge by edge."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ideepdoctor.model.facts import Cpu
from ideepdoctor.rules import RULES
from ideepdoctor.rules.compat import (
    GUARDED,
    NUMPY_WINDOWS,
    RELEASES,
    Pair,
    guarded,
    is_older,
    kernel,
    lacking,
    numpy_window,
    outside,
    pair,
    right_release,
)
from tests.payload.joined import load

CHAINERS = (
    *("3.5.0", "4.0.0b2", "4.0.0b3", "4.0.0b4", "4.0.0rc1", "4.0.0", "4.1.0", "4.4.0", "4.5.0"),
    *("5.0.0b1", "5.0.0b2", "5.0.0b3", "5.0.0b4", "5.0.0rc1", "5.0.0", "5.4.0", "6.0.0", "6.7.0", "7.0.0", "7.8.1"),
)
"""Around every border, oldest first."""

# One letter for each Chainer above: r right, u unused, w wrong, ? never tried.
TABLE = {
    "1.0.1": "uuuuuuuuuuuuuuuuuuuu",
    "1.0.2": "uuuuuuuuuuuuuuuuuuuu",
    "1.0.3": "uuurrrrrr??uuuuuuuuu",
    "1.0.4": "uuurrrrrrrruuuuuuuuu",
    "2.0.0b1": "uuuuuuuuuuuuuuuuuuuu",
    "2.0.0b1.post1": "uuuwwwwwwwwwwruuuuuu",
    "2.0.0.post3": "uuuwwwwwwwwwwrrrrrrr",
}
LETTERS = {"r": Pair.RIGHT, "u": Pair.UNUSED, "w": Pair.WRONG, "?": Pair.UNKNOWN}


@pytest.mark.parametrize("ideep4py", TABLE)
def test_every_pair(ideep4py: str):
    found = {chainer: pair(chainer, ideep4py) for chainer in CHAINERS}
    assert found == {chainer: LETTERS[letter] for chainer, letter in zip(CHAINERS, TABLE[ideep4py], strict=True)}


def test_the_table_has_every_release():
    assert set(TABLE) == set(RELEASES)


@pytest.mark.parametrize(
    ("chainer", "ideep4py"),
    [("7.8.1", "2.0.0.post3+mine"), ("7.8.1", "2.0.0"), ("7.8.1", "3.0"), ("7.8.1", "x y"), ("who knows", "1.0.4")],
)
def test_what_is_not_on_the_index_was_never_tried(chainer: str, ideep4py: str):
    assert pair(chainer, ideep4py) is Pair.UNKNOWN


@pytest.mark.parametrize("chainer", CHAINERS)
def test_the_release_that_is_named_as_right_is_right(chainer: str):
    words = right_release(chainer)
    right = [version for version in RELEASES if pair(chainer, version) is Pair.RIGHT]
    if right:
        assert words in {f"ideep4py {version}" for version in right}
    else:
        assert words.startswith("Chainer ")
        assert chainer in words


def test_a_chainer_that_nobody_knows_is_told_the_best_release():
    assert right_release("mine") == "ideep4py 2.0.0.post3"


@pytest.mark.parametrize(
    ("release", "abis"),
    [
        ("1.0.1", {"cp27mu", "cp35m", "cp36m"}),
        ("1.0.4", {"cp27m", "cp27mu", "cp35m", "cp36m"}),
        ("2.0.0b1.post1", {"cp27m", "cp27mu", "cp35m", "cp36m"}),
        ("2.0.0.post3", {"cp27m", "cp27mu", "cp35m", "cp36m", "cp37m"}),
    ],
)
def test_wheels(release: str, abis: set[str]):
    assert set(RELEASES[release].abis) == abis


def test_what_releases_need():
    assert {name for name, item in RELEASES.items() if item.broken} == {"1.0.1", "1.0.2", "2.0.0b1"}
    assert {name for name, item in RELEASES.items() if item.intel_only} == {"1.0.1", "1.0.2", "1.0.3"}
    assert {name: item.cpu_flags for name, item in RELEASES.items() if item.cpu_flags} == {
        "2.0.0b1.post1": ("avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"),
        "2.0.0.post3": ("avx",),
    }


@pytest.mark.parametrize(
    ("python", "inside", "below", "above"),
    [
        ("3.7", ("1.16.0", "1.16.6", "1.21.6"), ("1.15.4", "1.9.3"), ("1.22.0", "2.0.0")),
        ("3.6", ("1.13.0", "1.13.3", "1.19.5"), ("1.12.1",), ("1.19.6", "1.20.0")),
        ("2.7", ("1.13.0", "1.16.6"), ("1.12.1",), ("1.17.0",)),
    ],
)
def test_numpy_windows(python: str, inside: tuple[str, ...], below: tuple[str, ...], above: tuple[str, ...]):
    window = numpy_window(python)
    assert window is not None
    assert [outside(version, window) for version in inside] == [None] * len(inside)
    assert {outside(version, window) for version in below} == {"below"}
    assert {outside(version, window) for version in above} == {"above"}
    assert outside("a build", window) is None


def test_where_nothing_was_measured_there_is_no_window():
    assert [numpy_window(python) for python in ("3.5", "3.8", "3.12")] == [None, None, None]
    assert set(NUMPY_WINDOWS) == {"3.7", "3.6", "2.7"}


def test_is_older_compares_versions_and_not_texts():
    assert is_older("9.0", "74")
    assert not is_older("74", "74")
    assert not is_older("100", "74")
    assert not is_older("a build", "74")


AVX512 = ("avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl")
REAL = Cpu(cpuinfo_flags=("avx", "avx2", "sse2", "sse4_1", "sse4_2", *AVX512), emulated=False)


@pytest.mark.parametrize(
    ("cpu", "flags", "missing"),
    [
        (REAL, ("avx", *AVX512), ()),
        (replace(REAL, xcr0=0xE7), ("avx", *AVX512), ()),
        (replace(REAL, xcr0=0x7), ("avx", "avx512f"), ("avx512f",)),
        (replace(REAL, xcr0=0xA7), ("avx512f",), ("avx512f",)),
        (replace(REAL, xcr0=0xE1), ("avx", "avx512f"), ("avx", "avx512f")),
        (replace(REAL, xcr0=0x3), ("sse2", "avx"), ("avx",)),
        (replace(REAL, xcr0=0x3), ("sse2", "sse4_1"), ()),
        (Cpu(cpuinfo_flags=("sse2",), emulated=False, xcr0=0x3), ("avx", "sse2"), ("avx",)),
        (Cpu(cpuinfo_flags=("avx",), cpuid_flags=("sse2",), emulated=True), ("avx",), ("avx",)),
        (Cpu(cpuinfo_flags=("sse2",), cpuid_flags=("avx",), emulated=False), ("avx",), ("avx",)),
        (Cpu(cpuid_flags=("avx",)), ("avx",), ()),
        (Cpu(), ("avx",), None),
    ],
)
def test_lacking(cpu: Cpu, flags: tuple[str, ...], missing: tuple[str, ...] | None):
    assert lacking(cpu, flags) == missing


@pytest.mark.parametrize(
    ("flags", "xcr0", "name"),
    [
        (REAL.cpuinfo_flags, 0xE7, "jit:avx512_common"),
        (REAL.cpuinfo_flags, None, "jit:avx512_common"),
        (REAL.cpuinfo_flags, 0x7, "jit:avx2"),
        (("avx", "avx2", "avx512f", "avx512cd", "avx512er", "avx512pf"), 0xE7, "jit:avx512_common"),
        (("avx", "avx2", "sse4_2"), 0x7, "jit:avx2"),
        (("avx", "sse4_1", "sse4_2"), 0x7, "jit:sse42"),
        (("sse4_1", "sse4_2"), None, "jit:sse42"),
        (("sse2", "sse4_1"), None, "ref:any"),
        (None, 0xE7, None),
    ],
)
def test_the_kernel_of_convolutions(flags: tuple[str, ...] | None, xcr0: int | None, name: str | None):
    assert kernel(Cpu(cpuinfo_flags=flags, xcr0=xcr0, emulated=False)) == name


# Names of the guard's corrections by hazard; "operand" and "optimizer" are parts of H11 and H4.
HAZARD_OF = {
    "bn": "H1",
    "product": "H2",
    "load": "H3",
    "optimizer": "H4",
    "maxpool": "H5",
    "concat": "H7",
    "split": "H8",
    "fixedbn": "H9",
    "pickle": "H10",
    "power": "H11",
    "lrn": "H14",
    "plain": "H15",
    "relu": "H16",
    "pool": "H17",
}


@pytest.fixture(scope="module")
def guard() -> Iterator[dict[str, Any]]:
    """The guard's names; what loading it leaves in this process is taken away."""
    names = load("guard")
    yield names
    sys.meta_path.remove(names["STATE"].finder)
    del sys._ideepdoctor_guard_state


def test_the_table_of_what_the_guard_corrects_is_the_guards_own(guard: dict[str, Any]):
    told = {row[0]: {HAZARD_OF[name] for name in row[3] if name in HAZARD_OF} for row in guard["NEEDS"]}
    assert told == {row[0]: row[3] for row in GUARDED}
    rows = {row[0]: (row[1], row[2]) for row in guard["CORRECTIONS"]}
    for name, hazard in HAZARD_OF.items():
        code, said = rows[name]
        (rule,) = (rule for rule in RULES if hazard in getattr(rule, "hazards", ()))
        assert (code, said) == (rule.code(), hazard)


@pytest.mark.parametrize("ideep4py", ["1.0.3", "1.0.4", "2.0.0b1.post1", "2.0.0.post3", "2.0.0", "local"])
@pytest.mark.parametrize("chainer", [*CHAINERS, "7.8.1.post1", "7.8.2", "8.0.0", "not a version"])
def test_the_rules_and_the_guard_know_the_same_pairs(guard: dict[str, Any], chainer: str, ideep4py: str):
    assert bool(guarded(chainer, ideep4py)) == bool(guard["_needs"](chainer, ideep4py))


def test_nothing_is_guarded_that_is_not_there():
    assert guarded(None, "2.0.0.post3") == guarded("7.8.1", None) == frozenset()
