"""What is installed, in raw lines of metadata: distributions by their dist-info and egg-info, and conda's own list.

A part: ``from distributions import ...`` in a payload or a part is replaced by this text before it is sent (see
``payload_source``).
"""

import os
import re
import sys

from common import text

BUILD_FILE = "ideepdoctor-build.json"  # what a wheel of ``ideepdoctor build`` says of itself
WATCHED = re.compile(r"(numpy|chainer|ideep4py|cupy(-.*)?)$")  # whose installer is asked for
LEFTOVER = "~"  # pip renames what it is about to remove: what is called so was forgotten


def read(path, limit=1 << 20):
    """Return a file as text, None where it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return text(stream.read(limit))
    except (IOError, OSError):
        return None


def metadata_of(folder, name):
    """Return the path of a distribution's own folder and its metadata as text; None and None for any other entry."""
    base = os.path.join(folder, name)
    if name.startswith(LEFTOVER):
        return None, None
    if name.endswith(".dist-info"):
        return base, read(os.path.join(base, "METADATA"))
    if name.endswith(".egg-info"):
        return base, read(os.path.join(base, "PKG-INFO") if os.path.isdir(base) else base)
    if name.endswith(".egg"):
        base = os.path.join(base, "EGG-INFO")
        return base, read(os.path.join(base, "PKG-INFO"))
    return None, None


def distributions(path):
    """Return the installed distributions of these folders, the first of a name first, as raw lines of metadata.

    Returns two lists: those that Python takes, and the further ones of names that came before. A folder that comes
    twice (lib64 is often a link to lib) counts once.
    """
    found, again, seen, visited = [], [], set(), set()
    for folder in path:
        try:
            folder = folder or os.getcwd()
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        if os.path.realpath(folder) in visited:
            continue
        visited.add(os.path.realpath(folder))
        for name in names:
            base, metadata = metadata_of(folder, name)
            head = [
                line
                for line in (metadata or "").split("\n\n")[0].splitlines()
                if line.startswith(("Name:", "Version:", "Requires-Dist:"))
            ]
            own = [re.sub(r"[-_.]+", "-", line[5:].strip()).lower() for line in head if line.startswith("Name:")]
            if not own:
                continue
            one = {"metadata": "\n".join(head), "location": folder, "info": base, "installer": None}
            if WATCHED.match(own[0]):
                one["installer"] = (read(os.path.join(base, "INSTALLER"), 200) or "").strip() or None
            if own[0] in seen:
                again.append(one)
                continue
            seen.add(own[0])
            one["requires_txt"] = read(os.path.join(base, "requires.txt"))
            one["build"] = read(os.path.join(base, BUILD_FILE)) if own[0] == "ideep4py" else None
            one["tags"] = wheel_tags(base) if own[0] == "ideep4py" else None
            found.append(one)
    return found, again


def wheel_tags(info):
    """Return the tags of the wheel that a distribution came as; None where it came as none."""
    lines = (read(os.path.join(info, "WHEEL"), 1 << 16) or "").splitlines()
    return [line[4:].strip() for line in lines if line.startswith("Tag:")] or None


def conda_packages():
    """Return [name, version] of the watched packages in conda's list of this environment; empty where it has none."""
    try:
        names = sorted(os.listdir(os.path.join(sys.prefix, "conda-meta")))
    except OSError:
        return []
    parts = [name[: -len(".json")].rsplit("-", 2) for name in names if name.endswith(".json")]
    return [part[:2] for part in parts if len(part) == 3 and WATCHED.match(part[0])]
