"""A repository of upstream's shape, made with git on the spot, so that every test of a build has something to build.

It is ours and it computes nothing: its library exports none of MKL-DNN's functions and its extension offers an
``mdarray`` that holds nothing. What it has is upstream's habits: the commands, the order, the mistakes.

A build by hand, in two seconds: see ``test_standin.py``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

TEMPLATES = Path(__file__).parent / "upstream"
MKLML = {"v0.12": "mklml_lnx_2018.0.1.20171227", "v0.14": "mklml_lnx_2018.0.3.20180406"}
IDENTITY = {
    "GIT_AUTHOR_NAME": "Stand In",
    "GIT_AUTHOR_EMAIL": "stand@in.invalid",
    "GIT_COMMITTER_NAME": "Stand In",
    "GIT_COMMITTER_EMAIL": "stand@in.invalid",
    "GIT_AUTHOR_DATE": "2018-04-13T12:00:00Z",
    "GIT_COMMITTER_DATE": "2018-04-13T12:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}
ABSENT = "1" * 40
"""Gitlink of the submodules that nothing needs; their addresses lead nowhere."""


def git(folder: Path, *arguments: str, stdin: str | None = None) -> str:
    """What ``git`` prints; a CalledProcessError where it fails."""
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        check=True,
        capture_output=True,
        text=True,
        input=stdin,
        env={**os.environ, **IDENTITY},
    )
    return done.stdout.strip()


@dataclass(frozen=True)
class StandIn:
    """The two repositories.

    Attributes:
        folder: holds ``ideep`` and ``mkl-dnn``, two repositories that git takes as addresses.
        commits: hashes of the stand-in of ideep: v1.0.3, v1.0.4, v2.0.0 (these three are tags too), post3 (the commit
            after v2.0.0 that says 2.0.0.post3), master.
        mkldnn_commits: hashes of the stand-in of MKL-DNN: v0.12 (which v1.0.3 clones), v0.14 (the submodule; both are
            tags too), master (later than both).
    """

    folder: Path
    commits: Mapping[str, str] = field(default_factory=dict)
    mkldnn_commits: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Address of the stand-in of ideep: a path."""
        return str(self.folder / "ideep")

    @property
    def mkldnn_url(self) -> str:
        """Address of the stand-in of MKL-DNN: a path."""
        return str(self.folder / "mkl-dnn")

    def move_tag(self, name: str, commit: str) -> None:
        """Make a tag of ideep's stand-in point elsewhere."""
        git(Path(self.url), "tag", "-f", name, commit)

    def checkout(self, ref: str, folder: Path, *, with_mkldnn: bool = True) -> Path:
        """Write the files of a commit into a new folder, without git; with MKL-DNN's where the commit has it as a
        submodule."""
        folder.mkdir(parents=True)
        _export(Path(self.url), self.commits.get(ref, ref), folder)
        if with_mkldnn and (folder / ".gitmodules").exists():
            link = git(Path(self.url), "rev-parse", f"{self.commits.get(ref, ref)}:mkl-dnn")
            _export(Path(self.mkldnn_url), link, folder / "mkl-dnn")
        return folder

    def clone(self, ref: str, folder: Path, *, with_mkldnn: bool = True) -> Path:
        """A person's clone of a commit, with its submodule (by ``git clone``) or without."""
        git(self.folder, "clone", "--quiet", self.url, str(folder))
        git(folder, "checkout", "--quiet", self.commits.get(ref, ref))
        if with_mkldnn and (folder / ".gitmodules").exists():
            link = git(folder, "rev-parse", "HEAD:mkl-dnn")
            git(folder, "clone", "--quiet", self.mkldnn_url, "mkl-dnn")
            git(folder / "mkl-dnn", "checkout", "--quiet", link)
        return folder

    def archive(self, kind: str, ref: str, folder: Path, *, with_mkldnn: bool = True) -> Path:
        """Pack the files of a commit under one folder ``ideep-REF``.

        Args:
            kind: ``tar``, ``tar.gz``, ``tar.xz``, ``tar.bz2`` or ``zip``.
            folder: where the archive is written.
        """
        top = f"ideep-{ref.removeprefix('v')}"
        tree = self.checkout(ref, folder / f"unpacked-{kind}" / top, with_mkldnn=with_mkldnn)
        path = folder / f"{top}.{kind}"
        if kind == "zip":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
                for file in sorted(tree.rglob("*")):
                    packed.write(file, f"{top}/{file.relative_to(tree)}")
        else:
            with tarfile.open(path, f"w:{kind.removeprefix('tar').removeprefix('.')}") as packed:
                packed.add(tree, top)
        shutil.rmtree(tree.parent)
        return path


def make_standin(folder: Path) -> StandIn:
    """Make both repositories in a folder. Takes half a second."""
    mkldnn, ideep = folder / "mkl-dnn", folder / "ideep"
    for repository in (mkldnn, ideep):
        repository.mkdir(parents=True)
        git(repository, "init", "--quiet", "--initial-branch=master")
        for name in ("uploadpack.allowAnySHA1InWant", "uploadpack.allowFilter"):  # as public servers have it
            git(repository, "config", name, "true")
    mkldnn_commits = {
        "v0.12": _mkldnn_commit(mkldnn, "0.12.0", MKLML["v0.12"], tag="v0.12"),
        "v0.14": _mkldnn_commit(mkldnn, "0.14.0", MKLML["v0.14"], tag="v0.14"),
        "master": _mkldnn_commit(mkldnn, "0.16.0", MKLML["v0.14"]),
    }
    old, pinned, newest = mkldnn_commits.values()
    commits = {
        "v1.0.3": _prepare_commit(ideep, str(mkldnn), old),
        "v1.0.4": _cmake_commit(ideep, str(mkldnn), pinned, "1.0.4", tag="v1.0.4"),
        "v2.0.0": _cmake_commit(ideep, str(mkldnn), pinned, "2.0.0", tag="v2.0.0"),
        "post3": _cmake_commit(ideep, str(mkldnn), pinned, "2.0.0", declared="2.0.0.post3"),
        "master": _cmake_commit(ideep, str(mkldnn), newest, "2.0.0", declared="2.1.0"),
    }
    return StandIn(folder, commits, mkldnn_commits)


def _mkldnn_commit(repository: Path, version: str, mklml: str, *, tag: str | None = None) -> str:
    _clear(repository)
    _render("mkldnn", repository, {"MKLDNN_VERSION": version, "MKLML": mklml})
    return _commit(repository, version, tag)


def _prepare_commit(repository: Path, mkldnn_url: str, mkldnn_commit: str) -> str:
    _clear(repository)
    values = {"MKLDNN_URL": mkldnn_url, "MKLDNN_COMMIT": mkldnn_commit, "SETUP_VERSION": "1.0.3", "VERSION_LINE": ""}
    _render("cmake_layout/include", repository / "include", values)
    _render("cmake_layout/python/ideep4py", repository / "python" / "ideep4py", values)
    _render("prepare_layout", repository, values)
    return _commit(repository, "1.0.3", "v1.0.3")


def _cmake_commit(
    repository: Path,
    mkldnn_url: str,
    mkldnn_commit: str,
    version: str,
    *,
    declared: str = "",
    tag: str | None = None,
) -> str:
    _clear(repository)
    line = f"__version__ = '{declared}'" if declared else ""
    _render("cmake_layout", repository, {"MKLDNN_URL": mkldnn_url, "SETUP_VERSION": version, "VERSION_LINE": line})
    links = {"mkl-dnn": mkldnn_commit, "tests/googletest": ABSENT, "tests/rapidcheck": ABSENT}
    return _commit(repository, declared or version, tag, links)


def _clear(repository: Path) -> None:
    for path in repository.iterdir():
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _render(template: str, destination: Path, values: Mapping[str, str]) -> None:
    """Write the files of a template with their ``@NAME@`` filled in; the end ``.in`` is taken off their names."""
    for file in sorted((TEMPLATES / template).rglob("*")):
        if file.is_file():
            text = file.read_text("utf-8")
            for name, value in values.items():
                text = text.replace(f"@{name}@", value)
            path = destination / file.relative_to(TEMPLATES / template)
            path = path.with_name(path.name.removesuffix(".in"))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            path.chmod(file.stat().st_mode & 0o777)


def _commit(repository: Path, message: str, tag: str | None, links: Mapping[str, str] | None = None) -> str:
    """Commit the files and these gitlinks; the hash."""
    git(repository, "rm", "-r", "--quiet", "--cached", "--ignore-unmatch", ".")
    git(repository, "add", "--force", ".")
    entries = "".join(f"160000 {commit} 0\t{path}\n" for path, commit in (links or {}).items())
    git(repository, "update-index", "--add", "--index-info", stdin=entries)
    git(repository, "commit", "--quiet", "--message", message)
    if tag is not None:
        git(repository, "tag", "--annotate", "--message", message, tag)
    return git(repository, "rev-parse", "HEAD")


def _export(repository: Path, commit: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    packed = folder / ".export.tar"
    git(repository, "archive", "--output", str(packed), commit)
    with tarfile.open(packed) as files:
        files.extractall(folder, filter="data")
    packed.unlink()
