"""Reading of what a traced program left: whole, cut, and damaged."""

from __future__ import annotations

import array
from pathlib import Path

import pytest

from ideepdoctor.proof.trace_records import FIRST, ROW, ROWS, Counts, read_events, read_folder

START = "'process', {'pid': 7, 'time': 2.0}\n'watching', True\n"


def numbers(**rows: list[float]) -> bytes:
    """A file of rows: ``row8=[...]``; ``header=[...]`` is row 0."""
    values = array.array("d", [0.0] * (ROW * ROWS))
    for name, given in rows.items():
        start = 0 if name == "header" else int(name.removeprefix("row")) * ROW
        values[start : start + len(given)] = array.array("d", given)
    return values.tobytes()


def write(folder: Path, text: str, rows: bytes = b"", events: str = "", base: str = "7-00000001") -> None:
    (folder / f"{base}.txt").write_text(text)
    if rows:
        (folder / f"{base}.rows0").write_bytes(rows)
    if events:
        (folder / f"{base}.events").write_text(events)


def test_a_whole_one(tmp_path: Path):
    text = START + "'chainer', {'version': '7.8.1'}\n'setup', {'line': 3}\n"
    text += "'row', 8, {'function': 'ReLU', 'line': 5}\n'line', 8, 1, 'mkldnn_verbose,exec,eltwise'\n'end', 3.0\n"
    rows = numbers(header=[0.5, 9.0, 100.0, 2, 4], row8=[3, 1.5, 3, 250, 1, 10, 2, 20, 1, 0.25], row1=[-8])
    write(tmp_path, text, rows, "8 0 1.0 2.5\n8 1 4 1\n")
    [one] = read_folder(str(tmp_path))
    assert (one.pid, one.ended, one.watching, one.problems) == (7, True, True, ())
    assert (one.own_seconds, one.last_seconds, one.started) == (0.5, 9.0, 100.0)
    assert (one.lost_lines, one.skipped_events, one.busy) == (2, 4, (-8,))
    assert one.setups == ({"line": 3},)
    [row] = one.rows
    assert row.forward == Counts(3, 1.5, 3, 0.25, 1, 0.01, 2, 0.02)
    assert (row.backward.calls, row.backward.seconds) == (1, 0.25)
    assert row.heads == ((1, "mkldnn_verbose,exec,eltwise"),)
    assert list(read_events(one)) == [(8, 0, 1.0, 2.5), (8, 1, 4.0, 1.0)]


def test_processes_come_in_the_order_of_their_starts(tmp_path: Path):
    write(tmp_path, "'process', {'time': 5.0}\n", base="9-00000001")
    write(tmp_path, "'process', {'time': 4.0}\n", base="10-00000001")
    write(tmp_path, "", base="8-00000001")
    assert [one.pid for one in read_folder(str(tmp_path))] == [8, 10, 9]
    assert read_folder(str(tmp_path / "none")) == ()


def test_rows_go_on_in_the_next_file(tmp_path: Path):
    number = ROWS + 1
    write(tmp_path, START + f"'row', {number}, {{'function': 'ReLU'}}\n", numbers())
    (tmp_path / "7-00000001.rows1").write_bytes(numbers(row1=[6, 2.0]))
    assert read_folder(str(tmp_path))[0].rows[0].forward == Counts(6, 2.0)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (START + "'row', 8, {'function': 'Re", 0),  # cut: the process died
        (START + "'row', 8, {'function': open('x')}\n", 1),
        (START + "\0\xff(((\n" + "(" * 5000 + "\n", 2),
        (START + "'row'\n'row', 8\n'row', 'x', {}\n'row', 8, 9\n'setup', 1\n'chainer', 2\n'line', 8\n", 0),
    ],
)
def test_damaged_facts_are_counted_and_the_rest_is_read(tmp_path: Path, text: str, problems: int):
    write(tmp_path, "")
    (tmp_path / "7-00000001.txt").write_bytes(text.encode("latin-1"))
    [one] = read_folder(str(tmp_path))
    assert (one.rows, one.setups, one.watching) == ((), (), True)
    assert one.problems == ((f"{problems} lines of the records could not be read",) if problems else ())


@pytest.mark.parametrize(
    "rows", [b"", b"\0", numbers()[:1001], numbers(row8=[float("nan"), float("inf"), -1]), b"\xff" * len(numbers())]
)
def test_damaged_numbers_are_no_failure(tmp_path: Path, rows: bytes):
    write(tmp_path, START + "'row', 8, {'function': 'ReLU'}\n'row', 100000000, {}\n'row', -504, {}\n", rows)
    [one] = read_folder(str(tmp_path))
    assert [row.forward.calls for row in one.rows] == [0, 0, 0]
    assert one.busy == ()


def test_events_that_are_cut_or_damaged_are_left_out(tmp_path: Path):
    write(tmp_path, START, numbers(), "8 0 1 2\nx\n8 0 y 2\n\n8 1 3 4\n8 0 5 6")
    [one] = read_folder(str(tmp_path))
    assert list(read_events(one)) == [(8, 0, 1.0, 2.0), (8, 1, 3.0, 4.0)]
    (tmp_path / "7-00000001.events").unlink()
    assert list(read_events(one)) == []


def test_facts_of_the_wrong_kind_are_as_if_they_were_not_there(tmp_path: Path):
    write(tmp_path, START + f"'row', {FIRST}, {{'function': 3, 'line': 'x', 'set': 1, 'inputs': 2}}\n", numbers())
    row = read_folder(str(tmp_path))[0].rows[0]
    assert (row.text("function"), row.count("line"), dict(row.table("set")), row.rows("inputs")) == ("", 0, {}, [])
