"""The recipes of containers, carried out: the steps of their Dockerfiles, their scripts, the commands of their pods."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from ideepdoctor import __version__
from ideepdoctor.recipes import RECIPES
from ideepdoctor.recipes.base import find, settings_for
from ideepdoctor.recipes.render import render
from tests.builder.packed import packed
from tests.builder.standin import make_standin
from tests.e2e.dockerfiles import Bind, Engine, StepFailed
from tests.e2e.environments import Answer
from tests.e2e.standin_images import add, machine
from tests.recipes.clone import wheel_of_this_clone

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PROGRAM = """
import os, chainer, numpy
from chainer import functions as F
from chainer.backends import intel64
x = numpy.ones((2, 8, 8, 8), "f")
with chainer.using_config("use_ideep", "auto"):
    y = F.relu(F.convolution_2d(x, numpy.ones((8, 8, 3, 3), "f")))
print(isinstance(y.array, intel64.mdarray), float(numpy.asarray(y.array).max()))
print(os.getuid(), os.getcwd(), os.environ["OMP_NUM_THREADS"], os.environ["CHAINER_USE_IDEEP"])
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("images")
    try:
        yield machine(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel_of_this_clone(tmp_path_factory.mktemp("wheel"))


def written(name: str, folder: Path, wheel: Path, **asked: str) -> Path:
    """A recipe in a folder, with the wheel of this clone beside it."""
    recipe = find(RECIPES, name)
    settings = settings_for(recipe, doctor_version=__version__, requirement=f"./{wheel.name}", **asked)
    executable = {file.path for file in recipe.files if file.executable}
    for path, text in render(recipe, settings).items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
        place.chmod(0o755 if path in executable else 0o644)
    shutil.copy(wheel, folder)
    return folder


class Docker:
    """The images of the recipe ``docker`` for one Python."""

    def __init__(self, engine: Engine, folder: Path, wheel: Path, python: str, debian: str) -> None:
        self.engine, self.context = engine, written("docker", folder, wheel, python=python)
        self.python = python
        for name in (f"python:{python}-slim-{debian}", f"python:3.11-slim-{debian}"):
            add(engine, name)
        if debian != "bookworm":
            add(engine, f"python:{python}-{debian}")
        self.kept, self.doctor = engine.build(self.context, self.context / "Dockerfile", targets=(None, "doctor"))


@pytest.fixture(scope="module", params=[("3.7", "bookworm"), ("2.7", "buster")], ids=["3.7", "2.7"])
def docker(request, engine: Engine, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Docker:
    return Docker(engine, tmp_path_factory.mktemp("docker"), wheel, *request.param)


def without_avx(folder: Path) -> Bind:
    """This machine's processor without AVX, as far as Linux tells."""
    file = folder / "cpuinfo"
    file.write_text(Path("/proc/cpuinfo").read_text().replace(" avx ", " "))
    return Bind(file, "/proc/cpuinfo")


def test_the_image_is_proved_while_it_is_built_and_holds_the_proof(docker: Docker):
    proof = json.loads(docker.engine.run(docker.kept, ["cat", "/opt/ideep/proof.json"]).stdout)
    assert (proof["summary"]["errors"], proof["summary"]["exit_code"]) == (0, 0)
    assert proof["proof"]["used"] is True and {item["status"] for item in proof["proof"]["checks"]} == {"right"}
    assert proof["target"]["version"].startswith(docker.python)
    assert docker.kept.labels["ideepdoctor.stack"] in (docker.context / "Dockerfile").read_text()
    assert docker.engine.run(docker.kept, ["ideepdoctor"]).returncode != 0, "nothing of the doctor is kept"


def test_a_program_runs_with_ideep_as_nobody_special_without_a_network(docker: Docker):
    done = docker.engine.run(docker.kept, ["python", "-c", PROGRAM], read_only=True)
    assert done.returncode == 0, done.stderr
    used, settings = done.stdout.splitlines()[:2]
    assert "True" in used and "72.0" in used
    assert "1000" in settings and "/work" in settings and "auto" in settings


@pytest.mark.parametrize("share", [1, 2])
def test_threads_go_by_the_quota_of_the_container(docker: Docker, tmp_path: Path, share: int):
    tmp_path.chmod(0o755)  # the container's user looks into it
    (tmp_path / "cpu.max").write_text(f"{share * 100000 - 50000} 100000\n")
    words = ["sh", "-c", "echo $OMP_NUM_THREADS"]
    done = docker.engine.run(docker.kept, words, binds=[Bind(tmp_path, "/sys/fs/cgroup")])
    assert done.stdout == f"{share}\n"


def test_a_processor_without_avx_is_refused_before_the_program_starts(docker: Docker, tmp_path: Path):
    done = docker.engine.run(docker.kept, ["echo", "started"], binds=[without_avx(tmp_path)])
    assert (done.returncode, done.stdout) == (69, "")
    assert "needs avx" in done.stderr


def test_the_health_check_sees_a_library_that_is_gone(docker: Docker, tmp_path: Path):
    assert docker.engine.run(docker.kept, docker.kept.health, entrypoint=()).returncode == 0
    gone = Bind(tmp_path, f"/opt/ideep/lib/python{docker.python}/site-packages/ideep4py/lib")
    assert docker.engine.run(docker.kept, docker.kept.health, entrypoint=(), binds=[gone]).returncode != 0


def test_the_image_with_the_doctor_diagnoses_itself(docker: Docker):
    done = docker.engine.run(docker.doctor)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no fault seen" in done.stdout and f"Python {docker.python}" in done.stdout


class Pod:
    """The pod of the recipe ``kubernetes`` on the images of the recipe ``docker``."""

    def __init__(self, docker: Docker) -> None:
        recipe = find(RECIPES, "kubernetes")
        text = render(recipe, settings_for(recipe, doctor_version=__version__, python=docker.python))["job.yaml"]
        self.job = yaml.safe_load(text)
        self.spec: dict[str, Any] = self.job["spec"]["template"]["spec"]
        self.docker = docker
        self.images = {"ideep": docker.kept, "ideep:doctor": docker.doctor}

    def run(self, container: Mapping[str, Any], environ: Mapping[str, str], binds: Sequence[Bind]) -> Answer:
        """One container as the kubelet starts it; its limit is this machine's two CPUs."""
        assert "command" not in container, "the entrypoint looks at the processor"
        limits = {**container["resources"]["limits"], "cpu": "2"}
        env = {}
        for item in container["env"]:
            field = item.get("valueFrom", {}).get("resourceFieldRef")
            env[item["name"]] = item["value"] if field is None else limits[field["resource"].removeprefix("limits.")]
        locked, who = container["securityContext"], self.spec["securityContext"]
        done = self.docker.engine.run(
            self.images[container["image"]],
            container["args"],
            environ={**env, **environ},
            binds=binds,
            user=f"{who['runAsUser']}:{who['runAsGroup']}",
            read_only=locked["readOnlyRootFilesystem"],
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def start(self, environ: Mapping[str, str] | None = None, binds: Sequence[Bind] = ()) -> list[Answer]:
        """Its containers in turn, until one fails."""
        answers: list[Answer] = []
        for container in (*self.spec["initContainers"], *self.spec["containers"]):
            answers.append(self.run(container, environ or {}, binds))
            if answers[-1].code != 0:
                break
        return answers


def test_a_pod_proves_its_node_and_then_runs_the_program(docker: Docker):
    proved, program = Pod(docker).start()
    assert proved.code == program.code == 0, proved.stdout + proved.stderr + program.stderr
    assert "used     yes" in proved.stdout and "2 threads" in proved.stdout
    assert "iDeep: 2.0.0.post3" in program.stdout


def test_a_pod_refuses_a_node_that_cannot_or_is_wrong_and_says_why(docker: Docker, tmp_path: Path):
    [refused] = Pod(docker).start(binds=[without_avx(tmp_path)])
    assert refused.code == 69 and "needs avx" in refused.stderr
    [wrong] = Pod(docker).start(environ={"IDEEPDOCTOR_GUARD": "off"})
    assert wrong.code == 1 and "IDP6" in wrong.stdout, wrong.stdout
    (tmp_path / "empty").mkdir(mode=0o755)
    gone = Bind(tmp_path / "empty", f"/opt/ideep/lib/python{docker.python}/site-packages/ideep4py/lib")
    [broken] = Pod(docker).start(binds=[gone])
    assert broken.code == 1 and "IDP406" in broken.stdout


def test_a_devcontainer_makes_and_proves_its_environment(engine: Engine, wheel: Path, tmp_path: Path):
    folder = written("devcontainer", tmp_path, wheel)
    tmp_path.chmod(0o777)
    told = json.loads((folder / ".devcontainer/devcontainer.json").read_text())
    for name in ("python:3.7-bookworm", "python:3.11-slim-bookworm"):
        add(engine, name)
    [image] = engine.build(folder, folder / ".devcontainer" / told["build"]["dockerfile"])
    workspace = Bind(folder, "/workspaces/project")
    image = replace(image, workdir=workspace.target, env={**image.env, **told["containerEnv"]})
    upper = engine.layer()
    done = engine.step(image, ["/bin/sh", "-c", told["postCreateCommand"]], upper, binds=[workspace])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "READY: Python 3.7" in done.stdout
    path = told["remoteEnv"]["PATH"].replace("${containerEnv:PATH}", image.env["PATH"])
    created = replace(image, layers=(*image.layers, upper), env={**image.env, "PATH": path})
    started = engine.run(created, ["/bin/sh", "-c", told["postStartCommand"]], binds=[workspace])
    assert started.returncode == 0 and "no fault seen" in started.stdout, started.stdout + started.stderr
    interpreter = told["customizations"]["vscode"]["settings"]["python.defaultInterpreterPath"]
    for program in (interpreter, "python"):
        ran = engine.run(created, [program, "-c", PROGRAM], environ={"OMP_NUM_THREADS": "2"}, binds=[workspace])
        assert ran.returncode == 0 and "True" in ran.stdout, ran.stderr
    again = engine.step(created, ["/bin/sh", "-c", told["postCreateCommand"]], engine.layer(), binds=[workspace])
    assert again.returncode == 0 and "used     yes" in again.stdout, again.stdout + again.stderr


def test_docker_build_compiles_and_hands_out_nothing_that_was_not_proved(engine: Engine, wheel: Path, tmp_path: Path):
    standin = make_standin(tmp_path / "upstream")
    folder = written("docker-build", tmp_path / "context", wheel)
    shutil.move(standin.archive("tar.gz", standin.commits["post3"], tmp_path), folder / "ideep.tar.gz")
    for name in ("python:3.11-slim-bookworm", "python:3.11-bookworm"):
        add(engine, name)
    with pytest.raises(StepFailed) as refused:
        engine.build(folder, folder / "Dockerfile", {"SOURCE": "/upstream/ideep.tar.gz"}, ["wheel"])
    assert refused.value.code == 1
    # The stand-in of upstream's source is compiled and packed, and then found out.
    said = " ".join(refused.value.said.split())
    assert "computes nothing" in said and "the extension lacks what Chainer uses" in said


def test_docker_build_installs_and_proves_what_was_built(
    engine: Engine, wheel: Path, tmp_path: Path, made: Callable[..., tuple[Path, Answer]]
):
    folder = written("docker-build", tmp_path / "context", wheel, python="3.7")
    env, answer = made("3.7")
    assert answer.code == 0, answer.stdout
    site = tmp_path / "staging/lib/python3.7/site-packages"
    site.mkdir(parents=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(env / "lib/python3.7/site-packages/ideep4py", site / "ideep4py", ignore=ignored)
    (folder / "wheels").mkdir()
    shutil.copy(packed(tmp_path / "staging", tmp_path / "packed").path, folder / "wheels")
    for name in ("python:3.7-slim-bookworm", "python:3.7-bookworm", "python:3.11-slim-bookworm"):
        add(engine, name)
    # Instead of the one step that compiles: a wheel as build packs it, with what the index has in it.
    text = (folder / "Dockerfile").read_text()
    before, found, after = text.partition(
        "RUN --mount=type=cache,target=/root/.cache,sharing=locked \\\n    IDEEPDOCTOR_"
    )
    step, blank, rest = after.partition("\n\n")
    assert found and blank and " build --python" in step
    (folder / "Dockerfile").write_text(f"{before}COPY wheels /wheels\n\n{rest}")
    kept, whl = engine.build(folder, folder / "Dockerfile", targets=(None, "wheel"))
    done = engine.run(kept, ["python", "-c", PROGRAM])
    assert done.returncode == 0 and "True" in done.stdout, done.stderr
    proof = json.loads(engine.run(kept, ["cat", "/opt/ideep/proof.json"]).stdout)
    assert proof["target"]["packages"]["ideep4py"] == "2.0.0.post3+doctor.v3"
    assert [path.suffix for path in whl.layers[-1].iterdir()] == [".whl"]
    refused = engine.run(kept, ["true"], binds=[without_avx(tmp_path)])
    assert refused.returncode == 69 and "needs avx," in refused.stderr
