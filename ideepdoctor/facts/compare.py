"""Two sets of facts: what changed between them, and which change explains a finding that is new. Pure.

A change explains a finding when the second facts without that change (with the value of the first instead) do not
have the finding any more. What was merely seen (an import that failed, a wrong result) is a symptom and explains
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from ideepdoctor.facts.serialize import facts_from_json, facts_to_json
from ideepdoctor.model.accept import fingerprints
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Judgement

Judge = Callable[[Facts], Judgement]

_SYMPTOMS = ("imports", "first_op", "smoke", "bench", "chainer")
"""What was seen when something was run."""
_WHOLE = ("guard", "profile", "shadows", "native", "built", "planned_ideep4py")
"""Parts that are changed as one: their fields hang together."""
_SPREAD = ("platform", "cpu", "limits", "python")
"""Parts whose fields are changed one by one."""
_VOLATILE = frozenset({("limits", "disk_free_bytes"), ("limits", "memory_available_bytes"), ("cpu", "megahertz")})
_ENV, _BASE, _MINOR = "$ENV", "$BASE", "/python$MINOR"
"""Stand for what differs between any two environments and is no fault: folders, and the Python in their names."""
_MOST_PAIRS = 15

_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is not as it was.

    Attributes:
        what: ``package numpy``, ``variable OMP_NUM_THREADS``, ``cpu xcr0``, ``native``.
        before: in the first facts, JSON-ready; None: absent or not known.
        after: in the second.
        symptom: whether it was only seen when something was run.
    """

    what: str
    before: Any
    after: Any
    symptom: bool = False


@dataclass(frozen=True, slots=True)
class Explained:
    """A finding that only the second facts have, and the changes that explain it.

    Attributes:
        finding: as the rules gave it.
        because: sets of changes, each of which alone would have prevented it; empty: no recorded change does.
    """

    finding: Finding
    because: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """What is between two sets of facts."""

    changes: tuple[Change, ...]
    new: tuple[Explained, ...]
    gone: tuple[Finding, ...]
    same: tuple[Finding, ...]
    judgement: Judgement
    """Of the second facts."""


def compare(first: Facts, second: Facts, judge: Judge) -> Difference:
    """Compare two sets of facts; paths are compared within the environments, wherever those are.

    Args:
        first: of the earlier day, or of the machine where it works.
        second: of the later day, or of the machine where it does not.
        judge: applies the rules.
    """
    then, now = _moved(first), _moved(second)
    before, after = _units(then), _units(now)
    changes = tuple(
        Change(what, before.get(what), after.get(what), what.split(" ")[0] in _SYMPTOMS)
        for what in sorted({*before, *after})
        if before.get(what, _ABSENT) != after.get(what, _ABSENT)
    )
    had = _by_fingerprint(judge(first), first)
    judgement = judge(second)
    has = _by_fingerprint(judgement, second)
    causes = [item.what for item in changes if not item.symptom]
    without = _Without(then, now, _places(second), judge)
    new = tuple(
        Explained(finding, _because(digest, causes, without)) for digest, finding in has.items() if digest not in had
    )
    gone = tuple(finding for digest, finding in had.items() if digest not in has)
    return Difference(changes, new, gone, tuple(has[digest] for digest in has if digest in had), judgement)


class _Without:
    """The findings of the second facts with some changes taken back; each set is judged once."""

    def __init__(
        self, first: Mapping[str, Any], second: Mapping[str, Any], places: tuple[tuple[str, str], ...], judge: Judge
    ) -> None:
        self._first, self._second, self._judge = first, second, judge
        self._back = tuple((name, path) for path, name in places)
        self._known: dict[frozenset[str], frozenset[str]] = {}

    def __call__(self, changes: frozenset[str]) -> frozenset[str]:
        """Fingerprints that are left."""
        if changes not in self._known:
            data = _with(self._second, self._first, changes)
            facts = facts_from_json(_texts(data, self._back))
            self._known[changes] = frozenset(_by_fingerprint(self._judge(facts), facts))
        return self._known[changes]


def _because(digest: str, causes: list[str], without: _Without) -> tuple[tuple[str, ...], ...]:
    single = tuple((what,) for what in causes if digest not in without(frozenset({what})))
    if single:
        return single
    if len(causes) <= _MOST_PAIRS:
        pairs = tuple(pair for pair in combinations(causes, 2) if digest not in without(frozenset(pair)))
        if pairs:
            return pairs
    everything = frozenset(causes)
    return (tuple(causes),) if len(causes) > 1 and digest not in without(everything) else ()


def _by_fingerprint(judgement: Judgement, facts: Facts) -> dict[str, Finding]:
    """Findings by fingerprints that do not depend on where the environment is."""
    moved = [_texts_of(finding, facts) for finding in judgement.findings]
    return dict(zip(fingerprints(moved), judgement.findings, strict=True))


def _texts_of(finding: Finding, facts: Facts) -> Finding:
    pairs = _places(facts)
    evidence = tuple(replace(item, path=_text(item.path, pairs) if item.path else None) for item in finding.evidence)
    return replace(finding, found=_text(finding.found, pairs), evidence=evidence)


def _places(facts: Facts) -> tuple[tuple[str, str], ...]:
    named = ((facts.python.prefix, _ENV), (facts.python.base_prefix, _BASE))
    # The longer one first: an environment may lie within its base, or the other way round.
    folders = sorted(((path, name) for path, name in named if path), key=lambda item: -len(item[0]))
    return (*folders, (f"/python{facts.python.minor}", _MINOR))


def _moved(facts: Facts) -> dict[str, Any]:
    moved = _texts(facts_to_json(facts), _places(facts))
    assert isinstance(moved, dict)
    return moved


def _texts(value: Any, pairs: tuple[tuple[str, str], ...]) -> Any:
    if isinstance(value, str):
        return _text(value, pairs)
    if isinstance(value, dict):
        return {_text(key, pairs): _texts(item, pairs) for key, item in value.items()}
    return [_texts(item, pairs) for item in value] if isinstance(value, list) else value


def _text(text: str, pairs: tuple[tuple[str, str], ...]) -> str:
    for old, new in pairs:
        text = text.replace(old, new)
    return text


def _units(data: Mapping[str, Any]) -> dict[str, Any]:
    """Each thing that can change by itself, by its name."""
    found: dict[str, Any] = {f"package {item['name']}": item for item in data["packages"] or ()}
    found |= {f"variable {name}": values for name, values in _variables(data)}
    for part in _SPREAD:
        found |= {f"{part} {name}": value for name, value in data[part].items() if (part, name) not in _VOLATILE}
    found |= {part: data[part] for part in (*_WHOLE, *_SYMPTOMS)}
    return {what: value for what, value in found.items() if value is not None}


def _variables(data: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    groups = {name: data["variables"][name] or {} for name in ("inherited", "effective")}
    for name in sorted({*groups["inherited"], *groups["effective"]}):
        yield name, {group: values[name] for group, values in groups.items() if name in values}


def _with(second: Mapping[str, Any], first: Mapping[str, Any], changes: frozenset[str]) -> dict[str, Any]:
    """The second facts with the named things as the first had them."""
    made = {**second}
    for what in changes:
        part, _, name = what.partition(" ")
        if part == "package":
            kept = [item for item in made["packages"] or () if item["name"] != name]
            made["packages"] = [*kept, *(item for item in first["packages"] or () if item["name"] == name)]
        elif part == "variable":
            made["variables"] = _variable_from(made["variables"], first["variables"], name)
        elif part in _SPREAD:
            made[part] = {**made[part], name: first[part][name]}
        else:
            made[part] = first[part]
    return made


def _variable_from(now: Mapping[str, Any], then: Mapping[str, Any], name: str) -> dict[str, Any]:
    made = {**now}
    for group in ("inherited", "effective"):
        if now[group] is None:
            continue
        values = {key: value for key, value in now[group].items() if key != name}
        made[group] = values | ({name: then[group][name]} if name in (then[group] or {}) else {})
    set_by = [item for item in now["set_by_doctor"] if item != name]
    made["set_by_doctor"] = sorted([*set_by, *([name] if name in then["set_by_doctor"] else [])])
    return made
