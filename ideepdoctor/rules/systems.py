"""Systems that cannot run ideep4py by the names that they give themselves, and what to do there. Pure."""

from __future__ import annotations

import re

from ideepdoctor.model.facts import Platform

_LINUX = "use a Linux x86_64 machine, virtual machine or WSL; or Chainer with NumPy"
_PLAIN = (
    "python -m pip install 'setuptools<74' wheel 'numpy<1.24', then --no-build-isolation 'chainer==7.8.1', and compute "
    "with NumPy and OpenBLAS here"
)
"""Measured on 3.9 and 3.11: Chainer is built with the setuptools that is there, and imported."""
_PLAIN_ENVIRONMENT = "make an environment with Python 3.8 to 3.11 for Chainer with NumPy and OpenBLAS"
_WITH_NUMPY = ("3.8", "3.9", "3.10", "3.11")


def what_to_do(platform: Platform, python: str) -> tuple[str, str]:
    """The system in words, and the way from there for an interpreter (``3.12``).

    Cygwin, MSYS2 and MinGW name themselves CYGWIN_NT-10.0-19045, MSYS_NT-..., MINGW64_NT-...; ``uname -m`` of a 32-bit
    kernel is i686, of ARM aarch64, arm64 (macOS), armv7l; kernels of Android end in ``-android13-9-...``.
    """
    system, machine = platform.system, platform.machine
    name = f"{system} on {machine}"
    plain = _PLAIN if python in _WITH_NUMPY else _PLAIN_ENVIRONMENT
    if re.match(r"(CYGWIN|MSYS|MINGW\d*|UCRT\d*|CLANG\d*)_NT", system):
        return f"{name}, which is Windows", "wsl --install, then set up Chainer inside WSL"
    if system == "Windows":
        return name, "wsl --install, then set up Chainer inside WSL"
    if system == "Darwin":
        kind = "Apple silicon" if machine == "arm64" else "an Intel Mac"
        return f"{name} ({kind})", plain if machine == "arm64" else _LINUX
    if system == "Android" or "android" in (platform.kernel or "").lower():
        return f"{name}, which is Android", _LINUX
    if system == "Linux" and re.match(r"(aarch64|arm)", machine):
        return f"{name} (ARM)", plain
    if system == "Linux" and re.fullmatch(r"i[3-6]86", machine):
        return f"{name} (32 bits)", "install a 64-bit Linux on it, if the processor has 64 bits"
    return name, _LINUX


def is_wsl1(platform: Platform) -> bool:
    """Whether Windows itself answers the system calls (WSL 1): its kernel is 4.4.0-19041-Microsoft for ever."""
    return re.fullmatch(r"4\.4\.0-\d+-Microsoft", platform.kernel or "") is not None
