"""``upgrade`` and ``downgrade``: between stacks and back, byte for byte."""

from __future__ import annotations

import pytest

from ideepdoctor.treatment.snapshot import manifest
from tests.e2e.environments import doctor, pip_install, site_packages

pytestmark = pytest.mark.e2e

NEW, MIDDLE, OLD = "chainer7.8.1-ideep4py2.0.0.post3", "chainer5.4.0-ideep4py2.0.0.post3", "chainer4.5.0-ideep4py1.0.4"
TALK = "chainer4.0.0b4-ideep4py1.0.3"


def asked(env, *words: str):
    return doctor(*words, "--python", str(env), "--format", "json", timeout_seconds=600)


@pytest.mark.slow
def test_there_and_back_byte_for_byte(broken_copy):
    env = broken_copy("3.6")
    pip_install(env, "tqdm==4.64.1")
    before = manifest(str(env))

    there = asked(env, "upgrade", "--yes")
    assert (there.code, there.document["applied"]) == (0, False), there.stdout
    assert f"is {NEW} already" in there.document["verdict"]
    shown = asked(env, "downgrade", "--to", OLD, "--dry-run")
    assert {item["name"] for item in shown.document["plan"]["steps"][0]["requirements"]} == {
        "chainer",
        "ideep4py",
        "numpy",
    }
    assert asked(env, "downgrade", "--to", OLD).code == 2, "nobody can be asked here"
    other_way = asked(env, "upgrade", "--to", OLD, "--yes")
    assert (other_way.code, "is older than what is there" in other_way.document["error"]["message"]) == (2, True)
    refused = asked(env, "downgrade", "--to", TALK, "--yes")
    if refused.code != 0:
        assert (refused.code, "1.0.3 runs on GenuineIntel processors only" in refused.document["error"]["message"]) == (
            1,
            True,
        )
    assert manifest(str(env)) == before

    done = asked(env, "downgrade", "--to", OLD, "--yes")
    assert done.code == 0, done.stdout + done.stderr
    document = done.document
    assert document["target"]["packages"] == {"chainer": "4.5.0", "ideep4py": "1.0.4", "numpy": "1.13.0"}
    assert document["proof"]["used"] is True
    move = document["move"]
    assert (move["left_over"], move["own"]) == (["typing-extensions"], ["tqdm"])
    assert any("Chainer 7.8.1 becomes 4.5.0" in phrase for phrase in move["lost"])
    assert (site_packages(env) / "tqdm").is_dir()
    assert (site_packages(env) / "typing_extensions.py").is_file()

    up = asked(env, "upgrade", "--to", MIDDLE, "--yes")
    assert up.code == 0, up.stdout + up.stderr
    assert up.document["target"]["packages"]["chainer"] == "5.4.0"

    assert doctor("undo", up.document["journal"]).code == 0
    assert doctor("undo", document["journal"]).code == 0
    assert manifest(str(env)) == before


@pytest.mark.slow
def test_pruned_on_request_and_given_back(broken_copy):
    env = broken_copy("3.6")
    before = manifest(str(env))
    done = asked(env, "downgrade", "--to", OLD, "--prune", "--yes")
    assert done.code == 0, done.stdout + done.stderr
    assert not (site_packages(env) / "typing_extensions.py").exists()
    assert doctor("undo", done.document["journal"]).code == 0
    assert manifest(str(env)) == before
