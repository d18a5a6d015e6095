"""The command ``recipe``: text or files, and what it refuses without leaving anything behind."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from ideepdoctor import __version__
from ideepdoctor.cli import main
from ideepdoctor.commands.recipe import RecipeOptions, recipe
from ideepdoctor.commands.session import Session
from ideepdoctor.errors import UsageError
from ideepdoctor.recipes import RECIPES
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.progress import Quiet
from tests.recipes.refresh import ROOT, kept

SCHEMA = json.loads((files("ideepdoctor") / "render" / "report.schema.json").read_text("utf-8"))
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """The command line in a folder of its own: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("IDEEPDOCTOR_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "200")

    def started(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["recipe", *words])
        told = capfd.readouterr()
        return int(ended.value.code or 0), told.out, told.err

    return started


def files_below(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_without_a_name_every_recipe_is_listed(run: Run):
    code, out, err = run()
    assert (code, err) == (0, "") and run("--list")[1] == out
    for item in RECIPES:
        assert f"{item.name} " in out and item.uses in out
    document = json.loads(run("--format", "json")[1])
    jsonschema.validate(document, SCHEMA)
    assert [row["name"] for row in document["recipes"]] == [item.name for item in RECIPES]


def test_one_file_is_printed_and_several_need_a_folder(run: Run):
    code, out, err = run("kubernetes")
    assert (code, err) == (0, "")
    assert out == (ROOT / "recipes" / "kubernetes" / "job.yaml").read_text()
    code, out, err = run("docker")
    assert (code, out) == (2, "")
    assert "3 files: Dockerfile, entrypoint.sh, .dockerignore" in err and "recipe docker --output DIR" in err


def test_a_folder_gets_the_files_of_the_repository_and_a_second_run_changes_nothing(run: Run, tmp_path: Path):
    code, out, _ = run("docker", "--output", "made/here")
    assert code == 0 and out.count("written") == 3 and "docker build" in out
    assert kept(tmp_path / "made" / "here") == kept(ROOT / "recipes" / "docker")
    before = (tmp_path / "made/here/Dockerfile").stat().st_mtime_ns
    code, out, _ = run("docker", "--output", "made/here")
    assert code == 0 and out.count("the same") == 3 and "written" not in out
    assert (tmp_path / "made/here/Dockerfile").stat().st_mtime_ns == before
    (tmp_path / "made/here/entrypoint.sh").chmod(0o644)
    assert run("docker", "--output", "made/here")[1].count("written") == 1
    assert (tmp_path / "made/here/entrypoint.sh").stat().st_mode & 0o111


def test_json_has_the_texts_with_and_without_a_folder(run: Run, tmp_path: Path):
    code, out, err = run("conda", "--format", "json", "--python", "3.6.15", "--requirement", "ideepdoctor==9")
    assert (code, err) == (0, "")
    document = json.loads(out)
    jsonschema.validate(document, SCHEMA)
    told = document["recipe"]
    assert (told["python"], told["folder"], told["written"]) == ("3.6", None, [])
    assert [file["path"] for file in told["files"] if file["executable"]] == ["create.sh"]
    texts = {file["path"]: file["text"] for file in told["files"]}
    assert "python=3.6" in texts["environment.yml"] and '"ideepdoctor==9"' in texts["doctor.yml"]
    assert list(tmp_path.iterdir()) == []
    told = json.loads(run("conda", "--format", "json", "--output", "x")[1])["recipe"]
    assert told["written"] == [file["path"] for file in told["files"]] == ["create.sh", *told["written"][1:]]
    assert {file["path"]: file["text"] for file in told["files"]} == files_below(tmp_path / "x")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["dokcer"], ["no recipe is called 'dokcer'", "did you mean docker"]),
        (["Kubernetes"], ["no recipe is called 'Kubernetes'", "did you mean kubernetes"]),
        (["zzz"], ["no recipe is called 'zzz'", "docker, docker-build, devcontainer"]),
        (["docker", "--list"], ["--list"]),
        (["kubernetes", "--stack", "chainer9"], ["no stack is called chainer9", "chainer7.8.1"]),
        (["kubernetes", "--python", "3.11"], ["Python 3.11", "--python with one of: 3.7, 3.6"]),
        (["kubernetes", "--python", "3.5"], ["Python 3.5"]),
        (["docker-build", "--python", "3.14"], ["Python 3.14", "3.13"]),
        (["kubernetes", "--python", ".ideep"], ["'.ideep' is no version of Python"]),
        (["kubernetes", "--requirement", 'x" && rm -rf "/'], ["is nothing that pip installs by one word"]),
        (["kubernetes", "--requirement", "$(id)"], ["is nothing that pip installs by one word"]),
        (["kubernetes", "--requirement", "--index-url=x"], ["is nothing that pip installs by one word"]),
        (["kubernetes", "--requirement", ""], ["is nothing that pip installs by one word"]),
        (["docker", "-o", "x", "--requirement", "../a.whl"], ["../a.whl is not in it"]),
        (["docker", "-o", "x", "--requirement", "/tmp/a.whl"], ["/tmp/a.whl is not in it"]),
    ],
)
def test_what_cannot_be_is_one_error_with_a_way_out_and_leaves_nothing(run: Run, tmp_path: Path, words, said):
    code, out, err = run(*words)
    assert (code, out) == (2, "") and "Traceback" not in err
    for text in said:
        assert text in err
    document = json.loads(run(*words, "--format", "json")[1])
    assert document["error"]["exit_code"] == 2 and document["error"]["code"] == "usage"
    assert list(tmp_path.iterdir()) == []


def test_files_that_differ_are_refused_before_anything_is_written(run: Run, tmp_path: Path):
    (tmp_path / "entrypoint.sh").write_text("mine\n")
    code, out, err = run("docker", "--output", ".")
    assert (code, out) == (2, "") and "entrypoint.sh" in err and "--force" in err and ".dockerignore" not in err
    assert files_below(tmp_path) == {"entrypoint.sh": "mine\n"}
    code, out, _ = run("docker", "--output", ".", "--force")
    assert code == 0 and out.count("written") == 3
    assert kept(tmp_path) == kept(ROOT / "recipes" / "docker")


def test_a_folder_that_takes_no_files_is_one_error(run: Run, tmp_path: Path):
    (tmp_path / "file").write_text("")
    (tmp_path / "d" / "Dockerfile").mkdir(parents=True)
    for folder, said in (("file", "Not a directory"), ("file/below", "Not a directory"), ("d", "Is a directory")):
        code, out, err = run("docker", "--output", folder)
        assert (code, out) == (2, "") and said in err and "--output DIR" in err
    assert files_below(tmp_path) == {"file": ""}


class FullDisk(RealSystem):
    """A system whose disk is full after so many files."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left

    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        self.left -= 1
        if self.left == -1:
            raise OSError(28, "No space left on device", path)
        super().write_file(path, data, mode)


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_disk_that_is_full_half_way_gets_back_what_it_had(tmp_path: Path, left: int):
    session = Session(FullDisk(left), {}, str(tmp_path), Quiet(), lambda _report: True)
    asked = RecipeOptions("docker", "made/here")
    with pytest.raises(UsageError, match="No space left"):
        recipe(session, asked)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "Dockerfile").write_text("mine\n")
    (tmp_path / "Dockerfile").chmod(0o640)
    with pytest.raises(UsageError, match="No space left"):
        recipe(
            Session(FullDisk(left), {}, str(tmp_path), Quiet(), lambda _report: True),
            RecipeOptions("docker", ".", force=True),
        )
    assert files_below(tmp_path) == {"Dockerfile": "mine\n"}
    assert (tmp_path / "Dockerfile").stat().st_mode & 0o777 == 0o640


def test_a_recipe_says_which_doctor_it_is_from(run: Run):
    assert f"ideepdoctor {__version__}" in run("kubernetes")[1]
