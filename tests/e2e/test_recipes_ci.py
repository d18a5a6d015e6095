"""What the recipes for CI services render, executed: the scripts of their jobs, with a clean environment, on real
environments. What only the services have (their caches, artifacts, Pythons) stands in.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from junitparser import JUnitXml

from ideepdoctor import __version__
from ideepdoctor.recipes import github, gitlab
from ideepdoctor.recipes import pre_commit as pre_commit_recipe
from ideepdoctor.recipes import slurm as slurm_recipe
from ideepdoctor.recipes.base import Recipe, settings_for
from ideepdoctor.recipes.render import render
from tests.conftest import legacy_python
from tests.recipes.actions import Inputs, Job, Store, clean_environment, load
from tests.recipes.clone import ROOT, wheel_of_this_clone

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

FAULTY = "import chainer\nchainer.config.use_ideep = 'yes'\n"
"""A program that `lint` finds an error in: IDP906."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel_of_this_clone(tmp_path_factory.mktemp("wheel"))


def written(recipe: Recipe, folder: Path, requirement: str) -> Path:
    """A project that a recipe was written to, with a program."""
    settings = settings_for(recipe, doctor_version=__version__, requirement=requirement)
    for path, text in render(recipe, settings).items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    (folder / "train.py").write_text("import chainer\n\nprint(chainer.__version__)\n")
    return folder


class Hosted:
    """A hosted runner's part of a job: Pythons, the cache, artifacts, code scanning."""

    def __init__(self, folder: Path):
        self.store, self.artifacts, self.scanned = Store(folder / "cache"), folder / "artifacts", []

    def job(self, project: Path, folder: Path, **more: Mapping[str, str]) -> Job:
        stand_ins = {
            "actions/checkout": lambda job, given: {},
            "actions/setup-python": self.python,
            "actions/cache/restore": self.store.restore,
            "actions/cache/save": self.store.save,
            "actions/upload-artifact": self.upload,
            "github/codeql-action/upload-sarif": self.scan,
        }
        return Job(project, folder, stand_ins, **more)

    def python(self, job: Job, given: Inputs) -> Mapping[str, str]:
        assert given["update-environment"] == "false"
        return {"python-path": legacy_python(given["python-version"])}

    def upload(self, job: Job, given: Inputs) -> Mapping[str, str]:
        shutil.rmtree(self.artifacts, ignore_errors=True)
        if (job.workspace / given["path"]).exists():
            shutil.copytree(job.workspace / given["path"], self.artifacts)
        return {}

    def scan(self, job: Job, given: Inputs) -> Mapping[str, str]:
        document = json.loads((job.workspace / given["sarif_file"]).read_text())
        for run in document["runs"]:
            for result in run["results"]:
                # What code scanning refuses: a finding that is in no file of the repository.
                place = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
                assert (job.workspace / place).is_file(), place
                self.scanned.append(result["ruleId"])
        return {}


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Hosted:
    return Hosted(tmp_path_factory.mktemp("hosted"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    return written(github.RECIPE, tmp_path_factory.mktemp("checkout"), str(wheel))


def workflow(project: Path, name: str = "ideep") -> Mapping[str, object]:
    return load(project / ".github" / "workflows" / f"{name}.yml")


def test_github_a_green_job_and_the_next_one_from_the_cache(hosted: Hosted, project: Path, tmp_path: Path):
    first = hosted.job(project, tmp_path / "1").run(workflow(project), "ideep")
    assert not first.failed, first.log
    assert "iDeep: healthy" in first.log and "Chainer: 7.8.1" in first.log and not first.annotations
    assert "**READY: " in first.summary and "38 of 38 checks" in first.summary
    assert {path.name for path in hosted.artifacts.iterdir()} == {
        *("ideep.json", "ideep.sarif", "ideep-junit.xml", "lint.sarif", "lint-junit.xml")
    }
    assert first.env["CHAINER_USE_IDEEP"] == "auto" and first.path == [str(project / ".ideep" / "bin")]

    shutil.rmtree(project / ".ideep")
    shutil.rmtree(tmp_path / "1")  # the next runner is a new machine
    second = hosted.job(project, tmp_path / "1").run(workflow(project), "ideep")
    assert not second.failed, second.log
    assert hosted.store.hits == [False, True] and len(hosted.store.saved) == 1
    assert "**READY: " in second.summary  # proved again


def test_github_a_faulty_program_is_a_red_job(hosted: Hosted, project: Path, tmp_path: Path):
    (project / "train.py").write_text(FAULTY)
    try:
        job = hosted.job(project, tmp_path / "1").run(workflow(project), "ideep")
    finally:
        (project / "train.py").write_text("import chainer\n")
    assert job.failed
    [error] = [line for line in job.annotations if line.startswith("::error ")]
    assert "file=train.py" in error and "line=2" in error and "IDP906" in error
    assert "IDP906" in job.summary and "faults found" in job.summary
    assert hosted.scanned.count("IDP906") == 1
    assert "Run the project's own tests" not in [step.name for step in job.done]  # red, and why; nothing hides it
    assert (hosted.artifacts / "lint-junit.xml").is_file()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"stack": "chainer0.0.1"}, "chainer0.0.1"),
        ({"requirement": "/no/such/doctor.whl"}, "ideepdoctor could not be installed"),
    ],
)
def test_github_a_job_that_fails_before_any_finding_shows_why(
    hosted: Hosted, project: Path, tmp_path: Path, given: dict[str, str], words: str
):
    plan = load(project / ".github" / "workflows" / "ideep.yml")
    step = next(item for item in plan["jobs"]["ideep"]["steps"] if item.get("id") == "ideep")
    step["with"] |= given
    saved = len(hosted.store.saved)
    shutil.rmtree(project / "ideep-reports", ignore_errors=True)
    job = hosted.job(project, tmp_path / "1").run(plan, "ideep")
    assert job.failed and len(hosted.store.saved) == saved
    assert words in job.annotations[0] and words in job.summary, job.log


def test_github_the_matrix_runs_each_stack_that_setup_python_has_a_python_for(
    hosted: Hosted, project: Path, tmp_path: Path
):
    plan = load(project / ".github" / "workflows" / "ideep-matrix.yml")
    rows = plan["jobs"]["ideep"]["strategy"]["matrix"]["include"]
    row = next(item for item in rows if item["chainer"] == "6.7.0" and item["get-python"] == "setup-python")
    shutil.rmtree(project / ".ideep", ignore_errors=True)
    job = hosted.job(project, tmp_path / "1", matrix=row).run(plan, "ideep")
    assert not job.failed, job.log
    assert "Chainer: 6.7.0" in job.log


def gitlab_job(project: Path, folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    """The lines of one job of the pipeline, as a runner's shell gets them."""
    plan = load(project / ".gitlab-ci.yml")
    job = {**plan[plan[name]["extends"]], **plan[name]}
    folder.mkdir(exist_ok=True)
    variables = {"CI_PROJECT_DIR": str(project), **plan["variables"]}
    variables = {key: value.replace("$CI_PROJECT_DIR", str(project)) for key, value in variables.items()}
    environ = clean_environment(folder, **variables)
    environ["PATH"] = f"{Path(legacy_python('3.7')).parent}:{environ['PATH']}"  # what the image has
    text = "\n".join([*job["before_script"], *job["script"]])
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", text],
        cwd=project,
        env=environ,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=600,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def test_gitlab_a_green_pipeline_and_a_red_one(tmp_path: Path, wheel: Path):
    project = written(gitlab.RECIPE, tmp_path / "checkout", str(wheel))
    done = gitlab_job(project, tmp_path / "home", "ideep-environment")
    assert done.returncode == 0 and "READY: " in done.stdout and "Chainer: 7.8.1" in done.stdout, done.stdout
    assert json.loads((project / "reports" / "ideep-quality.json").read_text()) == []
    assert len(JUnitXml.fromfile(str(project / "reports" / "ideep-junit.xml")))
    assert gitlab_job(project, tmp_path / "home", "ideep-lint").returncode == 0

    (project / "train.py").write_text(FAULTY)
    assert gitlab_job(project, tmp_path / "home", "ideep-lint").returncode == 1
    [issue] = json.loads((project / "reports" / "lint-quality.json").read_text())
    assert issue["check_name"] == "IDP906" and issue["location"] == {"path": "train.py", "lines": {"begin": 2}}

    [site] = (project / ".ideep" / "lib").glob("python3*/site-packages")
    shutil.rmtree(site / "ideep4py")
    red = gitlab_job(project, tmp_path / "home", "ideep-environment")
    assert red.returncode not in (0, 3) and "ideep4py" in red.stdout, red.stdout
    assert "ideep4py" in (project / "reports" / "ideep-quality.json").read_text()


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True, timeout=60)


def pre_commit(folder: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("pre-commit")), *words],
        cwd=folder,
        env={**os.environ, "PRE_COMMIT_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )


def test_pre_commit_stops_a_faulty_program(tmp_path: Path, wheel: Path):
    project = written(pre_commit_recipe.RECIPE, tmp_path / "checkout", str(wheel))
    git(project, "init", "-q")
    git(project, "add", ".")
    green = pre_commit(project, tmp_path / "home", "run", "--all-files")
    assert green.returncode == 0 and "Passed" in green.stdout, green.stdout
    (project / "train.py").write_text(FAULTY)
    git(project, "add", ".")
    red = pre_commit(project, tmp_path / "home", "run")
    assert red.returncode == 1 and "train.py:2" in red.stdout and "IDP906" in red.stdout, red.stdout


def test_pre_commit_uses_this_repository(tmp_path: Path):
    # A repository with what is committed here, so that nothing of the clone is written to.
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    names = [name.decode() for name in files.split(b"\0") if name]
    for name in names:
        if name.startswith(("ideepdoctor/", "pyproject", "README.md", "LICENSE", ".pre-commit-hooks")):
            (tmp_path / "doctor" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / "doctor" / name)
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(FAULTY)
    for folder in (tmp_path / "doctor", project):
        git(folder, "init", "-q")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", "all")
    words = ("try-repo", str(tmp_path / "doctor"), "ideepdoctor-lint", "--files", "train.py")
    done = pre_commit(project, tmp_path / "home", *words)
    assert done.returncode == 1 and "IDP906" in done.stdout, done.stdout


class Slurm:
    """A real Slurm of two nodes, both on this machine: munged, slurmctld and two slurmd of the tests' own."""

    def __init__(self, folder: Path):
        self.folder, self.configuration = folder, folder / "slurm.conf"
        self.daemons: list[subprocess.Popen[bytes]] = []
        for name in ("state", "munge"):
            (folder / name).mkdir(mode=0o700)
        (folder / "munge" / "key").write_bytes(os.urandom(1024))
        (folder / "munge" / "key").chmod(0o600)
        host, ports = socket.gethostname(), [free_port() for _ in range(3)]
        node = f"NodeHostname={host} NodeAddr=127.0.0.1 CPUs=2 CoresPerSocket=2"
        self.configuration.write_text(
            f"ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\n"
            f"AuthType=auth/munge\nAuthInfo=socket={folder}/munge/socket\nCredType=cred/munge\n"
            f"SlurmctldPort={ports[0]}\nStateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool-%n\n"
            f"SlurmctldPidFile={folder}/ctld.pid\nSlurmdPidFile={folder}/slurmd-%n.pid\n"
            "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/affinity\nSelectType=select/cons_tres\n"
            "SelectTypeParameters=CR_Core\nSwitchType=switch/none\nMpiDefault=none\nReturnToService=2\n"
            f"NodeName=n1 Port={ports[1]} {node}\nNodeName=n2 Port={ports[2]} {node}\n"
            "PartitionName=all Nodes=n1,n2 Default=YES State=UP\n"
        )

    def start(self) -> None:
        munge = self.folder / "munge"
        files = {"socket": "socket", "key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        self.daemon("munged", "--foreground", "--force", *(f"--{key}={munge / name}" for key, name in files.items()))
        wait_for(lambda: (munge / "socket").exists())
        self.daemon("slurmctld", "-D", "-f", str(self.configuration))
        for node in ("n1", "n2"):
            self.daemon("slurmd", "-D", "-f", str(self.configuration), "-N", node)
        wait_for(lambda: self.told("sinfo", "-h", "-t", "idle", "-o", "%D").strip() == "2")

    def daemon(self, *words: str) -> None:
        with (self.folder / "daemons.log").open("ab") as log:
            options = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            self.daemons.append(subprocess.Popen(words, env=self.environ(), **options))

    def environ(self, **more: str) -> dict[str, str]:
        return {**clean_environment(self.folder, SLURM_CONF=str(self.configuration)), **more}

    def told(self, *words: str) -> str:
        return subprocess.run(words, env=self.environ(), capture_output=True, text=True, timeout=60).stdout

    def submit(self, folder: Path, *words: str, **variables: str) -> tuple[int, str]:
        """Submit the recipe's job, wait for it, return its exit code and what it printed."""
        done = subprocess.run(
            ["sbatch", "--wait", "--cpus-per-task=1", "--output=job.out", "ideep.sbatch", *words],
            cwd=folder,
            env=self.environ(PATH=f"{pythons()}:{os.environ['PATH']}", **variables),
            capture_output=True,
            text=True,
            timeout=400,
        )
        return done.returncode, (folder / "job.out").read_text()

    def stop(self) -> None:
        for daemon in reversed(self.daemons):
            daemon.terminate()
            daemon.wait(timeout=30)


def pythons() -> str:
    """The folders of the Python for Chainer and of the doctor's, for PATH."""
    return f"{Path(legacy_python('3.7')).parent}:{Path(sys.base_prefix) / 'bin'}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(true: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    for program in ("munged", "slurmctld", "slurmd", "sbatch"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} here (Debian: slurm-wlm)")
    if os.geteuid() != 0:
        pytest.skip("slurmd starts jobs as root alone")
    made = Slurm(tmp_path_factory.mktemp("slurm"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


TRAIN = """import os, numpy, chainer.links
y = chainer.links.Convolution2D(3, 16, 3)(numpy.ones((2, 3, 8, 8), "f"))
node, threads, cpus = os.environ["SLURMD_NODENAME"], os.environ["OMP_NUM_THREADS"], len(os.sched_getaffinity(0))
print("%s: %s, %s threads on %d CPUs" % (node, type(y.array).__name__, threads, cpus))
"""


@pytest.fixture(scope="module")
def slurm_project(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    folder = written(slurm_recipe.RECIPE, tmp_path_factory.mktemp("job"), str(wheel))
    (folder / "train.py").write_text(TRAIN)
    return folder


def test_slurm_checks_its_nodes_and_trains(slurm: Slurm, slurm_project: Path):
    code, told = slurm.submit(slurm_project, "python", "train.py")
    assert code == 0 and "2 hosts: 2 healthy" in told, told
    for node in ("n1", "n2"):
        assert f"{node}: mdarray, 1 threads on 1 CPUs" in told


def test_slurm_does_not_train_where_a_node_is_wrong(slurm: Slurm, slurm_project: Path, tmp_path: Path):
    # Each node's own disk: n2 has an environment that somebody broke.
    own = tmp_path / "disk-$SLURMD_NODENAME"
    script = slurm_project / "ideep.sbatch"
    text = script.read_text()
    place = "IDEEP_ENV=${IDEEP_ENV:-${TMPDIR:-/tmp}/ideep-$UID/$NAME}"
    assert place in text
    try:
        # Both nodes are this machine, so what is one path on two disks there is two paths here.
        script.write_text(text.replace('"$1" "$doctor" setup', f'"$1" env IDEEP_ENV="{own}" "$doctor" setup')
                          .replace('--env "$IDEEP_ENV"', f'--env "{own}"')
                          .replace('--python "$IDEEP_ENV" --fail-on', f'--python "{own}" --fail-on'))  # fmt: skip
        made = slurm.submit(slurm_project, "python", "-c", "print()", IDEEP_WHERE="node", IDEEP_FAIL_ON="error")
        assert "2 hosts: 2 healthy" in made[1], made[1]
        [site] = (tmp_path / "disk-n2" / "lib").glob("python3*/site-packages")
        shutil.rmtree(site / "ideep4py")
        code, told = slurm.submit(slurm_project, "python", "train.py", IDEEP_WHERE="node")
    finally:
        script.write_text(text)
    assert code != 0 and "nothing was trained" in told, told
    assert "1 healthy" in told and "1 with findings" in told and "mdarray" not in told, told
