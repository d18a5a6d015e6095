"""The picture of a fleet, JSON-ready, from what the store holds: counts, causes, groups, files that say nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ideepdoctor.fleet.groups import SEVERITIES
from ideepdoctor.fleet.merge_store import Store
from ideepdoctor.fleet.merge_twins import compared
from ideepdoctor.fleet.names import fold, natural

STATES = ("failed", "unreachable", "timeout", "findings", "unknown", "healthy")
"""Of hosts, worst first. Only the last is healthy; the first three gave no answer that could be judged."""
NO_ANSWER = STATES[:3]


def picture(store: Store) -> dict[str, Any]:
    """Everything that is known of the fleet; what is folded is text: see ``names.unfold``."""
    causes = _causes(store)
    states = dict(store.ask("SELECT state, COUNT(*) FROM hosts WHERE counted = 1 GROUP BY state"))
    counted = sum(states.values())
    older = [
        {"host": host, "file": file, "at": at, "instead": kept}
        for host, file, at, kept in store.ask(
            "SELECT o.name, o.file, o.at, n.file FROM hosts o JOIN hosts n ON n.name = o.name AND n.counted = 1 "
            "WHERE o.counted = 0 ORDER BY o.name, o.at, o.file"
        )
    ]
    skipped = [
        {"file": file, "reason": reason}
        for file, reason in store.ask("SELECT file, reason FROM skipped ORDER BY file, reason")
    ]
    accepted, quick = store.ask("SELECT TOTAL(accepted), TOTAL(quick) FROM hosts WHERE counted = 1").fetchone()
    return {
        "files": {
            "read": counted + len(older) + len(skipped),
            "counted": counted,
            "older": len(older),
            "skipped": len(skipped),
        },
        "hosts": {"total": counted, **{state: states.get(state, 0) for state in STATES}},
        "groups": list(_groups(store, {cause["id"]: number for number, cause in enumerate(causes)})),
        "causes": causes,
        **compared(store),
        "older": older,
        "skipped": skipped,
        "accepted": int(accepted),
        "quick": int(quick),
    }


def _causes(store: Store) -> list[dict[str, Any]]:
    """Every cause, worst first, then that of most hosts; in the words of the host whose name comes first."""
    rows = store.ask(
        "SELECT c.cause, COUNT(*), COUNT(DISTINCT c.found) FROM causes c JOIN hosts h ON h.id = c.host "
        "WHERE h.counted = 1 GROUP BY c.cause"
    ).fetchall()
    causes = []
    for key, count, variants in rows:
        # CROSS JOIN: SQLite is to begin with the few rows of this cause, and not with all hosts.
        among = "FROM causes c CROSS JOIN hosts h ON h.id = c.host WHERE c.cause = ? AND h.counted = 1"
        example, body = store.ask(f"SELECT h.name, c.body {among} ORDER BY h.name LIMIT 1", (key,)).fetchone()
        names = (name for (name,) in store.ask(f"SELECT h.name {among}", (key,)))
        told = {"id": key, "count": count, "hosts": fold(names), "example": example, "variants": variants}
        causes.append({**told, **store.text(body)})
    return sorted(causes, key=_worst_first)


def _worst_first(cause: Mapping[str, Any]) -> tuple[int, int, str, str]:
    return SEVERITIES.index(cause["severity"]), -cause["count"], cause["code"], cause["id"]


def _groups(store: Store, order: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Hosts with the same causes, the largest group first, of equals the worse one."""
    rows = store.ask(
        "SELECT cause_group, state, COUNT(*), MIN(id) FROM hosts WHERE counted = 1 GROUP BY cause_group, state"
    ).fetchall()
    found = []
    for key, state, count, some in rows:
        folded = fold(store.names("cause_group = ? AND state = ?", key, state))
        ids = [
            cause
            for cause, body in store.ask("SELECT cause, body FROM causes WHERE host = ?", (some,))
            if store.text(body)["severity"] != "info"
        ]
        found.append(
            {
                "state": state,
                "count": count,
                "hosts": folded,
                "causes": sorted(ids, key=lambda cause: order.get(cause, len(order))),
            }
        )
    found.sort(key=lambda group: (-group["count"], STATES.index(group["state"]), natural(group["hosts"])))
    return ({"number": number, **group} for number, group in enumerate(found, 1))
