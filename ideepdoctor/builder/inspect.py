"""What is wrong with a wheel of ideep4py, as far as that can be seen without running it."""

from __future__ import annotations

import ast
import base64
import csv
import io
import re
from collections.abc import Iterator, Mapping
from email.parser import BytesHeaderParser

from packaging.version import InvalidVersion, Version

from ideepdoctor.builder.wheel_file import NAMES, NoWheel, WheelFile, opened
from ideepdoctor.builder.wheel_metadata import NAME, Tag, info_folder
from ideepdoctor.rules.compat import Pair, pair
from ideepdoctor.treatment.elfpaths import Symbols

RPATH = "$ORIGIN/lib"
ENGINE = "libmkldnn.so.0"

USUAL = frozenset(
    {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "ld-linux-x86-64.so.2"}
    | {"libgcc_s.so.1", "libstdc++.so.6", "libgomp.so.1"}
)
"""Libraries that a system with a C++ program on it has."""

API = (
    "mkldnn_engine_create",
    "mkldnn_memory_desc_init",
    "mkldnn_primitive_create",
    "mkldnn_stream_submit",
    "mkldnn_convolution_forward_desc_init",
    "mkldnn_convolution_backward_data_desc_init",
    "mkldnn_convolution_backward_weights_desc_init",
    "mkldnn_batch_normalization_forward_desc_init",
    "mkldnn_pooling_forward_desc_init",
    "mkldnn_inner_product_forward_desc_init",
    "mkldnn_lrn_forward_desc_init",
    "mkldnn_reorder_primitive_desc_create",
)
"""Functions that every MKL-DNN from 0.12 to 0.14 has and an ideep4py cannot do without."""


def check(path: str, *, chainer: str | None = None) -> tuple[str, ...]:
    """Look for everything that is wrong with a wheel.

    Args:
        path: of the file.
        chainer: release of Chainer that it shall serve; None: whichever this ideep4py is for.

    Returns:
        A sentence for each problem; empty: none was found.
    """
    try:
        wheel = opened(path)
    except NoWheel as error:
        return (str(error),)
    problems = [*wheel.problems, *_record(wheel), *_metadata(wheel)]
    problems += [*_extension(wheel), *_search(wheel), *_engine(wheel), *_offer(wheel), *_declared(wheel, chainer)]
    return tuple(dict.fromkeys(problems))


def _record(wheel: WheelFile) -> Iterator[str]:
    place = f"{_folder(wheel)}/RECORD"
    if place not in wheel.texts:
        yield f"{place} is missing"
        return
    try:
        rows = list(csv.reader(io.StringIO(wheel.texts[place].decode("utf-8"))))
        listed = {row[0]: (row[1], row[2]) for row in rows if row}
    except (UnicodeDecodeError, csv.Error, IndexError) as error:
        yield f"RECORD cannot be read: {error}"
        return
    for name in sorted(set(wheel.names) - set(listed)):
        yield f"RECORD does not list {name}"
    for name in sorted(set(listed) - set(wheel.names)):
        yield f"RECORD lists {name}, which is not there"
    for name, (digest, size) in listed.items():
        if name == place or name not in wheel.digests:
            continue
        found, length = wheel.digests[name]
        wanted = "sha256=" + base64.urlsafe_b64encode(found).decode("ascii").rstrip("=")
        if digest != wanted or size != str(length):
            yield f"RECORD disagrees with {name}"


def _folder(wheel: WheelFile) -> str:
    """The folder of the metadata, as it is called in this wheel."""
    found = sorted({name.partition("/")[0] for name in wheel.names if re.match(rf"{NAME}-[^/]*\.dist-info/", name)})
    return found[0] if len(found) == 1 else info_folder(str(wheel.version))


def _metadata(wheel: WheelFile) -> Iterator[str]:
    folder = _folder(wheel)
    told = {}
    for part in ("METADATA", "WHEEL"):
        if f"{folder}/{part}" not in wheel.texts:
            yield f"{folder}/{part} is missing"
            return
        told[part] = BytesHeaderParser().parsebytes(wheel.texts[f"{folder}/{part}"])
    if told["METADATA"]["Name"] != NAME or not _same_version(str(told["METADATA"]["Version"]), wheel.version):
        said = f"{told['METADATA']['Name']} {told['METADATA']['Version']}"
        yield f"METADATA says {said}, the file's name {NAME} {wheel.version}"
    tags = told["WHEEL"].get_all("Tag", [])
    wanted = {f"{wheel.tag.python}-{wheel.tag.abi}-{platform}" for platform in wheel.tag.platform.split(".")}
    if set(tags) != wanted:
        yield f"WHEEL has the tag {', '.join(tags) or 'none'}, the file's name {', '.join(sorted(wanted))}"


def _same_version(text: str, version: Version) -> bool:
    try:
        return Version(text) == version
    except InvalidVersion:
        return False


def _extension(wheel: WheelFile) -> Iterator[str]:
    """The extension is there, and for this Python."""
    python = wheel.tag.minor
    names = [name.partition("/")[2] for name in wheel.extensions]
    if f"{NAME}/__init__.py" not in wheel.names:
        yield f"{NAME}/__init__.py is missing"
    if len(names) != 1:
        yield f"there is {'no' if not names else 'more than one'} extension {NAME}/{wheel.tag.extension}"
        return
    if names[0] not in (wheel.tag.extension, "_ideep4py.so"):
        yield f"the extension {names[0]} is not for {wheel.tag.abi}: it must be called {wheel.tag.extension}"
    symbols = wheel.symbols.get(names[0])
    if symbols is None:
        return
    start = "init_ideep4py" if python.startswith("2.") else "PyInit__ideep4py"
    if start not in symbols.defined:
        yield f"{names[0]} cannot be imported by Python {python}: it has no {start}"
    wide = wheel.tag.abi.endswith("u")
    if python == "2.7" and any(name.startswith(f"PyUnicodeUCS{2 if wide else 4}_") for name in symbols.undefined):
        yield f"{names[0]} is not for {wheel.tag.abi}: its characters have {2 if wide else 4} bytes"


def _search(wheel: WheelFile) -> Iterator[str]:
    """Every library that is needed is found: by the extension's RPATH, which holds for the libraries below it, too."""
    own = {name.rpartition("/")[2]: name for name in wheel.names if name.startswith(f"{NAME}/lib/")}
    for name, item in sorted(wheel.headers.items()):
        inside = name in own
        mine = [folder for text in (item.runpaths if item.runpaths else item.rpaths) for folder in text.split(":")]
        if item.runpaths and not (inside and "$ORIGIN" in mine):
            yield f"{name} has a RUNPATH ({', '.join(item.runpaths)}): libiomp5.so would not be found through it"
        elif not inside and RPATH not in mine:
            yield f"{name} has no RPATH {RPATH}: {', '.join(item.rpaths) or 'none'}"
        if item.misaligned:
            yield f"{name} has a segment that no loader takes (misaligned)"
        for needed in item.needed:
            if needed not in own and needed not in USUAL and not _is_python(needed, wheel.tag):
                yield f"{name} needs {needed}, which is neither in lib/ nor one that systems have"


def _is_python(needed: str, tag: Tag) -> bool:
    return (
        needed.startswith(f"libpython{tag.minor}") and re.match(r"[a-z]*\.so", needed[9 + len(tag.minor) :]) is not None
    )


def _engine(wheel: WheelFile) -> Iterator[str]:
    """MKL-DNN is MKL-DNN, and has what the extension asks of it."""
    if ENGINE in wheel.symbols:
        has = wheel.symbols[ENGINE].defined
        lacking = [name for name in API if name not in has]
        if len(lacking) == len(API):
            yield f"computes nothing: {ENGINE} exports none of MKL-DNN's functions"
        elif lacking:
            yield f"{ENGINE} does not export {', '.join(lacking)}"
    elif not any(name.endswith(f"/{ENGINE}") for name in wheel.names):
        yield f"{ENGINE}, which is MKL-DNN, is missing from lib/"
    everything = {name for symbols in wheel.symbols.values() for name in symbols.defined}
    for path in wheel.extensions:
        name = path.rpartition("/")[2]
        asked = wheel.symbols[name] if name in wheel.symbols else Symbols(frozenset(), frozenset(), frozenset())
        if name in wheel.symbols and not any(one.startswith("mkldnn_") for one in asked.undefined):
            yield f"computes nothing: {name} uses none of MKL-DNN's functions"
        missing = sorted(
            one for one in asked.unversioned - everything if re.match(r"mkldnn_|v[sdi][A-Z]|vsl|cblas_|omp_|GOMP_", one)
        )
        if missing:
            shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
            yield f"{name} needs {shown}, which no library of the wheel has"


def _offer(wheel: WheelFile) -> Iterator[str]:
    lacking = [name for name in NAMES if name not in wheel.offered]
    if lacking and len(wheel.extensions) == 1 and wheel.headers:
        yield f"the extension lacks what Chainer uses: {', '.join(lacking)}"


def _declared(wheel: WheelFile, chainer: str | None) -> Iterator[str]:
    """``__version__``, by which Chainer 5 and later decide."""
    if f"{NAME}/__init__.py" not in wheel.texts:
        return
    found, value = _version(wheel.texts, "__init__")
    later = wheel.version >= Version("2.0.0b1") if chainer is None else Version(chainer) > Version("5.0.0b2")
    whom = "Chainer 5 and later reject it" if chainer is None else f"Chainer {chainer} rejects it"
    if not found:
        if later:
            yield f"{NAME} has no __version__: {whom} (Unsupported iDeep version (1))"
        return
    if value is not None and not _same_version(value, Version(wheel.version.public)):
        yield f"ideep4py.__version__ is {value}, the wheel's version {wheel.version}"
    if value is None:
        return
    if later and value.split(".")[0] != "2":
        yield f"ideep4py.__version__ is {value}: {whom} (Unsupported iDeep version ({value.split('.')[0]}))"
    elif chainer is not None and pair(chainer, value) is Pair.WRONG:
        yield f"Chainer {chainer} computes wrong gradients with ideep4py {value}"
    elif chainer is not None and pair(chainer, value) is Pair.UNUSED:
        yield f"Chainer {chainer} does not use ideep4py {value}"


def _version(texts: Mapping[str, bytes], module: str, depth: int = 3) -> tuple[bool, str | None]:
    """Whether a module of the package sets ``__version__``, and to what; None: to what only running it tells."""
    try:
        tree = ast.parse(texts.get(f"{NAME}/{module}.py", b""))
    except (SyntaxError, ValueError):
        return False, None
    for node in reversed(tree.body):
        if isinstance(node, ast.Assign) and any(getattr(one, "id", "") == "__version__" for one in node.targets):
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                return True, node.value.value
            if isinstance(node.value, ast.Attribute) and isinstance(node.value.value, ast.Name) and depth:
                return True, _version(texts, node.value.value.id, depth - 1)[1]
            return True, None
        if isinstance(node, ast.ImportFrom) and any(one.name == "__version__" for one in node.names) and depth:
            return True, _version(texts, (node.module or "").rpartition(".")[2], depth - 1)[1]
    return False, None
