"""Which libraries exist and which one wins: what the payload ``libraries`` told, as facts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ideepdoctor.facts.answer import Answer
from ideepdoctor.facts.loader import World, disagreements, predict
from ideepdoctor.facts.outcomes import read_outcome
from ideepdoctor.model.native import ElfFile, LibraryFile, Native, Started, VariableSource
from ideepdoctor.system import System
from ideepdoctor.targets.target import Target, run_payload

WHEEL_BUILDS = {
    "a4ad8f5a234e941a": ("1.0.1", "0.12"),
    "fe5246e628e67cc8": ("1.0.2", "0.12"),
    "a00af26dc14ed334": ("1.0.3", "0.12"),
    "44a0150f3890f237": ("1.0.4", "0.12"),
    "e14e2b30c6c1e313": ("2.0.0b1.post1", "0.14"),
    "4b676a9fb584068c": ("2.0.0.post3", "0.14"),
    "d0266ed018ea47e2": ("2.0.0.post3", "0.14"),
}
"""First 16 digits of the build-id of libmkldnn.so.0 in ideep4py's wheels: release of ideep4py, version of MKL-DNN.

These MKL-DNNs have no function that tells their version."""

WHEEL_MKLML = {151185659: "2018.0.1", 154033966: "2018.0.3"}
"""Size in bytes of libmklml_intel.so in ideep4py's wheels (1.0.2 to 1.0.4; 2.0.0b1.post1 and 2.0.0.post3): what its
MKL_Get_Version_String says. It has neither a build-id nor a SONAME."""

_BY_NAME = (
    ("mkldnn", re.compile(r"lib(mkldnn|dnnl|onednn)")),
    ("mklml", re.compile(r"libmklml")),
    ("mkl", re.compile(r"libmkl_")),
    ("iomp", re.compile(r"libiomp5")),
    ("omp", re.compile(r"libomp(\b|-|_)")),
    ("gomp", re.compile(r"libgomp")),
    ("openblas", re.compile(r"libopenblas")),
)
_RUNTIME = "__kmpc_fork_call"
"""Symbol of the OpenMP runtimes of Intel's kind, whatever their file is called."""
MKL_STUB = "ideepdoctor_mkl_stub"
"""Symbol of the library that a build without MKL has in its place."""
_TITLES = {"mklml": "MKLML", "mkl": "MKL", "iomp": "Intel OpenMP", "omp": "LLVM OpenMP", "gomp": "GNU OpenMP"}
_MKL_VERSION = re.compile(r"Version (\S+)")


def collect_native(
    system: System,
    target: Target,
    environ: Mapping[str, str],
    *,
    start: bool,
    deep: bool = False,
    others: tuple[str, ...] = (),
    cwd: str | None = None,
    child_seconds: float = 30.0,
) -> Native:
    """Look at the shared libraries of a target.

    Args:
        system: starts the process.
        target: whose libraries.
        environ: the environment that the user has.
        start: import ideep4py in a child, too, and see what is really mapped.
        deep: walk whole disks.
        others: folders of other environments on this machine.
        cwd: folder in which the user would start Python.
        child_seconds: time limit of each child.

    Raises:
        CouldNotCheck: the target does not start, does not answer, or answers nonsense.
    """
    request: dict[str, Any] = {
        "start": start,
        "deep": deep,
        "others": list(others),
        "cwd": cwd,
        "home": environ.get("HOME") if not target.transport else target.link and target.link.home,
        "timeout_seconds": child_seconds,
    }
    seconds = 3600.0 if deep else child_seconds * 3 + 60
    told = run_payload(system, target, "libraries", request, timeout_seconds=seconds, env=environ)
    return read_native(told, emulated=bool(target.emulator))


def read_native(told: Mapping[str, Any], *, emulated: bool) -> Native:
    """Turn the payload's answer into facts. Raises CouldNotCheck where it is not what that payload says."""
    answer = Answer(told)
    objects = {path: read_elf(path, part) for path, part in _parts(answer, "objects")}
    binding = answer.maybe_text("binding")
    folder = None if binding is None else binding.rpartition("/")[0]
    mkl_versions = answer.text_by_name("mkl_versions") or {}
    files = []
    for item in answer.parts("found"):
        path = item.text("path")
        if path not in objects:
            continue
        kind = kind_of(objects[path])
        if kind is not None:
            owner, places = item.maybe_text("owner"), item.texts("places")
            name = identify(objects[path], kind, mkl_versions.get(path))
            own = folder is not None and path.startswith(f"{folder}/")
            files.append(LibraryFile(objects[path], kind, name, own, owner, places))
    started = _started(answer.maybe_part("started"), emulated)
    world = _world(answer, objects)
    numpy = [path for path in answer.texts("numpy") if path in objects]
    opened = [*numpy, *([binding] if binding in objects else [])]
    predicted = predict(world, opened, mapped=_mapped_before(world, numpy, started))
    fine = started is not None and started.imported is not None and started.imported.ok
    return Native(
        binding=binding,
        files=tuple(files),
        objects=objects,
        predicted=predicted,
        started=started,
        disagreements=disagreements(predicted, started.after, objects) if started is not None and fine else (),
        sources=tuple(_source(item) for item in answer.parts("sources")),
        entries=answer.part("walk").integer("entries"),
        complete=answer.part("walk").flag("complete"),
    )


def read_elf(path: str, part: Answer) -> ElfFile:
    """One file of the answer."""
    needed_versions = part.maybe_part("versions_needed")
    return ElfFile(
        path=path,
        real_path=part.maybe_text("real_path") or path,
        size_bytes=part.maybe_integer("size_bytes"),
        identity=part.maybe_text("identity"),
        problem=part.maybe_text("problem"),
        bits=part.maybe_integer("bits"),
        little_endian=part.maybe_flag("little_endian"),
        machine=part.maybe_integer("machine"),
        soname=part.maybe_text("soname"),
        needed=part.texts("needed"),
        rpath=part.maybe_text("rpath"),
        runpath=part.maybe_text("runpath"),
        no_default_folders=part.flag("no_default_folders"),
        interpreter=part.maybe_text("interpreter"),
        build_id=part.maybe_text("build_id"),
        executable_stack=part.maybe_flag("executable_stack"),
        exports=part.texts("exports"),
        version=part.maybe_text("version"),
        versions_needed={} if needed_versions is None else _text_lists(needed_versions),
        versions_defined=part.texts("versions_defined"),
    )


def kind_of(file: ElfFile) -> str | None:
    """What sort of library a file is: by its symbols, then by its SONAME, then by its name; None: of no interest."""
    contains = any(name.startswith(("mkldnn_", "dnnl_")) for name in file.exports)
    for name in (file.soname, file.path.rpartition("/")[2], file.real_path.rpartition("/")[2]):
        for kind, pattern in _BY_NAME if name else ():
            if pattern.match(name or "") and (kind == "mkldnn" or not contains):
                return kind
    if contains:
        return "contained"
    return "omp" if _RUNTIME in file.exports else None


def identify(file: ElfFile, kind: str, mkl_version: str | None = None) -> str:
    """What a library of this kind is, with its version as far as that is known."""
    if kind in ("mkldnn", "contained"):
        return _mkldnn(file)
    if kind == "mklml" and MKL_STUB in file.exports:
        return "ideepdoctor's own, in place of MKLML"
    if kind in ("mkl", "mklml") and mkl_version is not None:
        found = _MKL_VERSION.search(mkl_version)
        return f"{_TITLES[kind]} {found.group(1) if found else mkl_version}"
    if kind == "mklml" and file.build_id is None and file.size_bytes in WHEEL_MKLML:
        return f"{_TITLES[kind]} {WHEEL_MKLML[file.size_bytes]}"
    title = _TITLES.get(kind, "OpenBLAS")
    if kind == "omp" and _RUNTIME in file.exports and "omp" not in (file.soname or file.path.rpartition("/")[2]):
        title = "Intel or LLVM OpenMP"  # in a file of another name
    return title if file.version is None else f"{title} {file.version}"


def _mkldnn(file: ElfFile) -> str:
    """The name that the project had at that version: DNNL from 1.1, oneDNN from 1.5 on."""
    if file.version is not None:
        numbers = tuple(int(part) for part in re.findall(r"\d+", file.version)[:2])
        project = "MKL-DNN" if numbers < (1, 1) else "DNNL" if numbers < (1, 5) else "oneDNN"
        return f"{project} {file.version}"
    known = WHEEL_BUILDS.get((file.build_id or "")[:16])
    if known is not None:
        return f"MKL-DNN {known[1]}"
    if file.problem is not None:
        return f"unreadable ({file.problem})"
    if "dnnl_memory_set_data_handle" in file.exports:
        return "DNNL or oneDNN"
    return "MKL-DNN" if "mkldnn_version" in file.exports else "MKL-DNN before 0.19"


def _parts(answer: Answer, key: str) -> list[tuple[str, Answer]]:
    whole = answer.part(key)
    return [(path, whole.part(path)) for path in whole.values]


def _text_lists(part: Answer) -> dict[str, tuple[str, ...]]:
    return {name: part.texts(name) for name in part.values}


def _world(answer: Answer, objects: Mapping[str, ElfFile]) -> World:
    variables, tokens = answer.part("variables"), answer.text_by_name("tokens") or {}
    return World(
        files=objects,
        executable=answer.text("executable"),
        library_path=variables.maybe_text("LD_LIBRARY_PATH"),
        preload=variables.maybe_text("LD_PRELOAD"),
        preload_file=answer.maybe_text("preload_file"),
        cache=tuple((str(name), str(path)) for name, path in answer.rows("cache", 2)),
        default_folders=answer.texts("default_folders"),
        hwcaps=answer.texts("hwcaps"),
        lib=tokens.get("LIB", "lib/x86_64-linux-gnu"),
        platform=tokens.get("PLATFORM", "x86_64"),
    )


def _started(part: Answer | None, emulated: bool) -> Started | None:
    if part is None:
        return None
    imported = read_outcome(part, "import", 0, emulated)
    return Started(
        at_start=part.texts("at_start"),
        with_numpy=part.texts("with_numpy"),
        numpy_blas=part.maybe_texts("numpy_blas"),
        after=part.texts("after"),
        visible=part.text_by_name("visible") or {},
        bound=part.text_by_name("bound") or {},
        imported=imported,
        first_op=read_outcome(part, "first_op", 1, emulated) if imported.ok else None,
    )


def _mapped_before(world: World, numpy: Sequence[str], started: Started | None) -> tuple[str, ...]:
    """What is there before ideep4py that nothing needs by name: start-up files and NumPy's MKL open libraries."""
    if started is None:
        return ()
    at_start = tuple(path for path in started.at_start if path in world.files)
    needed = {
        world.files[item.path].real_path if item.path in world.files else item.path
        for item in predict(world, numpy, mapped=at_start)
        if item.path is not None
    }
    opened = tuple(
        path
        for path in started.with_numpy
        if path in world.files and world.files[path].soname and path not in (*started.at_start, *needed)
    )
    return at_start + opened


def _source(item: Answer) -> VariableSource:
    return VariableSource(
        name=item.text("name"),
        value=item.maybe_text("value") or "",
        path=item.text("path"),
        line_number=item.integer("line_number"),
        line=item.maybe_text("line") or "",
        kind=item.text("kind"),
    )
