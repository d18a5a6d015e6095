"""The library in place of MKL's: draws by the public description, values by double precision, codes, and its file."""

from __future__ import annotations

import ctypes
import itertools
import math
import os
import random
import shutil
import statistics
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from ideepdoctor.builder import stub
from ideepdoctor.errors import BuildFailed
from ideepdoctor.facts.libraries import identify, kind_of
from ideepdoctor.model.native import ElfFile
from ideepdoctor.system import RealSystem
from tests.builder.vectors import SPECIAL, A, M, ask, expected_draws, floats, numbers, same, single, ulps
from tests.doubles import FakeSystem, completed
from tests.payload.elf import payload_module

SIX = {"vslNewStream", "vslSkipAheadStream", "vslDeleteStream", "viRngBernoulli", "vsMul", "vsPowx"}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Compiled as a wheel for many machines is."""
    if not any(map(shutil.which, stub.COMPILERS)):
        pytest.skip("no C compiler on this machine")
    folder = str(tmp_path_factory.mktemp("stub"))
    return stub.compile_stub(RealSystem(), stub.find_compiler(os.environ), "x86-64", folder, os.environ)


def draws(library: str, seed: int, counts: list[int], p: float | str, skips: tuple[int, ...] = ()) -> str:
    [answer] = ask(library, [{"do": "draws", "seed": seed, "counts": counts, "p": p, "skips": skips}])
    assert answer["codes"] == [] and answer["left"] is None
    text: str = answer["draws"]
    return text


# ------------------------------------------------------------------------------------------------------- the file


def test_the_file_is_taken_for_mkl_and_needs_no_openmp(library: str) -> None:
    with Path(library).open("rb") as stream:
        elf = ELFFile(stream)
        dynamic = list(elf.get_section_by_name(".dynamic").iter_tags())
        symbols = list(elf.get_section_by_name(".dynsym").iter_symbols())
    needed = {tag.needed for tag in dynamic if tag.entry.d_tag == "DT_NEEDED"}
    assert [tag.soname for tag in dynamic if tag.entry.d_tag == "DT_SONAME"] == ["libmklml_intel.so"]
    assert needed <= {"libm.so.6", "libc.so.6"}
    defined = {item.name for item in symbols if item.entry.st_shndx != "SHN_UNDEF" and item.name}
    assert defined == SIX | {stub.MARK}
    assert Path(library).stat().st_size < 100_000
    assert stub.MARK.encode() in Path(library).read_bytes()


def test_libs_tells_it_from_mkls(library: str) -> None:
    exports = tuple(payload_module().read_elf(library)["exports"])
    file = ElfFile(library, library, exports=exports)
    assert kind_of(file) == "mklml"
    assert identify(file, "mklml") == "ideepdoctor's own, in place of MKLML"
    assert identify(ElfFile(library, library), "mklml") == "MKLML"


def test_the_text_has_no_warnings(tmp_path: Path, library: str) -> None:
    text = tmp_path / "stub.c"
    text.write_bytes(stub.source())
    argv = [stub.find_compiler(os.environ), "-std=gnu11", "-O3", "-fopenmp-simd", "-Wall", "-Wextra", "-Wconversion"]
    done = RealSystem().run([*argv, "-Werror", "-fPIC", "-c", str(text), "-o", "/dev/null"], timeout_seconds=60)
    assert done.ok, done.error_text()


# ------------------------------------------------------------------------------------------------------- the draws


def test_draws_are_those_of_the_described_generator(library: str) -> None:
    seeds, counts = (0, 1, 17, 4112, M - 1, M, M + 1, 2**32 - 1), (1, 31, 32, 33, 64, 1000, 2047)
    cases = [(seed, count, p) for seed in seeds for count in counts for p in (0.5, 0.3, 0.9999, 1e-3)]
    requests = [{"do": "draws", "seed": seed, "counts": [count], "p": p} for seed, count, p in cases]
    for case, answer in zip(cases, ask(library, requests), strict=True):
        assert answer["draws"] == expected_draws(*case), case


def test_u_and_p_are_compared_in_single_precision(library: str) -> None:
    """At the middle between two numbers of single precision, and one to each side of it."""
    cases: list[tuple[int, float]] = []
    for base in (2**30 + 128 * 9, 2**30 + 128 * 10, 2**31 - 128 * 7, 2**29 + 128 * 3):
        half = 64 if base >= 2**30 else 32
        for seed in range(base + half - 1, base + half + 2):
            for place in (base, base + half, base + 2 * half):
                cases += [(seed, place / 2**31), (seed, seed / M), (seed, math.nextafter(place / 2**31, 2))]
    cases += [(M - 1, 1.0), (1, 0.0), (1, 1 / M), (1, 1e-300), (5, 1.0), (M - 65, 1.0), (M - 64, 1.0)]
    requests = [{"do": "draws", "seed": seed, "counts": [1], "p": p} for seed, p in cases]
    found = [answer["draws"] for answer in ask(library, requests)]
    wanted = [expected_draws(seed, 1, p) for seed, p in cases]
    assert found == wanted
    assert {"0", "1"} == set(wanted)
    # The last u before 1 is 1 in single precision, so that p = 1 does not cover it, as with MKL.
    assert draws(library, M - 1, [1], 1.0) == "0"


def test_no_number_as_p_draws_ones_as_mkl_does(library: str) -> None:
    assert draws(library, 5, [40], "nan") == "1" * 40


def test_calls_in_a_row_are_one_stream(library: str) -> None:
    whole = draws(library, 99, [10_000], 0.4)
    for counts in ([1] * 50, [32, 32, 1, 31, 33], [0, 7, 0, 8000]):
        assert draws(library, 99, counts, 0.4) == whole[: sum(counts)]


def test_skipping_is_drawing(library: str) -> None:
    skips = [0, 1, 31, 32, 1000, 123_456_789, M - 2, M - 1, M, 2**40 + 3, 2**63 - 1, -1, -5]
    requests = [{"do": "draws", "seed": 77, "counts": [100], "p": 0.5, "skips": [skip]} for skip in skips]
    for skip, answer in zip(skips, ask(library, requests), strict=True):
        assert answer["draws"] == expected_draws(77, 100, 0.5, skip), skip


def test_skips_add_up(library: str) -> None:
    assert draws(library, 5, [200], 0.25, (1000, 24, 2**33)) == draws(library, 5, [200], 0.25, (1024 + 2**33,))
    assert draws(library, 5, [200], 0.25, (1024,)) == draws(library, 5, [1224], 0.25)[1024:]


@pytest.mark.parametrize("threads", [2, 3, 7, 64])
def test_threads_that_skip_ahead_draw_what_one_draws(library: str, threads: int) -> None:
    """As ideep splits a mask: equal parts, the last one shorter, a new stream of one seed for each."""
    count = 50_001
    share = -(-count // threads)
    parts = [(start, min(share, count - start)) for start in range(0, count, share)]
    requests = [{"do": "draws", "seed": 4000, "counts": [size], "p": 0.5, "skips": [start]} for start, size in parts]
    together = "".join(answer["draws"] for answer in ask(library, requests))
    assert together == draws(library, 4000, [count], 0.5)


def test_the_distribution_is_right(library: str) -> None:
    """Counts, runs and patterns of three draws, for seeds as ideep takes them; bounds of one in a hundred thousand."""
    count, cases = 60_000, [(seed, p) for seed in (17, 901, 2048, 4112) for p in (0.1, 0.5, 0.75)]
    requests = [{"do": "draws", "seed": seed, "counts": [count], "p": p} for seed, p in cases]
    for (seed, p), answer in zip(cases, ask(library, requests), strict=True):
        text = answer["draws"]
        ones = text.count("1")
        assert abs(ones - count * p) < 4.4 * math.sqrt(count * p * (1 - p)), (seed, p)
        changes = text.count("01") + text.count("10")
        wanted = 2 * (count - 1) * p * (1 - p)
        spread = math.sqrt(wanted * 2 * (1 - 3 * p * (1 - p)) + wanted)
        assert abs(changes - wanted) < 4.4 * spread, (seed, p)
        assert chi_square(text, p) < 39.2, (seed, p)  # 8 patterns


def chi_square(text: str, p: float) -> float:
    """Of the patterns of three draws that follow each other without overlap; 7 degrees of freedom."""
    triples = [text[start : start + 3] for start in range(0, len(text) - 2, 3)]
    total = 0.0
    for number in range(8):
        pattern = f"{number:03b}"
        wanted = len(triples) * math.prod(p if digit == "1" else 1 - p for digit in pattern)
        total += (triples.count(pattern) - wanted) ** 2 / wanted
    return total


def test_neighbouring_seeds_give_unlike_masks(library: str) -> None:
    texts = [draws(library, seed, [4096], 0.5) for seed in (17, 18, 19)]
    for one, other in itertools.pairwise(texts):
        equal = sum(a == b for a, b in zip(one, other, strict=True))
        assert abs(equal - 2048) < 5 * 32


# ------------------------------------------------------------------------------------------------------- the codes

WRONG = {
    "n -1": -3,
    "n -1, p 2": -3,
    "no place": -3,
    "p -0.1": -3,
    "p 1.1": -3,
    "p inf": -3,
    "method 1": -3,
    "method -1": -3,
    "no stream": -5,
    "no stream, n -1": -5,
    "no stream, n 0": -5,
    "no stream, p 2": -5,
    "foreign stream": -1006,
}


def test_codes_of_wrong_calls_and_nothing_is_written(library: str) -> None:
    [found] = ask(library, [{"do": "codes"}])
    for name, code in WRONG.items():
        status, text = found[name]
        assert (status, set(text)) == (code, {"?"}), name
    for name in ("n 0", "n 0, no place", "n 0, p 2", "n 0, method 1"):
        assert found[name] == [0, "?"], name
    assert found["p nan"] == [0, "11111?"]
    assert found["p 0"] == found["p -0"] == [0, "00000?"]
    assert found["p 1"] == [0, "11111?"]
    # Of all of these only the four calls with p that succeeded have drawn.
    assert found["after all of these"] == [0, expected_draws(5, 25, 0.5)[20:] + "?"]
    assert found["skip no stream"] == -5 and found["skip foreign"] == -1006
    assert found["delete none"] == [-5, True] and found["delete foreign"] == [-1006, True]
    assert found["delete"] == [0, None]
    for name in (item for item in found if item.startswith("generator")):
        assert found[name] == [-1000, True], name


def test_no_place_for_a_stream_is_a_code_too(library: str) -> None:
    assert ask(library, [{"do": "no_place", "what": "new"}, {"do": "no_place", "what": "delete"}]) == [-5, -5]


def test_every_other_generator_of_mkl_is_refused_and_nothing_is_written(library: str) -> None:
    found = ask(library, [{"do": "generator", "number": number << 20} for number in range(2, 18)])
    assert found == [[-1000, False]] * 16


def test_nothing_to_do_or_no_place_leaves_vectors_alone(library: str) -> None:
    [found] = ask(library, [{"do": "idle"}])
    assert found and all(values in ([2, 3, 4], []) for values in found)


# ------------------------------------------------------------------------------------------------------- the values


def many(count: int, seed: int = 1) -> list[float]:
    """Positive numbers of single precision of all sizes, subnormal ones too."""
    chance = random.Random(seed)
    sizes = [chance.uniform(-149, 127.9) for _ in range(count)]
    near = [1 + chance.gauss(0, 1e-3) for _ in range(count // 4)]
    return [single(2.0**size) for size in sizes] + [single(value) for value in near]


@pytest.mark.parametrize("b", [-0.5, 0.5, -0.75, 0.75, 1.0, 2.0, 3.0, -1.0, 1 / 3, 10.0, -7.25, 100.0, 1e-10, 1e6])
def test_powers_are_the_nearest_numbers_within_a_thousandth(library: str, b: float) -> None:
    a, power = many(3000), single(b)
    [answer] = ask(library, [{"do": "powx", "a": floats(a), "b": power}])
    worst = max(ulps(found, exact(x, power)) for x, found in zip(a, numbers(answer), strict=True))
    assert worst <= 0.501


def exact(x: float, b: float) -> float:
    try:
        return math.pow(x, b)
    except OverflowError:
        return math.inf


@pytest.mark.parametrize(
    "b", [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 2.5, -2.5, 1e30, -1e30, 16777217.0, math.inf, -math.inf, math.nan]
)
def test_powers_of_special_numbers_are_those_of_c(library: str, b: float) -> None:
    """C99, annex F.9.4.4: what Python's pow raises for is given by hand."""
    power = single(b)
    [answer] = ask(library, [{"do": "powx", "a": floats(SPECIAL), "b": str(power)}])
    for x, found in zip(map(single, SPECIAL), numbers(answer), strict=True):
        wanted = single(c_pow(x, power))
        assert same(found, wanted) or ulps(found, wanted) <= 0.501, (x, b, found, wanted)


def c_pow(x: float, b: float) -> float:
    odd = abs(b) < 2**53 and b == math.floor(b) and math.floor(b) % 2 == 1
    try:
        return math.pow(x, b)
    except OverflowError:
        return -math.inf if x < 0 and odd else math.inf
    except ValueError:
        if x == 0:
            return math.copysign(math.inf, x) if odd else math.inf
        return math.nan


@pytest.mark.parametrize(
    ("b", "minus_zero", "minus_infinity"), [(0.5, -0.0, math.nan), (-0.5, -math.inf, math.nan), (1.5, 0.0, math.inf)]
)
def test_the_powers_of_one_half_are_roots_as_in_mkl(
    library: str, b: float, minus_zero: float, minus_infinity: float
) -> None:
    [answer] = ask(library, [{"do": "powx", "a": floats([-0.0, -math.inf, -4.0]), "b": b}])
    found = numbers(answer)
    assert same(found[0], minus_zero) and same(found[1], minus_infinity) and math.isnan(found[2])


@pytest.mark.parametrize("count", [0, 1, 7, 255, 256, 257, 513])
def test_vectors_of_any_length_and_in_place(library: str, count: int) -> None:
    a = [single(value) for value in many(800)[:count]]
    a[::5] = [-value for value in a[::5]]
    requests: list[dict[str, Any]] = [
        {"do": "powx", "a": floats(a), "b": 3.0, "in_place": way} for way in (False, True)
    ]
    requests += [{"do": "mul", "a": floats(a), "b": floats(a[::-1]), "in_place": way} for way in (False, True)]
    apart, here, product, product_here = map(numbers, ask(library, requests))
    assert apart == here and product == product_here and len(apart) == count
    assert all(ulps(found, exact(x, 3.0)) <= 0.501 for x, found in zip(a, apart, strict=True) if abs(x) > 1e-12)
    assert list(product) == [single(x * y) for x, y in zip(a, a[::-1], strict=True)]


def test_products_are_exact_in_the_last_place(library: str) -> None:
    a, b = many(4000), many(4000, seed=2)
    a += [x for x in map(single, SPECIAL) for _ in SPECIAL]
    b += [y for _ in SPECIAL for y in map(single, SPECIAL)]
    [answer] = ask(library, [{"do": "mul", "a": floats(a), "b": floats(b)}])
    found = numbers(answer)
    assert all(same(y, single(x * z)) for x, z, y in zip(a, b, found, strict=True))
    assert statistics.fmean(map(math.isfinite, found)) > 0.5


@pytest.mark.parametrize("count", [131_071, 131_072, 262_145, 1_000_003])
def test_long_products_are_shared_by_the_threads_of_the_process(
    library: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as there are shares, where the process has OpenMP's runtime; without one there is one thread."""
    monkeypatch.setenv("OMP_NUM_THREADS", "6")
    [alone] = ask(library, [{"do": "many", "count": count}])
    assert alone == {"right": True, "threads": 1}
    try:
        ctypes.CDLL("libgomp.so.1")
    except OSError:
        pytest.skip("no libgomp on this machine")
    [shared] = ask(library, [{"do": "many", "count": count}], ("libgomp.so.1",))
    assert shared == {"right": True, "threads": min(6, count // 65536)}


CALLER = "void vsMul(int, const float *, const float *, float *);\nvoid *used(void) { return (void *)vsMul; }\n"


def test_an_extension_brings_the_threads_with_it(library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As ideep4py's is: it needs OpenMP and this library, and Python opens it for itself alone."""
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    text, extension = tmp_path / "caller.c", tmp_path / "caller.so"
    text.write_text(CALLER)
    argv = [stub.find_compiler(os.environ), "-shared", "-fPIC", "-o", str(extension), str(text)]
    argv += ["-Wl,--no-as-needed", f"-L{Path(library).parent}", "-lmklml_intel", "-fopenmp"]
    argv += [f"-Wl,-rpath,{Path(library).parent}"]
    done = RealSystem().run(argv, timeout_seconds=60)
    if not done.ok:
        pytest.skip(f"no OpenMP here: {done.error_text()[-200:]}")
    [answer] = ask(extension, [{"do": "many", "count": 400_000}])
    assert answer == {"right": True, "threads": 3}


# ------------------------------------------------------------------------------------------------------- compiling


def test_a_compiler_that_fails_is_told_in_its_words(tmp_path: Path) -> None:
    said = "stub.c: In function 'f':\nstub.c:1:2: error: bad value 'z80' for '-march=' switch\nnote: more\n"
    system = FakeSystem().on("/bin/cc", completed(returncode=1, stderr=said))
    with pytest.raises(BuildFailed, match="bad value 'z80'") as caught:
        stub.compile_stub(system, "/bin/cc", "z80", str(tmp_path), {})
    assert "--mkl wheel" in caught.value.hint and caught.value.exit_code == 4
    assert "-march=z80" in system.calls[-1].argv


def test_a_compiler_that_leaves_no_file_has_failed(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="/bin/cc ended with 0"):
        stub.compile_stub(FakeSystem().on("/bin/cc", ""), "/bin/cc", "native", str(tmp_path), {})


def test_no_compiler(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="no C compiler on PATH"):
        stub.find_compiler({"PATH": str(tmp_path)})


def test_the_first_compiler_on_path_is_taken(tmp_path: Path) -> None:
    for name in ("gcc", "clang"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    assert stub.find_compiler({"PATH": str(tmp_path)}) == str(tmp_path / "gcc")


def test_the_identity_changes_with_what_goes_in() -> None:
    known = stub.identity("x86-64-v3", "gcc 12")
    assert known == stub.identity("x86-64-v3", "gcc 12")
    assert len({known, stub.identity("native", "gcc 12"), stub.identity("x86-64-v3", "gcc 13")}) == 3


def test_the_generator_is_the_public_one() -> None:
    assert (A, M) == (1132489760, 2147483647)
    assert f"UINT64_C({A})" in stub.source().decode("ascii")
