"""Result files: the round trip, and what is said of files that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.errors import UsageError
from ideepdoctor.proof.bench_file import Result, as_data, dumps, from_data, loads, read
from tests.data.bench import make

DATA = Path(__file__).parents[1] / "data" / "bench"
FILES = {
    "two-cores": make.small(),
    "28-cores": make.BIG,
    "18-cores": make.MIDDLE,
    "gpu": make.GPU,
    "interrupted": make.interrupted(make.small()),
}


@pytest.mark.parametrize("name", FILES)
def test_a_result_survives_the_round_trip_and_the_examples_are_what_the_script_makes(name: str) -> None:
    path = DATA / f"{name}.json"
    assert read(str(path)) == FILES[name]
    assert dumps(read(str(path))) == path.read_text("utf-8") == dumps(loads(dumps(FILES[name])))
    assert list(json.loads(path.read_text("utf-8"))) == sorted(as_data(FILES[name]))


def test_an_interrupted_run_and_engines_without_a_net_are_normal() -> None:
    seen = read(str(DATA / "interrupted.json"))
    assert not seen.complete
    assert seen.row("tuned", ("vgga", 8)) is None
    whole = read(str(DATA / "two-cores.json"))
    row = whole.row("opencv", ("vgga", 8))
    assert row is not None
    assert (row.status, row.measured, row.median) == ("failed", False, None)
    forward_only = whole.row("opencv", ("alexnet", 8))
    assert forward_only is not None
    assert forward_only.steps == forward_only.forward


def test_a_short_file_of_a_strange_machine_is_enough() -> None:
    data = {
        "schema": "ideepdoctor-bench",
        "schema_version": "1",
        "id": "x",
        "started": "2017-12-01T00:00:00Z",
        "machine": {"name": "P100"},
        "results": [{"engine": "cupy", "net": "alexnet", "batch": 128, "median": 0.1}],
        "field_of_tomorrow": [1],
    }
    seen = from_data(data)
    assert seen.keys() == (("alexnet", 128),)
    assert seen.engine("cupy").label == "cupy"


def test_the_document_of_the_command_holds_a_result() -> None:
    assert from_data({"schema": "ideepdoctor-report", "bench": as_data(make.GPU)}) == make.GPU


def changed(**fields: Any) -> str:
    return json.dumps({**as_data(make.GPU), **fields})


def first_row(**fields: Any) -> str:
    rows = as_data(make.GPU)["results"]
    return changed(results=[{**rows[0], **fields}, *rows[1:]])


@pytest.mark.parametrize(
    ("text", "says", "do"),
    [
        ("", "no JSON", "ideepdoctor bench"),
        ("[" * 100_000, "no JSON", "ideepdoctor bench"),
        ("[1]", "found a list", "ideepdoctor bench"),
        ('{"schema": "ideepdoctor-report"}', 'found "ideepdoctor-report"', "ideepdoctor bench"),
        (changed(schema_version="2", tool={"version": "9.1"}), "newer version", "update ideepdoctor to 9.1 or newer"),
        (changed(schema_version="0"), 'found "0"', "measure again"),
        (changed(schema_version=1), "found 1", "measure again"),
        (changed(machine=None), "field machine", "ideepdoctor bench"),
        (first_row(median="fast"), "field results.0.median", "ideepdoctor bench"),
        (first_row(median=0), "alexnet batch 8: a time is not above zero", "ideepdoctor bench"),
        (first_row(median=None), "measured, and no median", "ideepdoctor bench"),
        (first_row(blocks=[1]), "20 steps, 1 block numbers", "ideepdoctor bench"),
        (first_row(backward=[0.1]), "20 steps forward, 1 backward", "ideepdoctor bench"),
        (first_row(status="fine"), "none of measured", "ideepdoctor bench"),
        (first_row(net="vgga"), "is there twice", "ideepdoctor bench"),
        (changed(seconds=float("nan")), "a number that cannot be", "ideepdoctor bench"),
    ],
)
def test_what_is_no_result_is_refused_by_name(tmp_path: Path, text: str, says: str, do: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError) as caught:
        read(str(path))
    assert caught.value.message.startswith(f"{path}: ")
    assert says in caught.value.message
    assert do in caught.value.hint


def test_a_later_minor_version_is_read() -> None:
    assert loads(changed(schema_version="1.4")) == make.GPU


def test_a_file_that_is_not_there_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        read(str(tmp_path / "no.json"))
    with pytest.raises(UsageError, match="is a folder"):
        read(str(tmp_path))


def test_no_number_that_json_lacks_is_written() -> None:
    with pytest.raises(ValueError):
        dumps(Result("a", "b", make.GPU.machine, seconds=float("inf")))
