"""Why threads bring less than they should, and what the rules about measured times make of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ideepdoctor.commands.bench_report import report_of
from ideepdoctor.facts.bench import bench_facts
from ideepdoctor.model.bench import Engine, Machine, Noise, Result, Row, Scaling
from ideepdoctor.model.facts import BenchFacts, TimedStep
from ideepdoctor.rules.causes import causes, threads_in_use
from ideepdoctor.rules.idp702 import IDP702
from ideepdoctor.rules.idp703 import IDP703
from ideepdoctor.rules.idp704 import IDP704
from ideepdoctor.rules.proof import smoke
from tests.rules.hosts import facts_on

HOST = "py37-healthy"


@pytest.mark.parametrize(
    ("overlay", "threads", "said"),
    [
        ({}, 2, ()),
        ({"cpu": {"emulated": True}}, 2, ("the processor is emulated",)),
        ({"limits": {"quota_cpus": 1.5}}, 8, ("8 threads share a quota of 1.5 CPUs",)),
        ({"limits": {"quota_cpus": 1.5}}, 2, ()),
        ({"limits": {"affinity_cpus": [0]}}, 2, ("2 threads share 1 CPU open to this process",)),
        (
            {"cpu": {"physical_cores": 2, "logical_cpus": 4}, "limits": {"affinity_cpus": [0, 1, 2, 3]}},
            4,
            ("4 threads are hyper-threads of 2 cores",),
        ),
        (
            {"cpu": {"physical_cores": 8, "sockets": 2}, "limits": {"affinity_cpus": list(range(8))}},
            8,
            ("the threads are on 2 sockets and fetch from each other's memory",),
        ),
        (
            {"variables": {"effective": {"MKL_DEBUG_CPU_TYPE": None}}},
            2,
            ("MKL takes its slow path on AMD (MKL_DEBUG_CPU_TYPE is not set)",),
        ),
    ],
)
def test_each_cause_is_told_where_it_is_so(overlay, threads, said):
    found = causes(facts_on(HOST, overlay), threads, mkl=True)
    assert [text for text in found if text in said] == list(said)
    if not said:
        quiet = {"limits": {"affinity_cpus": list(range(8))}, "cpu": {"physical_cores": 8, "sockets": 1}}
        assert causes(facts_on(HOST, quiet, overlay), threads, mkl=True) == ()


def test_the_noise_of_the_measurement_is_a_cause():
    loud = replace(facts_on(HOST), bench=BenchFacts((), quiet=False, noise=("other programs took 30 %",)))
    assert causes(loud, 1, mkl=False) == ("other programs took 30 %",)


@pytest.mark.parametrize(("text", "count"), [("3", 3), ("3,1", 3), ("x", 2), ("0", 2), (None, 2)])
def test_threads_are_those_of_the_variable_else_the_affinity(text, count):
    effective = {"OMP_NUM_THREADS": text}
    facts = facts_on(HOST, {"variables": {"effective": effective}, "limits": {"affinity_cpus": [0, 1]}})
    assert threads_in_use(facts) == count


def test_idp702_names_the_measured_cause():
    (finding,) = IDP702().check(facts_on(HOST, smoke(ratio=0.8), {"limits": {"quota_cpus": 0.5}}))
    assert "2 threads share a quota of 0.5 CPUs" in finding.consequence
    assert finding.evidence[0].text == "2 threads share a quota of 0.5 CPUs"


def result(**changes) -> Result:
    def row(engine: str, median: float, of_ceiling: float | None = None) -> Row:
        interval = {"low": median * 0.99, "high": median * 1.01}
        return Row(engine, "alexnet", 8, median=median, of_ceiling=of_ceiling, **interval)

    engines = tuple(
        Engine(name, kind=kind, threads=2) for name, kind in (("tuned", "ideep"), ("numpy", "numpy"), ("mkl", "numpy"))
    )
    rows = (row("tuned", 0.1, 0.2), row("numpy", 0.5), row("mkl", 0.9), row("ideep", 0.3, 0.1))
    slow = (
        Scaling("numpy", "alexnet", 8, 1, 0.9, 0.89, 0.91),
        Scaling("mkl", "alexnet", 8, 1, 0.6, 0.59, 0.61),
        Scaling("mkl", "alexnet", 8, 2, 9.0, 8.0, 9.9),  # the row of the whole run counts
    )
    whole = Result("id", "2026-01-01T00:00:00Z", Machine("m"), engines=engines, results=rows, scaling=slow)
    return replace(whole, **changes)


def test_a_run_of_bench_becomes_facts():
    found = bench_facts(result(noise=Noise(quiet=False, messages=("busy",))))
    assert [(step.engine, step.threads, step.seconds) for step in found.steps] == [
        ("ideep", 2, 0.1),
        ("numpy", 2, 0.5),
        ("mkl", 2, 0.9),
        ("numpy", 1, 0.9),
        ("mkl", 1, 0.6),
    ]
    assert (found.quiet, found.noise) == (False, ("busy",))


def test_numpy_with_mkl_that_is_slower_with_two_threads_is_found_and_the_other_is_not():
    (finding,) = IDP703().check(replace(facts_on(HOST), bench=bench_facts(result())))
    assert finding.found == "alexnet, batch 8 with NumPy with MKL: 0.9 s with 2 threads, 0.6 s with 1"
    assert finding.next_step == "export MKL_NUM_THREADS=1"


def test_ideep_below_a_third_of_the_ceiling_is_found():
    (finding,) = IDP704().check(replace(facts_on(HOST), bench=bench_facts(result())))
    assert finding.found == "alexnet, batch 8: 20 % of the best matrix product, 2 threads"


def test_noise_alone_raises_nothing():
    steps = (TimedStep("mkl", "x", 1, 1.0, 0.9, 1.1), TimedStep("mkl", "x", 2, 1.15, 1.05, 1.25))
    facts = replace(facts_on(HOST), bench=BenchFacts(steps))
    assert list(IDP703().check(facts)) == [] and list(IDP704().check(facts)) == []


def test_bench_reports_what_the_rules_find_in_its_times():
    report = report_of(result(), facts_on(HOST), (), None)
    assert report.judgement is not None
    assert [item.code for item in report.judgement.findings] == ["IDP703", "IDP704"]
