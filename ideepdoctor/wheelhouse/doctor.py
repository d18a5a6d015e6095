"""The doctor itself as files: its own wheel, packed from what is installed, and the releases that it runs with here."""

from __future__ import annotations

import io
import sys
import zipfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.resources import files
from importlib.resources.abc import Traversable

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ideepdoctor.builder.wheel_metadata import digest_of
from ideepdoctor.errors import CouldNotCheck

NAME = "ideepdoctor"
_TIME = (1980, 1, 1, 0, 0, 0)


def releases() -> dict[str, str]:
    """Names and versions of everything that the doctor needs with this Python, as installed here; not its own.

    Raises:
        CouldNotCheck: the doctor is not installed, or something that it needs is not.
    """
    found: dict[str, str] = {}
    left = [NAME]
    while left:
        name = left.pop()
        held = _distribution(name)
        if name != NAME:
            found[name] = held.version
        for line in held.requires or ():
            asked = Requirement(line)
            needed = canonicalize_name(asked.name)
            if (asked.marker is None or asked.marker.evaluate({"extra": ""})) and needed not in found:
                left.append(needed)
    return dict(sorted(found.items()))


def _distribution(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError as error:
        raise CouldNotCheck(
            f"{name} is not installed in the doctor's own environment ({sys.prefix})",
            hint="install the doctor with pip or uv, then try again",
        ) from error


def own_wheel() -> tuple[str, bytes]:
    """File name and bytes of the doctor's wheel, the same bytes every time for the same files.

    Raises:
        CouldNotCheck: the doctor is not installed as a distribution.
    """
    held = _distribution(NAME)
    info = f"{NAME}-{held.version}.dist-info"
    parts = dict(_tree(files(NAME), NAME))
    for name in ("METADATA", "entry_points.txt"):
        text = held.read_text(name)
        if text is not None:
            parts[f"{info}/{name}"] = text.encode("utf-8")
    tag = "py3-none-any"
    parts[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: {NAME}\nRoot-Is-Purelib: true\nTag: {tag}\n".encode()
    lines = [f"{name},{digest_of(data)},{len(data)}" for name, data in sorted(parts.items())]
    parts[f"{info}/RECORD"] = ("\n".join([*lines, f"{info}/RECORD,,"]) + "\n").encode("utf-8")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(parts.items()):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return f"{NAME}-{held.version}-{tag}.whl", stream.getvalue()


def _tree(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found = []
    for item in folder.iterdir():
        name = f"{prefix}/{item.name}"
        if item.is_dir():
            found += [] if item.name == "__pycache__" else _tree(item, name)
        elif not item.name.endswith((".pyc", ".pyo")):
            found.append((name, item.read_bytes()))
    return found
