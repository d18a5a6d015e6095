"""What is known of the releases: which wheels exist, what they need, which pairs are right. Data and pure functions.

Everything here was measured on real wheels (374 combinations of Python, NumPy, Chainer and ideep4py) or read from
their metadata.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from packaging.version import InvalidVersion, Version

from ideepdoctor.model.facts import Cpu

WHEEL_PYTHONS = ("3.7", "3.6", "2.7", "3.5")
"""Minor versions that have an ideep4py wheel, the best first."""

BEST_RELEASE = "2.0.0.post3"

SYSTEMS = (("Linux", "x86_64"), ("Linux", "amd64"))
"""Operating system and machine of all wheels, as ``platform`` names them."""

_AVX = ("avx",)
_AVX512 = ("avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl")

_XCR0_AVX = 0b110
"""Bits 1 (SSE state) and 2 (AVX state): the system saves the registers that AVX uses."""
_XCR0_AVX512 = 0b11100110
"""The same and bits 5 to 7: mask registers and the upper halves and upper sixteen of ZMM."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release of ideep4py on the package index.

    Attributes:
        version: as on the index.
        abis: ABI tags that have a wheel (Linux x86_64 all of them).
        cpu_flags: what its ordinary code needs; without, SIGILL at the first array or operation.
        intel_only: its MKL-DNN aborts at import on a processor of another vendor.
        broken: why no installation of it can work; empty where it can.
    """

    version: str
    abis: tuple[str, ...]
    cpu_flags: tuple[str, ...] = ()
    intel_only: bool = False
    broken: str = ""


_OLD = ("cp27m", "cp27mu", "cp35m", "cp36m")

RELEASES = {
    release.version: release
    for release in (
        Release("1.0.1", _OLD[1:], broken="it needs libglog.so.0, which it does not ship", intel_only=True),
        Release("1.0.2", _OLD, broken="it needs libglog.so.0, which it does not ship", intel_only=True),
        Release("1.0.3", _OLD, intel_only=True),
        Release("1.0.4", _OLD),
        Release("2.0.0b1", _OLD, broken="its wheel lacks the folder with MKL-DNN and MKL"),
        Release("2.0.0b1.post1", _OLD, cpu_flags=_AVX512),
        Release("2.0.0.post3", (*_OLD, "cp37m"), cpu_flags=_AVX),
    )
}


class Pair(StrEnum):
    """What a pair of Chainer and ideep4py comes to."""

    RIGHT = "right"
    UNUSED = "unused"
    """Chainer does not recognise this ideep4py and silently goes on with NumPy."""
    WRONG = "wrong"
    """Chainer uses it and computes wrong BatchNormalization gradients."""
    UNKNOWN = "unknown"


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


_OUR_LABEL = "doctor"
"""First word of the local version of what ``build`` makes."""


def built_version(public: str) -> str:
    """How a build of a release that is only planned is called: without the label of a processor."""
    return f"{public}+{_OUR_LABEL}"


def is_built(version: str) -> bool:
    """Whether an ideep4py of this version was made by ``build``."""
    found = _version(version)
    return found is not None and (found.local or "").split(".")[0] == _OUR_LABEL


def released(version: str) -> str:
    """The release that a version is judged as: of ``2.0.0.post3+doctor.v3`` 2.0.0.post3, as its source is the same.

    Anybody else's build (another local version) stays what it is: nothing is known of it.
    """
    return version.partition("+")[0] if is_built(version) else version


def pair(chainer: str, ideep4py: str) -> Pair:
    """Judge a pair of releases.

    Args:
        chainer: version of Chainer.
        ideep4py: version of ideep4py.

    Returns:
        What was measured for the releases on the index, and so for our builds of them; UNKNOWN for one that is not
        there (somebody else's build).
    """
    release, with_chainer = _version(released(ideep4py)), _version(chainer)
    if with_chainer is None or release is None or str(release) not in RELEASES:
        return Pair.UNKNOWN
    if with_chainer < Version("4.0.0b4") or RELEASES[str(release)].broken:
        return Pair.UNUSED
    if release < Version("2.0.0b1"):
        # From 5.0.0rc1 Chainer asks for iDeep 2 ("Unsupported iDeep version (1)"); 5.0.0b3 and b4 already do.
        if with_chainer > Version("5.0.0b2"):
            return Pair.UNUSED
        # 1.0.3 was tried with 4.0.0b4 to 4.5.0, the releases of its time.
        return Pair.UNKNOWN if release == Version("1.0.3") and with_chainer >= Version("5.0.0a1") else Pair.RIGHT
    if with_chainer < Version("5.0.0rc1"):
        return Pair.WRONG
    if release == Version(BEST_RELEASE):
        return Pair.RIGHT
    return Pair.RIGHT if with_chainer == Version("5.0.0rc1") else Pair.UNUSED


_ALL_HAZARDS = frozenset({"H1", "H2", "H3", "H4", "H5", "H7", "H8", "H9", "H10", "H11", "H14", "H15", "H16", "H17"})

GUARDED = (
    ("2.0.0.post3", "5.0.0rc1", "7.8.1", _ALL_HAZARDS),
    ("1.0.4", "4.0.0a0", "4.5.0", frozenset({"H5", "H7", "H8", "H9", "H10", "H11", "H15", "H16"})),
)
"""What the guard (payload/guard.py) corrects: a release of ideep4py, the first and the last Chainer, hazards."""


def guarded(chainer: str | None, ideep4py: str | None) -> frozenset[str]:
    """The hazards that the guard corrects for a pair of releases; none for a pair that it does not know."""
    release, with_chainer = _version(released(ideep4py or "")), _version(chainer or "")
    if release is None or with_chainer is None:
        return frozenset()
    base = Version(with_chainer.base_version)  # 7.8.1.post1 is 7.8.1 in another package
    for known, first, last, hazards in GUARDED:
        if release == Version(known) and Version(first) <= with_chainer and base <= Version(last):
            return hazards
    return frozenset()


def right_release(chainer: str) -> str:
    """The ideep4py that is right for a Chainer, in words."""
    version = _version(chainer)
    if version is None or version >= Version("5.0.0rc1"):
        return f"ideep4py {BEST_RELEASE}"
    if version > Version("5.0.0b2"):
        return f"Chainer 5.0.0 or later with ideep4py {BEST_RELEASE}: no ideep4py is right for {chainer}"
    if version < Version("4.0.0b4"):
        return f"Chainer 4 with ideep4py 1.0.4: {chainer} has no iDeep backend"
    return "ideep4py 1.0.4"


NUMPY_WINDOWS = {"3.7": ("1.16.0", "1.21.6"), "3.6": ("1.13.0", "1.19.5"), "2.7": ("1.13.0", "1.16.6")}
"""Lowest and highest NumPy by minor version of Python, measured with 1.0.4 and 2.0.0.post3.

Below, the extension module refuses it; the highest is the last release for that Python. (The 1.x wheels declare
``numpy==1.13``, but were measured to be right with the whole window.)
"""


def numpy_window(python: str) -> tuple[str, str] | None:
    """Lowest and highest right NumPy, both included, for a minor version of Python; None where nothing was measured."""
    return NUMPY_WINDOWS.get(python)


def built_window(numpy: str) -> tuple[str, str]:
    """The same of a build that was compiled against this NumPy: older ones refuse it, and 1.x and 2.x each other."""
    first = _version(numpy)
    return (numpy, "1.26.4" if first is None or first.major < 2 else "2.999")


def outside(version: str, window: tuple[str, str]) -> str | None:
    """Say on which side of a window a version lies: ``below``, ``above`` or None (inside, or no version at all)."""
    found = _version(version)
    if found is None:
        return None
    if found < Version(window[0]):
        return "below"
    return "above" if found > Version(window[1]) else None


def is_older(version: str, than: str) -> bool:
    """Whether a version is older than another one; a text that is no version is not."""
    found = _version(version)
    return found is not None and found < Version(than)


def lacking(cpu: Cpu, flags: tuple[str, ...]) -> tuple[str, ...] | None:
    """Flags that a processor lacks, or whose registers the system does not save.

    Args:
        cpu: of the target.
        flags: names of /proc/cpuinfo.

    Returns:
        The missing ones; None where the processor's flags are not known.
    """
    has = cpu.flags
    if has is None:
        return None
    missing = [flag for flag in flags if flag not in has]
    if cpu.xcr0 is not None:
        needed = {flag: _XCR0_AVX512 if flag.startswith("avx512") else _XCR0_AVX for flag in flags if "avx" in flag}
        missing += [flag for flag, bits in needed.items() if flag not in missing and cpu.xcr0 & bits != bits]
    return tuple(missing)


def unsaved(cpu: Cpu, flags: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the flags that the processor shows, and whose registers the system does not save; none under emulation,
    where the emulator answers for both."""
    has = cpu.flags
    if has is None or cpu.emulated:
        return ()
    return tuple(flag for flag in lacking(cpu, flags) or () if flag in has)


def kernel(cpu: Cpu) -> str | None:
    """The implementation that MKL-DNN 0.14 generates for convolutions on this processor; None where not known.

    Source: MKLDNN_VERBOSE on emulated SandyBridge and Haswell and on a processor with AVX-512; the one flag that each
    of its kernels asks for.
    """
    for flag, name in (("avx512f", "jit:avx512_common"), ("avx2", "jit:avx2"), ("sse4_2", "jit:sse42")):
        missing = lacking(cpu, (flag,))
        if missing is None:
            return None
        if not missing:
            return name
    return "ref:any"
