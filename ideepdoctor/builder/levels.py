"""x86-64 levels, and what a compiler's macros say about the processors that its code runs on. Pure data and functions.

Names of flags are those of Linux (/proc/cpuinfo).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

LEVEL_FLAGS = {
    2: ("cx16", "lahf_lm", "pni", "popcnt", "sse4_1", "sse4_2", "ssse3"),
    3: ("abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"),
    4: ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"),
}
"""What each level of the x86-64 psABI adds to the one below. (A test compares it with the compiler's own table; it is
needed where the compiler is older than GCC 11 and does not know the levels.)"""

LOWEST = 3
"""The lowest level that ideep4py's source compiles for: it uses AVX2 without asking."""

MACRO_FLAGS = {
    "__SSE3__": "pni",
    "__SSSE3__": "ssse3",
    "__SSE4_1__": "sse4_1",
    "__SSE4_2__": "sse4_2",
    "__SSE4A__": "sse4a",
    "__POPCNT__": "popcnt",
    "__LAHF_SAHF__": "lahf_lm",
    "__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16": "cx16",
    "__AES__": "aes",
    "__PCLMUL__": "pclmulqdq",
    "__SHA__": "sha_ni",
    "__ADX__": "adx",
    "__AVX__": "avx",
    "__AVX2__": "avx2",
    "__FMA__": "fma",
    "__FMA4__": "fma4",
    "__XOP__": "xop",
    "__TBM__": "tbm",
    "__BMI__": "bmi1",
    "__BMI2__": "bmi2",
    "__F16C__": "f16c",
    "__LZCNT__": "abm",
    "__MOVBE__": "movbe",
    "__GFNI__": "gfni",
    "__VAES__": "vaes",
    "__VPCLMULQDQ__": "vpclmulqdq",
    "__AVXVNNI__": "avx_vnni",
    "__AVXIFMA__": "avx_ifma",
    "__AVXVNNIINT8__": "avx_vnni_int8",
    "__AVXVNNIINT16__": "avx_vnni_int16",
    "__AVXNECONVERT__": "avx_ne_convert",
    "__AVX512F__": "avx512f",
    "__AVX512CD__": "avx512cd",
    "__AVX512BW__": "avx512bw",
    "__AVX512DQ__": "avx512dq",
    "__AVX512VL__": "avx512vl",
    "__AVX512PF__": "avx512pf",
    "__AVX512ER__": "avx512er",
    "__AVX512IFMA__": "avx512ifma",
    "__AVX512VBMI__": "avx512vbmi",
    "__AVX512VBMI2__": "avx512_vbmi2",
    "__AVX512VNNI__": "avx512_vnni",
    "__AVX512BITALG__": "avx512_bitalg",
    "__AVX512VPOPCNTDQ__": "avx512_vpopcntdq",
    "__AVX512BF16__": "avx512_bf16",
    "__AVX512FP16__": "avx512_fp16",
    "__AVX512VP2INTERSECT__": "avx512_vp2intersect",
    "__AVX5124FMAPS__": "avx512_4fmaps",
    "__AVX5124VNNIW__": "avx512_4vnniw",
}
"""A macro that a compiler defines where its code may use an instruction set, and the kernel's name of that.

Left out: what every x86-64 has, and instructions that arithmetic never becomes (of system programs, of caches, of
random numbers, of tiles), which no loop of ideep4py is compiled to."""

_DEFINED = re.compile(r"^#define (\w+) ", re.MULTILINE)
_TUNED = re.compile(r"__tune_([a-z0-9_]+)__")


def macros_of(text: str) -> frozenset[str]:
    """Names that a preprocessor's ``-dM -E`` defines."""
    return frozenset(_DEFINED.findall(text))


def flags_of(macros: Iterable[str]) -> tuple[str, ...]:
    """Flags that a processor needs for code that is compiled with these macros, sorted."""
    return tuple(sorted({MACRO_FLAGS[name] for name in macros if name in MACRO_FLAGS}))


def flags_through(level: int) -> tuple[str, ...]:
    """Flags that a processor of an x86-64 level has at least, sorted."""
    return tuple(sorted(flag for number, flags in LEVEL_FLAGS.items() if number <= level for flag in flags))


def level_of(flags: Collection[str]) -> int:
    """The highest x86-64 level that these flags are enough for, 1 to 4."""
    return max((number for number in LEVEL_FLAGS if set(flags_through(number)) <= set(flags)), default=1)


def processor_of(macros: Iterable[str]) -> str:
    """The compiler's name of the processor that it tunes for, by its macros; empty where it tunes for none."""
    found = sorted(match[1] for match in map(_TUNED.fullmatch, macros) if match is not None)
    return found[0] if found else ""


def label_of(asked: str, level: int, processor: str) -> str:
    """The name of a -march in the version of a wheel: ``v3``, ``haswell``; of native ``v4.znver4``.

    Args:
        asked: what -march got.
        level: the x86-64 level that its code needs.
        processor: what the compiler calls this machine's processor; empty: nothing in particular.

    Returns:
        Lower-case letters and digits with points between, as a local version (PEP 440) may be.
    """
    if found := re.fullmatch(r"x86-64(?:-(v\d))?", asked):
        return found[1] or "v1"
    words = f"v{level}.{processor}" if asked == "native" else asked
    if asked == "native" and re.fullmatch(r"(x86-64.*|generic|native)?", processor):
        words = f"v{level}"
    return re.sub(r"[^a-z0-9]+", ".", words.lower()).strip(".")
