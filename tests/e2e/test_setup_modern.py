"""``setup`` where there is no older Python, and on Python 3.8 and later; real but for conda, pyenv and upstream."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import jsonschema
import pytest

from ideepdoctor.stacks.catalog import lock_for_build
from ideepdoctor.treatment.startup import startup_files
from tests.conftest import legacy_python
from tests.e2e.environments import Answer, doctor
from tests.stacks.lock import install

pytestmark = pytest.mark.e2e

SCHEMA = json.loads((Path(__file__).parents[2] / "ideepdoctor" / "render" / "report.schema.json").read_text("utf-8"))
TOOL = """#!/bin/sh
case "$1 $2" in
    "create --yes") prefix=$4 ;;
    "install "*) prefix=$PYENV_ROOT/versions/$2 ;;
    *) exit 0 ;;
esac
echo "$(basename "$0") $*" >> {log}
mkdir -p "$prefix/bin" && ln -s {python} "$prefix/bin/python"
"""


class Bare:
    """A machine of its own as far as PATH and HOME go: Python 3.11 and what a test puts beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "bin"
        self.bin.mkdir()
        self.log = folder / "asked"
        for name in ("python3.11",):
            (self.bin / name).symlink_to(legacy_python("3.11"))

    def tool(self, name: str) -> None:
        """A stand-in that notes what it is asked and links Python 3.7 to where it was asked for one."""
        path = self.bin / name
        path.write_text(TOOL.format(log=self.log, python=legacy_python("3.7")))
        path.chmod(0o755)

    def asked(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def doctor(self, *words: str, environ: Mapping[str, str] | None = None) -> Answer:
        own = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(self.folder), "PYENV_ROOT": str(self.folder / "pyenv")}
        own |= {"UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR") or str(Path.home() / ".cache/uv")}
        own |= {"IDEEPDOCTOR_STATE_DIR": str(self.folder / "state"), **(environ or {})}
        return doctor(*words, environ=own, cwd=self.folder, unset=("VIRTUAL_ENV", "CONDA_PREFIX"))


@pytest.fixture
def bare(tmp_path: Path) -> Bare:
    return Bare(tmp_path)


def test_it_offers_what_can_be_done_in_order_with_time_and_size(bare):
    for name in ("conda", "pyenv", "docker"):
        bare.tool(name)
    for words in (("setup",), ("setup", "--python", "3.11"), ("setup", "--yes")):
        answer = bare.doctor(*words, "--format", "json")
        assert answer.code == 1, answer.stdout
        lines = answer.document["error"]["hint"].splitlines()
        places = [
            next(place for place, line in enumerate(lines) if word in line)
            for word in ("--get-python conda", "--get-python pyenv", "docker run", "setup --build --python 3.11")
        ]
        assert places == sorted(places)
        assert all("about" in lines[place] and "B " in lines[place] for place in places)
    assert bare.asked() == []


@pytest.mark.parametrize("way", ["conda", "pyenv"])
def test_nobody_gets_a_python_without_having_asked_for_it(bare, way):
    bare.tool(way)
    answer = bare.doctor("setup", "--get-python", way, "--format", "json")
    assert answer.code == 2, "without a terminal and without --yes"
    shown = bare.doctor("setup", "--get-python", way, "--dry-run", "--format", "json")
    assert shown.code == 0, shown.stdout
    (step,) = shown.document["plan"]["steps"]
    assert f"with {way}" in step["title"]
    assert bare.asked() == []
    assert sorted(path.name for path in bare.folder.iterdir() if path.name not in ("bin", ".cache", "state")) == []


@pytest.mark.slow
def test_conda_gets_one_setup_goes_on_and_both_are_undone(bare):
    bare.tool("conda")
    prefix = bare.folder / "state/pythons/conda-3.7"
    answer = bare.doctor("setup", "--get-python", "conda", "--yes", "--format", "json")
    assert answer.code == 0, answer.stdout + answer.stderr
    assert bare.asked() == [f"conda create --yes --prefix {prefix} python=3.7"]
    assert answer.document["proof"]["used"] is True
    assert answer.document["target"]["version"].startswith("3.7.")
    undo = [line.rpartition("ideepdoctor ")[2].split() for line in answer.document["next"] if "undo" in line]
    assert len(undo) == 2
    for words in undo:
        assert (bare.folder / ".ideep").exists() or words is undo[1]
        assert prefix.exists()
        assert bare.doctor(*words).code == 0
    assert not prefix.exists() and not (bare.folder / ".ideep").exists()


@pytest.mark.slow
def test_pyenv_gets_one_where_its_own_are_and_undo_takes_it_away(bare):
    bare.tool("pyenv")
    answer = bare.doctor("setup", "--get-python", "pyenv", "--yes", "--format", "json")
    assert answer.code == 0, answer.stdout + answer.stderr
    assert bare.asked() == ["pyenv install 3.7.17"]
    prefix = bare.folder / "pyenv/versions/3.7.17"
    last = answer.document["next"][-1].rpartition("ideepdoctor ")[2].split()
    assert prefix.exists() and bare.doctor(*last).code == 0
    assert not prefix.exists()


def test_without_a_network_a_build_is_one_clear_error(bare):
    bare.tool("conda")
    nowhere = {"IDEEPDOCTOR_SOURCE": "https://127.0.0.1:9/ideep.git", "IDEEPDOCTOR_CACHE_DIR": str(bare.folder / "c")}
    for more in ((), ("--offline",)):
        answer = bare.doctor("setup", "--build", "--python", "3.11", *more, "--format", "json", environ=nowhere)
        assert answer.code == 3, answer.stdout
        assert "built" in answer.document["error"]["message"]
        assert "--wheelhouse DIR" in answer.document["error"]["hint"]
    assert not (bare.folder / ".ideep").exists()


@pytest.fixture(scope="module")
def numpy_alone(tmp_path_factory: pytest.TempPathFactory):
    """``numpy_alone("3.11")``: an environment with the lock of that Python and no ideep4py."""
    known: dict[str, Path] = {}

    def make(version: str) -> Path:
        if version not in known:
            folder = tmp_path_factory.mktemp("numpy")
            lock = lock_for_build(f"cp{version.replace('.', '')}", None)[1]
            python, _ = install(folder, legacy_python(version), version, lock.requirements)
            known[version] = python
        return known[version]

    return make


def told(python: Path, *words: str) -> Answer:
    return doctor("diagnose", "--python", str(python), *words, "--format", "json")


@pytest.mark.parametrize(
    "version", ["3.11", *(pytest.param(one, marks=pytest.mark.slow) for one in ("3.8", "3.9", "3.10"))]
)
def test_chainer_with_numpy_alone_is_sent_to_both_ways_and_nothing_else_is_wrong(numpy_alone, version):
    answer = told(numpy_alone(version))
    assert answer.codes("error", "warning") == ["IDP201"]
    (finding,) = [item for item in answer.document["findings"] if item["code"] == "IDP201"]
    assert finding["severity"] == "warning" and answer.code == 0
    assert finding["treatment"]["next_step"].startswith("ideepdoctor setup")
    assert finding["treatment"]["next_step"].endswith(
        f"; or have one built for this Python: ideepdoctor setup --build --python {version}"
    )


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_from_3_12_on_chainer_imports_with_the_start_up_file_alone(numpy_alone, version):
    python = numpy_alone(version)
    answer = told(python)
    assert "IDP306" in answer.codes("error")
    (finding,) = [item for item in answer.document["findings"] if item["code"] == "IDP306"]
    assert finding["treatment"]["next_step"] == f"ideepdoctor setup --build --python {version}"
    (site,) = (python.parents[1] / "lib").glob("python*/site-packages")
    for step in startup_files((), str(site), guard=True):
        Path(step.path).write_text(step.content)
    try:
        for words in ((), ("--quick",)):
            codes = told(python, *words).codes("error", "warning")
            assert "IDP306" not in codes and "IDP201" in codes
    finally:
        for step in startup_files((), str(site), guard=True):
            Path(step.path).unlink()


@pytest.fixture(scope="module")
def house(made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an ideep4py for 3.7 as ``build`` packs it; what is in it is the index's."""
    from tests.builder.packed import packed

    env, answer = made("3.7")
    assert answer.code == 0, answer.stdout
    staging = tmp_path_factory.mktemp("staging")
    site = staging / "lib/python3.7/site-packages"
    site.mkdir(parents=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(env / "lib/python3.7/site-packages/ideep4py", site / "ideep4py", ignore=ignored)
    return Path(packed(staging, tmp_path_factory.mktemp("house")).path).parent


@pytest.mark.slow
def test_a_built_wheel_of_a_wheelhouse_is_installed_proved_and_nothing_is_wrong_with_it(house, tmp_path):
    env = tmp_path / "env"
    words = ("setup", "--python", legacy_python("3.7"), "--build", "--wheelhouse", str(house), "--env", str(env))
    planned = doctor(*words, "--dry-run", "--format", "json")
    assert planned.code == 0 and not env.exists(), planned.stdout
    answer = doctor(*words, "--yes", "--format", "json")
    assert answer.code == 0, answer.stdout + answer.stderr
    for document in (planned.document, answer.document):
        jsonschema.validate(document, SCHEMA)
        assert document["ideep4py"]["built"] == "before"
    assert answer.document["target"]["packages"]["ideep4py"] == "2.0.0.post3+doctor.v3"
    assert answer.document["proof"]["used"] is True
    assert {check["status"] for check in answer.document["proof"]["checks"]} == {"right"}
    assert answer.codes("error", "warning") == []
    found = told(env / "bin/python")
    assert (found.code, found.codes("error", "warning"), found.document["unknown"]) == (0, [], [])
    guard = doctor("guard", "status", "--python", str(env), "--format", "json").document["guard"]
    assert sum(row["active"] for row in guard["corrections"]) >= 14
    again = doctor("setup", "--python", "3.7", "--env", str(env), "--yes", "--format", "json")
    assert again.code == 0, "it is what was asked for, whoever built its ideep4py"


@pytest.mark.slow
def test_a_build_that_computes_nothing_is_refused_by_name_and_leaves_nothing(tmp_path):
    from tests.builder.standin import make_standin

    standin = make_standin(tmp_path / "upstream")
    environ = {
        "IDEEPDOCTOR_SOURCE": standin.url,
        "IDEEPDOCTOR_REF": standin.commits["post3"],
        "IDEEPDOCTOR_MKLDNN_SOURCE": standin.mkldnn_url,
        "IDEEPDOCTOR_CACHE_DIR": str(tmp_path / "cache"),
    }
    env = tmp_path / "env"
    words = ("setup", "--build", "--python", legacy_python("3.11"), "--env", str(env), "--yes", "--format", "json")
    planned = doctor(*words, "--dry-run", environ=environ)
    assert planned.code == 0, planned.stdout
    jsonschema.validate(planned.document, SCHEMA)
    assert planned.document["build"]["ref"] == standin.commits["post3"]
    answer = doctor(*words, environ=environ)
    assert answer.code == 1, answer.stdout + answer.stderr
    assert "computes nothing" in answer.document["error"]["message"]
    assert not env.exists()
