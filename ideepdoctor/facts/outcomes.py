"""What became of the children that imported modules: outcomes, shadows, native libraries, Chainer's own words."""

from __future__ import annotations

import hashlib
import re
import signal
from collections.abc import Iterable
from dataclasses import replace

from ideepdoctor.facts.answer import Answer
from ideepdoctor.model.facts import ChainerState, Correction, Guard, NativeLibrary, Outcome, Shadow
from ideepdoctor.model.outcome import AT_END
from ideepdoctor.targets.target import payload_source

STDERR_LIMIT = 2000
_DEADLY = frozenset({"SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGKILL", "SIGSEGV", "SIGSYS", "SIGTERM", "SIGTRAP"})
OF_INTEREST = re.compile(
    r"lib(mkl|dnnl|i?omp5?\b|gomp|openblas|blas|cblas|lapack|s?t?atlas|blis|flexiblas)|_ideep4py", re.IGNORECASE
)
_ORDER = ("numpy", "ideep4py", "chainer")
_DUMPED = re.compile(r'^ +File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>.+)$', re.MULTILINE)
_FRAME = re.compile(r"(?P<file>.+):(?P<line>\d+) in (?P<function>.+)", re.DOTALL)
_STANDARD = re.compile(r".*/lib(?:64)?/(?=python\d\.\d+/)")
_STACK_DEPTH = 12
_MOST_MAPPED = 24


def read_ending(code: int | None, emulated: bool) -> tuple[str | None, int | None]:
    """Signal name and exit code of a process.

    Args:
        code: as ``subprocess`` gives it: negative for a signal.
        emulated: whether an emulator stands between; it may exit with 128 + n where the program died of signal n.
    """
    if code is None:
        return None, None
    number = -code if code < 0 else code - 128 if emulated else 0
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}" if code < 0 else ""
    if name and (code < 0 or name in _DEADLY):
        return name, None
    return None, code


def place_of(file: str) -> str:
    """A source file as it may be shown: from its site-packages or standard library on, of others the name alone."""
    for folder in ("/site-packages/", "/dist-packages/"):
        if folder in file:
            return file.rpartition(folder)[2]
    shorter = _STANDARD.sub("", file)
    return shorter if shorter != file or file.startswith("<") else file.rpartition("/")[2]


def read_stack(frames: Iterable[re.Match[str]]) -> tuple[str, ...]:
    """Frames as ``FILE:LINE in FUNCTION``, innermost first, without those of the import system and of the probe."""
    found = [f"{place_of(one['file'])}:{one['line']} in {one['function']}" for one in frames if one["file"][0] != "<"]
    return tuple(found[:_STACK_DEPTH])


def _stack_told(lines: Iterable[str]) -> tuple[str, ...]:
    return read_stack(found for found in map(_FRAME.fullmatch, lines) if found)


def _where(child: Answer, told: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Stack and mapped files of a child that died; ``told``: it had told all that it had to."""
    died = child.maybe_part("died")
    if died is None:
        return (), ()
    stack = read_stack(_DUMPED.finditer(died.maybe_text("stack") or "")) or _stack_told(died.texts("lines"))
    after = child.part("told").maybe_part("after")
    known = died.texts("mapped") or (after.texts("maps") if after is not None else ())
    order = list(dict.fromkeys(reversed(known) if died.flag("again") else known))
    last = order[:1] if died.flag("again") else []
    matter = [path for path in order if OF_INTEREST.match(path.rpartition("/")[2]) and path not in last]
    return (AT_END,) if told else stack, tuple((last + matter)[:_MOST_MAPPED])


def read_outcome(child: Answer, stage: str, index: int, emulated: bool) -> Outcome:
    """How one stage of a child ended.

    Args:
        child: the probe's record of the child.
        stage: name of the stage; one that the child did not report is one in which it died.
        index: number of the stage: standard error is cut at the stages' ends.
        emulated: see ``read_ending``.
    """
    told = child.part("told").maybe_part(stage)
    ended = child.part("ended")
    pieces = child.texts("stderr")
    tail = pieces[index][-STDERR_LIMIT:] if index < len(pieces) else ""
    if told is not None:
        return Outcome(
            ok=told.flag("ok"),
            seconds=told.number("seconds"),
            version=told.maybe_text("version"),
            path=told.maybe_text("path"),
            error_type=told.maybe_text("error_type"),
            error_text=told.maybe_text("error_text"),
            exit_code=None if told.flag("ok") else 1,
            stderr_tail=tail,
            warnings=told.texts("warnings"),
            stack=_stack_told(told.texts("stack")),
        )
    timed_out = ended.flag("timed_out")
    name, code = (None, None) if timed_out else read_ending(ended.maybe_integer("code"), emulated)
    stack, mapped = _where(child, told=False)
    return Outcome(
        ok=False,
        seconds=ended.number("seconds"),
        error_text=ended.maybe_text("problem"),
        signal=name,
        exit_code=code,
        timed_out=timed_out,
        stderr_tail=tail,
        stack=stack,
        mapped=mapped,
    )


def at_end(outcome: Outcome, child: Answer, emulated: bool) -> Outcome:
    """The outcome of a child's last stage, which may have gone well before Python itself came to a bad end."""
    ended = child.part("ended")
    timed_out = ended.flag("timed_out")
    name, code = (None, None) if timed_out else read_ending(ended.maybe_integer("code"), emulated)
    if not outcome.ok or not (timed_out or name or code):
        return outcome
    stack, mapped = _where(child, told=True)
    tail = (child.texts("stderr") or ("",))[-1][-STDERR_LIMIT:]
    return replace(
        outcome,
        ok=False,
        signal=name,
        exit_code=code,
        timed_out=timed_out,
        seconds=ended.number("seconds"),
        stderr_tail=tail,
        stack=stack,
        mapped=mapped,
    )


def read_imports(imports: Answer, emulated: bool) -> tuple[dict[str, Outcome], Outcome | None]:
    """The outcome of every import, and that of the first operation (None where it was not tried)."""
    outcomes = {}
    first_op = None
    for name in _ORDER:
        child = imports.part(name)
        told = child.part("told")
        outcomes[name] = read_outcome(child, "import", 0, emulated)
        if name == "ideep4py" and outcomes[name].ok:
            first_op = at_end(read_outcome(child, "first_op", 1, emulated), child, emulated)
        if name == "chainer" and child.flag("caffe") and "chainer" in told.values:
            outcomes["chainer.links.caffe"] = read_outcome(child, "caffe", 1, emulated)
        if name == "chainer" and "chainer" in told.values and (not child.flag("caffe") or "caffe" in told.values):
            outcomes[name] = at_end(outcomes[name], child, emulated)
    return outcomes, first_op


def read_shadows(imports: Answer) -> tuple[Shadow, ...]:
    """Modules taken from the user's folders; of a child that died before it could tell, those that may have been."""
    found: set[Shadow] = set()
    for name in _ORDER:
        told = imports.part(name).part("told")
        after = told.maybe_part("after")
        found.update(shadow_rows(told, "possible") if after is None else shadow_rows(after, "shadows"))
    return tuple(sorted(found, key=lambda shadow: (shadow.module, shadow.path)))


def shadow_rows(answer: Answer, key: str) -> tuple[Shadow, ...]:
    """The shadows listed under this key as (module, path, source)."""
    return tuple(Shadow(*(str(value) for value in row)) for row in answer.rows(key, 3))


def read_libraries(imports: Answer) -> tuple[NativeLibrary, ...]:
    """The libraries of interest, each with the first module (numpy, ideep4py, chainer) whose import mapped it."""
    found: dict[str, NativeLibrary] = {}
    for module in _ORDER:
        after = imports.part(module).part("told").maybe_part("after")
        for path in after.texts("maps") if after is not None else ():
            name = path.rpartition("/")[2]
            if OF_INTEREST.match(name) and path not in found:
                found[path] = NativeLibrary(name, path, module)
    return tuple(found.values())


def read_chainer(imports: Answer) -> ChainerState | None:
    """What Chainer says of itself; None where it did not come to that."""
    told = imports.part("chainer").part("told")
    if "chainer" not in told.values:
        return None
    state = told.part("chainer")
    return ChainerState(
        use_ideep=state.maybe_text("use_ideep"),
        dtype=state.maybe_text("dtype"),
        ideep_available=state.maybe_flag("ideep_available"),
        ideep_reason=state.maybe_text("ideep_reason"),
    )


def read_guard(answer: Answer, imports: Answer | None) -> Guard | None:
    """The guard: its file, and what it said in the process that had imported Chainer; None: no program could tell."""
    file = answer.maybe_part("guard")
    if file is None:
        return None
    digest = file.maybe_text("sha256")
    current = None if digest is None else digest == hashlib.sha256(payload_source("guard")).hexdigest()
    found = Guard(file.maybe_flag("choice"), file.maybe_text("path"), current)
    state = None if imports is None else imports.part("chainer").part("told").maybe_part("chainer")
    status = None if state is None else state.maybe_part("guard")
    if status is None:
        return found
    rows = status.part("corrections")
    corrections = tuple(
        Correction(name, row.text("rule"), row.text("corrects"), row.flag("active"), row.text("why_not"))
        for name in sorted(rows.values)
        for row in (rows.part(name),)
    )
    return replace(found, corrections=corrections, why_not=status.text("why_not"), problems=status.texts("problems"))
