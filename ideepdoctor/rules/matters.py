"""Why a library does or does not matter to ideep4py, in words. Pure."""

from __future__ import annotations

from ideepdoctor.model.native import LibraryFile, Native
from ideepdoctor.rules.loading import MKLDNN, OWN_NAMES, is_own, predicted

_ONLY_GLOBAL = "no conflict: never searched for; only RTLD_GLOBAL would matter"


def in_use(found: Native, item: LibraryFile) -> bool:
    """Whether ideep4py computes with this file: mapped where a child was started, else predicted."""
    real = item.file.real_path
    if found.started is not None and found.started.imported is not None and found.started.imported.ok:
        return real in found.started.after
    return any(
        taken.path is not None
        and real == (found.objects[taken.path].real_path if taken.path in found.objects else taken.path)
        for taken in found.predicted
    )


def why(found: Native, item: LibraryFile) -> str:
    """One clause: how it comes to be used, or why it is no conflict."""
    if item.file.problem is not None:
        return f"not usable: {item.file.problem}"
    if found.binding is None:
        return "there is no ideep4py here that could meet it"
    if in_use(found, item):
        return _used(found, item)
    if item.own or is_own(found, item.file.path):
        return "another copy in the same folder, not searched for"
    if item.kind in ("mkldnn", "contained"):
        return _other_mkldnn(found, item)
    if item.kind in ("iomp", "mklml") and "LD_LIBRARY_PATH" in item.places:
        return "no conflict: DT_RPATH comes before LD_LIBRARY_PATH"
    if item.kind in ("openblas", "mkl"):
        return "no conflict: ideep4py does not need it"
    return "no conflict: ideep4py does not take it"


def _used(found: Native, item: LibraryFile) -> str:
    names = [name for name in (*OWN_NAMES, item.file.soname or "") if name]
    taken = next(
        (
            row
            for name in names
            if (row := predicted(found, name)) is not None
            and row.path is not None
            and item.file.path in (row.path, found.objects[row.path].real_path if row.path in found.objects else "")
        ),
        None,
    )
    if item.kind == "openblas":
        return "used by NumPy; ideep4py does not need it"
    if item.kind == "gomp":
        return "mapped beside Intel's OpenMP, idle" if _iomp_bound(found) else "mapped"
    return f"used, by {short_step(taken.step)}" if taken is not None else "mapped in the process"


def _iomp_bound(found: Native) -> bool:
    started = found.started
    return started is not None and any("iomp5" in path for path in started.bound.values())


def _other_mkldnn(found: Native, item: LibraryFile) -> str:
    """Of a MKL-DNN that is not used here."""
    package = (item.owner or "").split(" ")[0]
    pair = next((pair for pair in found.pairs or () if package and pair.package.split(" ")[0] == package), None)
    if pair is not None:
        if pair.before.ok and pair.after.ok:
            return "no conflict: both work in one process, in either order (measured)"
        if pair.after.ok:
            return f"matters: import ideep4py before {pair.module}"
        if pair.before.ok:
            return f"matters: import {pair.module} before ideep4py"
        return f"matters: {pair.module} and ideep4py do not work in one process"
    if item.file.soname != MKLDNN:
        return _ONLY_GLOBAL
    if "LD_LIBRARY_PATH" in item.places:
        return "no conflict: DT_RPATH comes before LD_LIBRARY_PATH"
    if "prefix" in item.places:
        return "no conflict: DT_RPATH of ideep4py comes before the interpreter's"
    if "site-packages" in item.places:
        return f"matters if {package or 'its package'} is imported before ideep4py in one process"
    return "no conflict, unless something loads it before ideep4py"


def short_step(step: str) -> str:
    """A search step with the file's name alone: ``DT_RPATH of _ideep4py.so``."""
    word, of, path = step.partition(" of ")
    return f"{word}{of}{path.rpartition('/')[2]}"
