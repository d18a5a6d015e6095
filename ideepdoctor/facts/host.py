"""The operating system, from raw texts: its name, C library, and signs of a container."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

_CGROUP_SIGNS = (
    ("kubepods", "kubernetes"),
    ("docker", "docker"),
    ("libpod", "podman"),
    ("/lxc", "lxc"),
    ("containerd", "containerd"),
)


def parse_os_name(text: str) -> str | None:
    """PRETTY_NAME of an os-release file, which is written in shell syntax. Never raises."""
    match = re.search(r"^PRETTY_NAME=(.*)$", text, re.MULTILINE)
    if not match:
        return None
    try:
        words = shlex.split(match.group(1))
    except ValueError:
        words = [match.group(1).strip("\"' ")]
    return " ".join(words) or None


def parse_libc(confstr: str | None, loader: str | None, loader_help: str | None) -> tuple[str | None, str | None]:
    """Name and version of the C library.

    Args:
        confstr: what the system's confstr says: ``glibc 2.36``; musl has no such answer.
        loader: path of the dynamic loader that the interpreter asks for.
        loader_help: what that loader says when called; musl's names its version there.
    """
    match = re.fullmatch(r"\s*glibc\s+(\S+)\s*", confstr or "")
    if match:
        return "glibc", match.group(1)
    if "musl" in (loader or ""):
        version = re.search(r"^Version (\S+)", loader_help or "", re.MULTILINE)
        return "musl", version.group(1) if version else None
    return None, None


def container_kind(
    *, files: Sequence[str], systemd: str | None, init: str | None, init_cgroup: str | None, kubernetes: bool
) -> str | None:
    """Name what contains the target; None where no sign of a container was seen.

    Args:
        files: those of the marker files that exist.
        systemd: text of /run/systemd/container.
        init: ``container`` in the environment of process 1.
        init_cgroup: text of /proc/1/cgroup.
        kubernetes: whether the variables of a Kubernetes pod are there.
    """
    if kubernetes:
        return "kubernetes"
    if "/run/.containerenv" in files:
        return "podman"
    if "/.dockerenv" in files:
        return "docker"
    for named in (init, systemd):
        if named and named.strip():
            return named.strip().split()[0]
    return next((name for sign, name in _CGROUP_SIGNS if sign in (init_cgroup or "")), None)
