"""Hosts that are not like their twins, from what the store holds: two passes over the different kinds of hosts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from ideepdoctor.fleet.merge_store import Store
from ideepdoctor.fleet.names import fold, natural
from ideepdoctor.fleet.outliers import (
    FEWEST_ALIKE,
    Tally,
    Usual,
    differences,
    listed_difference,
    spread,
)

_MOST_VALUES = 5
"""Of those that twins are split between; more are counted."""
_LISTS = ("instructions", "guard")
"""Features whose values are lists: what is told is how they differ."""


def compared(store: Store) -> dict[str, Any]:
    """The keys ``outliers``, ``slower``, ``splits`` and ``twins`` of the picture.

    Hosts of one machine (processor, CPUs) should have the same versions of Python, Chainer, ideep4py and NumPy. Those
    that do are twins, and should have everything else in common, and be as fast as each other.
    """
    outliers: list[dict[str, Any]] = []
    slower: list[dict[str, Any]] = []
    splits: list[dict[str, Any]] = []
    classes: list[dict[str, Any]] = []
    alone = 0
    for (machine,) in store.ask(
        "SELECT DISTINCT machine FROM hosts WHERE counted = 1 AND machine IS NOT NULL"
    ).fetchall():
        outliers += _odd(store, {"machine": machine}, "versions", splits)
        for versions, count in store.ask(
            "SELECT versions, COUNT(*) FROM hosts WHERE counted = 1 AND machine = ? GROUP BY versions", (machine,)
        ).fetchall():
            twins = {"machine": machine, "versions": versions}
            classes.append({"count": count, **_about(store, twins)})
            alone += 0 if count >= FEWEST_ALIKE else count
            outliers += _odd(store, twins, "features", splits)
            slower += _slow(store, twins)
    [known] = store.ask("SELECT COUNT(*) FROM hosts WHERE counted = 1 AND machine IS NOT NULL").fetchone()
    [total] = store.ask("SELECT COUNT(*) FROM hosts WHERE counted = 1").fetchone()
    return {
        "outliers": sorted(
            outliers, key=lambda item: (item["count"], natural(item["hosts"]), item["versions"] is None)
        ),
        "slower": sorted(slower, key=lambda item: (item["share"], natural(item["host"]), item["what"])),
        "splits": sorted(splits, key=lambda item: (item["what"], _text_of(item), str(item["values"]))),
        "twins": {
            "classes": sorted(classes, key=lambda item: (-item["count"], _text_of(item), str(item["versions"]))),
            "alone": alone,
            "without_facts": total - known,
        },
    }


def _odd(store: Store, twins: Mapping[str, int], column: str, splits: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Hosts that have what most of these do not, and all of it. Appends to ``splits`` what no value has most of."""
    tally = Tally()
    for kind, count in _kinds(store, twins, column):
        tally.add(store.text(kind), count)
    about = _about(store, twins)
    for split in tally.splits():
        shown = [{"value": value, "count": count} for value, count in split.values[:_MOST_VALUES]]
        splits.append({"what": split.name, "values": shown, "others": len(split.values) - len(shown), **about})
    usual = tally.usual()
    having: dict[tuple[str, str], list[int]] = defaultdict(list)
    if usual:
        for kind, _count in _kinds(store, twins, column):
            for item, value in differences(store.text(kind), usual):
                having[item.name, value].append(kind)
    told: dict[str, dict[str, Any]] = {}
    for (name, value), kinds in sorted(having.items()):
        names = [host for kind in kinds for host in _hosts(store, {**twins, column: kind})]
        folded = fold(names)
        row = told.setdefault(folded, {"hosts": folded, "count": len(names), "differs": [], **about})
        row["differs"].append(_difference(usual[name], value))
    yield from told.values()


def _difference(usual: Usual, value: str) -> dict[str, Any]:
    told = listed_difference(value.replace(",", " "), usual.value.replace(",", " ")) if usual.name in _LISTS else ""
    return {
        "what": usual.name,
        "found": value,
        "usual": usual.value,
        "difference": told,
        "having": usual.having,
        "known": usual.known,
    }


def _slow(store: Store, twins: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Hosts that are slower than these twins by more than noise, in each thing that was timed."""
    among = "h.counted = 1 AND h.machine = ? AND h.versions = ?"
    where = (twins["machine"], twins["versions"])
    join = "FROM hosts h JOIN measures m ON m.host = h.id"
    things = store.ask(f"SELECT DISTINCT m.what {join} WHERE {among}", where).fetchall()
    for (what,) in things:
        rows = store.ask(f"SELECT m.value {join} WHERE {among} AND m.what = ?", (*where, what))
        level = spread(value for (value,) in rows)
        if level.limit is None:
            continue
        slow = store.ask(
            f"SELECT h.name, h.features, m.value {join} WHERE {among} AND m.what = ? AND m.value < ?",
            (*where, what, level.limit),
        ).fetchall()
        usual = _usual(store, twins) if slow else {}
        for host, kind, value in slow:
            yield {
                "host": host,
                **store.text(what),
                "value": value,
                "median": level.median,
                "mad": level.mad,
                "limit": level.limit,
                "share": value / level.median,
                "twins": level.count,
                "differs_in": sorted(item.name for item, _value in differences(store.text(kind), usual)),
                **_about(store, twins),
            }


def _usual(store: Store, twins: Mapping[str, int]) -> Mapping[str, Usual]:
    tally = Tally()
    for kind, count in _kinds(store, twins, "features"):
        tally.add(store.text(kind), count)
    return tally.usual()


def _kinds(store: Store, twins: Mapping[str, int], column: str) -> list[tuple[int, int]]:
    """The different kinds of hosts among these, by one column, and how many hosts are of each."""
    condition, values = _condition(twins)
    return store.ask(
        f"SELECT {column}, COUNT(*) FROM hosts WHERE counted = 1 AND {condition} GROUP BY {column}",  # noqa: S608
        values,
    ).fetchall()


def _hosts(store: Store, twins: Mapping[str, int]) -> Iterator[str]:
    condition, values = _condition(twins)
    return store.names(condition, *values)


def _condition(twins: Mapping[str, int]) -> tuple[str, tuple[int, ...]]:
    return " AND ".join(f"{column} = ?" for column in twins), tuple(twins.values())


def _about(store: Store, twins: Mapping[str, int]) -> dict[str, Any]:
    """Machine and versions of a class of twins; versions are None where hosts of all versions are meant."""
    versions = twins.get("versions")
    return {
        "machine": store.text(twins["machine"]),
        "versions": None if versions is None else store.text(versions),
    }


def _text_of(item: Mapping[str, Any]) -> str:
    return " ".join(str(item["machine"][name]) for name in sorted(item["machine"]))
