"""Lay an example's changes over a recorded host's Facts JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any


def apply(host: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """Return the host's facts with the overlay's changes.

    Args:
        host: Facts JSON of a recorded machine.
        overlay: mappings are merged, everything else replaces. For ``packages``, a mapping of name to version (or to
            fields of the package; None removes it) stands for the rows. Among ``variables`` and the objects of
            ``native``, None removes an entry.

    Returns:
        A new document; neither argument is changed.
    """
    result = deepcopy(dict(host))
    for key, value in overlay.items():
        if key == "packages" and isinstance(value, Mapping):
            result[key] = _packages(result.get(key) or [], value)
        elif key == "native" and isinstance(value, Mapping) and result.get(key) is None and "binding" not in value:
            continue  # this host's libraries were not looked at
        elif key in ("variables", "native") and isinstance(value, Mapping):
            result[key] = _without_removed(apply(result.get(key) or {}, value))
        elif isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = apply(result[key], value)
        else:
            result[key] = deepcopy(value)
    return result


def _without_removed(part: Mapping[str, Any]) -> dict[str, Any]:
    """The mappings of a part without the entries that an overlay set to None; a field itself may be None: not known."""
    removable = ("inherited", "effective", "objects")
    return {
        field: {name: item for name, item in value.items() if item is not None}
        if field in removable and isinstance(value, Mapping)
        else value
        for field, value in part.items()
    }


def _packages(rows: list[dict[str, Any]], changes: Mapping[str, Any]) -> list[dict[str, Any]]:
    location = rows[0]["location"] if rows else "/home/user/ideep/lib/site-packages"
    by_name = {row["name"]: row for row in rows}
    for name, change in changes.items():
        fresh: dict[str, Any] = {
            "name": name,
            "version": "",
            "location": location,
            "requires": [],
            "integrity": None,
            "altered": [],
        }
        row = by_name.get(name, fresh)
        if change is None:
            by_name.pop(name, None)
        elif isinstance(change, Mapping):
            by_name[name] = {**row, **deepcopy(dict(change))}
        else:
            by_name[name] = {**row, "version": str(change)}
    return [by_name[name] for name in sorted(by_name)]
