"""Plans as JSON-ready data and back: the journal holds the whole plan, so that a killed run can be taken up again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any, get_args

from ideepdoctor.model.plan import PackageSource, Plan, Requirement, Step

_KINDS: tuple[type[Step], ...] = get_args(Step)


def plan_to_data(plan: Plan) -> dict[str, Any]:
    """The plan as nested dicts and lists."""
    return {"title": plan.title, "treats": list(plan.treats), "steps": [asdict(step) for step in plan.steps]}


def plan_from_data(data: Mapping[str, Any]) -> Plan:
    """The plan that ``plan_to_data`` was given.

    Raises:
        ValueError: a step of a kind, or with a field, that this version does not know.
    """
    steps = tuple(_step_from_data(item) for item in data["steps"])
    return Plan(title=data["title"], steps=steps, treats=tuple(data["treats"]))


def _step_from_data(data: Mapping[str, Any]) -> Step:
    made = {step_class.__dataclass_fields__["kind"].default: step_class for step_class in _KINDS}
    step_class = made.get(data.get("kind"))
    if step_class is None:
        raise ValueError(f"unknown kind of step: {data.get('kind')!r}")
    wanted = {item.name for item in fields(step_class) if item.init}
    # ``kind`` and ``reversible`` follow from the class where they are no arguments of it.
    given = {name: value for name, value in data.items() if name not in {"kind", "reversible"} or name in wanted}
    unknown = given.keys() - wanted
    if unknown:
        raise ValueError(f"unknown fields of a step: {', '.join(sorted(unknown))}")
    if "requirements" in given:
        given["requirements"] = tuple(
            Requirement(item["name"], item["version"], tuple(item["sha256"])) for item in given["requirements"]
        )
    if "source" in given:
        origin = given["source"]
        given["source"] = PackageSource(tuple(origin["find_links"]), origin["no_index"], origin["index_url"])
    plain = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    make: Callable[..., Step] = step_class
    return make(**plain)
