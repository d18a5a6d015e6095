"""Without any network: a namespace that has no route, and not even the loopback device up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builder.standin import make_standin
from tests.conftest import legacy_python
from tests.e2e.environments import Answer, doctor
from tests.e2e.test_wheelhouse import isolated

pytestmark = pytest.mark.e2e

DOCTOR = str(Path(sys.executable).with_name("ideepdoctor"))
STACKS = {
    "3.7": "chainer7.8.1-ideep4py2.0.0.post3",
    "3.6": "chainer4.5.0-ideep4py1.0.4",
    "2.7": "chainer6.7.0-ideep4py2.0.0.post3",
}


def offline(tmp_path: Path, *words: str) -> Answer:
    """Run the doctor with no network and no cache."""
    environ = {
        **os.environ,
        "UV_CACHE_DIR": str(tmp_path / "uv"),
        "IDEEPDOCTOR_CACHE_DIR": str(tmp_path / "cache"),
        "IDEEPDOCTOR_STATE_DIR": str(tmp_path / "state"),
    }
    done = subprocess.run(
        [*isolated(), DOCTOR, *words, "--format", "json"], env=environ, capture_output=True, text=True, timeout=600
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def setup_words(tmp_path: Path, version: str) -> tuple[str, ...]:
    return ("setup", "--offline", "--yes", "--python", legacy_python(version), "--env", str(tmp_path / "env"))


def test_without_a_wheelhouse_one_error_says_what_helps(tmp_path):
    answer = offline(tmp_path, *setup_words(tmp_path, "3.7"))
    assert answer.code == 3, answer.stdout + answer.stderr
    error = answer.document["error"]
    assert "the caches do not hold what is needed" in error["message"]
    assert "ideepdoctor wheelhouse DIR" in error["hint"]
    assert not (tmp_path / "env").exists()


def test_an_incomplete_wheelhouse_is_told_before_anything_is_made(tmp_path):
    (tmp_path / "wh").mkdir()
    (tmp_path / "wh" / "six-1.17.0-py2.py3-none-any.whl").write_bytes(b"damaged")
    answer = offline(tmp_path, *setup_words(tmp_path, "3.7"), "--wheelhouse", str(tmp_path / "wh"))
    assert answer.code == 3, answer.stdout + answer.stderr
    error = answer.document["error"]
    assert "numpy 1.21.6 is missing" in error["message"]
    assert "six 1.17.0 is missing (six-1.17.0-py2.py3-none-any.whl is another file)" in error["message"]
    command = f"ideepdoctor wheelhouse {tmp_path}/wh --stack {STACKS['3.7']} --python 3.7"
    assert command in error["hint"]
    assert not (tmp_path / "env").exists()
    gone = offline(tmp_path, *setup_words(tmp_path, "3.7"), "--wheelhouse", str(tmp_path / "none"))
    assert (gone.code, "there is no wheelhouse" in gone.document["error"]["message"]) == (3, True)


@pytest.fixture(scope="module")
def brought(tmp_path_factory) -> Path:
    """A wheelhouse for three Pythons, filled where there is a network."""
    folder = tmp_path_factory.mktemp("brought") / "wh"
    for version, stack in STACKS.items():
        answer = doctor("wheelhouse", str(folder), "--stack", stack, "--python", version, timeout_seconds=900)
        assert answer.code == 0, answer.stderr
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("version", STACKS)
def test_setup_works_from_the_folder_alone(brought, tmp_path, version):
    words = (*setup_words(tmp_path, version), "--stack", STACKS[version], "--wheelhouse", str(brought))
    answer = offline(tmp_path, *words)
    assert answer.code == 0, answer.stdout + answer.stderr
    assert answer.document["proof"]["used"] is True
    undone = offline(tmp_path, "undo")
    assert (undone.code, (tmp_path / "env").exists()) == (0, False)


@pytest.mark.slow
def test_fix_install_and_moves_work_from_the_folder_alone(brought, tmp_path, broken_copy):
    env = broken_copy("3.6", "--stack", STACKS["3.6"])
    source = ("--offline", "--wheelhouse", str(brought), "--python", str(env), "--yes")
    shutil.rmtree(next(env.glob("lib/python3.6/site-packages/ideep4py/lib")))
    fixed = offline(tmp_path, "fix", *source)
    assert (fixed.code, fixed.document["applied"]) == (0, True), fixed.stdout + fixed.stderr
    # What the folder does not hold: the newest stack of 3.6.
    refused = offline(tmp_path, "upgrade", *source)
    assert refused.code == 3, refused.stdout
    assert "chainer-7.8.1.tar.gz" not in refused.document["error"]["message"]
    assert "--python 3.6" in refused.document["error"]["hint"]


@pytest.mark.slow
def test_a_build_works_from_the_folder_alone(tmp_path):
    """Toolchain, MKL, auditwheel, the source as an archive; what is built (a stand-in) is known to the wheelhouse."""
    (tmp_path / "upstream").mkdir()
    archive = make_standin(tmp_path / "upstream").archive("tar.gz", "post3", tmp_path)
    folder = str(tmp_path / "wh")
    words = ("wheelhouse", folder, "--python", "3.11", "--with-build", "--archive", str(archive), "--format", "json")
    filled = doctor(*words, timeout_seconds=900)
    assert filled.code == 0, filled.stdout + filled.stderr
    [open_] = filled.document["wheelhouse"]["open"]
    assert open_.endswith("for Python 3.11) must be built")
    assert doctor("wheelhouse", folder, "--check").code == 1

    source = ("--offline", "--wheelhouse", folder, "--source", f"{folder}/{archive.name}")
    python = ("--python", legacy_python("3.11"), "--march", "x86-64-v3")
    built = offline(tmp_path, "build", *python, *source, "-o", folder, "--no-verify")
    assert built.code == 0, built.stdout + built.stderr
    again = doctor(*words)
    assert again.document["wheelhouse"]["open"] == []
    assert len(again.document["wheelhouse"]["built"]) == 1
    assert doctor("wheelhouse", folder, "--check").code == 0
