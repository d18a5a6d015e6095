"""The texts of a wheel and its archive as bytes. Pure: the same input gives the same bytes."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from packaging.version import Version

from ideepdoctor import __version__
from ideepdoctor.model.build import BuildInfo

NAME = "ideep4py"
INFO_FILE = "ideepdoctor-build.json"
LINUX = "linux_x86_64"

_TIME = (1980, 1, 1, 0, 0, 0)
"""Of every file: the oldest that a zip can hold. When it was built is no part of what was built."""
_ABI = re.compile(r"cp(\d)(\d+)[a-z]*")


@dataclass(frozen=True, slots=True)
class Tag:
    """What a wheel runs on: interpreter (cp37), its ABI (cp37m), platform (linux_x86_64)."""

    python: str
    abi: str
    platform: str = LINUX

    def __str__(self) -> str:
        return f"{self.python}-{self.abi}-{self.platform}"

    @property
    def minor(self) -> str:
        """Version of Python, as 3.7."""
        return f"{self.python[2]}.{self.python[3:]}"

    @property
    def extension(self) -> str:
        """File name that setuptools gives the extension for this ABI."""
        if self.python.startswith("cp2"):
            return "_ideep4py.so"
        return f"_ideep4py.cpython-{self.abi[2:]}-x86_64-linux-gnu.so"


def tag_of(abi: str) -> Tag:
    """The tag for an ABI such as cp37m, cp27mu, cp313t. Raises ValueError where it is none of CPython's."""
    found = _ABI.fullmatch(abi)
    if found is None:
        raise ValueError(f"{abi} is no ABI of CPython")
    return Tag(f"cp{found[1]}{found[2]}", abi)


def built_version(version: str, label: str, mkl: str = "wheel") -> str:
    """A version that says which build it is: 2.0.0.post3 and v3 give 2.0.0.post3+doctor.v3, without MKL
    2.0.0.post3+doctor.v3.nomkl, so that both can lie in one wheelhouse.

    Raises:
        ValueError: the version is none (PEP 440).
    """
    parsed = Version(version)
    local = ".".join(part for part in (parsed.local, "doctor", label, "nomkl" if mkl == "none" else "") if part)
    return f"{parsed.public}+{local}"


def file_name(version: str, tag: Tag) -> str:
    """Of the wheel."""
    return f"{NAME}-{version}-{tag}.whl"


def info_folder(version: str) -> str:
    """Of the metadata, within the wheel."""
    return f"{NAME}-{version}.dist-info"


def metadata_text(version: str, tag: Tag, info: BuildInfo, licences: tuple[str, ...] = ()) -> str:
    """METADATA: what is true of this build, and nothing that upstream declares for another.

    Args:
        version: of the wheel.
        tag: of the wheel.
        info: of the build.
        licences: names of the licence files beside METADATA.
    """
    numpy = Version(info.numpy)
    # An extension that was compiled against NumPy 1 is refused by NumPy 2; the other way round it works.
    needs = f"numpy>={numpy.public}" + (",<2" if numpy.major < 2 else "")
    commit = info.commit if ":" in info.commit else f"commit {info.commit[:12]}"
    major, minor = tag.minor.split(".")
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {NAME}",
        f"Version: {version}",
        f"Summary: A build by ideepdoctor {__version__} from {commit} of ideep4py's source, for {info.march}",
        "License: MIT",
        *(f"License-File: {name}" for name in licences),
        f"Requires-Python: >={tag.minor},<{major}.{int(minor) + 1}",
        f"Requires-Dist: {needs}",
    ]
    return "\n".join(lines) + "\n"


def wheel_text(tag: Tag) -> str:
    """WHEEL."""
    head = f"Wheel-Version: 1.0\nGenerator: ideepdoctor ({__version__})\nRoot-Is-Purelib: false\n"
    return f"{head}Tag: {tag}\n"


def info_text(info: BuildInfo) -> str:
    """ideepdoctor-build.json: the fields of BuildInfo, a line each."""
    fields = sorted(asdict(info).items())
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value, sort_keys=True)}" for name, value in fields)
    return f"{{\n{lines}\n}}\n"


def digest_of(data: bytes) -> str:
    """As RECORD has it: ``sha256=`` and URL-safe base64 without padding."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode("ascii").rstrip("=")


def archive(files: Mapping[str, Callable[[], bytes]], version: str) -> bytes:
    """The wheel, with its RECORD.

    Args:
        files: name within the wheel and what gives its bytes (asked once, one at a time: they may be large). The names
            in the metadata's folder come last, as the rules for wheels advise.
        version: of the wheel.
    """
    folder = info_folder(version)
    rows: list[tuple[str, str, str]] = []
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as packed:
        for name in sorted(files, key=lambda name: (name.startswith(f"{folder}/"), name)):
            data = files[name]()
            rows.append((name, digest_of(data), str(len(data))))
            packed.writestr(_entry(name), data)
        listed = io.StringIO()
        csv.writer(listed, lineterminator="\n").writerows([*rows, (f"{folder}/RECORD", "", "")])
        packed.writestr(_entry(f"{folder}/RECORD"), listed.getvalue().encode("utf-8"))
    return whole.getvalue()


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3  # Unix, wherever this runs: the modes below are Unix's
    entry.external_attr = (0o100755 if re.search(r"\.so(\.|$)", name) else 0o100644) << 16
    return entry
