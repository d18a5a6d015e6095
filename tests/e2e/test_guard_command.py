"""``guard``, what the start-up file does with it, and the programs of ``explain``, in real environments."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ideepdoctor.rules import RULES
from ideepdoctor.rules.hazard import HazardRule
from ideepdoctor.targets.target import payload_source
from ideepdoctor.treatment.snapshot import manifest
from tests.e2e.environments import Answer, doctor, site_packages

pytestmark = pytest.mark.e2e

Made = Callable[..., tuple[Path, Answer]]
HAZARDS = [rule for rule in RULES if issubclass(rule, HazardRule) and rule.code() != "IDP608"]
LOADED = "import sys; print('_ideepdoctor_guard' in sys.modules)"


def python(env: Path, code: str, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(env / "bin" / "python"), *words, "-c", code],
        env={**os.environ, "OMP_NUM_THREADS": "2", **environ},
        capture_output=True,
        text=True,
        cwd="/",
        timeout=120,
    )


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7"])
def test_chainer_loads_it_and_nothing_else_does(made: Made, version: str) -> None:
    env, _ = made(version)
    for words in ((), ("-E",), ("-s",), *([("-I",)] if version != "2.7" else [])):
        assert python(env, LOADED, *words).stdout == "False\n"
        assert python(env, f"import numpy; {LOADED}", *words).stdout == "False\n"
        assert python(env, f"import chainer; {LOADED}", *words).stdout == "True\n", words
    assert python(env, f"import chainer.functions as F; {LOADED}").stdout == "True\n"
    assert python(env, f"import ideep4py, chainer; {LOADED}").stdout == "True\n"


@pytest.mark.parametrize("version", ["2.7", "3.7"])
def test_a_guard_that_was_deleted_or_is_broken_stops_nothing(broken_copy: Callable[..., Path], version: str) -> None:
    env = broken_copy(version)
    file = site_packages(env) / "_ideepdoctor_guard.py"
    code = "import chainer; print(chainer.config.use_ideep)"
    for text in (None, "raise SystemExit(3)\n", "def\n", "STATE = None\n"):
        for stale in site_packages(env).rglob("_ideepdoctor_guard*.pyc"):
            stale.unlink()
        file.unlink() if text is None else file.write_text(text)
        done = python(env, code)
        assert (done.returncode, done.stdout) == (0, "auto\n"), (text, done.stderr)
        assert done.stderr == ""
        told = doctor("diagnose", "--python", str(env), "--format", "json").codes()
        assert told == ["IDP610"], text


@pytest.mark.parametrize("version", ["2.7", "3.7"])
def test_disable_and_enable_and_undo(broken_copy: Callable[..., Path], version: str) -> None:
    env = broken_copy(version)
    before = manifest(str(env))
    told = doctor("guard", "--python", str(env), "--format", "json")
    assert (told.code, told.document["guard"]["enabled"], told.document["guard"]["current"]) == (0, True, True)
    assert {row["name"] for row in told.document["guard"]["corrections"] if row["active"]} >= {"bn", "product", "load"}
    assert manifest(str(env)) == before

    asked = doctor("guard", "disable", "--python", str(env), "--format", "json")
    assert asked.code == 2 and "--yes" in asked.document["error"]["hint"]
    disabled = doctor("guard", "disable", "--python", str(env), "--yes", "--format", "json")
    assert (disabled.code, disabled.document["guard"]["disabled"]) == (0, True), disabled.stdout
    assert python(env, f"import chainer; {LOADED}").stdout == "False\n"
    again = doctor("guard", "disable", "--python", str(env), "--yes", "--format", "json")
    assert (again.code, again.document["applied"]) == (0, False)
    status = doctor("guard", "--python", str(env), "--format", "json")
    assert (status.code, status.codes()) == (1, ["IDP610"])
    # A variable that fix would set does not bring back what somebody took away.
    assert "guard enable" in status.document["findings"][0]["treatment"]["next_step"]

    enabled = doctor("guard", "enable", "--python", str(env), "--yes", "--format", "json")
    assert (enabled.code, enabled.codes()) == (0, []), enabled.stdout
    assert python(env, f"import chainer; {LOADED}").stdout == "True\n"
    for answer in (enabled, disabled):
        undone = doctor("undo", answer.document["journal"], "--format", "json")
        assert undone.code == 0, undone.stdout
    assert manifest(str(env)) == before


def test_an_old_guard_is_replaced_and_a_switch_is_told(broken_copy: Callable[..., Path]) -> None:
    env = broken_copy("3.7")
    file = site_packages(env) / "_ideepdoctor_guard.py"
    file.write_bytes(payload_source("guard") + b"# of another release\n")
    old = doctor("diagnose", "--python", str(env), "--format", "json")
    assert (old.code, old.codes("warning")) == (0, ["IDP610"])
    fixed = doctor("fix", "--python", str(env), "--yes", "--format", "json")
    assert (fixed.code, fixed.codes()) == (0, []), fixed.stdout
    assert file.read_bytes() == payload_source("guard")
    for switch, severity in (("off", "error"), ("-bn,-lrn", "warning")):
        told = doctor("diagnose", "--python", str(env), "--format", "json", environ={"IDEEPDOCTOR_GUARD": switch})
        assert told.codes(severity) == ["IDP610"] and switch in told.document["findings"][0]["found"]
        assert told.document["findings"][0]["treatment"]["next_step"] == "unset IDEEPDOCTOR_GUARD"


def test_a_pair_that_it_does_not_know_is_refused_and_says_nothing(broken_copy: Callable[..., Path]) -> None:
    env = broken_copy("3.7")
    version = site_packages(env) / "chainer" / "_version.py"
    version.write_text(version.read_text().replace("7.8.1", "7.9.0"))
    metadata = next(site_packages(env).glob("chainer-*.dist-info")) / "METADATA"
    metadata.write_text(metadata.read_text().replace("Version: 7.8.1", "Version: 7.9.0", 1))
    refused = doctor("guard", "enable", "--python", str(env), "--yes", "--format", "json")
    assert refused.code == 1 and "7.9.0" in refused.document["error"]["message"]
    told = python(env, "import chainer")
    assert told.returncode == 0
    assert "nothing is known about Chainer 7.9.0" in told.stderr and told.stderr.count("\n") == 1


@pytest.mark.parametrize("version", [pytest.param("2.7", marks=pytest.mark.slow), "3.7"])
@pytest.mark.parametrize("rule", HAZARDS, ids=lambda rule: rule.code())
def test_the_programs_of_explain_show_the_hazard_and_the_guard(
    made: Made, version: str, rule: type[HazardRule]
) -> None:
    env, _ = made(version)
    wrong = python(env, rule.reproduction, IDEEPDOCTOR_GUARD="off")
    right = python(env, rule.reproduction)
    assert (right.returncode, right.stderr) == (0, "")
    number = re.search(r"off by'?,? (\S+?)\)?$", right.stdout.strip())
    assert number is None or float(number[1]) < 1e-4
    if "out comes" in right.stdout:
        assert ("nan" in right.stdout) != ("nan" in wrong.stdout) and wrong.returncode == 0
    elif number is not None and wrong.returncode == 0:
        found = re.search(r"off by'?,? (\S+?)\)?$", wrong.stdout.strip())
        assert found is not None and float(found[1]) > 1e-2
    else:
        assert wrong.returncode != 0, wrong.stdout
