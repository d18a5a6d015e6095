"""The file of results: kept for one state of one target, whole after a kill."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.proof.certify_data import Result
from ideepdoctor.proof.certify_store import Store
from ideepdoctor.system import RealSystem
from tests.doubles import FakeSystem

IDENTITY = {"python": "/env/bin/python", "packages": {"chainer": "7.8.1"}, "guard": None}


def result(key: str, setting: str = "2", status: str = "right") -> Result:
    return Result(key, setting, status, error=1e-7, tolerance=1e-5, kernels=("relu jit:avx2",), measured=None)


def store(folder: Path, **changed: object) -> Store:
    return Store(RealSystem(), str(folder), {**IDENTITY, **changed})


def test_what_was_added_is_there_again(tmp_path: Path) -> None:
    assert store(tmp_path).load() == {}
    first, second = result("a"), result("b", "1cpu", "crashed")
    store(tmp_path).add("2", [first])
    store(tmp_path).add("1cpu", [second])
    assert store(tmp_path).load() == {("a", "2"): first, ("b", "1cpu"): second}


def test_the_last_result_of_a_case_counts(tmp_path: Path) -> None:
    kept = store(tmp_path)
    kept.add("2", [result("a", status="wrong")])
    kept.add("2", [result("a")])
    assert kept.load()["a", "2"].status == "right"


@pytest.mark.parametrize(
    "changed", [{"guard": {"digest": "1"}}, {"packages": {"chainer": "6.7.0"}}, {"python": "/other"}, {"payload": "x"}]
)
def test_another_state_has_other_results(tmp_path: Path, changed: dict[str, object]) -> None:
    store(tmp_path).add("2", [result("a")])
    other = store(tmp_path, **changed)
    assert other.load() == {}
    other.add("2", [result("b")])
    assert set(store(tmp_path).load()) == {("a", "2")}


def test_a_line_that_was_torn_by_a_kill_costs_its_batch_only(tmp_path: Path) -> None:
    kept = store(tmp_path)
    kept.add("2", [result("a")])
    kept.add("2", [result("b")])
    path = Path(kept.path)
    path.write_bytes(path.read_bytes()[:-20])
    kept.add("2", [result("c")])
    assert set(kept.load()) == {("a", "2"), ("c", "2")}
    path.write_bytes(b"\xff\x00[1, 2]\n" + path.read_bytes() + b'\n{"results": [{"key": 1}], "setting": "2"}\n[]\n')
    assert set(kept.load()) == {("a", "2"), ("c", "2")}


def test_to_forget_is_to_begin_anew(tmp_path: Path) -> None:
    kept = store(tmp_path)
    kept.forget()
    kept.add("2", [result("a")])
    kept.forget()
    assert kept.load() == {} and not Path(kept.path).exists()


def test_a_folder_that_cannot_be_written_is_an_error_with_the_variable() -> None:
    system = FakeSystem(fail_writes=OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(CouldNotCheck, match="No space left") as caught:
        Store(system, "/state", IDENTITY).add("2", [result("a")])
    assert "IDEEPDOCTOR_STATE_DIR" in caught.value.hint
