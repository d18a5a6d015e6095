"""The history of bench: what is kept, what a run is held against, and files that cannot be used."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ideepdoctor.errors import CouldNotCheck, UsageError
from ideepdoctor.model.bench import Result
from ideepdoctor.proof.bench_file import dumps, read
from ideepdoctor.proof.bench_history import Store, parse_percent, verdict
from ideepdoctor.proof.regression import Verdict
from ideepdoctor.system import RealSystem
from tests.data.bench import make

ROOT = Path(__file__).parents[2]
FIRST = make.small()
ALEXNET = ("tuned", ("alexnet", 8))


def run(number: int, factor: float = 1.0, base: Result = FIRST) -> Result:
    return make.scaled(base, factor, f"2026120{number}T000000Z-00000{number}", f"2026-12-0{number}T00:00:00Z")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(RealSystem(), str(tmp_path / "state"))


def test_runs_are_kept_whole_and_listed_newest_first(store: Store) -> None:
    assert store.runs() == ()
    assert not Path(store.path).parent.exists()
    for result in (FIRST, run(2), make.GPU):
        store.add(result)
    assert [item.id for item in store.runs()] == [run(2).id, FIRST.id, make.GPU.id]
    newest = store.runs()[0]
    assert (newest.machine, newest.complete) == ("two-cores", True)
    assert newest.engines == ("ideep", "tuned", "numpy", "mkl", "torch", "opencv")
    assert newest.nets == ("alexnet 8", "googlenet 8", "vgga 8", "overfeat 8", "resnet50 8")
    assert store.get(FIRST.id) == FIRST


def test_a_run_is_found_by_the_beginning_of_its_id(store: Store) -> None:
    store.add(run(1))
    store.add(run(2))
    assert store.get("20261202") == run(2)
    with pytest.raises(UsageError, match="may be 20261201T000000Z-000001, 20261202T"):
        store.get("2026")
    for name in ("1999", "%", ""):
        with pytest.raises(UsageError):
            store.get(name)


def test_the_same_run_again_replaces_itself(store: Store) -> None:
    store.add(make.interrupted(run(1)))
    store.add(replace(run(1), id=make.interrupted(run(1)).id))
    assert len(store.runs()) == 1
    assert store.runs()[0].complete


def test_the_file_is_versioned_indexed_and_written_ahead(store: Store) -> None:
    store.add(FIRST)
    base = sqlite3.connect(store.path)
    assert base.execute("PRAGMA user_version").fetchone() == (1,)
    assert base.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    row = base.execute(
        "SELECT machine, environment, median, low, high FROM rows WHERE engine = 'tuned' AND net = 'alexnet'"
    ).fetchone()
    seen = FIRST.row(*ALEXNET)
    assert seen is not None
    environment = "Python 3.7.16, chainer 7.8.1, ideep4py 2.0.0.post3, numpy 1.21.6"
    assert row == ("two-cores", environment, seen.median, seen.low, seen.high)
    plan = base.execute(
        "EXPLAIN QUERY PLAN SELECT run FROM rows WHERE machine_key = '' AND engine = '' AND net = '' AND batch = 8"
    ).fetchall()
    assert "rows_by_what" in str(plan)
    base.close()


def test_the_baseline_is_the_last_complete_run_of_the_same_machine_that_has_the_row(store: Store) -> None:
    only_vgga = replace(run(3), results=tuple(row for row in run(3).results if row.net == "vgga"))
    elsewhere = replace(run(4), machine=replace(FIRST.machine, name="other"))
    fewer_cpus = replace(run(4), id="fewer", machine=replace(FIRST.machine, cpus_used=1))
    for result in (run(1), run(2), only_vgga, elsewhere, fewer_cpus, replace(run(5), complete=False), run(7)):
        store.add(result)
    now = run(6)
    store.add(now)
    found = store.baseline(now)
    assert found[ALEXNET].run == run(2).id
    assert found["tuned", ("vgga", 8)].run == run(3).id
    assert ("opencv", ("vgga", 8)) not in found  # it failed
    assert store.baseline(replace(now, machine=replace(now.machine, name="new"))) == {}


def test_a_named_baseline_is_a_run_or_a_file(store: Store, tmp_path: Path) -> None:
    store.add(run(1))
    store.add(run(2, 2.0))
    assert store.baseline(run(3), run(1).id)[ALEXNET].run == run(1).id
    path = tmp_path / "base.json"
    path.write_text(dumps(make.BIG), "utf-8")
    assert store.baseline(run(3), str(path))[ALEXNET].run == make.BIG.id
    with pytest.raises(UsageError, match="no run of bench"):
        store.baseline(run(3), "1999")
    with pytest.raises(UsageError, match="there is no file"):
        store.baseline(run(3), str(tmp_path / "no.json"))


@pytest.mark.parametrize(
    ("factor", "limit", "expected"),
    [
        (1.3, 10, Verdict.SLOWER),
        (1.05, 10, Verdict.SAME),
        (0.7, 10, Verdict.FASTER),
        (1.1, 10, Verdict.CANNOT_TELL),
    ],
)
def test_a_run_is_judged_net_by_net(store: Store, factor: float, limit: float, expected: Verdict) -> None:
    store.add(run(1))
    now = run(2, factor)
    found = verdict(now, store.baseline(now), limit)
    assert len(found) == sum(row.measured for row in now.results)
    assert {item.verdict for item in found} == {expected}
    first = found[0]
    assert first.difference is not None
    assert first.difference.ratio.median == pytest.approx(factor)
    assert (first.baseline, first.changed) == (run(1).id, ())
    said = {"cannot tell": "no difference can be told", "same": "the same within"}.get(str(expected), str(expected))
    assert first.why.startswith(said)


def test_what_changed_since_is_said(store: Store) -> None:
    store.add(run(1))
    engine = FIRST.engine("tuned")
    other = replace(
        engine,
        threads=1,
        guard=False,
        versions={**engine.versions, "chainer": "6.7.0"},
        variables={"OMP_NUM_THREADS": "2", "KMP_BLOCKTIME": "0"},
    )
    now = replace(run(2), engines=(other,), noise=replace(FIRST.noise, quiet=False))
    [seen] = [item for item in verdict(now, store.baseline(now), 10) if (item.engine, item.net) == ("tuned", "alexnet")]
    assert seen.changed == (
        "guard off",
        "threads 2 to 1",
        "chainer 7.8.1 to 6.7.0",
        "MKL_DEBUG_CPU_TYPE 7 to none",
        "KMP_BLOCKTIME none to 0",
    )
    assert seen.why.endswith("the machine was not quiet now")


def test_rows_without_single_steps_cannot_be_told() -> None:
    row = FIRST.row(*ALEXNET)
    assert row is not None
    bare = replace(FIRST, results=(replace(row, forward=(), backward=(), blocks=()),))
    store = Store(RealSystem(), "/no/such/folder")
    from ideepdoctor.proof.bench_history import Baseline
    from ideepdoctor.proof.bench_verdict import Earlier

    baseline: Baseline = {ALEXNET: Earlier("x", "", True, FIRST.engine("tuned"), row)}
    [seen] = verdict(bare, baseline, 10)
    assert (seen.verdict, seen.difference) == (Verdict.CANNOT_TELL, None)
    assert store.baseline(FIRST) == {}


@pytest.mark.parametrize(("text", "value"), [("10%", 10.0), (" 2.5 % ", 2.5), ("0", 0.0), ("1000%", 1000.0)])
def test_percentages(text: str, value: float) -> None:
    assert parse_percent(text) == value


@pytest.mark.parametrize("text", ["", "%", "ten", "-1%", "nan", "inf%", "10%%", "1001"])
def test_what_is_no_percentage(text: str) -> None:
    with pytest.raises(UsageError, match="no percentage") as caught:
        parse_percent(text)
    assert "10%" in caught.value.hint


def broken(path: str) -> None:
    Path(path).write_bytes(b"SQLite format 3\x00" + bytes(range(256)) * 40)


def cut(path: str) -> None:
    Path(path).write_bytes(Path(path).read_bytes()[:5000])


def newer(path: str) -> None:
    base = sqlite3.connect(path)
    base.execute("PRAGMA user_version = 2")
    base.close()


def of_something_else(path: str) -> None:
    Path(path).unlink()
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE songs (title TEXT)")
    base.close()


@pytest.mark.parametrize(
    ("spoil", "do"),
    [(broken, "mv "), (cut, "mv "), (newer, "update ideepdoctor"), (of_something_else, "mv ")],
)
def test_a_file_that_cannot_be_used_is_one_clear_error_and_nothing_is_lost(
    store: Store, spoil: object, do: str
) -> None:
    store.add(run(1))
    assert callable(spoil)
    for side in ("-wal", "-shm"):
        assert not Path(store.path + side).exists()
    spoil(store.path)
    before = Path(store.path).read_bytes()
    for act in (store.runs, lambda: store.get("2026"), lambda: store.baseline(run(2))):
        with pytest.raises(CouldNotCheck) as caught:
            act()
        assert store.path in caught.value.message
        assert do in caught.value.hint
    with pytest.raises(CouldNotCheck, match="not in the history but in") as caught:
        store.add(run(2))
    assert Path(store.path).read_bytes() == before
    [beside] = Path(store.path).parent.glob("bench-*.json")
    assert str(beside) in caught.value.message
    assert read(str(beside)) == run(2)


def test_a_state_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = Store(RealSystem(), str(tmp_path / "file" / "state"))
    with pytest.raises(CouldNotCheck, match="this run is not in the history: cannot write to") as caught:
        store.add(FIRST)
    assert "IDEEPDOCTOR_STATE_DIR" in caught.value.hint


WRITER = """
import sys
from ideepdoctor.proof.bench_history import Store
from ideepdoctor.system import RealSystem
from tests.data.bench import make
store = Store(RealSystem(), sys.argv[1])
for number in range(8):
    name = f"{sys.argv[2]}-{number}"
    store.add(make.scaled(make.GPU, 1.0, name, "2026-12-01T00:00:00Z"))
"""


def test_two_doctors_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    folder = str(tmp_path / "state")
    words = [sys.executable, "-c", WRITER, folder]
    writers = [subprocess.Popen([*words, name], cwd=ROOT, stderr=subprocess.PIPE) for name in ("a", "b", "c")]
    assert [(writer.communicate(timeout=60)[1], writer.returncode) for writer in writers] == [(b"", 0)] * 3
    kept = {item.id for item in Store(RealSystem(), folder).runs()}
    assert kept == {f"{name}-{number}" for name in "abc" for number in range(8)}
    shutil.rmtree(folder)
