"""Addresses of git repositories: what may be one, how it is shown, and what it means relative to another."""

from __future__ import annotations

import os
import re

from ideepdoctor.errors import UsageError

_SCHEME = re.compile(r"(?i)([a-z][a-z0-9+.-]*)://")
_HELPER = re.compile(r"(?i)[a-z0-9+.-]+::")
_HOST_PATH = re.compile(r"(?:[^/\s:@]+@)?[^/\s:@]+:(?!//)")
"""``user@host:path``, as ssh has it."""
_CREDENTIALS = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^/\s'\"]*@")
_KNOWN_SCHEMES = frozenset({"https", "http", "ssh", "git", "git+ssh", "ssh+git", "file"})


def check_url(url: str) -> None:
    """Raise UsageError for an address that git would take for something else, or that runs a program."""
    if not url or url.startswith("-") or any(ord(letter) < 32 for letter in url):
        raise UsageError(f"{shown(url)!r} is no address of a repository")
    scheme = _SCHEME.match(url)
    if _HELPER.match(url) or (scheme and scheme.group(1).lower() not in _KNOWN_SCHEMES):
        raise UsageError(f"addresses such as {shown(url)} are not fetched from", hint="https, ssh, git or a path")


def shown(text: str) -> str:
    """A text without the names and passwords of the addresses in it."""
    return _CREDENTIALS.sub(r"\1***@", text)


def is_remote(source: str) -> bool:
    """Whether a source is an address, by its form alone: ``https://...`` or ``user@host:path``; ``file://`` is none."""
    scheme = _SCHEME.match(source)
    if scheme:
        return scheme.group(1).lower() != "file"
    return _HOST_PATH.match(source) is not None and not os.path.lexists(source)


def is_address(source: str) -> bool:
    """As ``is_remote``, and ``file://...`` and what ``check_url`` refuses count too."""
    return _SCHEME.match(source) is not None or _HELPER.match(source) is not None or is_remote(source)


def resolved(url: str, base: str) -> str:
    """The address of a submodule as git understands it: ``../other`` is relative to that of its parent."""
    if not url.startswith(("./", "../")):
        return url
    base = base.rstrip("/")
    while url.startswith(("./", "../")):
        if url.startswith("../"):
            url = url[3:]
            slash = base.rfind("/")
            base = base[: slash if slash >= 0 else base.rfind(":") + 1]
        else:
            url = url[2:]
    return f"{base}{url}" if base.endswith(":") else f"{base}/{url}"
