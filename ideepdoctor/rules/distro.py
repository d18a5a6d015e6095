"""How a distribution installs what a build needs. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Names:
    """The package of each family; empty: it has none of its own."""

    debian: str
    fedora: str
    alpine: str
    suse: str = ""
    arch: str = ""


COMPILER = Names("g++", "gcc-c++", "g++", "gcc-c++", "gcc")
MAKE = Names("make", "make", "make", "make", "make")
GIT = Names("git", "git", "git", "git", "git")
CURL = Names("curl", "curl", "curl", "curl", "curl")

_FAMILIES = (
    ("debian", r"debian|ubuntu|mint|raspbian|pop!_os|kali"),
    ("fedora", r"fedora|red hat|rhel|centos|rocky|alma|oracle linux|amazon linux"),
    ("alpine", r"alpine"),
    ("suse", r"suse|sles"),
    ("arch", r"arch linux|manjaro"),
)
_COMMANDS = {
    "debian": "apt install",
    "fedora": "dnf install",
    "alpine": "apk add",
    "suse": "zypper install",
    "arch": "pacman -S",
}


def headers(minor: str | None) -> Names:
    """The package with Python.h of a version such as ``3.11``; None: the distribution's own."""
    number = minor or "3"
    return Names(f"python{number}-dev", f"python{number}-devel", "python3-dev", "python3-devel", "python")


def install(os_name: str | None, names: Names) -> str:
    """The command that installs it, as root; of an unknown distribution the two that are met most.

    Args:
        os_name: PRETTY_NAME of /etc/os-release.
        names: of the package.
    """
    family = family_of(os_name)
    package = getattr(names, family) if family else ""
    if package:
        return f"as root: {_COMMANDS[family]} {package}"
    return f"as root: apt install {names.debian} (Debian, Ubuntu) or dnf install {names.fedora} (Fedora, RHEL)"


def family_of(os_name: str | None) -> str:
    """``debian``, ``fedora``...; empty where it is none that is known."""
    lower = (os_name or "").lower()
    return next((family for family, pattern in _FAMILIES if re.search(pattern, lower)), "")
