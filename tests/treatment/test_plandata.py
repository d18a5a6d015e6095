"""Plans survive the journal, whatever is in them."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ideepdoctor.model.plan import (
    CreateEnv,
    DisableLine,
    EditBlock,
    Install,
    PackageSource,
    Plan,
    RenameFile,
    Requirement,
    SetRpath,
    Step,
    WriteFile,
)
from ideepdoctor.treatment.plandata import plan_from_data, plan_to_data

# Paths may hold bytes that are no UTF-8: Python shows them as lone surrogates.
TEXT = some.text(some.characters(exclude_categories=()), max_size=20)
TEXTS = some.lists(TEXT, max_size=3).map(tuple)
REQUIREMENT = some.builds(Requirement, TEXT, TEXT, TEXTS)
SOURCE = some.builds(PackageSource, TEXTS, some.booleans(), some.none() | TEXT)
STEPS = (
    some.builds(CreateEnv, TEXT, TEXT, some.sampled_from(["uv", "virtualenv"]), source=SOURCE),
    some.builds(
        Install,
        TEXT,
        some.lists(REQUIREMENT, max_size=3).map(tuple),
        some.sampled_from(["uv", "pip"]),
        first=TEXTS,
        snapshot=TEXTS,
        reinstall=TEXTS,
        size_bytes=some.integers(0, 10**15),
        source=SOURCE,
        remove=TEXTS,
    ),
    some.builds(WriteFile, TEXT, TEXT, TEXT, some.integers(0, 0o7777)),
    some.builds(EditBlock, TEXT, TEXT, TEXT),
    some.builds(RenameFile, TEXT, TEXT, TEXT),
    some.builds(SetRpath, TEXT, TEXT, TEXT, some.none() | some.integers(0, 10**15)),
    some.builds(DisableLine, TEXT, some.integers(1, 10**9), TEXT, TEXT),
)
STEP = some.one_of(STEPS)


@given(some.builds(Plan, TEXT, some.lists(STEP, max_size=4).map(tuple), TEXTS))
def test_round_trip_through_json(plan):
    line = json.dumps(plan_to_data(plan))
    assert "\n" not in line
    again = plan_from_data(json.loads(line.encode("utf-8")))
    assert again == plan
    assert [type(step) for step in again.steps] == [type(step) for step in plan.steps]
    assert hash(again) == hash(plan), "tuples all the way, not lists"


@pytest.mark.parametrize("step", [{"kind": "format-disk"}, {}, {"kind": "write-file", "path": "/x", "later": 1}])
def test_a_plan_of_another_version_is_refused(step):
    with pytest.raises(ValueError, match="unknown"):
        plan_from_data({"title": "x", "treats": [], "steps": [step]})


def test_every_kind_of_step_has_a_name_of_its_own():
    kinds = [step.__dataclass_fields__["kind"].default for step in get_args(Step)]
    assert len(set(kinds)) == len(kinds) == len(STEPS)
