"""What the rules say of a machine is the same with more on it that concerns nothing, in another order, and twice."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ideepdoctor.facts.serialize import facts_from_json
from ideepdoctor.model.findings import Judgement, Severity
from ideepdoctor.rules import RULES
from ideepdoctor.rules.engine import judge
from ideepdoctor.rules.overlay import apply
from tests.hosts.review import hosts
from tests.rules.healthy_machines import KINDS, another_library, folders, versions
from tests.rules.hosts import QUICK, recorded

EVERY = hosts()
Data = dict[str, Any]

packages = st.lists(
    st.tuples(
        st.from_regex(r"app-[a-z]{1,9}", fullmatch=True), versions, st.sampled_from([None, "pip", "uv", "conda"])
    ),
    max_size=3,
    unique_by=lambda row: row[0],
)
variables = st.dictionaries(st.from_regex(r"APP_[A-Z]{1,9}", fullmatch=True), folders, max_size=3)
libraries = st.lists(st.sampled_from(KINDS), max_size=3)
UNRELATED_PYTHON = {
    "path": "/usr/bin/pypy3",
    "real_path": "/usr/bin/pypy3.9",
    "version": "3.9.18",
    "implementation": "PyPy",
    "abi": "pypy39_pp73",
    "bits": 64,
    "libc": "glibc 2.36",
    "source": "PATH",
}


def outcome(data: Data) -> Judgement:
    return judge(facts_from_json(data), RULES)


def with_packages(data: Data, rows: list[tuple[str, str, str | None]]) -> Data:
    """The machine with more packages, and an older twin of each elsewhere."""
    if data["packages"] is None:
        return data
    fresh = [
        {"name": name, "version": version, "location": "/home/user/more", "requires": [], "installer": installer}
        for name, version, installer in rows
    ]
    twins = [{**row, "version": "0.0.1", "location": "/usr/lib/python3/dist-packages"} for row in fresh]
    return {**data, "packages": [*data["packages"], *fresh], "duplicates": [*data["duplicates"], *twins]}


def with_variables(data: Data, more: dict[str, str]) -> Data:
    """The machine with more variables."""
    held = data["variables"]
    effective = None if held["effective"] is None else {**more, **held["effective"]}
    return {**data, "variables": {**held, "inherited": {**more, **held["inherited"]}, "effective": effective}}


def with_libraries(data: Data, rows: list[tuple[str, str, str]]) -> Data:
    """The machine with more libraries that nothing here loads."""
    if data["native"] is None:
        return data
    fresh = [another_library(100 + number, *row) for number, row in enumerate(rows)]
    return {**data, "native": {**data["native"], "files": [*data["native"]["files"], *fresh]}}


def with_python(data: Data) -> Data:
    """The machine with another interpreter, for which there is no ideep4py."""
    return {**data, "interpreters": [*(data["interpreters"] or []), UNRELATED_PYTHON]}


@pytest.mark.parametrize("host", EVERY)
def test_one_of_each_changes_nothing_anywhere(host: str):
    data = recorded(host)
    before = outcome(data)
    assert outcome(with_packages(data, [("app", "1.0", "pip"), ("requests", "2.31.0", "uv")])) == before
    assert outcome(with_variables(data, {"APP_HOME": "/srv/app", "CUDA_VISIBLE_DEVICES": "0"})) == before
    assert outcome(with_libraries(data, KINDS)) == before
    assert outcome(with_python(data)) == before


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(EVERY), packages, variables, libraries)
def test_a_random_machine_is_judged_the_same_with_more_on_it(
    host: str, rows: list[tuple[str, str, str | None]], more: dict[str, str], kinds: list[tuple[str, str, str]]
):
    data = recorded(host)
    assert outcome(with_libraries(with_variables(with_packages(data, rows), more), kinds)) == outcome(data)


@pytest.mark.parametrize("host", EVERY)
def test_judging_twice_is_the_same_and_changes_no_facts(host: str):
    facts = facts_from_json(recorded(host))
    assert judge(facts, RULES) == judge(facts, RULES)
    assert facts == facts_from_json(recorded(host))


def told(judgement: Judgement) -> list[tuple[str, str, str, str]]:
    """What counts of the findings, without their evidence, and of the rest."""
    findings = [(item.code, item.severity.value, item.found, item.next_step) for item in judgement.findings]
    return sorted([*findings, *((item.code, "unknown", item.reason, "") for item in judgement.unknown)])


@pytest.mark.parametrize("host", EVERY)
def test_no_order_of_the_facts_decides(host: str):
    data = recorded(host)
    before = told(outcome(data))
    for seed in range(3):
        mixed = json.loads(json.dumps(data))
        shuffle = random.Random(seed).shuffle
        for rows in (mixed["packages"], mixed["duplicates"], mixed["pip_settings"], mixed["interpreters"]):
            shuffle(rows or [])
        shuffle(mixed["cpu"]["cpuinfo_flags"] or [])
        shuffle(mixed["cpu"]["cpuid_flags"] or [])
        if mixed["native"] is not None:
            shuffle(mixed["native"]["files"])
        assert told(outcome(mixed)) == before


@pytest.mark.parametrize("host", EVERY)
def test_a_quick_run_finds_nothing_that_a_full_run_denies(host: str):
    full, quick = outcome(recorded(host)), outcome(apply(recorded(host), QUICK))
    stated = {item.code for item in full.findings} | {item.code for item in full.skipped}
    # A note may say that nothing was tried yet.
    assert {item.code for item in quick.findings if item.severity is not Severity.INFO} <= stated
    assert {item.code for item in quick.unknown} <= stated | {item.code for item in full.unknown}
