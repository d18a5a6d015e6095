"""What the recipes ``mpi``, ``cron`` and ``systemd`` render, executed on a real environment."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ideepdoctor.recipes import cron, mpi, systemd
from tests.e2e.environments import Answer, copy_environment, pip_install
from tests.e2e.test_recipes_ci import pythons, written
from tests.recipes.actions import clean_environment
from tests.recipes.clone import wheel_of_this_clone

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
Made = Callable[..., tuple[Path, Answer]]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel_of_this_clone(tmp_path_factory.mktemp("wheel"))


def run(folder: Path, *words: str, **variables: str) -> tuple[int, str]:
    """Run a program with a clean environment; its exit code, and what it printed."""
    environ = clean_environment(folder, **variables)
    environ["PATH"] = f"{pythons()}:{environ['PATH']}"
    done = subprocess.run(
        words,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=500,
    )
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    for program in ("mpiexec.mpich", "mpicc.mpich"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} here (Debian: mpich)")
    folder = written(mpi.RECIPE, tmp_path_factory.mktemp("mpi"), str(wheel))
    (folder / "ideep-mpi.sh").chmod(0o755)
    return folder


MPICH = {"MPIEXEC": "mpiexec.mpich", "MPICC": "mpicc.mpich"}
OPEN_MPI = {
    "MPIEXEC": "mpiexec.openmpi",
    "MPICC": "mpicc.openmpi",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


def test_mpi_trains_by_mpich_with_its_share_of_the_cores(job: Path):
    code, told = run(job, "./ideep-mpi.sh", "-n", "2", "-t", "1", "python", "train_chainermn.py", **MPICH)
    assert code == 0 and "2 hosts: 2 healthy" in told, told
    assert "ranks 2 loss " in told
    assert not list(job.glob(".ideepdoctor/reports-*"))
    tell = "import os; print('t', os.environ['OMP_NUM_THREADS'], len(os.sched_getaffinity(0)))"
    code, told = run(job, "./ideep-mpi.sh", "-n", "2", "-t", "1", "python", "-c", tell, **MPICH)
    assert code == 0 and told.count("t 1 1\n") == 2, told


def test_mpi_of_another_make_is_refused(job: Path):
    if shutil.which("mpiexec.openmpi") is None:
        pytest.skip("no mpiexec.openmpi here (Debian: openmpi-bin)")
    words = ("./ideep-mpi.sh", "-n", "2", "-t", "1", "python", "train_chainermn.py")
    code, told = run(job, *words, **OPEN_MPI)
    assert code == 3 and "mpiexec started 2 ranks, mpi4py sees 1" in told, told


def test_mpi_trains_by_open_mpi(job: Path, tmp_path: Path):
    for program in ("mpiexec.openmpi", "mpicc.openmpi"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} here (Debian: libopenmpi-dev)")
    [found] = job.glob(".ideepdoctor/ideep-*-mpi")
    own = copy_environment(found, tmp_path / "env")
    subprocess.run([own / "bin" / "python", "-m", "pip", "uninstall", "-qy", "mpi4py"], check=True, timeout=60)
    words = ("./ideep-mpi.sh", "-n", "2", "-t", "1", "python", "train_chainermn.py")
    code, told = run(job, *words, IDEEP_ENV=str(own), **OPEN_MPI)
    assert code == 0 and "ranks 2 loss " in told, told


def test_mpi_does_not_train_with_a_broken_environment(job: Path, tmp_path: Path):
    [found] = job.glob(".ideepdoctor/ideep-*-mpi")
    own = copy_environment(found, tmp_path / "env")
    [site] = (own / "lib").glob("python3*/site-packages")
    shutil.rmtree(site / "ideep4py")
    words = ("./ideep-mpi.sh", "-n", "2", "-t", "1", "python", "train_chainermn.py")
    code, told = run(job, *words, IDEEP_ENV=str(own), **MPICH)
    assert code == 1 and "nothing was trained" in told and "ranks 2 loss" not in told, told


@pytest.mark.parametrize("words", [("-n", "2"), ("-n", "x", "a"), ("a",), ("-n", "2", "-t", "0", "a")])
def test_mpi_says_how_it_is_used(job: Path, words: tuple[str, ...]):
    code, told = run(job, "./ideep-mpi.sh", *words, **MPICH)
    assert code == 2 and told.startswith("usage: ./ideep-mpi.sh"), told


def test_cron_tells_a_change_once_and_what_explains_it(made: Made, tmp_path: Path, wheel: Path):
    source, answer = made("3.7")
    assert answer.code == 0, answer.stdout
    environment = copy_environment(source, tmp_path / "env")
    folder = written(cron.RECIPE, tmp_path / "recipe", str(wheel))
    script = folder / "ideep-drift"
    script.chmod(0o755)
    variables = {
        "IDEEP_ENV": str(environment),
        "IDEEP_DRIFT_STATE": str(tmp_path / "state"),
        "IDEEP_DRIFT_VENV": str(tmp_path / "venv"),
    }
    code, told = run(folder, str(script), **variables)  # installs the doctor, too
    assert code == 0 and "is watched from now on" in told and "no fault seen" in told, told
    assert run(folder, str(script), **variables) == (0, "")
    pip_install(environment, "numpy==1.15.4")
    code, told = run(folder, str(script), **variables)
    assert code == 1 and "IDP305" in told and "because: package numpy" in told, told
    assert run(folder, str(script), **variables) == (1, "")
    pip_install(environment, "numpy==1.21.6")
    assert run(folder, str(script), **variables)[1] == f"ideep-drift: {environment} is again as it was\n"


def exec_start(unit: Path, moved: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """The command and the variables of a unit, as systemd reads them, with folders moved into the test's own."""
    text = unit.read_text().replace("\\\n", " ")
    for before, after in moved.items():
        text = text.replace(before, after)
    variables = dict(
        word.split("=", 1)
        for line in text.splitlines()
        if line.startswith("Environment=")
        for word in shlex.split(line.removeprefix("Environment="))
    )
    [command] = [line.removeprefix("ExecStart=") for line in text.splitlines() if line.startswith("ExecStart=")]
    words = [variables[word[2:-1]] if word.startswith("${") else word for word in shlex.split(command)]
    return words, variables


def test_systemd_the_commands_of_the_units(made: Made, tmp_path: Path, wheel: Path):
    source, _ = made("3.7")
    root = tmp_path / "root"
    environment = copy_environment(source, root / "srv" / "ideep")
    folder = written(systemd.RECIPE, tmp_path / "recipe", str(wheel))
    code, told = run(folder, "sh", "install.sh", "/srv/ideep", DESTDIR=str(root))
    assert code == 0, told
    moved = {name: f"{root}{name}" for name in ("/opt/ideepdoctor", "/var/lib/ideep-drift", "/var/cache/ideep-drift")}
    moved["IDEEP_ENV=/srv/ideep"] = f"IDEEP_ENV={environment}"
    (root / "var/lib/ideep-drift").mkdir(parents=True)  # StateDirectory=

    def start(name: str) -> tuple[int, str]:
        words, variables = exec_start(root / "etc/systemd/system" / f"ideep-drift{name}.service", moved)
        return run(folder, *words, **variables)

    assert start("")[0] == 2  # no baseline: loud
    assert start("-baseline")[0] == 0
    assert start("")[0] == 0
    pip_install(environment, "numpy==1.15.4")
    assert start("")[0] == 1
    code, told = start("-report")
    assert code == 0 and "IDP305" in told and "because: package numpy" in told, told
    assert start("-baseline")[0] == 0
    assert start("")[0] == 0
    code, told = run(folder, "sh", "install.sh", "/no/such", DESTDIR=str(root))
    assert code == 2 and "no environment at /no/such" in told
