"""The source in the work folder of a build: the same one goes on, another one begins anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ideepdoctor.builder import trees
from ideepdoctor.builder.cache import Store
from ideepdoctor.builder.trees import as_note, from_note, provide_tree, ref_of, source_key
from ideepdoctor.errors import UsageError
from ideepdoctor.model.build import BuildRequest, SourceTree
from ideepdoctor.system import RealSystem
from tests.builder.standin import StandIn, make_standin

REMOTE = BuildRequest("/python", "/out")


@pytest.fixture(scope="module")
def standin(tmp_path_factory: pytest.TempPathFactory) -> StandIn:
    return make_standin(tmp_path_factory.mktemp("upstream"))


@pytest.fixture
def told() -> list[str]:
    return []


def provided(request: BuildRequest, folder: Path, told: list[str]) -> SourceTree:
    system = RealSystem()
    work = folder / "work"
    work.mkdir(exist_ok=True)
    return provide_tree(system, request, str(work), Store(system, str(folder / "build"), told.append), told.append)


def test_of_the_public_repository_what_fits_chainer_is_fetched() -> None:
    assert ref_of(REMOTE) == "8800808"
    assert ref_of(replace(REMOTE, chainer="4.5.0")) == "v1.0.4"
    assert ref_of(replace(REMOTE, ref="v1.0.3")) == "v1.0.3"
    with pytest.raises(UsageError):
        ref_of(replace(REMOTE, chainer="3.0.0"))


def test_what_a_tag_or_commit_stands_for_is_kept_and_a_branch_is_not(standin: StandIn) -> None:
    keys = [source_key(replace(REMOTE, ref=ref)) for ref in (None, "v1.0.4", "8800808", "2" * 40)]
    assert None not in keys and keys[0] == keys[2] and len(set(keys)) == 3
    assert source_key(replace(REMOTE, ref="master")) is None
    assert source_key(replace(REMOTE, source=standin.url, ref=standin.commits["post3"])) is None
    assert source_key(replace(REMOTE, source="https://example.invalid/fork.git")) != keys[0]
    assert source_key(replace(REMOTE, mkldnn_source="https://example.invalid/mkl-dnn")) != keys[0]


def test_a_tree_as_data_and_back(tmp_path: Path, standin: StandIn, told: list[str]) -> None:
    asked = BuildRequest("/python", "/out", source=standin.url, ref=standin.commits["v1.0.3"])
    tree = provided(replace(asked, mkldnn_source=standin.mkldnn_url), tmp_path, told)
    assert tree.folder == str(tmp_path / "work" / "tree")
    assert tree.mkldnn_folder == f"{tree.folder}/python/external/mkldnn/source"
    assert from_note(as_note(tree, tree.folder), "/elsewhere").mkldnn_folder.startswith("/elsewhere/python/")
    assert from_note(as_note(tree, "/any"), "/any") == tree


def test_an_interrupted_build_of_the_same_source_goes_on_and_of_another_one_begins_anew(
    tmp_path: Path, standin: StandIn, told: list[str]
) -> None:
    folder = standin.checkout("post3", tmp_path / "mine")
    asked = BuildRequest("/python", "/out", source=str(folder))
    tree = provided(asked, tmp_path, told)
    compiled = Path(tree.folder, "build", "object.o")
    compiled.parent.mkdir()
    compiled.write_text("compiled")
    assert provided(asked, tmp_path, told) == tree and compiled.exists()
    assert "going on with what an interrupted run has compiled" in told
    assert not Path(tmp_path, "work", "fetched").exists()
    with (folder / "python" / "setup.py").open("a") as stream:
        stream.write("# changed\n")
    other = provided(asked, tmp_path, told)
    assert other.commit != tree.commit and not compiled.exists()
    assert Path(other.folder, "python", "setup.py").read_text().endswith("# changed\n")


def test_a_run_that_was_killed_while_it_copied_begins_anew(tmp_path: Path, standin: StandIn, told: list[str]) -> None:
    asked = BuildRequest("/python", "/out", source=str(standin.checkout("post3", tmp_path / "mine")))
    tree = provided(asked, tmp_path, told)
    Path(tmp_path, "work", "tree.json").unlink()
    Path(tree.folder, "python", "setup.py").unlink()
    assert Path(provided(asked, tmp_path, told).folder, "python", "setup.py").is_file()


def test_a_kept_source_is_not_fetched_again_and_not_touched(
    tmp_path: Path, standin: StandIn, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The stand-in's address is a path; for this test it counts as an address that is far away.
    monkeypatch.setattr(trees, "is_local", lambda _: False)
    asked = BuildRequest(
        "/python", "/out", source=standin.url, ref=standin.commits["post3"], mkldnn_source=standin.mkldnn_url
    )
    tree = provided(asked, tmp_path, told)
    Path(tree.folder, "python", "setup.py").write_text("changed by a build")
    (tmp_path / "two").mkdir()
    system, calls = RealSystem(), list[str]()
    monkeypatch.setattr(trees, "fetch", lambda *_: calls.append("fetched"))
    store = Store(system, str(tmp_path / "build"), told.append)
    again = provide_tree(system, asked, str(tmp_path / "two"), store, told.append)
    assert calls == [] and "the source is kept from an earlier run" in told
    assert again.commit == tree.commit and again.folder == str(tmp_path / "two" / "tree")
    assert Path(again.folder, "python", "setup.py").read_text() != "changed by a build"
