"""What rules ask of the facts about shared libraries, and the overlays that their examples are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ideepdoctor.facts import loader
from ideepdoctor.facts.loader import search_style, winner
from ideepdoctor.model.facts import Facts, Outcome
from ideepdoctor.model.findings import Evidence
from ideepdoctor.model.native import LibraryFile, Loaded, Native
from ideepdoctor.rules.base import Unknown
from ideepdoctor.rules.deaths import how_it_ended
from ideepdoctor.rules.installed import package

MKLDNN = "libmkldnn.so.0"
OWN_NAMES = (MKLDNN, "libmklml_intel.so", "libiomp5.so")
"""The libraries that a wheel of ideep4py brings and needs."""


def native(facts: Facts) -> Native | None:
    """The libraries of the target; None where there is no ideep4py to load any.

    Raises:
        Unknown: they were not looked at.
    """
    if package(facts, "ideep4py") is None or facts.planned_ideep4py is not None:
        return None
    if facts.native is None:
        raise Unknown("the shared libraries were not looked at")
    return facts.native if facts.native.binding is not None else None


def own_folder(found: Native) -> str:
    """The folder of the package that the binding lies in."""
    return (found.binding or "").rpartition("/")[0]


def is_own(found: Native, path: str) -> bool:
    """Whether a file lies in ideep4py's own folder, links followed."""
    if found.binding is None:
        return False
    folder = own_folder(found)
    real = found.objects[path].real_path if path in found.objects else path
    binding = found.objects.get(found.binding or "")
    real_folder = folder if binding is None else binding.real_path.rpartition("/")[0]
    return real.startswith((f"{folder}/", f"{real_folder}/"))


def library(found: Native, path: str) -> LibraryFile | None:
    """The library at this path (or that a link there leads to); None where it is none of interest."""
    return next((item for item in found.files if path in (item.file.path, item.file.real_path)), None)


def describe(found: Native, path: str) -> str:
    """A library in words: what it is, whose, where."""
    item = library(found, path)
    if item is None:
        return path
    return f"{item.name}{f' of {item.owner}' if item.owner else ''} ({path})"


def predicted(found: Native, name: str) -> Loaded | None:
    """What the model says is taken for a name; None where nothing asks for it (a preload that is ignored does not)."""
    return winner(found.predicted, name) or winner(found.predicted, name, found.objects)


def mapped_mkldnn(found: Native) -> str | None:
    """Path of the MKL-DNN that computes: what is mapped, ideep4py's own first; without a child what is predicted.

    None where there is none, or where neither is known.
    """
    if found.started is not None and found.started.after:
        paths = [path for path in found.started.after if _is_mkldnn(found, path)]
        return next((path for path in paths if is_own(found, path)), paths[0] if paths else None)
    taken = predicted(found, MKLDNN)
    return None if taken is None else taken.path


def works(found: Native) -> bool | None:
    """Whether a child imported ideep4py and ran an operation; None where none was started."""
    if found.started is None or found.started.imported is None:
        return None
    return found.started.imported.ok and found.started.first_op is not None and found.started.first_op.ok


def ending(found: Native) -> Outcome | None:
    """How that child ended: its operation, or its import where that failed."""
    if found.started is None:
        return None
    imported = found.started.imported
    return found.started.first_op if imported is not None and imported.ok else imported


def what_happens(found: Native, expected: str) -> str:
    """What became of the child in words; ``expected`` where none was started."""
    result = ending(found)
    return expected if result is None or result.ok else f"measured: {how_it_ended(result)}"


def from_elsewhere(found: Native) -> Iterator[Loaded]:
    """Those of the wheel's own libraries that are not taken from ideep4py's folder, or not found at all."""
    for name in OWN_NAMES:
        taken = predicted(found, name)
        if taken is not None and (taken.path is None or not is_own(found, taken.path)):
            yield taken


def own_missing(found: Native) -> tuple[str, ...]:
    """The wheel's own libraries that are needed and do not lie in its folder."""
    there = {path.rpartition("/")[2] for path, file in found.objects.items() if is_own(found, path)}
    return tuple(item.name for item in from_elsewhere(found) if item.name not in there)


def with_runpath(found: Native) -> list[str]:
    """The files of ideep4py that have DT_RUNPATH, the module first."""
    return [
        path
        for path in sorted(found.objects, key=lambda path: (path != found.binding, path))
        if search_style(found.objects[path]) == "RUNPATH"
        and is_inside(found, path)
        and (path == found.binding or path.rpartition("/")[2] in OWN_NAMES)
    ]


def lost_by_runpath(found: Native) -> list[Loaded] | None:
    """What is taken from elsewhere, or not found, because of DT_RUNPATH; None where that tag does no harm."""
    if not with_runpath(found) or own_missing(found):
        return None
    lost = list(from_elsewhere(found)) or [row for row in found.predicted if row.problem and is_inside(found, row.by)]
    return lost if lost or works(found) is False else None


def is_inside(found: Native, path: str) -> bool:
    """Whether a path lies in ideep4py's folder as written, links not followed."""
    return path.startswith(f"{own_folder(found)}/")


def needed_by(found: Native, name: str) -> list[str]:
    """Files, ideep4py's own apart, that need a library of this name."""
    files = {item.file.path: item.file for item in found.files} | dict(found.objects)
    return sorted(path for path in loader.needed_by(files, name) if not is_own(found, path))


def why(found: Native, taken: Loaded) -> str:
    """Who wins and which step of the search decided, as a clause."""
    if taken.path is None:
        return f"no search step finds {taken.name}"
    return f"{taken.name} is {describe(found, taken.path)}, by {taken.step}"


def loading_evidence(found: Native, taken: Loaded) -> tuple[Evidence, ...]:
    """Who wins and who was passed over."""
    rows = [Evidence(f"{taken.name}: {taken.step}", taken.path or taken.by, "ideepdoctor libs --tree")]
    rows += [Evidence(f"passed over: {describe(found, path)}", path) for path in taken.passed_over[:3]]
    return tuple(rows)


def _is_mkldnn(found: Native, path: str) -> bool:
    item = library(found, path)
    return item is not None and item.kind == "mkldnn"


# Overlays for examples. The recorded machines hold the libraries of a healthy environment.
ENV = "/home/user/ideep"
LIB = f"{ENV}/lib/python3.7/site-packages/ideep4py/lib"
BINDING = f"{ENV}/lib/python3.7/site-packages/ideep4py/_ideep4py.cpython-37m-x86_64-linux-gnu.so"
STRANGER = "/opt/other/libmkldnn.so.0"


def elf(path: str, **fields: Any) -> dict[str, Any]:
    """Headers of a file, for an example."""
    return {"path": path, "real_path": path, "bits": 64, "machine": 62, "little_endian": True, **fields}


def stranger(path: str = STRANGER, **fields: Any) -> dict[str, Any]:
    """A MKL-DNN that is not ideep4py's, as a row of ``native.files``."""
    row = {"file": elf(path, soname=MKLDNN, exports=["mkldnn_version"], version="0.19.0"), "kind": "mkldnn"}
    return {**row, "name": "MKL-DNN 0.19.0", "own": False, "owner": None, "places": ["disk"], **fields}


def own_file() -> dict[str, Any]:
    """ideep4py's own MKL-DNN, as a row of ``native.files``."""
    own = elf(f"{LIB}/{MKLDNN}", soname=MKLDNN, exports=["mkldnn_memory_set_data_handle"])
    row = {"file": own, "kind": "mkldnn", "name": "MKL-DNN 0.14", "own": True}
    return {**row, "owner": "ideep4py 2.0.0.post3", "places": ["ideep4py"]}


def taken(name: str, path: str | None, step: str, **fields: Any) -> dict[str, Any]:
    """A row of ``native.predicted``."""
    return {"name": name, "path": path, "by": BINDING, "step": step, "problem": None, "passed_over": [], **fields}


def own_taken(*except_names: str) -> list[dict[str, Any]]:
    """The rows of a healthy wheel, without these names."""
    return [taken(name, f"{LIB}/{name}", f"DT_RPATH of {BINDING}") for name in OWN_NAMES if name not in except_names]


def dead_child(outcome: Mapping[str, Any], *, imported: bool = True, **fields: Any) -> dict[str, Any]:
    """A child whose operation (or import) ended like this."""
    fine = {"ok": True, "seconds": 0.2}
    first_op = {"seconds": 0.1, **outcome} if imported else None
    return {"imported": fine if imported else {"seconds": 0.1, **outcome}, "first_op": first_op, **fields}
