"""What ``libs`` shows of the libraries of a target."""

from __future__ import annotations

from typing import Any

import pytest

from ideepdoctor.commands.libs import _table, _tree, data, openmp, ordered
from ideepdoctor.rules.loading import BINDING, LIB, STRANGER, dead_child, own_taken, stranger, taken
from tests.rules.hosts import facts_on

HOST = "py37-healthy"


def native(overlay: dict[str, Any] | None = None):
    facts = facts_on(HOST, {"native": overlay or {}})
    assert facts.native is not None
    return facts, facts.native


def test_the_libraries_that_compute_stand_first_and_each_file_once():
    _, found = native()
    rows = ordered(found)
    assert [item.kind for item in rows[:3]] == ["mkldnn", "iomp", "mklml"]
    assert len({item.file.identity for item in rows}) == len(rows)
    assert {item.kind for item in rows} == {"mkldnn", "iomp", "mklml", "gomp", "openblas"}


def test_the_document_says_of_each_file_what_it_is_whose_and_why():
    facts, found = native()
    told = data(facts, found)
    first = told["libraries"][0]
    assert first["path"] == f"{LIB}/libmkldnn.so.0"
    assert (first["is"], first["owner"], first["used"], first["own"]) == (
        "MKL-DNN 0.14",
        "ideep4py 2.0.0.post3",
        True,
        True,
    )
    assert first["why"].startswith("used, by DT_RPATH")
    assert told["binding"] == BINDING
    by_name = {item["name"]: item for item in told["loading"]}
    assert by_name["libiomp5.so"]["path"] == f"{LIB}/libiomp5.so"
    assert told["disagreements"] == []


def test_openmp_is_counted_with_its_settings():
    facts = facts_on(
        HOST, {"variables": {"effective": {"KMP_DUPLICATE_LIB_OK": "TRUE", "OMP_NUM_THREADS": "2", "MKL_CBWR": "AVX2"}}}
    )
    assert facts.native is not None
    told = openmp(facts, facts.native)
    assert [item["is"] for item in told["runtimes"]] == ["Intel OpenMP 5.0.20170525", "GNU OpenMP"]
    assert set(told["bound"].values()) == {f"{LIB}/libiomp5.so"}
    assert told["settings"] == {"KMP_DUPLICATE_LIB_OK": "TRUE", "OMP_NUM_THREADS": "2"}


def test_the_table_marks_what_is_used_and_shortens_the_folder():
    facts, found = native()
    lines = _table(facts, found)
    assert lines[1] == "> MKL-DNN 0.14, ideep4py 2.0.0.post3"
    assert lines[2].strip().startswith("PREFIX/lib/python3.7/site-packages/ideep4py/lib/")
    assert "PREFIX is /home/user/ideep" in lines
    assert any("nothing of MKL-DNN is bound to it" in line for line in lines)


def test_a_stranger_that_wins_is_marked_and_says_by_which_step():
    facts, found = native(
        {
            "files": [stranger()],
            "predicted": [taken("libmkldnn.so.0", STRANGER, "LD_LIBRARY_PATH"), *own_taken("libmkldnn.so.0")],
            "started": dead_child({"ok": True}, after=[STRANGER]),
        }
    )
    lines = _table(facts, found)
    assert lines[1:4] == ["> MKL-DNN 0.19.0, nobody claims it", f"    {STRANGER}", "    used, by LD_LIBRARY_PATH"]


def test_a_package_that_does_not_get_on_with_ideep4py_is_marked_too():
    died = {"ok": False, "seconds": 1.0, "signal": "SIGABRT"}
    pair = {"package": "mxnet-mkl 1.5.0", "module": "mxnet", "before": died, "after": died}
    facts, found = native({"files": [stranger(owner="mxnet-mkl 1.5.0")], "pairs": [pair]})
    lines = _table(facts, found)
    assert "! MKL-DNN 0.19.0, mxnet-mkl 1.5.0" in lines
    assert (
        "  mxnet-mkl 1.5.0: imported before ideep4py: the process ended with SIGABRT; "
        "after it: the process ended with SIGABRT"
    ) in lines
    assert data(facts, found)["pairs"] == [
        {"package": "mxnet-mkl 1.5.0", "module": "mxnet", "before": False, "after": False}
    ]


def test_the_tree_shows_each_need_below_what_needs_it():
    _, found = native()
    lines = _tree(found)
    assert lines[0] == BINDING
    depth = {line.split(" => ")[0].strip(): len(line) - len(line.lstrip()) for line in lines[1:] if " => " in line}
    assert depth["libmkldnn.so.0"] == 2
    assert depth["libiomp5.so"] == 4
    assert any("[DT_RPATH of _ideep4py" in line for line in lines)


def test_the_tree_shows_what_is_missing_and_what_was_passed_over():
    _, found = native(
        {
            "predicted": [
                taken("libmkldnn.so.0", "/a/libmkldnn.so.0", "ld.so cache", passed_over=[STRANGER]),
                taken("libglog.so.0", None, "not found", problem="not found"),
            ]
        }
    )
    text = "\n".join(_tree(found))
    assert f"passed over: {STRANGER}" in text
    assert "libglog.so.0 => NOT FOUND" in text


def test_without_ideep4py_there_is_no_tree():
    _, found = native({"binding": None, "files": [], "predicted": []})
    assert _tree(found) == ["no ideep4py here"]
    facts, found = native({"files": [], "started": None})
    assert "  none" in _table(facts, found)


@pytest.mark.parametrize("complete", [True, False])
def test_a_walk_that_was_cut_short_says_so(complete: bool):
    facts, found = native({"complete": complete, "entries": 7})
    assert any("cut short after 7 entries" in line for line in _table(facts, found)) is not complete
