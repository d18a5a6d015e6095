"""The source of a build from all that ``--source`` takes, verified; a wrong one gives one error and leaves nothing."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from ideepdoctor.builder import recipe
from ideepdoctor.builder.archive_members import BadArchive
from ideepdoctor.builder.git_errors import CannotFetch, GitUnusable, NoSuchRef, WrongCommit
from ideepdoctor.builder.layout import NoSource, layout_of, prepare_pin, version_of
from ideepdoctor.builder.source import Kind, fetch, kind_of
from ideepdoctor.errors import DoctorError, Exit, UsageError
from ideepdoctor.model.build import BuildRequest, Layout, SourceTree
from ideepdoctor.system import RealSystem
from tests.builder.standin import StandIn, git, make_standin

Fetch = Callable[..., SourceTree]


@pytest.fixture(scope="module")
def standin(tmp_path_factory: pytest.TempPathFactory) -> StandIn:
    return make_standin(tmp_path_factory.mktemp("standin"))


@pytest.fixture
def get(tmp_path: Path) -> Fetch:
    """``get(SOURCE, REF)``: what fetch gives, in ``tmp_path/out/tree``; after an error ``tmp_path/out`` is empty."""
    out = tmp_path / "out"
    out.mkdir()

    def run(source: str | Path, ref: str | None = None, system: RealSystem | None = None, **more: object) -> SourceTree:
        for earlier in out.iterdir():
            shutil.rmtree(earlier)
        environ = more.pop("environ", None)
        request = BuildRequest("python", "wheels", source=str(source), ref=ref, **more)  # type: ignore[arg-type]
        try:
            tree = fetch(system or RealSystem(), request, str(out / "tree"), lambda _text: None, environ=environ)  # type: ignore[arg-type]
        except BaseException:
            assert list(out.iterdir()) == []
            raise
        assert [path.name for path in out.iterdir()] == ["tree"]
        return tree

    return run


@pytest.fixture
def recorded(standin: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in's hashes are those that are recorded for the releases."""
    monkeypatch.setattr(recipe, "RELEASES", releases_of(standin))


def releases_of(standin: StandIn) -> Mapping[str, recipe.SourceRelease]:
    old, pinned = standin.mkldnn_commits["v0.12"], standin.mkldnn_commits["v0.14"]
    commits = {version: standin.commits[f"v{version}"] for version in ("1.0.3", "1.0.4", "2.0.0")}
    commits["2.0.0.post3"] = standin.commits["post3"][:7]
    return {
        version: replace(
            release,
            commit=commits[version],
            ref=commits[version] if version == "2.0.0.post3" else release.ref,
            mkldnn_commit=old if version == "1.0.3" else pinned[:7],
            mkldnn_tag="v0.14" if version == "2.0.0.post3" else "",
        )
        for version, release in recipe.RELEASES.items()
    }


def files_of(folder: str | Path) -> dict[str, bytes]:
    top = Path(folder)
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


# From git


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(
    ("ref", "name", "mkldnn", "version"),
    [
        ("v1.0.3", "v1.0.3", "v0.12", "1.0.3"),
        ("v1.0.4", "v1.0.4", "v0.14", "1.0.4"),
        ("v2.0.0", "v2.0.0", "v0.14", "2.0.0"),
        (None, "post3", "v0.14", "2.0.0.post3"),
    ],
)
def test_a_release(get: Fetch, standin: StandIn, tmp_path: Path, ref: str | None, name: str, mkldnn: str, version: str):
    tree = get(f"file://{standin.url}", ref)
    layout = Layout.PREPARE if version == "1.0.3" else Layout.CMAKE
    inner = "python/external/mkldnn/source" if version == "1.0.3" else "mkl-dnn"
    folder = str(tmp_path / "out/tree")
    assert tree == SourceTree(
        folder=folder,
        commit=standin.commits[name],
        mkldnn_folder=f"{folder}/{inner}",
        mkldnn_commit=standin.mkldnn_commits[mkldnn],
        layout=layout,
        version=version,
        release=version,
    )
    assert Path(folder, "python/setup.py").is_file()
    assert Path(tree.mkldnn_folder, "CMakeLists.txt").is_file()
    assert not Path(folder, ".git").exists()
    assert not Path(folder, "tests/googletest/.git").exists()
    assert git(Path(tree.mkldnn_folder), "log", "-1", "--format=%H") == standin.mkldnn_commits[mkldnn]


@pytest.mark.usefixtures("recorded")
def test_the_release_for_a_chainer_from_a_repository_without_a_working_tree(
    get: Fetch, standin: StandIn, tmp_path: Path
):
    git(tmp_path, "clone", "--quiet", "--bare", standin.url, "bare.git")
    assert get(tmp_path / "bare.git", chainer="4.5.0").version == "1.0.4"


@pytest.mark.parametrize("digits", [40, 12, 7])
def test_a_commit_of_somebody_s_own_is_no_release(get: Fetch, standin: StandIn, digits: int):
    tree = get(standin.url, standin.commits["post3"][:digits])
    assert (tree.commit, tree.version, tree.release) == (standin.commits["post3"], "2.0.0.post3", None)
    assert tree.mkldnn_commit == standin.mkldnn_commits["v0.14"]


def test_a_commit_whose_prepare_step_clones_another_mkldnn_is_no_release(get: Fetch, standin: StandIn):
    tree = get(standin.url, standin.commits["v1.0.3"])
    assert (tree.layout, tree.version, tree.release) == (Layout.PREPARE, "1.0.3", None)


@pytest.mark.usefixtures("recorded")
def test_a_tag_that_was_moved(get: Fetch, standin: StandIn, tmp_path: Path):
    clone = standin.clone("master", tmp_path / "clone")
    git(clone, "tag", "--force", "v1.0.4", standin.commits["post3"])
    with pytest.raises(WrongCommit, match=r"ideep4py 1\.0\.4 is commit .* and v1\.0\.4 at .*clone is") as caught:
        get(clone, "v1.0.4")
    assert standin.commits["v1.0.4"] in caught.value.message
    assert standin.commits["post3"][:12] in caught.value.message
    assert caught.value.hint.endswith(f"--ref {standin.commits['post3']}")
    assert caught.value.exit_code == Exit.ROLLED_BACK
    assert get(clone, standin.commits["post3"]).release == "2.0.0.post3"


def test_a_release_with_another_mkldnn(get: Fetch, standin: StandIn, monkeypatch: pytest.MonkeyPatch):
    wrong = {name: replace(one, mkldnn_commit="c0095ec") for name, one in releases_of(standin).items()}
    monkeypatch.setattr(recipe, "RELEASES", wrong)
    with pytest.raises(WrongCommit, match=r"2\.0\.0\.post3 has MKL-DNN at c0095ec, and .* has it at"):
        get(f"file://{standin.url}")
    with pytest.raises(WrongCommit, match=r"MKL-DNN of ideep4py 1\.0\.3 is commit c0095ec, and its prepare step gives"):
        get(f"file://{standin.url}", "v1.0.3")


def test_the_recorded_hashes_are_upstream_s(get: Fetch, standin: StandIn):
    """The stand-in is not upstream: by the names of upstream's releases nothing of it passes as them."""
    with pytest.raises(NoSuchRef, match="no commit 8800808") as caught:
        get(f"file://{standin.url}")
    assert caught.value.hint == "--ref says which tag or commit of it is meant; its tags: v1.0.3, v1.0.4, v2.0.0"
    with pytest.raises(WrongCommit, match="ae00102be506"):
        get(standin.url, "v1.0.3")


def test_the_pinned_commit_is_not_where_mkldnn_comes_from(get: Fetch, standin: StandIn, tmp_path: Path):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    git(other, "commit", "--quiet", "--allow-empty", "-m", "another")
    git(other, "tag", "v0.14")
    with pytest.raises(NoSuchRef, match=f"no commit {standin.mkldnn_commits['v0.14']} at {other}"):
        get(standin.url, standin.commits["post3"], mkldnn_source=str(other))


def test_mkldnn_from_a_mirror(get: Fetch, standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    mirror = tmp_path / "mirror.git"
    git(tmp_path, "clone", "--quiet", "--bare", standin.mkldnn_url, str(mirror))
    moved = StandIn(tmp_path / "moved", standin.commits, standin.mkldnn_commits)
    shutil.copytree(Path(standin.url), moved.url)
    git(Path(moved.url), "config", "remote.origin.url", "/nowhere/ideep")
    monkeypatch.chdir(tmp_path)
    for address in (str(mirror), "mirror.git", f"file://{mirror}"):
        tree = get("moved/ideep", standin.commits["post3"], mkldnn_source=address)
        assert tree.mkldnn_commit == standin.mkldnn_commits["v0.14"]


def test_mkldnn_s_address_relative_to_ideep_s(get: Fetch, standin: StandIn, tmp_path: Path):
    clone = standin.clone("post3", tmp_path / "here/ideep", with_mkldnn=False)
    modules = clone / ".gitmodules"
    modules.write_text(modules.read_text().replace(standin.mkldnn_url, "../mkl-dnn"))
    git(clone, "commit", "--quiet", "-am", "relative")
    commit = git(clone, "rev-parse", "HEAD")
    assert get(clone, commit).mkldnn_commit == standin.mkldnn_commits["v0.14"]  # beside where it was cloned from
    git(clone, "remote", "remove", "origin")
    with pytest.raises(CannotFetch, match=f"no git repository in {clone.parent}/mkl-dnn"):
        get(clone, commit)
    git(tmp_path, "clone", "--quiet", standin.mkldnn_url, "here/mkl-dnn")
    assert get(f"file://{clone}", commit).mkldnn_commit == standin.mkldnn_commits["v0.14"]


def test_a_source_from_elsewhere_does_not_have_local_repositories_read(get: Fetch, standin: StandIn, tmp_path: Path):
    config = tmp_path / "config"
    config.write_text(f'[url "{standin.folder}/"]\n\tinsteadOf = https://far.invalid/\n')
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": str(config)}
    for ref in ("post3", "v1.0.3"):
        with pytest.raises(NoSource, match=f"wants MKL-DNN from {standin.mkldnn_url} on this machine"):
            get("https://far.invalid/ideep", standin.commits[ref], environ=environ)
    tree = get("https://far.invalid/ideep", standin.commits["post3"], environ=environ, mkldnn_source=standin.mkldnn_url)
    assert tree.version == "2.0.0.post3"


def test_mkldnn_among_ideep_s_own_files(get: Fetch, standin: StandIn, tmp_path: Path):
    repository = standin.checkout("post3", tmp_path / "own")
    git(repository, "init", "--quiet")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "all in one")
    commit = git(repository, "rev-parse", "HEAD")
    for ref in (commit, None):
        tree = get(repository, ref)
        assert (tree.commit, tree.mkldnn_commit) == (commit, "")
        assert Path(tree.mkldnn_folder, "CMakeLists.txt").is_file()


@pytest.mark.usefixtures("recorded")
def test_a_bundle(get: Fetch, standin: StandIn, tmp_path: Path):
    git(Path(standin.url), "bundle", "create", "--quiet", str(tmp_path / "ideep.bundle"), "--all")
    assert get(tmp_path / "ideep.bundle").release == "2.0.0.post3"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["rm", "-r", "python"], "is not ideep's source: it has no python/setup.py"),
        (["rm", "CMakeLists.txt"], "has neither CMakeLists.txt nor python/external"),
        (["rm", "--cached", "mkl-dnn"], "has no submodule mkl-dnn"),
        (["rm", "--cached", ".gitmodules"], "names no submodule mkl-dnn in .gitmodules"),
        (["rm", "python/ideep4py/__init__.py"], "has no ideep4py"),
    ],
)
def test_a_repository_that_is_no_ideep_source(
    get: Fetch, standin: StandIn, tmp_path: Path, change: list[str], words: str
):
    clone = standin.clone("post3", tmp_path / "clone", with_mkldnn=False)
    git(clone, *change[:1], "--quiet", *change[1:])
    git(clone, "commit", "--quiet", "-m", "without")
    with pytest.raises(NoSource) as caught:
        get(clone, git(clone, "rev-parse", "HEAD"))
    assert words in caught.value.message
    assert str(clone) in caught.value.message
    assert ".partial" not in caught.value.message + caught.value.hint


# From a folder


def test_a_clone(get: Fetch, standin: StandIn, tmp_path: Path):
    clone = standin.clone("post3", tmp_path / "clone")
    before = files_of(clone)
    tree = get(clone)
    assert tree.commit == standin.commits["post3"]
    assert tree.mkldnn_commit == standin.mkldnn_commits["v0.14"]
    assert {name for name in files_of(tree.folder) if "/.git/" in f"/{name}"} == set()
    assert files_of(tree.folder).items() <= before.items()
    after = files_of(clone)
    assert {name for name in after if after[name] != before.get(name)} <= {".git/index", "mkl-dnn/.git/index"}


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(("name", "version"), [("post3", "2.0.0.post3"), ("v1.0.4", "1.0.4"), ("v1.0.3", "1.0.3")])
def test_a_clone_of_a_release(get: Fetch, standin: StandIn, tmp_path: Path, name: str, version: str):
    assert get(standin.clone(name, tmp_path / "clone")).release == version


def test_a_clone_without_its_submodule(get: Fetch, standin: StandIn, tmp_path: Path):
    tree = get(standin.clone("post3", tmp_path / "clone", with_mkldnn=False))
    assert tree.mkldnn_commit == standin.mkldnn_commits["v0.14"]
    assert Path(tree.mkldnn_folder, "CMakeLists.txt").is_file()


@pytest.mark.usefixtures("recorded")
def test_a_clone_with_changes_has_no_commit(get: Fetch, standin: StandIn, tmp_path: Path):
    clone = standin.clone("post3", tmp_path / "clone")
    clean = get(clone)
    (clone / "include/ideep.hpp").write_text("// mine\n")
    tree = get(clone)
    assert tree.commit.startswith("folder:")
    assert Path(tree.folder, "include/ideep.hpp").read_text() == "// mine\n"
    assert tree.mkldnn_commit == clean.mkldnn_commit


def test_a_clone_whose_mkldnn_has_changes_is_not_its_commit(get: Fetch, standin: StandIn, tmp_path: Path):
    clone = standin.clone("post3", tmp_path / "clone")
    (clone / "mkl-dnn/src/memory.cpp").write_text("// mine\n")
    first = get(clone)
    assert (first.commit[:7], first.mkldnn_commit) == ("folder:", "")
    (clone / "mkl-dnn/src/memory.cpp").write_text("// mine again\n")
    assert get(clone).commit != first.commit
    git(clone / "mkl-dnn", "checkout", "--quiet", "--force", "HEAD")
    assert get(clone).commit == standin.commits["post3"]
    for name in ("mkl-dnn/src/mine.cpp", "python/ideep4py/mine.so"):  # one that nobody added, one that git ignores
        (clone / name).write_text("// mine\n")
        assert get(clone).commit.startswith("folder:")
        (clone / name).unlink()
    for name in ("build/x", "mkl-dnn/external/x", "mkl-dnn/build/x"):  # not copied
        (clone / name).parent.mkdir()
        (clone / name).write_text("left over")
    git(clone / "mkl-dnn", "checkout", "--quiet", "--force", standin.mkldnn_commits["master"])
    later = get(clone)
    assert (later.commit, later.mkldnn_commit) == (standin.commits["post3"], standin.mkldnn_commits["master"])


def test_a_folder_s_digest_is_of_what_is_in_it(get: Fetch, standin: StandIn, tmp_path: Path):
    folder = standin.checkout("post3", tmp_path / "plain")

    first = get(folder).commit
    (folder / "build").mkdir()
    (folder / "build/CMakeCache.txt").write_text("left over")
    os.utime(folder / "CMakeLists.txt")
    assert get(folder).commit == first
    (folder / "CMakeLists.txt").chmod(0o755)
    second = get(folder).commit
    (folder / "CMakeLists.txt").chmod(0o644)
    (folder / "CMakeLists.txt").write_text("# other")
    assert len({first, second, get(folder).commit}) == 3


def test_what_a_build_left_is_not_copied(get: Fetch, standin: StandIn, tmp_path: Path):
    folder = standin.checkout("post3", tmp_path / "plain")
    left = (
        "build/CMakeCache.txt",
        "mkl-dnn/build/x",
        "mkl-dnn/external/mklml/include/mkl_cblas.h",
        "python/build/lib/x.so",
        "python/ideep4py/lib/libmkldnn.so.0",
        "python/ideep4py/include/mklml/mkl_vsl.h",
        "python/ideep4py/_ideep4py.cpython-37m-x86_64-linux-gnu.so",
        "python/ideep4py/py/ideep4py_wrap.cpp",
        "python/ideep4py/__pycache__/x.pyc",
        "python/ideep4py.egg-info/PKG-INFO",
        ".venv/pyvenv.cfg",
        ".venv/bin/python",
        ".git/HEAD",
    )
    for name in left:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("left over")
    kept = "python/external/dlcp/lib/libdlcomp.so"  # upstream has this one in git
    (folder / kept).parent.mkdir(parents=True)
    (folder / kept).write_text("source")
    copied = files_of(get(folder).folder)
    assert not set(left) & set(copied)
    assert copied[kept] == b"source"


def test_links_of_a_folder_never_lead_back_into_it(get: Fetch, standin: StandIn, tmp_path: Path):
    folder = standin.checkout("post3", tmp_path / "plain")
    elsewhere = tmp_path / "elsewhere"
    shutil.move(folder / "mkl-dnn", elsewhere)
    (folder / "mkl-dnn").symlink_to(elsewhere)
    (elsewhere / "again").symlink_to(elsewhere)
    (folder / "README2").symlink_to(folder / "README.md")
    (folder / "README3").symlink_to("README.md")
    (folder / "nothing").symlink_to("nowhere")
    (folder / "round").symlink_to(".")
    os.mkfifo(folder / "pipe")
    tree = get(folder)
    top = Path(tree.folder)
    assert not (top / "mkl-dnn").is_symlink()
    assert (top / "mkl-dnn/CMakeLists.txt").is_file()
    assert not (top / "mkl-dnn/again").exists()
    assert (top / "README2").read_text() == (folder / "README.md").read_text()
    assert not (top / "README2").is_symlink()
    assert os.readlink(top / "README3") == "README.md"  # noqa: PTH115
    assert not (top / "pipe").exists()
    assert not any(path.is_symlink() and os.path.isabs(os.readlink(path)) for path in top.rglob("*"))  # noqa: PTH115, PTH117


def test_a_folder_without_git_and_without_mkldnn(get: Fetch, standin: StandIn, tmp_path: Path):
    folder = standin.checkout("v1.0.4", tmp_path / "plain", with_mkldnn=False)
    with pytest.raises(NoSource, match=f"{folder} has no MKL-DNN in mkl-dnn/") as caught:
        get(folder)
    assert "--mkldnn-source" in caught.value.hint
    inner = standin.folder / "mkl-dnn"
    plain = tmp_path / "mkldnn"
    shutil.copytree(inner, plain, ignore=shutil.ignore_patterns(".git"))
    (plain / "external").mkdir()
    tree = get(folder, mkldnn_source=str(plain))
    assert (tree.mkldnn_commit[:7], tree.release) == ("folder:", "1.0.4")
    assert Path(tree.mkldnn_folder, "src/memory.cpp").is_file()
    assert not Path(tree.mkldnn_folder, "external").exists()


@pytest.mark.usefixtures("recorded")
def test_a_known_release_s_mkldnn_by_its_tag(get: Fetch, standin: StandIn, tmp_path: Path):
    folder = standin.checkout("post3", tmp_path / "plain", with_mkldnn=False)
    tree = get(folder)
    assert (tree.mkldnn_commit, tree.release) == (standin.mkldnn_commits["v0.14"], "2.0.0.post3")


def test_a_known_release_s_mkldnn_by_a_tag_that_was_moved(get: Fetch, standin: StandIn, tmp_path: Path):
    folder = standin.checkout("post3", tmp_path / "plain", with_mkldnn=False)
    with pytest.raises(WrongCommit, match=r"MKL-DNN of ideep4py 2\.0\.0\.post3 is commit c0095ec"):
        get(folder)


def test_a_prepare_folder_with_its_own_clone(get: Fetch, standin: StandIn, tmp_path: Path):
    folder = standin.checkout("v1.0.3", tmp_path / "plain")
    step = folder / "python/external/mkldnn/prepare_mkldnn.py"
    step.write_text(step.read_text().replace(standin.mkldnn_url, "https://nowhere.invalid/mkl-dnn.git"))
    with pytest.raises(CannotFetch, match=r"https://nowhere\.invalid/mkl-dnn\.git cannot be reached"):
        get(folder)
    git(folder / "python/external/mkldnn", "clone", "--quiet", standin.mkldnn_url, "source")
    tree = get(folder)
    assert tree.mkldnn_commit == standin.mkldnn_commits["v0.12"]
    assert Path(tree.mkldnn_folder, ".git").is_dir()


@pytest.mark.parametrize(
    ("names", "words", "hint"),
    [
        ([], "no python/setup.py", "git clone"),
        (["inner/python/setup.py"], "no python/setup.py", "--source FOLDER/inner"),
        (["setup.py", "ideep4py/__init__.py"], "no python/setup.py", "this is the folder python of it"),
        (["python/setup.py"], "has no ideep4py", "Chainer needs"),
        (["python/setup.py", "python/ideep4py/__init__.py"], "neither CMakeLists.txt nor", "incomplete"),
    ],
)
def test_a_folder_that_is_no_ideep_source(get: Fetch, tmp_path: Path, names: list[str], words: str, hint: str):
    folder = tmp_path / "plain"
    folder.mkdir()
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    with pytest.raises(NoSource) as caught:
        get(folder)
    assert words in caught.value.message
    assert hint.replace("FOLDER", str(folder)) in caught.value.hint
    assert caught.value.exit_code == Exit.USAGE


# From an archive


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "tar.xz", "tar.bz2", "zip"])
def test_an_archive(get: Fetch, standin: StandIn, tmp_path: Path, kind: str):
    tree = get(standin.archive(kind, "post3", tmp_path))
    assert tree.commit.startswith("sha256:")
    assert (tree.version, tree.release, tree.mkldnn_commit) == ("2.0.0.post3", "2.0.0.post3", "")
    assert os.access(Path(tree.mkldnn_folder, "scripts/prepare_mkl.sh"), os.X_OK)


@pytest.mark.usefixtures("recorded")
def test_an_archive_without_mkldnn(get: Fetch, standin: StandIn, tmp_path: Path):
    tree = get(standin.archive("zip", "post3", tmp_path, with_mkldnn=False))
    assert tree.mkldnn_commit == standin.mkldnn_commits["v0.14"]


@pytest.mark.usefixtures("recorded")
def test_an_archive_of_the_prepare_layout(get: Fetch, standin: StandIn, tmp_path: Path):
    tree = get(standin.archive("tar.gz", "v1.0.3", tmp_path))
    assert (tree.mkldnn_commit, tree.release) == (standin.mkldnn_commits["v0.12"], "1.0.3")


def test_an_archive_of_the_prepare_layout_that_brings_its_clone(get: Fetch, standin: StandIn, tmp_path: Path):
    folder = standin.checkout("v1.0.3", tmp_path / "ideep")
    git(folder / "python/external/mkldnn", "clone", "--quiet", standin.mkldnn_url, "source")
    step = folder / "python/external/mkldnn/prepare_mkldnn.py"
    step.write_text(step.read_text().replace(standin.mkldnn_url, "https://nowhere.invalid/mkl-dnn.git"))
    packed = shutil.make_archive(str(tmp_path / "all"), "gztar", tmp_path, "ideep")
    tree = get(packed)
    assert tree.mkldnn_commit == standin.mkldnn_commits["v0.12"]
    assert git(Path(tree.mkldnn_folder), "log", "-1", "--format=%H") == standin.mkldnn_commits["v0.12"]


def test_an_archive_of_a_clone_with_its_submodule(get: Fetch, standin: StandIn, tmp_path: Path):
    standin.clone("v1.0.4", tmp_path / "ideep")
    tree = get(shutil.make_archive(str(tmp_path / "all"), "gztar", tmp_path, "ideep"))
    assert (tree.commit[:7], tree.mkldnn_commit, tree.release) == ("sha256:", "", "1.0.4")
    assert not list(Path(tree.folder).rglob(".git"))


def test_the_prepare_layout_wants_a_clone(get: Fetch, standin: StandIn, tmp_path: Path):
    packed = standin.archive("tar.gz", "v1.0.3", tmp_path)
    with pytest.raises(UsageError, match="is no git repository"):
        get(packed, mkldnn_source=str(packed))
    git(Path(standin.mkldnn_url), "bundle", "create", "--quiet", str(tmp_path / "mkl-dnn.bundle"), "--all")
    tree = get(packed, mkldnn_source=str(tmp_path / "mkl-dnn.bundle"))
    assert tree.mkldnn_commit == standin.mkldnn_commits["v0.12"]


def test_mkldnn_from_an_archive(get: Fetch, standin: StandIn, tmp_path: Path):
    git(Path(standin.mkldnn_url), "archive", "--prefix=mkl-dnn-0.14/", "-o", str(tmp_path / "m.tar.gz"), "v0.14")
    packed = standin.archive("tar.gz", "v1.0.4", tmp_path, with_mkldnn=False)
    tree = get(packed, mkldnn_source=str(tmp_path / "m.tar.gz"))
    assert tree.mkldnn_commit == f"sha256:{hashlib.sha256((tmp_path / 'm.tar.gz').read_bytes()).hexdigest()}"
    assert '"0.14.0"' in Path(tree.mkldnn_folder, "src/version.cpp").read_text()
    assert [path.name for path in Path(tree.folder, "mkl-dnn").parent.glob("mkl*")] == ["mkl-dnn"]
    with pytest.raises(NoSource, match="is not MKL-DNN's source"):
        get(packed, mkldnn_source=str(packed))


def test_a_ref_says_what_an_archive_is(get: Fetch, standin: StandIn, tmp_path: Path):
    packed = standin.archive("zip", "v1.0.4", tmp_path)
    with pytest.raises(UsageError, match=r"is ideep4py 1\.0\.4, not 2\.0\.0"):
        get(packed, "v2.0.0")
    assert get(packed, "v1.0.4").release == "1.0.4"


def test_an_archive_of_something_else(get: Fetch, tmp_path: Path):
    (tmp_path / "x/y").mkdir(parents=True)
    (tmp_path / "x/y/file").write_text("")
    packed = shutil.make_archive(str(tmp_path / "other"), "gztar", tmp_path / "x")
    with pytest.raises(NoSource, match=f"{packed} is not ideep's source: it has no python/setup.py"):
        get(packed)


def test_a_damaged_archive(get: Fetch, standin: StandIn, tmp_path: Path):
    packed = standin.archive("tar.gz", "post3", tmp_path)
    packed.write_bytes(packed.read_bytes()[:-2000])
    with pytest.raises(BadArchive, match="damaged or cut off"):
        get(packed)


# Whatever it is


@pytest.mark.parametrize(
    ("source", "ref", "words"),
    [
        ("--upload-pack=touch x", None, "no address"),
        ("ext::sh -c true", None, "not fetched from"),
        ("https://h.invalid/ideep-1.0.4.tar.gz", None, "the address of an archive"),
        ("/nowhere/at/all", None, "no folder or archive"),
    ],
)
def test_what_no_source_is(get: Fetch, source: str, ref: str | None, words: str):
    with pytest.raises(UsageError, match=words):
        get(source, ref)


def test_a_ref_of_a_folder_without_git(get: Fetch, standin: StandIn, tmp_path: Path):
    folder = standin.checkout("post3", tmp_path / "plain")
    with pytest.raises(UsageError, match="has no git, so --ref abcdef1"):
        get(folder, "abcdef1")
    assert kind_of(str(folder), "v1.0.4") is Kind.FOLDER


def test_a_ref_that_can_be_none(get: Fetch, standin: StandIn):
    with pytest.raises(UsageError, match="cannot be a tag or commit"):
        get(standin.url, "--upload-pack=touch")


def test_no_git(get: Fetch, standin: StandIn, tmp_path: Path):
    with pytest.raises(GitUnusable, match="no git on PATH"):
        get(f"file://{standin.url}", "v1.0.4", environ={"PATH": str(tmp_path)})
    tree = get(standin.checkout("post3", tmp_path / "plain"), environ={"PATH": str(tmp_path)})
    assert tree.version == "2.0.0.post3"


@pytest.mark.parametrize("command", ["init", "fetch", "checkout", "config"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_interruption_leaves_nothing(get: Fetch, standin: StandIn, command: str, error: type[BaseException]):
    class Interrupted(RealSystem):
        def run(self, argv, **more):  # type: ignore[no-untyped-def]
            if command in argv and ("mkl-dnn" in argv[2] or command == "init"):
                raise error
            return super().run(argv, **more)

    with pytest.raises(error):
        get(standin.url, standin.commits["post3"], Interrupted())


def test_what_a_killed_run_left_is_removed(get: Fetch, standin: StandIn, tmp_path: Path):
    (tmp_path / "out/tree.partial/tree").mkdir(parents=True)
    (tmp_path / "out/tree.partial/tree/x").write_text("left over")
    assert not Path(get(standin.url, standin.commits["post3"]).folder, "x").exists()


def test_every_error_says_what_to_do(get: Fetch, standin: StandIn, tmp_path: Path):
    for source, ref in ((standin.url, "nope"), ("/nowhere", None), ("file:///nowhere", "v1.0.4")):
        with pytest.raises(DoctorError) as caught:
            get(source, ref)
        assert caught.value.hint


# Reading a source


@pytest.mark.parametrize(
    ("package", "setup", "version"),
    [
        ("__version__ = '2.0.0.post3'", "setup(version='2.0.0')", "2.0.0.post3"),
        ('import x\n__version__ = "1.2"\n', "", "1.2"),
        ("", "from setuptools import setup\nsetup(name='x', version='1.0.4')", "1.0.4"),
        ("", "import setuptools\nsetuptools.setup(version='1.0.5')", "1.0.5"),
        ("print 'python 2'\n__version__ = '9'", "", "9"),
        ("", "print 'python 2'\nsetup(\n    name='x',\n    version='1.0.3',\n)", "1.0.3"),
        ("__version__ = '.'.join('123')", "setup(version='3')", "3"),
    ],
)
def test_the_version_of_a_source(tmp_path: Path, package: str, setup: str, version: str):
    (tmp_path / "python/ideep4py").mkdir(parents=True)
    (tmp_path / "python/ideep4py/__init__.py").write_text(package)
    (tmp_path / "python/setup.py").write_text(setup)
    assert version_of(str(tmp_path)) == version


def test_a_source_without_a_version(tmp_path: Path):
    (tmp_path / "python").mkdir()
    (tmp_path / "python/setup.py").write_text("import os; os._exit(9)  # is never run")
    with pytest.raises(NoSource, match="does not say which version"):
        version_of(str(tmp_path))


@pytest.mark.parametrize(
    ("cloned", "url"),
    [
        (
            "'git clone -b master \\\n   --single-branch https://h/01org/mkl-dnn.git source')",
            "https://h/01org/mkl-dnn.git",
        ),
        ('"git clone https://h/mkl-dnn"', "https://h/mkl-dnn"),
        ("['git', 'clone', 'https://h/mkl-dnn']", ""),
        ("'git clone https://h/other source'", ""),
    ],
)
def test_what_a_prepare_step_clones(tmp_path: Path, cloned: str, url: str):
    folder = tmp_path / "source/external"  # called as the clone and its parent are
    (folder / "python/external/mkldnn/source").mkdir(parents=True)
    (folder / "python/external/mkldnn/source/x.py").write_text("b" * 40)
    (folder / "python/setup.py").write_text("mkldnn_version = 'ae00102be506ed0fe2099c6557df2aa88ad57ec1'\n")
    (folder / "python/external/mkldnn/prepare_mkldnn.py").write_text(f"os.system({cloned}\n")
    pin = prepare_pin(str(folder))
    assert (pin.commit, pin.url) == ("ae00102be506ed0fe2099c6557df2aa88ad57ec1", url)


@pytest.mark.parametrize(("hashes", "words"), [([], "no commit"), (["a" * 40, "b" * 40], "several commits")])
def test_a_prepare_step_that_does_not_say_what_it_clones(tmp_path: Path, hashes: list[str], words: str):
    (tmp_path / "python").mkdir()
    (tmp_path / "python/setup.py").write_text("\n".join(hashes))
    with pytest.raises(NoSource, match=words):
        prepare_pin(str(tmp_path))


def test_the_layouts(standin: StandIn, tmp_path: Path):
    for name, layout in (("v1.0.3", Layout.PREPARE), ("v1.0.4", Layout.CMAKE), ("master", Layout.CMAKE)):
        folder = standin.checkout(name, tmp_path / name)
        assert layout_of(str(folder)) is layout
    old = tmp_path / "v1.0.3"
    (old / "CMakeLists.txt").write_text("")
    assert layout_of(str(old)) is Layout.PREPARE  # its setup.py decides
    setup = old / "python/setup.py"
    setup.write_text(setup.read_text().replace("external", "internal"))
    assert layout_of(str(old)) is Layout.CMAKE
    (old / "CMakeLists.txt").unlink()
    assert layout_of(str(old)) is Layout.PREPARE
