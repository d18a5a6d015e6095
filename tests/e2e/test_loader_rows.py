"""Every situation of ``loader_rows.py`` on real files: what really happens, what the doctor says, what its fix does."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.treatment.snapshot import manifest
from tests.e2e.environments import Answer, doctor
from tests.e2e.loader_rows import (
    MKLDNN,
    NO_START,
    OWN,
    ROWS,
    STRANGER,
    WORKS,
    Lab,
    Row,
    Situation,
    Truth,
    activated,
    plain,
    truth,
)
from tests.e2e.strangers import Folder, fetched_strangers  # noqa: F401

pytestmark = pytest.mark.e2e

ALSO: dict[int, set[str]] = {}
"""Errors that are right beside a row's own."""

_SEVERAL = {"7-0.12-RTLD_GLOBAL", "10-oneDNN-2.4", "24-libmklml-RTLD_GLOBAL"}
"""Variants that are a case of their own for the doctor."""
_MAIN = _SEVERAL | {row.id for row in {row.number: row for row in reversed(ROWS)}.values()}
each_row_variants_slow = pytest.mark.parametrize(
    "row", [pytest.param(row, id=row.id, marks=() if row.id in _MAIN else pytest.mark.slow) for row in ROWS]
)


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


def seen_in(situation: Situation, scratch: Path) -> Truth:
    return truth(plain(situation.python), situation.environ, scratch)


@pytest.fixture(scope="module")
def seen_once() -> dict[str, Truth]:
    """What came of the rows so far."""
    return {}


def the_truth(row: Row, situation: Situation, known: dict[str, Truth], scratch: Path) -> Truth:
    if row.id not in known:
        known[row.id] = seen_in(situation, scratch)
    return known[row.id]


@each_row_variants_slow
def test_truth_of_row(lab: Lab, seen_once: dict[str, Truth], row: Row, tmp_path: Path) -> None:
    with lab.made(row) as situation:
        seen = the_truth(row, situation, seen_once, tmp_path)
    assert seen.ends in row.ends.split(" or "), seen
    assert whose(seen.used, situation.environment) == row.used, seen
    assert row.says in seen.stderr
    assert seen.prefix == (None if row.ends == NO_START else str(situation.environment))
    if row.ends == WORKS:
        assert "Error" not in seen.stderr


LATE = """
import json, os, sys
os.environ.update(json.loads(sys.argv.pop(1)))
from ideepdoctor.cli import main
main()
"""


def diagnosed(row: Row, situation: Situation, saved: Path) -> Answer:
    """What the doctor says to the user of a situation; ``saved``: where it writes the facts."""
    words = ["diagnose", "--python", str(situation.environment), "--format", "json", "--save-facts", str(saved)]
    if row.ends != NO_START:
        return doctor(*words, environ=situation.environ)
    # With these variables nothing starts, the doctor no more than anything else: it gets them afterwards.
    argv = [sys.executable, "-c", LATE, json.dumps(dict(situation.environ)), *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    return Answer(done.returncode, done.stdout, done.stderr)


NOT_FOUND = re.compile(r"ImportError: (\S+): cannot open shared object file")


def predicted_as_seen(row: Row, seen: Truth, saved: Path) -> None:
    """The model of the loader takes the same libmkldnn.so.0, and stops where the real one stopped."""
    native = json.loads(saved.read_text())["native"]
    [found] = [item for item in native["predicted"] if (item["name"], item["by"]) == (MKLDNN, native["binding"])]
    if row.ends == NO_START:
        # No extension module is ever looked for: the preloaded file is what the model has to name.
        assert found["path"] == row_preloads(native), found
        return
    assert (found["path"] and os.path.realpath(found["path"])) == seen.used
    assert native["disagreements"] == []
    missing = NOT_FOUND.search(seen.stderr)
    stops = [item["name"] for item in native["predicted"] if item["problem"]]
    assert stops == ([missing[1]] if missing else []), stops


def row_preloads(native: dict[str, Any]) -> str:
    return next(item["path"] for item in native["predicted"] if item["by"] == "LD_PRELOAD")


@each_row_variants_slow
def test_row(lab: Lab, seen_once: dict[str, Truth], row: Row, tmp_path: Path) -> None:
    with lab.made(row) as situation:
        seen = the_truth(row, situation, seen_once, tmp_path)
        answer = diagnosed(row, situation, tmp_path / "facts.json")
    errors = set(answer.codes("error"))
    if row.code is None:
        assert errors == set(), answer.stdout
        # Row 18 works by luck, and a warning may say so.
        assert set(answer.codes("warning")) <= ({"IDP405"} if row.number == 18 else set())
    else:
        assert row.code in errors, answer.stdout
        assert errors <= {row.code} | ALSO.get(row.number, set())
    predicted_as_seen(row, seen, tmp_path / "facts.json")


def by_id(*names: str) -> list[Row]:
    return [next(row for row in ROWS if row.id == name) for name in names]


def main_and_slow(*names: str, slow: tuple[str, ...]) -> list[Any]:
    others = [pytest.param(row, id=row.id, marks=pytest.mark.slow) for row in by_id(*slow)]
    return [*(pytest.param(row, id=row.id) for row in by_id(*names)), *others]


def exported(situation: Situation, source: Path) -> None:
    """Move the variables of a situation to the end of its environment's activation script, which becomes its own."""
    script = situation.environment / "bin" / "activate"
    text = script.read_text().replace(str(source), str(situation.environment))
    lines = "".join(f"export {name}={value}\n" for name, value in situation.environ.items())
    script.write_text(text + lines)


@pytest.mark.parametrize("row", main_and_slow("5-0.12", slow=("6-0.19",)))
def test_row_whose_variable_stands_in_the_activation_script(
    lab: Lab, broken_copy: Callable[..., Path], row: Row, tmp_path: Path
) -> None:
    """The doctor is started in a shell that has not read that script; rows 5 and 6 are one sort of fault."""
    with lab.made(row, lambda: broken_copy("3.7")) as situation:
        environment = situation.environment
        exported(situation, lab.source)
        before = manifest(str(environment))
        assert truth(activated(environment), {}, tmp_path).ends == row.ends
        mended = doctor("fix", "--python", str(environment), "--yes", "--format", "json")
        assert (mended.code, mended.document["applied"], mended.codes("error")) == (0, True, []), mended.stdout
        seen = truth(activated(environment), {}, tmp_path)
        assert (seen.ends, whose(seen.used, environment)) == (WORKS, OWN), seen
        given_back(environment, mended, before)


def given_back(environment: Path, mended: Answer, before: dict[str, dict[str, Any]]) -> None:
    """Undo gives every byte back."""
    assert manifest(str(environment)) != before
    undone = doctor("undo", mended.document["journal"], "--format", "json")
    assert undone.code == 0, undone.stdout
    assert manifest(str(environment)) == before


@pytest.mark.parametrize("row", main_and_slow("15", "19", "22", slow=("17-0.19", "20", "21")))
def test_fix_of_row(lab: Lab, broken_copy: Callable[..., Path], row: Row, tmp_path: Path) -> None:
    with lab.made(row, lambda: broken_copy("3.7")) as situation:
        environment = situation.environment
        before = manifest(str(environment))
        words = ("fix", "--python", str(environment), "--yes", "--format", "json")
        mended = doctor(*words, environ=situation.environ)
        assert (mended.code, mended.document["applied"], mended.codes("error")) == (0, True, []), mended.stdout
        seen = seen_in(situation, tmp_path)
        assert (seen.ends, whose(seen.used, environment)) == (WORKS, OWN), seen
        given_back(environment, mended, before)
