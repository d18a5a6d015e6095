"""A real CPU quota: what the doctor recommends and searches stays within it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.environments import Answer

JOIN = "import os, sys; open(sys.argv[1], 'w').write(str(os.getpid())); os.execv(sys.argv[2], sys.argv[2:])"
"""Enters a control group, then becomes the program."""


@pytest.fixture
def one_cpu() -> Iterator[str]:
    """The file through which a process enters a control group with a quota of one CPU."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU: a quota of one takes nothing away")
    own = {line.split(":")[1]: line.split(":")[2] for line in Path("/proc/self/cgroup").read_text().splitlines()}
    choices = [
        (Path("/sys/fs/cgroup/cpu") / own.get("cpu", own.get("cpu,cpuacct", "/")).lstrip("/"), "v1"),
        (Path("/sys/fs/cgroup") / own.get("", "/").lstrip("/"), "v2"),
    ]
    for parent, version in choices:
        group = parent / f"ideepdoctor-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            if version == "v1":
                (group / "cpu.cfs_period_us").write_text("100000")
                (group / "cpu.cfs_quota_us").write_text("100000")
            else:
                (group / "cpu.max").write_text("100000 100000")
            yield str(group / "cgroup.procs")
            return
        except OSError:
            continue
        finally:
            group.rmdir()
    pytest.skip("no control group with a quota can be made here")


def within(procs: str, *words: str) -> dict:
    doctor = [sys.executable, "-m", "ideepdoctor", *words, "--format", "json"]
    done = subprocess.run([sys.executable, "-c", JOIN, procs, *doctor], capture_output=True, text=True, timeout=300)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_a_quota_of_one_cpu_is_obeyed(made: Callable[..., tuple[Path, Answer]], one_cpu: str) -> None:
    env, _ = made("3.7")
    variables = {item["name"]: item["value"] for item in within(one_cpu, "env", "--python", str(env))["variables"]}
    assert variables["OMP_NUM_THREADS"] == "1"
    report = within(one_cpu, "diagnose", "--python", str(env), "--quick")
    found = [item["found"] for item in report["findings"] if item["code"] == "IDP504"]
    assert found and "quota" in found[0]
