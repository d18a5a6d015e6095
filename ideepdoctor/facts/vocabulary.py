"""The words that may be shown to strangers: those that this program itself is written with, and the system's own."""

from __future__ import annotations

import builtins
import errno
import os
import re
import signal
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable

WORD = re.compile(r"[A-Za-z_][A-Za-z_]+")
_ENDS = (".py", ".toml", ".txt", ".json", ".c")
_RECORDED = "hosts"
"""Folder of recorded machines: their words are not the program's."""
_MORE = """
common gnu linux usr lib lib64 local bin share opt home etc var run root site packages dist envs env venv virtualenv
conda miniconda anaconda pyenv versions include debian ubuntu centos fedora rocky alma red hat enterprise opensuse suse
alpine arch amazon bookworm bullseye buster trixie jammy noble focal bionic core generic aws azure gcp cloud lowlatency
intel amd epyc xeon ryzen threadripper athlon opteron celeron pentium atom gold silver bronze platinum processor cpu duo
with radeon graphics authenticamd genuineintel virtual qemu kvm vmware xen hyper wsl microsoft docker podman lxc
"""
"""Names of distributions, processors and folders that say nothing of anybody."""


@lru_cache(maxsize=1)
def vocabulary() -> frozenset[str]:
    """Words in small letters."""
    found = set(_MORE.split())
    found |= {word.lower() for text in _texts(files("ideepdoctor")) for word in WORD.findall(text)}
    found |= {word.lower() for number in errno.errorcode for word in WORD.findall(os.strerror(number))}
    found |= {item.name.lower() for item in signal.Signals}
    found |= {name.lower() for name in dir(builtins)}
    return frozenset(found)


def _texts(folder: Traversable) -> list[str]:
    texts = []
    for item in folder.iterdir():
        if item.is_dir():
            texts += [] if item.name == _RECORDED else _texts(item)
        elif item.name.endswith(_ENDS):
            texts.append(item.read_text("utf-8"))
    return texts
