"""Judges each row that was recorded: what computed it, why not iDeep, and what of its time could move. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ideepdoctor.model.trace import Cause, Engine, Why
from ideepdoctor.proof.trace_records import Counts, Records, Row
from ideepdoctor.proof.trace_why import FAST_UPDATES, SERVED, SILENT, inputs_of, never, reasons, unavailable

_WITH_WEIGHTS = frozenset({"Convolution2DFunction", "Deconvolution2DFunction", "LinearFunction"})
_WRONG_CONVERTED = frozenset({"AdaGrad", "MSVAG"})
"""Optimizers that compute wrong steps with iDeep's arrays unless the guard corrects them (H4)."""
_PLAIN = Why(Cause.PLAIN_WEIGHTS, "weights are laid out anew at each call", True)
_PLAIN_UPDATE = Why(Cause.PLAIN_WEIGHTS, "the model's arrays are NumPy's", True)
_NO_BACKWARD = Why(Cause.UNSERVED, "iDeep has no backward pass of it", False)
_CORRECTED = {
    "LocalResponseNormalization": "lrn",
    "MaxPooling": "maxpool",
    "BatchNormalization": "bn",
    "FixedBatchNormalization": "fixedbn",
    "Concat": "concat",
    "SplitAxis": "split",
}
"""What the guard computes with NumPy in some cases: start of the function's name, name of the correction."""
_UNKNOWN = Why(Cause.UNKNOWN, "no reason that trace knows", False)


@dataclass(frozen=True, slots=True)
class Judged:
    """A row with what is to be said of it.

    Attributes:
        row: the row, of the outer function.
        records: of its process.
        forward: its counts.
        backward: its counts, with those of what was applied within its backward passes.
        forward_engine: what computed it.
        backward_engine: the same, backward.
        why: reasons, decisive first; for iDeep's, what makes it slower.
        movable_seconds: what a change would move to iDeep, or save.
        inner: rows of what was applied within its backward passes.
    """

    row: Row
    records: Records
    forward: Counts
    backward: Counts
    forward_engine: Engine
    backward_engine: Engine
    why: tuple[Why, ...]
    movable_seconds: float
    inner: tuple[Row, ...] = ()


def judge(records: Records) -> tuple[Judged, ...]:
    """Judge the rows of a process; those of what was applied within backward passes join the outer ones."""
    inner: dict[int, list[Row]] = {}
    for row in records.rows:
        if "inside" in row.facts:
            inner.setdefault(row.count("inside"), []).append(row)
    outer = [row for row in records.rows if "inside" not in row.facts and row.text("function")]
    converted, plain = _converted(outer), _plain_reason(records)
    found = []
    for row in outer:
        if row.facts.get("optimizer") is True:
            found.append(_update(row, records))
        elif row.forward.calls or row.backward.calls:
            found.append(_function(row, inner.get(row.number, []), records, converted, plain))
    return tuple(found)


def outside(records: Records) -> Counts:
    """What MKL-DNN did outside functions and updates: to_intel64(), arrays of iDeep in the user's own code."""
    total = Counts()
    for row in records.rows:
        if row.facts.get("function") == "":
            total = total + row.forward
    return total


def outermost(row: Row | None, rows: Mapping[int, Row]) -> Row | None:
    """The row in whose backward pass a row was applied, or itself; None where that was not recorded."""
    passed: set[int] = set()
    while row is not None and "inside" in row.facts:
        if row.number in passed:
            return None
        passed.add(row.number)
        row = rows.get(row.count("inside"))
    return row


def _update(row: Row, records: Records) -> Judged:
    """An optimizer's updates: iDeep's, where the model's arrays are."""
    counts = [number for number in row.rows("parameters") if isinstance(number, int)]
    ideeps, plain = (*counts, 0, 0)[:2]
    engine = Engine.IDEEP if ideeps and (row.forward.executed or records.no_lines) else Engine.NUMPY
    why: tuple[Why, ...] = ()
    if engine is Engine.NUMPY and plain and not ideeps:
        name = row.text("function")
        if name not in FAST_UPDATES:
            why = (Why(Cause.UNSERVED, f"iDeep makes no {name} faster", False),)
        elif not records.chainer.get("available"):
            why = (unavailable(records.chainer),)
        elif row.text("use") == "never":
            why = (never(row, records.chainer),)
        else:
            why = (_PLAIN_UPDATE,)
    movable = row.forward.seconds if why and why[0].curable else 0.0
    return Judged(row, records, row.forward, Counts(), engine, Engine.NONE, why, movable)


def _function(
    row: Row, inner: Sequence[Row], records: Records, converted: Mapping[tuple[str, str, int], int], plain: Why
) -> Judged:
    forward_engine, why = _computed(row, records)
    backward = row.backward
    for item in inner:
        within = item.forward
        backward = backward + Counts(
            0, 0.0, within.executed, within.executed_seconds, within.reorders, within.reorder_seconds,
            within.weight_reorders, within.weight_reorder_seconds,
        )  # fmt: skip
    backward_engine, backward_why, backward_movable = _backward(row, inner, records, forward_engine, why)
    movable = row.forward.seconds if forward_engine is Engine.NUMPY and _curable(why) else 0.0
    movable += backward_movable
    if not why:
        why = backward_why
    both = row.forward + backward
    laid_out = both.weight_reorders or records.no_lines  # those of a Linear stay as they are
    if forward_engine is Engine.IDEEP and not why and laid_out and _has_plain_weights(row, converted):
        why = (plain,)
        movable += both.weight_reorder_seconds if plain.curable else 0.0
    return Judged(row, records, row.forward, backward, forward_engine, backward_engine, why, movable, tuple(inner))


def _plain_reason(records: Records) -> Why:
    """What to say of weights in NumPy's layout: with most optimizers to_intel64() saves less than it costs."""
    updates = [row for row in records.rows if row.facts.get("optimizer") is True]
    names = {row.text("function") for row in updates}
    wrong = sorted(names & _WRONG_CONVERTED)
    if wrong and not records.guard.get("active"):
        return Why(Cause.PLAIN_WEIGHTS, f"{_PLAIN.text}, and {wrong[0]} would be wrong after to_intel64()", False)
    slowed = sorted(names - FAST_UPDATES)
    saved = sum(row.forward.weight_reorder_seconds + row.backward.weight_reorder_seconds for row in records.rows)
    if slowed and sum(row.forward.seconds for row in updates if row.text("function") in slowed) > saved:
        return Why(Cause.PLAIN_WEIGHTS, f"{_PLAIN.text}, but after to_intel64() {slowed[0]} takes longer", False)
    return _PLAIN


def _curable(why: Sequence[Why]) -> bool:
    return bool(why) and why[0].curable


def _computed(row: Row, records: Records) -> tuple[Engine, tuple[Why, ...]]:
    """What computed a row's forward passes, and why not iDeep."""
    if not row.forward.calls:
        return Engine.NONE, ()
    if row.forward.executed:
        return Engine.IDEEP, ()
    why = reasons(row, records.chainer)
    if any(item.cause is Cause.GPU for item in why):
        return Engine.OTHER, why
    if why:
        return Engine.NUMPY, why
    if row.text("function") in SILENT or records.no_lines or records.lost_lines:
        return Engine.IDEEP, ()
    return Engine.NUMPY, (_by_guard(row, records) or _UNKNOWN,)


def _by_guard(row: Row, records: Records) -> Why | None:
    """The reason where the guard computed it."""
    applied = records.guard.get("applied")
    for start, name in _CORRECTED.items():
        if row.text("function").startswith(start) and isinstance(applied, dict) and applied.get(name):
            return Why(Cause.GUARD, f"the guard uses NumPy where iDeep is wrong ({name})", False)
    return None


def _backward(
    row: Row, inner: Sequence[Row], records: Records, forward: Engine, why: tuple[Why, ...]
) -> tuple[Engine, tuple[Why, ...], float]:
    """What computed a row's backward passes, why not iDeep, and how much of them could move."""
    if not row.backward.calls:
        return Engine.NONE, (), 0.0
    if forward is Engine.OTHER:
        return Engine.OTHER, (), 0.0
    judged = [(item, *_computed(item, records)) for item in inner if item.text("function") in SERVED]
    ideeps = bool(row.backward.executed) or any(engine is Engine.IDEEP for _, engine, _ in judged)
    numpys = [(item, found) for item, engine, found in judged if engine is Engine.NUMPY]
    if ideeps:
        engine = Engine.BOTH if numpys else Engine.IDEEP
        found = numpys[0][1] if numpys else ()
        return engine, found, sum(item.forward.seconds for item, reason in numpys if _curable(reason))
    if forward is Engine.NUMPY:
        return Engine.NUMPY, why, row.backward.seconds if _curable(why) else 0.0
    served = row.text("function") in SERVED
    if not numpys and served and (records.no_lines or records.lost_lines):
        return Engine.IDEEP, (), 0.0
    if numpys:
        found = numpys[0][1]
        return Engine.NUMPY, found, row.backward.seconds if _curable(found) else 0.0
    if not served:
        return Engine.NUMPY, (), 0.0
    return Engine.NUMPY, (_by_guard(row, records) or _NO_BACKWARD,), 0.0


def _converted(rows: Sequence[Row]) -> dict[tuple[str, str, int], int]:
    """Functions at lines that got weights in iDeep's layout: how often."""
    found: dict[tuple[str, str, int], int] = {}
    for row in rows:
        inputs = inputs_of(row)
        if row.text("function") in _WITH_WEIGHTS and len(inputs) > 1 and inputs[1].kind == "m":
            key = row.text("function"), row.text("file"), row.count("line")
            found[key] = found.get(key, 0) + row.forward.calls
    return found


def _has_plain_weights(row: Row, converted: Mapping[tuple[str, str, int], int]) -> bool:
    """Whether a link's weights are NumPy's, and stayed so: a first call before to_intel64() is no fault."""
    inputs = inputs_of(row)
    if row.text("function") not in _WITH_WEIGHTS or len(inputs) < 2:
        return False
    key = row.text("function"), row.text("file"), row.count("line")
    plain = inputs[1].kind == "n" and inputs[1].parameter
    return plain and converted.get(key, 0) < row.forward.calls
