"""``build`` from all kinds of sources, and from wrong ones: one clear error, and nothing left behind but the log."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builder.standin import StandIn, git, make_standin
from tests.e2e.building import SECONDS, Site, alive, end, site, wait_until
from tests.e2e.environments import Answer

pytestmark = pytest.mark.e2e
LEGACY = Callable[[str], str]


@pytest.fixture(scope="module")
def standin(tmp_path_factory: pytest.TempPathFactory) -> StandIn:
    return make_standin(tmp_path_factory.mktemp("upstream"))


@pytest.fixture(scope="module")
def place(standin: StandIn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A place whose cache (of tools alone, for no source here is a name that lasts) all tests share."""
    folder = tmp_path_factory.mktemp("site")
    yield site(standin, folder)
    shutil.rmtree(folder)


def build(place: Site, python: str, source: str | Path, *options: str, before: tuple[str, ...] = ()) -> Answer:
    words = ["build", "--python", python, "--source", str(source), "-o", str(place.folder / "out"), "--format", "json"]
    words += ["--no-verify", "--mkl", "none", "--march", "x86-64-v3", *options]
    process = place.start(words, before)
    out, err = process.communicate(timeout=SECONDS)
    return Answer(process.returncode, out, err)


def wheel_of(answer: Answer) -> dict[str, Any]:
    assert answer.code == 0, answer.stdout + answer.stderr
    wheel: dict[str, Any] = answer.document["build"]["wheel"]
    assert Path(wheel["path"]).is_file()
    return wheel


def refused(place: Site, answer: Answer, code: int) -> dict[str, Any]:
    """The error, after a look that only a log is left."""
    assert answer.code == code, answer.stdout + answer.stderr
    assert "Traceback" not in answer.stderr
    assert place.works == []
    assert not (place.folder / "out").exists() or list((place.folder / "out").iterdir()) == []
    kept = place.cache / "source"
    assert not kept.exists() or [path for path in kept.iterdir() if path.suffix != ".lock"] == []
    error: dict[str, Any] = answer.document["error"]
    assert error["hint"]
    return error


def hostile(folder: Path, kind: str) -> Path:
    """An archive of a complete source with one member more that shall do harm; ``folder/evil`` is where."""
    members = {
        "path": tarfile.TarInfo("ideep-post3/../../../evil"),
        "absolute": tarfile.TarInfo(str(folder / "evil")),
        "link": tarfile.TarInfo("ideep-post3/out"),
        "hard": tarfile.TarInfo("ideep-post3/hard"),
        "device": tarfile.TarInfo("ideep-post3/null"),
    }
    info, path = members[kind], folder / f"{kind}.tar"
    if kind == "link":
        info.type, info.linkname = tarfile.SYMTYPE, str(folder)
    elif kind == "hard":
        info.type, info.linkname = tarfile.LNKTYPE, "/etc/passwd"
    elif kind == "device":
        info.type, info.devmajor, info.devminor = tarfile.CHRTYPE, 1, 3
    else:
        info.size = 4
    with tarfile.open(path, "a") as packed:
        packed.addfile(info, io.BytesIO(b"evil") if info.size else None)
        if kind == "link":
            through = tarfile.TarInfo("ideep-post3/out/evil")
            through.size = 4
            packed.addfile(through, io.BytesIO(b"evil"))
    return path


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("path", "outside of its folder"),
        pytest.param("absolute", "outside of its folder", marks=pytest.mark.slow),
        pytest.param("link", "link out of its folder", marks=pytest.mark.slow),
        pytest.param("hard", "hard link", marks=pytest.mark.slow),
        pytest.param("device", "device or pipe", marks=pytest.mark.slow),
    ],
)
def test_a_hostile_archive(place: Site, legacy: LEGACY, tmp_path: Path, kind: str, words: str):
    shutil.move(place.standin.archive("tar", "post3", tmp_path), tmp_path / f"{kind}.tar")
    archive = hostile(tmp_path, kind)
    error = refused(place, build(place, legacy("3.11"), archive), 2)
    assert error["code"] == "bad-archive"
    assert str(archive) in error["message"] and words in error["message"]
    assert not list(tmp_path.rglob("evil*"))
    assert not list(place.folder.rglob("evil*"))


@pytest.mark.slow
def test_a_damaged_archive(place: Site, legacy: LEGACY, tmp_path: Path):
    archive = place.standin.archive("tar.gz", "post3", tmp_path)
    archive.write_bytes(archive.read_bytes()[:-3000])
    error = refused(place, build(place, legacy("3.11"), archive), 2)
    assert "damaged or cut off" in error["message"]


@pytest.mark.slow
def test_a_tag_that_is_not_upstream_s(place: Site, legacy: LEGACY, tmp_path: Path):
    clone = place.standin.clone("master", tmp_path / "clone")
    git(clone, "tag", "--force", "v1.0.3", place.standin.commits["post3"])
    answer = build(place, legacy("3.7"), clone, "--ref", "v1.0.3", "--march", "native")
    if answer.document.get("error") is None:  # on a processor that is not Intel's it is refused before
        assert answer.code == 1 and answer.document["findings"][0]["code"] == "IDP819"
        return
    error = refused(place, answer, 4)
    assert error["code"] == "wrong-commit" and "ae00102be506" in error["message"]
    assert place.standin.commits["post3"] in error["hint"]


@pytest.mark.slow
def test_a_commit_that_is_not_there(place: Site, legacy: LEGACY):
    error = refused(place, build(place, legacy("3.11"), place.standin.url, "--ref", "8800808"), 2)
    assert error["code"] == "no-such-ref" and "v1.0.4" in error["hint"]


@pytest.mark.slow
def test_a_folder_that_does_not_say_which_mkldnn(place: Site, legacy: LEGACY, tmp_path: Path):
    folder = place.standin.checkout("v1.0.4", tmp_path / "plain", with_mkldnn=False)
    error = refused(place, build(place, legacy("3.11"), folder), 2)
    assert error["code"] == "no-source" and "--mkldnn-source" in error["hint"]
    assert wheel_of(
        build(place, legacy("3.11"), folder, "--mkldnn-source", str(_plain_mkldnn(place.standin, tmp_path)))
    )["name"].startswith("ideep4py-1.0.4+doctor.v3")
    shutil.rmtree(place.folder / "out")


def _plain_mkldnn(standin: StandIn, folder: Path) -> Path:
    git(Path(standin.mkldnn_url), "archive", "--prefix=mkl-dnn/", "-o", str(folder / "mkl-dnn.zip"), "v0.14")
    return folder / "mkl-dnn.zip"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["clone", "no submodule", "folder", "tar.xz", "zip", "bundle", "short hash"])
def test_one_source_in_every_form(place: Site, legacy: LEGACY, tmp_path: Path, kind: str):
    standin, options, source = place.standin, (), tmp_path / "source"
    if kind in ("clone", "no submodule"):
        standin.clone("post3", source, with_mkldnn=kind == "clone")
    elif kind == "folder":
        standin.checkout("post3", source)
    elif kind == "bundle":
        git(Path(standin.url), "bundle", "create", "--quiet", str(source), "--all")
        options = ("--ref", standin.commits["post3"])
    elif kind == "short hash":
        source, options = Path(standin.url), ("--ref", standin.commits["post3"][:9])
    else:
        source = standin.archive(kind, "post3", tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if ".git" not in path.parts}
    wheel = wheel_of(build(place, legacy("3.11"), source, *options))
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if ".git" not in path.parts}
    assert after == before
    with_git = kind not in ("folder", "tar.xz", "zip")
    assert wheel["version"] == "2.0.0.post3+doctor.v3.nomkl"
    assert (wheel["commit"] == standin.commits["post3"]) is with_git
    assert wheel["mkldnn_commit"] == (standin.mkldnn_commits["v0.14"] if with_git else "")
    shutil.rmtree(place.folder / "out")


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can put something over /usr/local")
@pytest.mark.parametrize(("ref", "mkl"), [("post3", "wheel"), ("post3", "none"), ("v1.0.3", "none")])
def test_an_mkl_in_usr_local_is_not_in_the_way(place: Site, legacy: LEGACY, tmp_path: Path, ref: str, mkl: str):
    """As in a container where ``pip install mkl mkl-include`` was run: upstream's CMake files would take that one."""
    for name in ("include", "lib"):
        (tmp_path / name).mkdir()
    (tmp_path / "include/mkl_cblas.h").write_text("#error the wrong MKL\n")
    (tmp_path / "empty.c").write_text("")
    for name in ("libmkl_rt.so", "libiomp5.so"):
        words = ["cc", "-shared", "-o", str(tmp_path / "lib" / name), str(tmp_path / "empty.c")]
        subprocess.run(words, check=True)
    over = " && ".join(f"mount --bind {tmp_path}/{name} /usr/local/{name}" for name in ("include", "lib"))
    if subprocess.run(["unshare", "-m", "sh", "-c", over], check=False, capture_output=True).returncode:
        pytest.skip("this machine does not let one mount anything")
    source = ("--ref", place.standin.commits[ref], "--mkl", mkl)
    before = ("unshare", "-m", "sh", "-c", f'{over} && exec "$0" "$@"')
    wheel = wheel_of(build(place, legacy("3.7"), place.standin.url, *source, before=before))
    assert wheel["mkl"] == mkl
    shutil.rmtree(place.folder / "out")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_fetch_that_is_broken_off(standin: StandIn, legacy: LEGACY, tmp_path: Path, number: signal.Signals):
    """By a person nothing of it stays; after SIGKILL the next run takes away what stayed."""
    place, real = site(standin, tmp_path / "site"), shutil.which("git")
    program = tmp_path / "bin/git"
    program.parent.mkdir()
    hold = f"touch {tmp_path}/fetching; [ -e {tmp_path}/on ] || sleep 300"
    program.write_text(f'#!/bin/sh\ncase "$*" in *" fetch "*) {hold} ;; esac\nexec {real} "$@"\n')
    program.chmod(0o755)
    place.environ["PATH"] = f"{program.parent}:{os.environ['PATH']}"
    words = place.words(legacy("3.11"), "--no-verify", "--mkl", "none", "--march", "x86-64-v3")
    process = place.start(words)
    wait_until(lambda: (tmp_path / "fetching").exists() or process.poll() is not None)
    code, _, err = end(process, number)
    assert code == {signal.SIGINT: 130, signal.SIGTERM: 130, signal.SIGKILL: -9}[number], err
    left = [path for path in place.cache.rglob("*") if path.name.endswith(".partial") or path.name == "setup.py"]
    if number != signal.SIGKILL:
        assert left == [] and alive(str(tmp_path / "site")) == []
    (tmp_path / "on").touch()
    for pid in alive(str(tmp_path / "site")):  # git in a session of its own outlives a doctor that was killed
        os.kill(pid, signal.SIGKILL)
    process = place.start(words)
    out, err = process.communicate(timeout=SECONDS)
    wheel_of(Answer(process.returncode, out, err))
    assert not list(place.cache.rglob("*.partial"))
