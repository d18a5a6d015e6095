"""Facts as JSON and back."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideepdoctor.errors import UsageError
from ideepdoctor.facts.serialize import facts_from_json, facts_to_json, load_facts
from ideepdoctor.model.facts import ConvTiming, OpCheck, Outcome, Shadow, Smoke

HOSTS = sorted((Path(__file__).parents[1] / "hosts").glob("*.json"))


@pytest.fixture
def data() -> Any:
    """A recorded machine as JSON data."""
    return json.loads((Path(__file__).parents[1] / "hosts" / "py37-healthy.json").read_text("utf-8"))


@pytest.mark.parametrize("path", HOSTS, ids=lambda path: path.stem)
def test_recorded_machines_come_back_as_they_are(path: Path) -> None:
    facts = load_facts(str(path))
    assert json.loads(json.dumps(facts_to_json(facts))) == json.loads(path.read_text("utf-8"))
    assert facts_from_json(facts_to_json(facts)) == facts


@pytest.mark.parametrize("path", HOSTS, ids=lambda path: path.stem)
def test_recorded_machines_tell_nothing_of_their_owner(path: Path) -> None:
    text = path.read_text("utf-8")
    assert "/home/user/" in text
    for word in ("/tmp/", "/root", "/work/", "/opt/", str(Path.home()) + "/"):
        assert word not in text.replace("/home/user/", "~/")


def test_there_are_the_machines_that_rules_are_tested_on() -> None:
    assert {"py27-healthy", "py36-healthy", "py37-healthy", "py311-nothing"} <= {path.stem for path in HOSTS}


def test_every_part_comes_back(data: Any) -> None:
    facts = facts_from_json(data)
    timing = ConvTiming("c", 3, 1.0, 0.5, 2.0, 1.9, 2.1, 100.0)
    check = OpCheck("relu", "(1, 2)", 2, "wrong", None, 0.5, 1e-5, "H1", "text")
    full = replace(
        facts,
        smoke=Smoke(2, True, "jit:avx2", (check,), timing, 1.5),
        shadows=(Shadow("json", "/x/json.py", "PYTHONPATH"),),
        imports={"numpy": Outcome(False, 1, signal="SIGILL", warnings=("a", "b"))},
        planned_ideep4py="1.0.4",
    )
    assert facts_from_json(json.loads(json.dumps(facts_to_json(full)))) == full


def test_a_newer_minor_version_is_read(data: Any) -> None:
    newer = {**data, "schema_version": "1.4", "weather": "fine"}
    newer["cpu"] = {**data["cpu"], "temperature": 40}
    assert facts_from_json(newer) == facts_from_json(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "something"}, "schema"),
        ({"schema_version": "2"}, "schema_version"),
        ({"schema_version": "10"}, "schema_version"),
        ({"schema_version": 1}, "schema_version"),
        ({"cpu": {"sockets": "two"}}, "cpu.sockets"),
        ({"limits": {"quota_cpus": "2"}}, "limits.quota_cpus"),
        ({"platform": None}, "platform"),
        ({"packages": [{"name": "numpy"}]}, r"packages.0.version"),
        ({"mode": 5}, "mode"),
    ],
)
def test_bad_files_say_which_field(data: Any, change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        facts_from_json({**data, **change})
    assert caught.value.hint


@pytest.mark.parametrize("missing", ["python", "target", "schema", "schema_version", "variables"])
def test_missing_fields_are_named(data: Any, missing: str) -> None:
    broken = copy.copy(data)
    del broken[missing]
    with pytest.raises(UsageError, match=missing):
        facts_from_json(broken)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\ufeff{}", "[" * 100_000])
def test_files_that_are_no_facts(tmp_path: Path, text: str) -> None:
    path = tmp_path / "facts.json"
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError):
        load_facts(str(path))


def test_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        load_facts(str(tmp_path / "none"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError):
        load_facts(str(tmp_path / "binary"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON, st.sampled_from(["cpu", "packages", "imports", "variables", "python", "limits"]))
def test_arbitrary_data_is_refused_in_one_way(value: Any, field: str) -> None:
    whole = json.loads(HOSTS[0].read_text("utf-8"))
    try:
        facts_from_json({**whole, field: value})
    except UsageError as error:
        assert field in error.message
