"""builder/levels.py and builder/march.py: what the compiler says, and what is made of it."""

from __future__ import annotations

import shutil

import pytest

from ideepdoctor.builder.levels import (
    LEVEL_FLAGS,
    MACRO_FLAGS,
    flags_of,
    flags_through,
    label_of,
    level_of,
    macros_of,
    processor_of,
)
from ideepdoctor.builder.march import UnusableMarch, march_of, runs_on
from ideepdoctor.errors import CouldNotCheck, UsageError
from ideepdoctor.facts.cpu import CPUID_FLAGS
from ideepdoctor.model.build import March
from ideepdoctor.model.facts import Cpu
from ideepdoctor.system import RealSystem
from tests.doubles import FakeSystem, completed

HASWELL = Cpu(vendor="GenuineIntel", cpuinfo_flags=(*flags_through(3), "aes"))
X86 = "#define __x86_64__ 1\n"
NATIVE = ("c++", "-march=native")


def macros(*flags: str) -> str:
    """The preprocessor's text for a processor with these flags."""
    return X86 + "".join(f"#define {name} 1\n" for name, flag in MACRO_FLAGS.items() if flag in flags)


def asked(name: str, answer: object) -> FakeSystem:
    return FakeSystem().on(("c++", f"-march={name}", "-dM"), answer)


def test_macros_are_read_by_name():
    text = "#define __AVX2__ 1\n#define __INT8_C(c) c\n#define __FMA__ 1\n// __BMI__\n"
    assert macros_of(text) == {"__AVX2__", "__FMA__"}
    assert flags_of(macros_of(text)) == ("avx2", "fma")


@pytest.mark.parametrize(
    ("macro", "flag"),
    [
        ("__LZCNT__", "abm"),
        ("__BMI__", "bmi1"),
        ("__SSE3__", "pni"),
        ("__MOVBE__", "movbe"),
        ("__F16C__", "f16c"),
        ("__SHA__", "sha_ni"),
        ("__GFNI__", "gfni"),
        ("__VAES__", "vaes"),
        ("__AVXVNNI__", "avx_vnni"),
        ("__AVX512F__", "avx512f"),
        ("__AVX512VNNI__", "avx512_vnni"),
        ("__AVX512BF16__", "avx512_bf16"),
        ("__AVX512IFMA__", "avx512ifma"),
    ],
)
def test_a_macro_has_the_kernels_name(macro: str, flag: str):
    assert flags_of([macro]) == (flag,)


def test_the_names_are_those_that_the_reader_of_cpuid_uses():
    known = {flag for bits in CPUID_FLAGS.values() for flag in bits.values()}
    newer = {"tbm", "avx_ifma", "avx_vnni_int8", "avx_vnni_int16", "avx_ne_convert"}
    assert set(MACRO_FLAGS.values()) - newer <= known


@pytest.mark.parametrize(
    ("flags", "level"),
    [
        ((), 1),
        (flags_through(2), 2),
        (flags_through(3), 3),
        (set(flags_through(4)) - {"avx512cd"}, 3),
        (set(flags_through(4)) - {"movbe"}, 2),
        ((*flags_through(4), "avx512_vnni"), 4),
    ],
)
def test_the_level_is_the_highest_whose_flags_are_all_there(flags: set[str], level: int):
    assert level_of(flags) == level


@pytest.mark.parametrize(
    ("name", "level", "processor", "label"),
    [
        ("x86-64-v3", 3, "", "v3"),
        ("x86-64-v4", 4, "", "v4"),
        ("haswell", 3, "", "haswell"),
        ("skylake-avx512", 4, "", "skylake.avx512"),
        ("native", 4, "znver4", "v4.znver4"),
        ("native", 4, "skylake-avx512", "v4.skylake.avx512"),
        ("native", 3, "x86-64-v3", "v3"),
        ("native", 3, "generic", "v3"),
        ("native", 3, "", "v3"),
    ],
)
def test_the_label_is_what_a_version_may_hold(name: str, level: int, processor: str, label: str):
    from packaging.version import Version

    assert label_of(name, level, processor) == label
    assert Version(f"2.0.0.post3+doctor.{label}").local == f"doctor.{label}"


def test_a_name_is_asked_of_the_compiler():
    march = march_of(asked("haswell", macros(*flags_through(3))), "c++", "haswell", HASWELL)
    assert march == March("haswell", "haswell", flags_through(3))


def test_native_has_the_compilers_name_of_the_processor():
    system = asked("native", macros(*flags_through(4)))
    system.on((*NATIVE, "-Q"), "  -march=                     \t\tznver4\n  -mtune=   znver4\n")
    assert march_of(system, "c++", "native", Cpu()).label == "v4.znver4"


def test_native_asks_for_nothing_that_this_kernel_does_not_list():
    system = asked("native", macros(*flags_through(4), "avx512_fp16"))
    listed = Cpu(vendor="GenuineIntel", cpuinfo_flags=flags_through(4))
    march = march_of(system, "c++", "native", listed)
    assert march == March("native", "v4", flags_through(4)) and runs_on(march, listed) == ()
    assert "avx512_fp16" in march_of(system, "c++", "native", Cpu()).flags
    named = asked("sapphirerapids", macros(*flags_through(4), "avx512_fp16"))
    assert runs_on(march_of(named, "c++", "sapphirerapids", listed), listed) == ("avx512_fp16",)


def test_where_the_compiler_does_not_tell_the_macros_do():
    system = asked("native", macros(*flags_through(3)) + "#define __tune_haswell__ 1\n")
    assert march_of(system, "c++", "native", Cpu()).label == "v3.haswell"
    assert processor_of(["__znver3__", "__tune_znver3__"]) == "znver3"


def test_an_unknown_name_is_refused_with_those_that_are_known():
    said = "cc1plus: error: bad value 'znver9' for '-march=' switch\ncc1plus: note: valid arguments to "
    said += "'-march=' switch are: haswell znver1; did you mean 'znver1'?\n"
    with pytest.raises(UnusableMarch, match="knows no -march=znver9") as caught:
        march_of(asked("znver9", completed(returncode=1, stderr=said)), "c++", "znver9", HASWELL)
    assert "it knows: haswell znver1" in caught.value.hint and "did you mean" not in caught.value.hint
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, UsageError)


@pytest.mark.parametrize("name", ["", "-v3", "native -mno-avx", "a;b", "haswell\n"])
def test_what_is_no_name_is_never_given_to_the_compiler(name: str):
    system = FakeSystem()
    with pytest.raises(UnusableMarch, match="no name of a processor"):
        march_of(system, "c++", name, HASWELL)
    assert system.commands() == []


def test_below_v3_is_refused():
    with pytest.raises(UnusableMarch, match="-march=x86-64-v2 is x86-64-v2"):
        march_of(asked("x86-64-v2", macros(*flags_through(2))), "c++", "x86-64-v2", HASWELL)
    flags = tuple(flag for flag in flags_through(3) if flag not in ("avx2", "fma"))
    with pytest.raises(UnusableMarch, match="this processor lacks avx2, fma"):
        march_of(asked("native", macros(*flags)), "c++", "native", Cpu(cpuinfo_flags=flags))


def test_a_compiler_that_does_not_start_is_no_unknown_name():
    with pytest.raises(CouldNotCheck, match="does not answer"):
        march_of(FakeSystem(), "c++", "haswell", HASWELL)
    broken = completed(returncode=1, stderr="c++: fatal error: cannot execute 'cc1plus': execvp: No such file")
    with pytest.raises(CouldNotCheck, match="cc1plus"):
        march_of(asked("haswell", broken), "c++", "haswell", HASWELL)


def test_another_architectures_compiler_is_no_use():
    with pytest.raises(CouldNotCheck, match="not compile for x86-64"):
        march_of(asked("native", "#define __aarch64__ 1\n"), "c++", "native", Cpu())


def test_what_a_processor_lacks():
    v4 = March("x86-64-v4", "v4", flags_through(4))
    assert runs_on(v4, HASWELL) == LEVEL_FLAGS[4]
    assert runs_on(March("haswell", "haswell", flags_through(3)), HASWELL) == ()
    assert runs_on(v4, Cpu()) == ()


needs_compiler = pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler on this machine")


@needs_compiler
@pytest.mark.parametrize("level", [3, 4])
def test_the_table_of_levels_is_the_compilers(level: int):
    march = march_of(RealSystem(), "c++", f"x86-64-v{level}", HASWELL)
    assert march == March(f"x86-64-v{level}", f"v{level}", flags_through(level))


@needs_compiler
def test_the_real_compiler_on_names():
    system = RealSystem()
    haswell = march_of(system, "c++", "haswell", HASWELL)
    assert haswell.label == "haswell" and set(flags_through(3)) <= set(haswell.flags)
    skylake = march_of(system, "c++", "skylake-avx512", HASWELL)
    assert set(runs_on(skylake, HASWELL)) >= set(LEVEL_FLAGS[4])
    for name in ("ivybridge", "x86-64", "x86-64-v2"):
        with pytest.raises(UnusableMarch, match="compiles for x86-64-v3 and higher"):
            march_of(system, "c++", name, HASWELL)
    with pytest.raises(UnusableMarch, match="knows no -march=zzz"):
        march_of(system, "c++", "zzz", HASWELL)


@needs_compiler
def test_native_runs_on_this_machine():
    from pathlib import Path

    from ideepdoctor.facts.cpu import build_cpu

    cpu = build_cpu(Path("/proc/cpuinfo").read_text("utf-8"), "", None, None)
    if set(flags_through(3)) - (cpu.flags or set()):
        pytest.skip("this processor is below x86-64-v3")
    march = march_of(RealSystem(), "c++", "native", cpu)
    assert runs_on(march, cpu) == () and march.label.startswith(f"v{level_of(march.flags)}")
