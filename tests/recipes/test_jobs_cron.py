"""The script of the recipe ``cron`` with a doctor that stands in: what it prints, and when it is silent.

With the real doctor and a real environment: tests/e2e/test_recipes_ci.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recipes.clone import ROOT

SCRIPT = ROOT / "recipes" / "cron" / "ideep-drift"
DOCTOR = """#!{python}
import json, os, shutil, sys, time
world = json.load(open({world!r}))
words = dict(zip(sys.argv, sys.argv[1:]))
if sys.argv[1] == "diff" or "--facts" in words:
    print("told by", *sys.argv[1:2])
    sys.exit(0)
time.sleep(world.get("seconds", 0))
found = [{{"fingerprint": word}} for word in world["findings"]]
known = json.load(open(words["--baseline"]))["findings"] if "--baseline" in words else []
error = {{"message": world["error"], "hint": "look at it"}} if "error" in world else None
json.dump({{"findings": found, "suppressed": known, "error": error}}, open(words["--output"], "w"))
if error:
    sys.exit(3)
open(words["--save-facts"], "w").write("{{}}")
sys.exit(1 if [item for item in found if item not in known] else 0)
"""


class Machine:
    def __init__(self, folder: Path):
        self.folder, self.world = folder, folder / "world"
        (folder / "bin").mkdir()
        (folder / "bin" / "python").symlink_to(sys.executable)
        doctor = folder / "bin" / "ideepdoctor"
        doctor.write_text(DOCTOR.format(python=sys.executable, world=str(self.world)))
        doctor.chmod(0o755)
        self.becomes()

    def becomes(self, *findings: str, **more: object) -> None:
        self.world.write_text(json.dumps({"findings": findings, **more}))

    def check(self, *words: str, **variables: str) -> tuple[int, str]:
        environ = {"PATH": os.environ["PATH"], "IDEEP_ENV": "/env", "IDEEP_DRIFT_VENV": str(self.folder)}
        done = subprocess.run(
            [str(SCRIPT), *words],
            env={**environ, "IDEEP_DRIFT_STATE": str(self.folder / "state"), **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        return done.returncode, done.stdout


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    assert made.check() == (0, "ideep-drift: /env is watched from now on; what is there now:\ntold by diagnose\n")
    return made


def test_mail_comes_once_for_each_change(machine: Machine):
    assert machine.check() == (0, "")
    machine.becomes("a")
    code, told = machine.check()
    assert code == 1 and told.splitlines()[:2] == ["ideep-drift: /env has changed:", "told by diff"]
    assert machine.check() == (1, "")  # nothing new: silent, and still a failure
    machine.becomes("a", "b")
    assert machine.check()[1].startswith("ideep-drift: /env has changed:")
    machine.becomes("b", "a")
    assert machine.check() == (1, "")
    machine.becomes()
    assert machine.check() == (0, "ideep-drift: /env is again as it was\n")
    assert machine.check() == (0, "")


def test_what_was_accepted_is_silent(machine: Machine):
    machine.becomes("a")
    assert machine.check()[0] == 1
    assert machine.check("--accept")[0] == 0
    assert machine.check() == (0, "")


def test_what_could_not_be_checked_is_told_once_and_never_healthy(machine: Machine):
    machine.becomes(error="it does not answer")
    wanted = "ideep-drift: /env could not be checked:\nit does not answer\nlook at it\n"
    assert [machine.check(), machine.check()] == [(3, wanted), (3, "")]
    assert machine.check("--accept") == (3, "ideep-drift: no baseline of /env:\nit does not answer\nlook at it\n")
    machine.becomes()
    assert machine.check() == (0, "ideep-drift: /env is again as it was\n")  # the old baseline is still there


def test_a_check_that_hangs_is_ended(machine: Machine):
    machine.becomes(seconds=30)
    code, told = machine.check(IDEEP_DRIFT_SECONDS="1")
    assert (code, told) == (3, "ideep-drift: /env could not be checked:\nno answer within 1 seconds\n")


def test_two_checks_do_not_run_at_once(machine: Machine):
    words = ["flock", "--no-fork", str(machine.folder / "state" / "lock"), "sleep", "60"]
    with subprocess.Popen(words) as holder:
        try:
            lock = ["flock", "-n", words[2], "true"]
            while subprocess.run(lock, check=False).returncode == 0:
                pass
            assert machine.check() == (6, "")
        finally:
            holder.terminate()
