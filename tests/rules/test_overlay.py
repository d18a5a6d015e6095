"""Overlays of examples: mappings are merged, everything else replaces, packages go by name."""

from __future__ import annotations

from copy import deepcopy

import pytest

from ideepdoctor.rules.overlay import apply

ROW = {"requires": ["x"], "integrity": "sha256", "altered": [], "location": "/site"}
HOST = {
    "mode": "full",
    "cpu": {"vendor": "A", "flags": ["avx"], "deep": {"one": 1, "two": 2}},
    "packages": [{"name": "numpy", "version": "1.21.6", **ROW}, {"name": "six", "version": "1.17.0", **ROW}],
    "imports": None,
    "variables": {"inherited": {"A": "1", "B": "2"}, "effective": None, "set_by_doctor": []},
}


def test_mappings_are_merged_at_every_depth_and_lists_replace():
    result = apply(HOST, {"cpu": {"flags": [], "deep": {"two": 3, "new": {}}}, "extra": 1})
    assert result["cpu"] == {"vendor": "A", "flags": [], "deep": {"one": 1, "two": 3, "new": {}}}
    assert (result["extra"], result["mode"]) == (1, "full")


def test_none_replaces_and_is_replaced():
    assert apply(HOST, {"cpu": None})["cpu"] is None
    assert apply(HOST, {"imports": {"numpy": {"ok": True}}})["imports"] == {"numpy": {"ok": True}}


def test_neither_argument_is_changed_or_shared():
    host, overlay = deepcopy(HOST), {"cpu": {"flags": ["sse2"]}, "packages": {"six": {"altered": [{"path": "p"}]}}}
    before = deepcopy(overlay)
    result = apply(host, overlay)
    result["cpu"]["flags"].append("x")
    result["cpu"]["deep"]["one"] = 9
    result["packages"][1]["altered"][0]["path"] = "q"
    assert (host, overlay) == (HOST, before)


def test_packages_by_name_change_come_and_go():
    rows = apply(HOST, {"packages": {"six": None, "numpy": "1.9", "chainer": "7.8.1"}})["packages"]
    assert [(row["name"], row["version"]) for row in rows] == [("chainer", "7.8.1"), ("numpy", "1.9")]
    assert rows[0] == {
        "name": "chainer",
        "version": "7.8.1",
        "location": "/site",
        "requires": [],
        "integrity": None,
        "altered": [],
    }
    assert {key: rows[1][key] for key in ROW} == ROW


def test_fields_of_a_package_are_changed_alone():
    (numpy, _six) = apply(HOST, {"packages": {"numpy": {"integrity": None}, "gone": None}})["packages"]
    assert (numpy["version"], numpy["integrity"], numpy["requires"]) == ("1.21.6", None, ["x"])


def test_a_list_of_packages_replaces_them_and_none_means_not_known():
    assert apply(HOST, {"packages": []})["packages"] == []
    assert apply(HOST, {"packages": None})["packages"] is None
    fresh = apply({"packages": None}, {"packages": {"six": "1"}})["packages"]
    assert [(row["name"], row["location"]) for row in fresh] == [("six", "/home/user/ideep/lib/site-packages")]


@pytest.mark.parametrize("part", ["inherited", "effective"])
def test_none_removes_a_variable(part: str):
    changed = apply(HOST, {"variables": {part: {"A": None, "B": "", "C": "3"}}})["variables"][part]
    assert changed == {"B": "", "C": "3"}


def test_effective_variables_may_be_not_known():
    changed = apply(HOST, {"variables": {"inherited": {"A": None}}})["variables"]
    assert changed == {"inherited": {"B": "2"}, "effective": None, "set_by_doctor": []}
    assert apply(HOST, {"variables": {"effective": None}})["variables"]["effective"] is None
