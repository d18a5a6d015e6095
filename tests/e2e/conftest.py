"""Fixtures of the end-to-end tests: environments that ``ideepdoctor setup`` made, one per legacy Python and run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import legacy_python
from tests.e2e.environments import Answer, copy_environment, doctor

_PLAIN = ("CHAINER_USE_IDEEP", "CHAINER_DTYPE", "OMP_NUM_THREADS", "MKL_DEBUG_CPU_TYPE", "PYTHONPATH", "LD_PRELOAD")


@pytest.fixture(autouse=True)
def plain_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the caller's decides a test."""
    for name in (*_PLAIN, "CI", "IDEEPDOCTOR_FORMAT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A journal of the tests' own."""
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IDEEPDOCTOR_STATE_DIR", str(folder))
        patch.setenv("IDEEPDOCTOR_TUNE", "0")  # twenty seconds for each environment
        for name in _PLAIN:
            patch.delenv(name, raising=False)
        yield folder


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Path, Answer]]:
    """``made("3.7", "--stack", NAME)``: an environment that setup made, and what it answered; made once per run."""
    known: dict[tuple[str, ...], tuple[Path, Answer]] = {}

    def make(version: str, *options: str) -> tuple[Path, Answer]:
        key = (version, *options)
        if key not in known:
            python = legacy_python(version)
            folder = tmp_path_factory.mktemp("made") / "env"
            words = ("setup", "--python", python, "--env", str(folder), "--yes", "--format", "json", *options)
            # A test that switches the guard off may be the first to ask.
            answer = doctor(*words, unset=("IDEEPDOCTOR_GUARD",))
            known[key] = (folder, answer)
        return known[key]

    return make


@pytest.fixture
def broken_copy(made: Callable[..., tuple[Path, Answer]], tmp_path: Path) -> Callable[..., Path]:
    """``broken_copy("3.7")``: a copy of a known-good environment that a test may break."""

    def copy(version: str, *options: str) -> Path:
        source, answer = made(version, *options)
        assert answer.code == 0, answer.stderr + answer.stdout
        return copy_environment(source, tmp_path / f"copy-{version}")

    return copy
