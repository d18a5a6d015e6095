"""Which installed packages may not get on with ideep4py in one process, and what became of those that were tried."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ideepdoctor.facts.answer import Answer
from ideepdoctor.facts.outcomes import STDERR_LIMIT, read_outcome
from ideepdoctor.facts.packages import normalise
from ideepdoctor.model.facts import Package
from ideepdoctor.model.native import LibraryFile, PairCheck
from ideepdoctor.model.outcome import Outcome
from ideepdoctor.system import System
from ideepdoctor.targets.target import Target, run_payload

CHILD_SECONDS = 60.0
"""For each child: importing paddlepaddle takes 3 s here from a warm disk, minutes are a hang."""
EMULATED_CHILD_SECONDS = 300.0
_ROUNDS = 8
"""Time for all children together, in children's time limits; two run at once."""
_GRACE_SECONDS = 30.0

_IMPORT_FIRST, _IMPORT_SECOND, _OUR_OP, _OTHER_OP = "import first", "import second", "ideep4py op", "other op"
_STAGES = (_IMPORT_FIRST, _IMPORT_SECOND, _OUR_OP, _OTHER_OP)
_END = "end"

_SHIPS_MKLDNN = frozenset({"mkldnn", "contained"})
_MODULES: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(pattern), modules)
    for pattern, modules in (
        (r"(lib)?mxnet(-.*)?", ("mxnet",)),
        (r"paddlepaddle(-.*)?", ("paddle",)),
        (r"(intel-)?tensorflow(-(cpu|gpu|mkl|eigen|avx512|rocm))?|tf-nightly(-.*)?", ("tensorflow",)),
        (r"(py|lib)?torch(-(cpu|gpu|nightly))?", ("torch",)),
        (r"(lib)?faiss(-.*)?", ("faiss",)),
        (r"(intel-)?scikit-learn", ("sklearn",)),
        (r"scikit-image", ("skimage",)),
        (r"ngraph-core", ("ngraph",)),
        (r"ngraph-tensorflow-bridge", ("ngraph_bridge",)),
        (r"intel-scipy", ("scipy",)),
        (r"intel-numpy|mkl|numpy-base", ("numpy",)),
        (r"mkl-service", ("mkl",)),
        (r"opencv-.*|libopencv|py-opencv", ("cv2",)),
        (r"onnxruntime-.*", ("onnxruntime",)),
        (r"openvino-.*", ("openvino",)),
        # Libraries alone: nothing in them can be imported.
        (r"intel-openmp|intel-cmplr-.*|llvm-openmp|icc-rt|tbb|onednn.*|mkl-dnn|mkl-(include|devel|static)", ()),
        (r"libtensorflow.*|.*openblas.*|_openmp-mutex|libgomp", ()),
    )
)
"""Top-level modules of distributions and conda packages whose modules have other names."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A package to try beside ideep4py."""

    package: str
    """Name and version: ``torch 1.4.0``."""
    modules: tuple[str, ...]
    """What to import: the first of these that is there."""


def suspicious(files: Sequence[LibraryFile], packages: Sequence[Package], *, deep: bool = False) -> tuple[Suspect, ...]:
    """The packages of the target that can get into the way of ideep4py, in the order of their files.

    Args:
        files: the libraries of interest, each with its owner.
        packages: what is installed where the target looks.
        deep: not only those that ship or export MKL-DNN, but all that ship any library of interest.
    """
    installed = {(package.name, package.version) for package in packages}
    folders = sorted({package.location.rstrip("/") for package in packages}, key=len, reverse=True)
    found: dict[str, list[str]] = {}
    for item in files:
        if item.own or item.owner is None or not (deep or item.kind in _SHIPS_MKLDNN):
            continue
        conda = item.owner.startswith("conda ")
        label = item.owner.removeprefix("conda ")
        name, _, version = label.partition(" ")
        name = normalise(name)
        is_distribution = (name, version) in installed
        if name == "ideep4py" or not (is_distribution or conda):
            continue
        modules = _modules(name, item.file.path, folders, named=is_distribution)
        if modules:
            found.setdefault(label, []).extend(modules)
    return tuple(Suspect(label, tuple(dict.fromkeys(modules))) for label, modules in found.items())


def _modules(name: str, path: str, folders: Iterable[str], *, named: bool) -> list[str]:
    """What to import of a package, most certain first; nothing where only libraries are in it.

    Args:
        name: of the package, normalised.
        path: of a library in it.
        folders: those with distributions, the innermost first.
        named: whether a module may have the package's own name; conda has packages of libraries alone.
    """
    for pattern, modules in _MODULES:
        if pattern.fullmatch(name):
            return list(modules)
    return [*_module_of(path, folders), *([name.replace("-", "_")] if named else [])]


def _module_of(path: str, folders: Iterable[str]) -> list[str]:
    """The top-level module that a library lies in: its folder beside the distributions, if it can be a module's."""
    folder = next((folder for folder in folders if path.startswith(f"{folder}/")), None)
    if folder is None:
        return []
    name, slash, _ = path[len(folder) + 1 :].partition("/")
    if not slash:
        name = name.partition(".")[0]
    return [name] if name.isidentifier() and not name.startswith("_") else []


def check_pairs(
    system: System,
    target: Target,
    environ: Mapping[str, str],
    wanted: Sequence[Suspect],
    *,
    cwd: str | None = None,
    child_seconds: float | None = None,
    total_seconds: float | None = None,
) -> tuple[PairCheck, ...]:
    """Run each package with ideep4py in one process, in either order of import.

    Args:
        system: starts the process.
        target: where.
        environ: the environment that the user has.
        wanted: what ``suspicious`` found.
        cwd: folder in which the user would start Python.
        child_seconds: time limit of each child; None: 60 s, under an emulator 300 s.
        total_seconds: time limit of all of them; None: eight times that of a child.

    Returns:
        See ``read_pairs``: a package that could not be judged, or that there was no time for, is left out.

    Raises:
        CouldNotCheck: the target does not start, does not answer, or answers nonsense.
    """
    if not wanted:
        return ()
    limit = child_seconds or (EMULATED_CHILD_SECONDS if target.emulator else CHILD_SECONDS)
    total = total_seconds or limit * _ROUNDS
    request: dict[str, Any] = {
        "pairs": [{"package": one.package, "modules": list(one.modules)} for one in wanted],
        "timeout_seconds": limit,
        "total_seconds": total,
        "cwd": cwd,
    }
    told = run_payload(system, target, "pairs", request, timeout_seconds=total + _GRACE_SECONDS, env=environ)
    return read_pairs(Answer(told), bool(target.emulator))


def read_pairs(answer: Answer, emulated: bool) -> tuple[PairCheck, ...]:
    """The checks of the payload's answer, the stages of each child folded into one outcome.

    An outcome is ok where every stage was. What the package cannot do without ideep4py either, or ideep4py without the
    package, does not count: it is told among the warnings. A check in which nothing else went wrong says nothing about
    the pair and is left out, like one that there was no time for.

    Args:
        answer: of the payload.
        emulated: see ``read_ending``.
    """
    found = []
    ours = answer.maybe_part("ideep4py")
    for item in answer.parts("checks"):
        module = item.text("module")
        alone = item.maybe_part("alone")
        children = [(order, item.maybe_part(order)) for order in ("before", "after")]
        runs = [
            _Run(child, _sides(order, module), {module: alone, "ideep4py": ours}, emulated)
            for order, child in children
            if child is not None
        ]
        if len(runs) < len(children):
            continue
        failed = [run for run in runs if run.failed is not None]
        if failed or not any(run.excused for run in runs):
            before, after = (run.outcome() for run in runs)
            culprit = failed[0].culprit if failed else None
            found.append(PairCheck(item.text("package"), module, before, after, culprit))
    return tuple(found)


def _sides(order: str, module: str) -> dict[str, str]:
    """Whose each stage is."""
    first, second = (module, "ideep4py") if order == "before" else ("ideep4py", module)
    return {_IMPORT_FIRST: first, _IMPORT_SECOND: second, _OUR_OP: "ideep4py", _OTHER_OP: module}


class _Run:
    """A child that imported both.

    Attributes:
        failed: the first stage that failed and works alone; None: none did.
        culprit: the side that this stage belongs to; None for the end of Python.
        excused: what failed and fails alone, too, in words.
    """

    def __init__(
        self, child: Answer, sides: Mapping[str, str], controls: Mapping[str, Answer | None], emulated: bool
    ) -> None:
        self._child, self._emulated = child, emulated
        self.culprit: str | None = None
        self.excused: list[str] = []
        self.failed: Outcome | None = None
        self._imported: Outcome | None = None
        for stage, outcome in _outcomes(child, emulated):
            side = sides.get(stage)
            if stage in (_IMPORT_FIRST, _IMPORT_SECOND) and side != "ideep4py" and outcome.ok:
                self._imported = outcome
            if outcome.ok:
                continue
            where = _where(stage, side)
            text = where if outcome.error_text is None else f"{where}: {outcome.error_text}"
            if _fails_alone(stage, side, controls, emulated):
                self.excused.append(text)
            elif self.failed is None:
                self.culprit = side
                self.failed = replace(outcome, error_text=text)

    def outcome(self) -> Outcome:
        """All stages as one."""
        told = self._child.part("told")
        stages = [part for stage in _STAGES if (part := told.maybe_part(stage)) is not None]
        warnings = [f"without the other, too: {text}" for text in self.excused]
        warnings += [text for part in stages for text in part.texts("warnings")]
        found = self.failed or Outcome(
            ok=True, seconds=0.0, stderr_tail="".join(self._child.texts("stderr"))[-STDERR_LIMIT:]
        )
        return replace(
            found,
            seconds=self._child.part("ended").number("seconds"),
            version=None if self._imported is None else self._imported.version,
            path=None if self._imported is None else self._imported.path,
            warnings=tuple(dict.fromkeys(warnings)),
        )


def _outcomes(child: Answer, emulated: bool) -> Iterator[tuple[str, Outcome]]:
    """Every stage that was tried, up to that in which the child died; ``end`` is the end of Python."""
    told = child.part("told")
    for index, stage in enumerate(_STAGES):
        part = told.maybe_part(stage)
        if part is None or part.maybe_flag("ok") is not None:
            yield stage, read_outcome(child, stage, index, emulated)
        if part is None:
            return
    if child.part("ended").maybe_integer("code") != 0:
        yield _END, read_outcome(child, _END, len(_STAGES), emulated)


def _fails_alone(stage: str, side: str | None, controls: Mapping[str, Answer | None], emulated: bool) -> bool:
    """Whether a side fails at this stage in a process of its own."""
    alone = _IMPORT_FIRST if stage == _IMPORT_SECOND else stage
    sides = controls.values() if side is None else (controls.get(side),)
    return any(
        name == alone and not outcome.ok
        for one in sides
        if one is not None
        for name, outcome in _outcomes(one, emulated)
    )


def _where(stage: str, side: str | None) -> str:
    """A stage in words."""
    if side is None:
        return "end of Python"
    return f"import of {side}" if stage in (_IMPORT_FIRST, _IMPORT_SECOND) else f"{side}'s operation"
