"""A report of every command, of the shape that the command makes: for tests of formats and pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ideepdoctor.commands.bench_files import comparison_data
from ideepdoctor.commands.verdict import verdict
from ideepdoctor.facts.serialize import load_facts
from ideepdoctor.model.facts import ConvTiming, Facts, OpCheck, Smoke
from ideepdoctor.model.findings import Evidence, Finding, FixSafety, Judgement, NotKnown, Severity
from ideepdoctor.model.findings import Skipped as SkippedRule
from ideepdoctor.model.plan import CreateEnv, Plan
from ideepdoctor.model.report import Failure, Report
from ideepdoctor.proof.bench_compare import compare
from ideepdoctor.proof.bench_file import as_data, read
from ideepdoctor.rules import RULES
from ideepdoctor.rules.engine import judge

TESTS = Path(__file__).parent
ENV = "/home/user/ideep"
PLAN = Plan("a new environment", (CreateEnv("/env", "/usr/bin/python3.7", "uv"),))
FINDINGS = (
    Finding(
        "IDP305",
        Severity.ERROR,
        "NumPy outside its window",
        "NumPy 1.15.4",
        "NumPy 1.16.6 to 1.20.3",
        "Chainer computes with NumPy",
        f"ideepdoctor fix --python {ENV}/bin/python",
        (Evidence("NumPy 1.15.4 | <dist-info>", f"{ENV}/lib/python3.7/site-packages", "python -m pip list"),),
        FixSafety.SAFE,
    ),
    Finding("IDP502", Severity.WARNING, "CHAINER_USE_IDEEP", "it is 1", "auto", "ValueError", "export it", ()),
    Finding("IDP701", Severity.INFO, "MKL's kind of processor", "not set", "5", "it is slower", "ideepdoctor env", ()),
)
JUDGED = Judgement(
    FINDINGS, (SkippedRule("IDP601", "IDP305"),), (NotKnown("IDP401", "Strangers", "no /proc"),), ("IDP101", "IDP102")
)


@cache
def facts(host: str = "py37-healthy") -> Facts:
    """Of a recorded machine."""
    return load_facts(str(TESTS / "hosts" / f"{host}.json"))


def smoke() -> Smoke:
    """A smoke test with an operation that is wrong, one that died and one that was not tried."""
    checks = (
        OpCheck("convolution", "(8,16,56,56) 3x3", 2, "right", True, 3.1e-6, 1e-4),
        OpCheck("batch_normalization backward", "(8,16,56,56)", 2, "wrong", True, 1.7, 1e-3, "H2", "off by 170 %"),
        OpCheck("concat", "(16,8)", 2, "crashed", None, None, 1e-4, "H7", "SIGABRT"),
        OpCheck("lrn", "(8,16,56,56)", 2, "not-run", None, None, None, None, "no time"),
        OpCheck("relu", "exact", 2, "right", True, 0.0, 1e-6),
    )
    timing = ConvTiming("(8,64,56,56) 3x3", 12, 0.145, 0.0125, 11.6, 10.9, 12.2, 148.0)
    return Smoke(2, True, "jit:avx512_common", checks, timing, 6.1)


def certified() -> dict[str, Any]:
    """The document's ``certify``: two families right, one wrong."""
    worst = {"op": "concat", "case": "(2,16,6,6)", "threads": "2", "error": None, "message": "SIGABRT"}
    fault = {"hazard": "H7", "code": "IDP605", "status": "crashed", "cases": 2, "tries": 4, "threads": ["1", "2"]}

    def row(op: str, tried: int, right: int, **more: Any) -> dict[str, Any]:
        plain = {"op": op, "cases": tried, "tried": tried, "right": right, "used": "yes", "why_not": [], "not_run": []}
        return {**plain, "worst_error": 1.2e-6, "kernels": ["jit:avx2"], "faults": [], **more}

    ops = [
        row("conv", 120, 120),
        row("concat", 24, 20, faults=[{**fault, "worst": worst}]),
        row("lstm", 0, 0, worst_error=None, not_run=[{"text": "no time", "count": 4}]),
    ]
    return {
        "complete": False,
        "tries": 148,
        "tried": 144,
        "kept_from_before": 0,
        "right": 140,
        "failed": 4,
        "not_run": 4,
        "threads": ["2", "1"],
        "own_threads": 2,
        "available": True,
        "guard": None,
        "unknown_files": [],
        "ops": ops,
        "failures": [],
        "memory": None,
        "fork": None,
        "model": None,
        "results_file": "/state/certify/x.jsonl",
        "seconds": 61.0,
    }


def tuned() -> dict[str, Any]:
    """The document's ``tune``: one dimension with a gain, one without time."""
    gain = {"ratio": 1.31, "low": 1.25, "high": 1.38}
    trials = [
        {"label": "default", "variables": {}, "gain": {"ratio": 1.0, "low": 1.0, "high": 1.0}, "why": ""},
        {"label": "MKL_DEBUG_CPU_TYPE=5", "variables": {"MKL_DEBUG_CPU_TYPE": "5"}, "gain": gain, "why": ""},
        {"label": "AVX-512", "variables": {}, "gain": None, "why": "it died"},
    ]
    looked = {"name": "mkl", "title": "MKL's code", "default": "its own", "verdict": "gain", "explanation": "slow path"}
    choice = {"default": False, "label": "MKL_DEBUG_CPU_TYPE=5", "variables": {}, "to_intel64": True, "gain": gain}
    return {
        "subject": "alexnet, batch 8",
        "seconds": 88.0,
        "budget_seconds": 300.0,
        "complete": True,
        "telling": True,
        "noise": {"quiet": True, "messages": []},
        "dimensions": [{**looked, "chosen": "MKL_DEBUG_CPU_TYPE=5", "trials": trials}],
        "choice": choice,
        "refused": [],
    }


def bench(name: str) -> Any:
    """A result file of the tests."""
    return read(str(TESTS / "data" / "bench" / f"{name}.json"))


def _judged(command: str, **parts: Any) -> Report:
    return Report(command, facts=facts(), judgement=JUDGED, **parts)


def _proved(command: str) -> Report:
    done = {"verdict": verdict(facts(), JUDGED, smoke()), "applied": True, "journal": "20260101-1", "next": ["undo"]}
    return _judged(command, smoke=smoke(), extra=done)


def many(number: int) -> Report:
    """A report with as many findings."""
    found = tuple(
        replace(FINDINGS[place % 3], found=f"NumPy {place}", evidence=(Evidence("seen", f"/env/{place}.py"),))
        for place in range(number)
    )
    return Report("diagnose", facts=facts(), judgement=Judgement(found))


def compared() -> Report:
    """Two machines set against each other."""
    results = [bench("two-cores"), bench("28-cores")]
    extra = {"bench_compare": comparison_data(compare(results))}
    return Report("bench compare", body=("28 cores  1.9",), extra=extra, measured=tuple(results))


def measured() -> Report:
    """A run of bench that found something."""
    result = bench("two-cores")
    return _judged("bench", body=("alexnet  110 ms",), extra={"bench": as_data(result)}, measured=(result,))


def _cpu() -> Report:
    extra = {"cpu": {"model": "x", "releases": {"2.0.0.post3": "runs", "1.0.4": "dies at import"}}}
    return Report("cpu", facts=facts(), text="cpu  AMD EPYC | x\nhas  avx2\n", extra=extra)


def _diff() -> Report:
    data = {"first": "a.json", "second": "b.json", "new": [], "gone": [], "same": []}
    changes = [{"what": "numpy", "before": "1.16.6", "after": {"version": "1.21"}, "symptom": False}]
    return _judged("diff", body=("changed: 1",), extra={"diff": {**data, "changes": changes}})


REPORTS: dict[str, Callable[[], Report]] = {
    "setup": lambda: replace(_proved("setup"), plan=PLAN),
    "diagnose": lambda: _judged("diagnose"),
    "diagnose, healthy": lambda: Report("diagnose", facts=facts(), judgement=judge(facts(), RULES)),
    "diagnose, failed": lambda: Report("diagnose", failure=Failure("could-not-check", "no answer", "look\nthere", 3)),
    "fix": lambda: _proved("fix"),
    "install": lambda: _proved("install"),
    "upgrade": lambda: replace(_judged("upgrade", plan=PLAN), extra={"verdict": "dry run", "applied": False}),
    "downgrade": lambda: _proved("downgrade"),
    "smoke": lambda: _proved("smoke"),
    "certify": lambda: _judged("certify", body=("conv 120 120",), extra={"certify": certified(), "verdict": "WRONG"}),
    "guard": lambda: _judged("guard", body=("corrections",), extra={"guard": {"enabled": True}, "verdict": "at work"}),
    "libs": lambda: _judged("libs", body=("libraries", "> MKL-DNN 0.18"), extra={"libs": {"libraries": []}}),
    "lint": lambda: Report("lint", judgement=Judgement(FINDINGS[:1]), text="a.py:2:1: error\n", extra={"lint": LINTED}),
    "bench": measured,
    "bench compare": compared,
    "bench history": lambda: Report("bench history", text="20260101 here\n", extra={"bench_history": []}),
    "bench chart": lambda: Report("bench chart", extra={"verdict": "written: x.html", "chart": {"file": "x.html"}}),
    "tune": lambda: Report("tune", facts=facts(), plan=PLAN, body=("speed",), extra={"tune": tuned(), "verdict": "UP"}),
    "build": lambda: _judged("build", body=("jobs 2",), extra={"verdict": "BUILT: x.whl", "build": BUILD}),
    "cpu": _cpu,
    "diff": _diff,
    "explain": lambda: Report("explain", text="# IDP305: NumPy\n\nWhat it checks\n", extra={}),
    "history": lambda: Report("history", text="20260101-1  setup\n", extra={"runs": []}),
    "undo": lambda: Report("undo", extra={"verdict": "taken back", "undone": "20260101-1"}),
    "resume": lambda: Report("resume", extra={"verdict": "nothing to resume"}),
    "wheelhouse": lambda: Report("wheelhouse", body=("chainer",), extra={"verdict": "whole"}),
    "report": lambda: Report("report", facts=facts(), judgement=JUDGED, text="## shared | report\n", extra={}),
    "recipe": lambda: Report("recipe", text="FROM debian\n"),
    "self-test": lambda: Report("self-test", judgement=JUDGED, body=("rules  fine",), extra={"verdict": "fine"}),
    "trace": lambda: Report("trace", facts=facts(), body=("TIME",)),
}
BUILD = {"source": "git", "ref": "v2", "march": "native", "mkl": "wheel", "output": "/w", "verify": True}
LINTED: dict[str, Any] = {
    "files": [{"path": "a.py", "python": 3, "ignored": False}],
    "findings": [
        {
            "path": "a.py",
            "line": 2,
            "column": 1,
            "cell": None,
            "code": "IDP906",
            "severity": "error",
            "message": "use_ideep is set to 1: ValueError",
            "do": "chainer.config.use_ideep = 'auto'",
            "fingerprint": "0" * 64,
        }
    ],
    "unread": [],
    "suppressed": 0,
}
