"""Every situation of ``loader_rows.py`` on real files: what really happens, what the doctor says, what its fix does."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.environments import Answer
from tests.e2e.loader_rows import OWN, ROWS, STRANGER, WORKS, Lab, Row, truth
from tests.e2e.strangers import Folder, fetched_strangers  # noqa: F401

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def lab(
    made: Callable[..., tuple[Path, Answer]], strangers: Folder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lab]:
    source, answer = made("3.7")
    assert answer.code == 0, answer.stderr + answer.stdout
    folder = tmp_path_factory.mktemp("rows")
    yield Lab(source, folder, strangers)
    shutil.rmtree(folder)


def whose(file: str | None, environment: Path) -> str | None:
    if file is None:
        return None
    return OWN if Path(file).is_relative_to(environment.resolve() / "lib/python3.7/site-packages") else STRANGER


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_truth_of_row(lab: Lab, row: Row, tmp_path: Path) -> None:
    with lab.made(row) as situation:
        seen = truth(situation.python, situation.environ, tmp_path)
        assert seen.ends in row.ends.split(" or "), seen
        assert whose(seen.used, situation.environment) == row.used, seen
        assert row.says in seen.stderr
        if seen.prefix:
            assert seen.prefix == str(situation.environment)
        if row.ends == WORKS:
            assert "Error" not in seen.stderr
