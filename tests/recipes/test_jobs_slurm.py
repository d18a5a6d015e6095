"""The script of the recipe ``slurm`` with stand-ins: srun starts local processes, the doctor answers from a file, and
``fleet merge`` is the real one. On a real Slurm: tests/e2e/test_recipes_ci.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recipes.clone import ROOT

SRUN = """#!/bin/sh
# Every node of the job in turn, without the options; a node that is down is a failure.
echo "srun threads=$OMP_NUM_THREADS cpus=$SRUN_CPUS_PER_TASK: $*" >>"$WORLD/calls"
while :; do case $1 in --*) shift ;; *) break ;; esac; done
code=0
for node in n1 n2; do
    if [ -e "$WORLD/down-$node" ]; then code=1; continue; fi
    SLURMD_NODENAME=$node "$@" || code=1
done
exit $code
"""
SCONTROL = "#!/bin/sh\n[ \"$*\" = 'show hostnames n[1-2]' ] && printf 'n1\\nn2\\n'\n"
DOCTOR = """#!/bin/sh
case $1 in
    fleet) exec {real} "$@" ;;
    run) while [ "$1" != -- ]; do shift; done; shift; exec "$@" ;;
    setup) echo "setup on ${{SLURMD_NODENAME:-batch}}: $*" >>"$WORLD/calls"; exit 0 ;;
    smoke) while [ "$1" != --output ]; do shift; done
        [ ! -e "$WORLD/slow-$SLURMD_NODENAME" ] || sleep 30
        cat "$WORLD/$SLURMD_NODENAME" >"$2" ;;
esac
"""


def answer(*findings: dict[str, object], error: str = "") -> str:
    failure = (
        {"message": error, "hint": "", "code": "could-not-check", "exit_code": 3, "context": {}} if error else None
    )
    tool = {"name": "ideepdoctor", "version": "0.1.0", "command": "smoke"}
    document = {"schema": "ideepdoctor-report", "schema_version": "1", "tool": tool, "target": None, "error": failure}
    return json.dumps({**document, "findings": findings, "unknown": [], "suppressed": []})


WRONG = {
    "code": "IDP305",
    "severity": "error",
    "title": "NumPy does not fit",
    "found": "1.15.4",
    "needed": "1.16",
    "consequence": "NumPy alone",
    "treatment": {"next_step": "ideepdoctor fix", "safety": "safe"},
}


class Cluster:
    def __init__(self, folder: Path):
        self.folder, self.home = folder, folder / "home"
        programs = {"bin/srun": SRUN, "bin/scontrol": SCONTROL}
        real = Path(sys.executable).with_name("ideepdoctor")
        programs["home/venv/bin/ideepdoctor"] = DOCTOR.format(real=real)
        programs["env/bin/python"] = "#!/bin/sh\n"
        for name, text in programs.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
        (self.home / "venv" / "bin" / "python").symlink_to(sys.executable)
        self.is_("n1", answer())
        self.is_("n2", answer())

    def is_(self, name: str, text: str = "") -> None:
        (self.folder / name).write_text(text)

    def submit(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environ = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "WORLD": str(self.folder),
            "IDEEP_HOME": str(self.home),
            "IDEEP_ENV": str(self.folder / "env"),
            "SLURM_SUBMIT_DIR": str(self.folder),
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_NUM_NODES": "2",
            "SLURM_JOB_NODELIST": "n[1-2]",
            "SLURM_CPUS_PER_TASK": "4",
        }
        return subprocess.run(
            ["bash", str(ROOT / "recipes" / "slurm" / "ideep.sbatch"), *words],
            env={**environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


TRAIN = ("sh", "-c", 'echo "trained on $SLURMD_NODENAME with $OMP_NUM_THREADS"')


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_every_node_is_checked_and_then_trains_with_its_threads(cluster: Cluster):
    done = cluster.submit(*TRAIN)
    assert done.returncode == 0, done.stdout
    assert "2 hosts: 2 healthy" in done.stdout
    assert done.stdout.splitlines()[-2:] == ["trained on n1 with 4", "trained on n2 with 4"]
    check, train = (line for line in cluster.calls if line.startswith("srun"))
    assert "--ntasks=2 --ntasks-per-node=1" in check and "--cpu-bind=cores" in train
    assert all(line.startswith("srun threads=4 cpus=4:") for line in (check, train))
    assert not any(line.startswith("setup") for line in cluster.calls)  # a shared environment is left as it is


def test_a_node_that_is_wrong_silent_or_late_keeps_the_job_from_training(cluster: Cluster):
    cluster.is_("n1", answer(WRONG))
    cluster.is_("down-n2")
    done = cluster.submit(*TRAIN)
    assert done.returncode == 1, done.stdout
    assert "IDP305 NumPy does not fit" in done.stdout and "no task of job 7 wrote a report there" in done.stdout
    assert "unreachable" in done.stdout and "trained on" not in done.stdout and "nothing was trained" in done.stdout


@pytest.mark.slow
def test_a_node_that_hangs_and_one_that_cannot_be_checked_are_told_apart(cluster: Cluster):
    cluster.is_("n1", answer(error="the target does not answer"))
    cluster.is_("slow-n2")
    done = cluster.submit(*TRAIN, IDEEP_CHECK_SECONDS="1")
    assert done.returncode != 0 and "trained on" not in done.stdout
    assert "the target does not answer" in done.stdout and "no answer within 1 seconds" in done.stdout


def test_an_environment_of_each_node_is_made_on_each(cluster: Cluster):
    done = cluster.submit(*TRAIN, IDEEP_WHERE="node", IDEEP_WHEELHOUSE="/wheels")
    assert done.returncode == 0, done.stdout
    made = [line for line in cluster.calls if line.startswith("setup")]
    assert [line.partition(":")[0] for line in made] == ["setup on n1", "setup on n2"]
    assert all("--offline --wheelhouse /wheels" in line for line in made)


@pytest.mark.parametrize(("words", "variables"), [((), {}), (TRAIN, {"IDEEP_WHERE": "here"})])
def test_what_makes_no_sense_is_refused(cluster: Cluster, words: tuple[str, ...], variables: dict[str, str]):
    done = cluster.submit(*words, **variables)
    assert done.returncode == 2 and done.stdout.startswith("ideep: ")
    assert not (cluster.folder / "calls").exists()
