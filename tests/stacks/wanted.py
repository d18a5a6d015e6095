"""Which stacks are to be locked: the versions, and what is known about them. ``lock.py`` turns this into TOML."""

from __future__ import annotations

from dataclasses import dataclass

MODERN = ("3.13", "3.12", "3.11", "3.10", "3.9", "3.8")
"""Versions that no index has an ideep4py for: theirs is built."""

# The newest releases of each that run on that Python and that Chainer and ideep4py accept.
COMMON: dict[str, dict[str, str]] = {
    "3.7": {"pip": "24.0", "setuptools": "59.8.0", "wheel": "0.42.0", "filelock": "3.12.2", "protobuf": "3.20.3"},
    "3.6": {"pip": "21.3.1", "setuptools": "59.6.0", "wheel": "0.37.1", "filelock": "3.4.1", "protobuf": "3.19.6"},
    "3.5": {"pip": "20.3.4", "setuptools": "50.3.2", "wheel": "0.37.1", "filelock": "3.2.1", "protobuf": "3.17.3"},
    "2.7": {"pip": "20.3.4", "setuptools": "44.1.1", "wheel": "0.37.1", "filelock": "3.2.1", "protobuf": "3.17.3"},
}
TYPING: dict[str, dict[str, str]] = {
    "3.7": {"typing-extensions": "4.7.1"},
    "3.6": {"typing-extensions": "4.1.1"},
    "3.5": {"typing-extensions": "3.10.0.2"},
    # Chainer 6.7.0 asks for typing and typing_extensions <= 3.6.6.
    "2.7": {"typing": "3.6.6", "typing-extensions": "3.6.6"},
}
TYPING_CHAINER6 = {"typing": "3.6.6", "typing-extensions": "3.6.6"}
SIX = {"six": "1.17.0"}
NUMPY = {"3.7": "1.21.6", "3.6": "1.19.5", "3.5": "1.18.5", "2.7": "1.16.6"}
ABIS = {"3.7": ("cp37m",), "3.6": ("cp36m",), "3.5": ("cp35m",), "2.7": ("cp27mu", "cp27m")}
for _python in MODERN:
    # The newest pip and wheel that run on 3.8, too. setuptools 74 has no distutils.msvccompiler, which NumPy's
    # distutils imports, and 81 no pkg_resources, which Chainer imports.
    COMMON[_python] = {"pip": "25.0.1", "setuptools": "73.0.1", "wheel": "0.45.1", "filelock": "3.16.1"}
    COMMON[_python]["protobuf"] = "3.20.3"
    TYPING[_python] = {"typing-extensions": "4.13.2"}
    # From 1.24 on resize_images fails; 3.12 has nothing older than 1.26.
    NUMPY[_python] = {"3.13": "2.2.6", "3.12": "1.26.4"}.get(_python, "1.23.5")
    ABIS[_python] = (f"cp{_python.replace('.', '')}",)

BN = "BatchNormalization gradients wrong for some shapes from 2 threads on (H1)"
BLOCKED = "mul and div of blocked arrays wrong (H2)"
WEIGHTS = "weights loaded after to_intel64() wrong (H3)"
ADAM = "AdaGrad, MSVAG and Adam wrong after to_intel64() (H4)"
ADAGRAD = "AdaGrad and MSVAG wrong after to_intel64() (H4)"
RESIZE = "resize_images fails: it asks for numpy.float, which NumPy 1.24 removed"
CONCAT = "concat of inputs of unequal blocking aborts (H7)"


@dataclass(frozen=True)
class Wanted:
    """A stack to be locked."""

    chainer: str
    ideep4py: str
    pythons: tuple[str, ...]
    known: tuple[str, ...]
    cpu_flags: tuple[str, ...] = ("avx",)
    cpu_vendor: str | None = None
    emulator: tuple[str, ...] = ()
    numpy: str | None = None
    built: tuple[str, ...] = ()
    """Versions of Python that ideep4py is built for."""

    @property
    def name(self) -> str:
        return f"chainer{self.chainer}-ideep4py{self.ideep4py}"

    def pins(self, python: str) -> dict[str, str]:
        """Every distribution of the lock for one Python, with its version."""
        pins = {"chainer": self.chainer, "ideep4py": self.ideep4py, "numpy": self.numpy or NUMPY[python]}
        pins |= COMMON[python] | SIX
        if python in self.built:
            del pins["ideep4py"]
        major = int(self.chainer.split(".")[0])
        if major == 6:
            pins |= TYPING_CHAINER6
        elif major > 6:
            pins |= TYPING[python]
        return pins


WANTED = (
    Wanted("7.8.1", "2.0.0.post3", ("3.7", "3.6", "3.5"), (BN, BLOCKED, WEIGHTS, ADAGRAD, CONCAT), built=MODERN),
    # From 3.9 on Chainer 6 does not import: its typing_extensions 3.6.6 is too old.
    Wanted("6.7.0", "2.0.0.post3", ("3.7", "3.6", "2.7"), (BN, BLOCKED, WEIGHTS, ADAGRAD, CONCAT), built=("3.8",)),
    Wanted("5.4.0", "2.0.0.post3", ("3.7", "3.6", "2.7"), (BN, BLOCKED, WEIGHTS, ADAM, CONCAT), built=MODERN[2:]),
    Wanted("4.5.0", "1.0.4", ("3.6", "2.7"), (CONCAT,), cpu_flags=("sse2",), numpy="1.13.0"),
    Wanted(
        "4.0.0b4",
        "1.0.3",
        ("3.6",),
        ("to_intel64() of a model with BatchNormalization raises", "CPUs of Intel only", CONCAT),
        cpu_flags=("sse2",),
        cpu_vendor="GenuineIntel",
        emulator=("qemu-x86_64", "-cpu", "Haswell"),
        numpy="1.13.0",
    ),
)
