"""A tuned profile: its file, where it counts, and that everything that sets variables obeys it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from ideepdoctor.commands.run import variables as run_variables
from ideepdoctor.commands.run import wants_layouts
from ideepdoctor.facts.profile import parse_profile
from ideepdoctor.model.facts import Facts, Limits, Profile, TunedVariable
from ideepdoctor.treatment.exports import render
from ideepdoctor.treatment.leftover import startup_steps
from ideepdoctor.treatment.profile import PROFILE_FILE, in_force, not_here, profile_step, profile_text
from ideepdoctor.treatment.variables import AVX512_OF_MKL, before_start, for_any_machine, recommended
from tests.treatment.sample import AMD, facts

CPU = replace(
    AMD,
    model_name="AMD EPYC",
    cpuinfo_flags=("avx2", *AVX512_OF_MKL),
    signature="ven0002fam001Amod0002",
    physical_cores=4,
    logical_cpus=4,
)
PROFILE = Profile(
    "/env/site/" + PROFILE_FILE,
    cpu="AMD EPYC",
    cpus=4,
    subject="alexnet, batch 8",
    variables=(
        TunedVariable("OMP_NUM_THREADS", "3", "tuned"),
        TunedVariable("MKL_DEBUG_CPU_TYPE", "5", "tuned"),
        TunedVariable("LD_PRELOAD", "/usr/lib/libjemalloc.so.2", "tuned", early=True),
    ),
    to_intel64=False,
    ratio=1.2,
    ratio_low=1.1,
    ratio_high=1.3,
    date="2026-01-01T00:00:00Z",
    tool_version="0.1.0",
)


def tuned(**changes: Any) -> Facts:
    given = replace(facts(cpu=CPU, limits=Limits(affinity_cpus=(0, 1, 2, 3))), profile=PROFILE)
    return replace(given, **changes)


def values(found) -> dict[str, str]:
    return {item.name: item.value for item in found}


def test_a_file_comes_back_as_it_was_written():
    assert parse_profile(PROFILE.path, profile_text(PROFILE)) == PROFILE
    assert profile_step(PROFILE).content == profile_text(PROFILE)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "it cannot be read"),
        ("{", "it is no JSON"),
        ("[]", "it is no profile of ideepdoctor"),
        (profile_text(PROFILE).replace('"schema_version": "1"', '"schema_version": "2"'), "it is of version 2"),
        (profile_text(PROFILE).replace('"cpus": 4', '"cpus": "4"'), "it cannot be understood"),
        (profile_text(PROFILE).replace('"variables": [', '"variables": [7, '), "it cannot be understood"),
    ],
)
def test_a_file_that_is_none_says_why_and_sets_nothing(text, problem):
    found = parse_profile("/x", text)
    assert found.problem.startswith(problem)
    given = tuned(profile=found)
    assert not_here(given) == found.problem
    assert values(recommended(given)) == values(recommended(tuned(profile=None)))


def test_what_was_tuned_comes_before_the_defaults():
    assert values(recommended(tuned())) == {
        "CHAINER_USE_IDEEP": "auto",
        "OMP_NUM_THREADS": "3",
        "MKL_DEBUG_CPU_TYPE": "5",
    }
    assert values(before_start(tuned())) == {"LD_PRELOAD": "/usr/lib/libjemalloc.so.2"}


def test_a_variable_that_was_tuned_away_is_not_set():
    away = replace(PROFILE, variables=(TunedVariable("MKL_DEBUG_CPU_TYPE", "", "tuned"),))
    assert values(recommended(tuned(profile=away))) == {"CHAINER_USE_IDEEP": "auto"}
    module = next(step for step in startup_steps(tuned(profile=away)) if step.path.endswith("startup.py"))
    scope: dict[str, Any] = {}
    exec(module.content, scope)
    where = "cpu=ven0002fam001Amod0002&cpus=4"
    rows = [row for row in scope["DEFAULTS"] if row[0] == "MKL_DEBUG_CPU_TYPE"]
    assert [row[1:] for row in rows] == [("", where), ("7", "amd-avx512"), ("5", "amd-avx2")]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"cpu": replace(CPU, model_name="AMD EPYC 7742")}, "it was measured on AMD EPYC, and this is AMD EPYC 7742"),
        ({"limits": Limits(affinity_cpus=(0, 1))}, "it was measured with 4 CPUs, and 2 are open to this process"),
        ({"cpu": replace(CPU, emulated=True, cpuid_flags=("avx2",))}, "this processor is emulated"),
    ],
)
def test_on_another_machine_it_does_not_count(changes, why):
    given = tuned(**changes)
    assert not_here(given) == why and in_force(given) is None
    assert values(recommended(given)) == values(recommended(replace(given, profile=None)))
    assert before_start(given) == () and wants_layouts(given)


def test_the_start_up_file_holds_it_for_this_machine_alone_and_never_what_comes_too_late():
    module = next(step for step in startup_steps(tuned()) if step.path.endswith("startup.py"))
    scope: dict[str, Any] = {}
    exec(module.content, scope)
    where = "cpu=ven0002fam001Amod0002&cpus=4"
    assert ("OMP_NUM_THREADS", "3", where) in scope["DEFAULTS"]
    mkl = [row[1:] for row in scope["DEFAULTS"] if row[0] == "MKL_DEBUG_CPU_TYPE"]
    assert mkl == [("5", where), ("7", "amd-avx512"), ("5", "amd-avx2")]
    assert "LD_PRELOAD" not in module.content


def test_run_sets_all_of_it_where_the_user_has_not():
    found = run_variables({"OMP_NUM_THREADS": "1"}, tuned())
    assert found["OMP_NUM_THREADS"] == "1" and found["MKL_DEBUG_CPU_TYPE"] == "5"
    assert found["LD_PRELOAD"] == "/usr/lib/libjemalloc.so.2"
    assert not wants_layouts(tuned()) and wants_layouts(tuned(profile=replace(PROFILE, to_intel64=None)))


def test_a_shell_takes_the_tuned_value_here_and_the_default_elsewhere():
    text = render(for_any_machine(recommended(tuned())), "sh")
    here = text.replace("/sys/devices/system/cpu/modalias", "/tmp/no-such-file")
    count = len(os.sched_getaffinity(0))
    show = f"{sys.executable} -c 'import os, json; print(json.dumps(dict(os.environ)))'"
    environ = {"PATH": os.environ["PATH"]}
    done = subprocess.run(["sh", "-c", here + show], env=environ, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout).get("MKL_DEBUG_CPU_TYPE") in (None, "7", "5")
    assert "OMP_NUM_THREADS" not in json.loads(done.stdout)
    fits = text.replace("cpus=4", f"cpus={count}").replace("= 4 ]", f"= {count} ]")
    fits = fits.replace("grep -qs ven0002fam001Amod0002: /sys/devices/system/cpu/modalias", "true")
    done = subprocess.run(["sh", "-c", fits + show], env=environ, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["OMP_NUM_THREADS"] == "3" and json.loads(done.stdout)["MKL_DEBUG_CPU_TYPE"] == "5"
