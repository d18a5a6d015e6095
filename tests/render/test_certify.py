"""The table of certify: what a person reads, in 80 columns."""

from __future__ import annotations

from typing import Any

from ideepdoctor.render.certify import WIDTH, lines, threads
from ideepdoctor.render.html_tables import lasting_effects

SETTINGS = ["2", "1", "3", "4", "1cpu"]


def row(op: str = "relu", **fields: Any) -> dict[str, Any]:
    plain = {"op": op, "cases": 95, "tried": 90, "right": 90, "used": "yes", "why_not": [], "worst_error": 1.2e-7}
    return {**plain, "kernels": ["eltwise jit:avx2"], "not_run": [], "faults": [], **fields}


def fault(**fields: Any) -> dict[str, Any]:
    worst = {"op": "concat", "case": "(2,16,6,6) (2,8,6,6)", "threads": "2", "error": None, "message": "SIGABRT: x"}
    plain = {"hazard": "H7", "code": "IDP605", "status": "crashed", "cases": 13, "tries": 65, "threads": SETTINGS}
    return {**plain, "worst": worst, **fields}


def data(*rows: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "ops": list(rows),
        "threads": SETTINGS,
        "memory": None,
        "fork": None,
        "unknown_files": [],
        "model": None,
        **fields,
    }


def test_a_line_for_each_operation_with_its_numbers() -> None:
    head, first, second = lines(data(row(), row("fixed_batch_norm", used="part", worst_error=None)))
    assert head.split() == ["operation", "cases", "right", "iDeep", "worst", "error"]
    assert first.split() == ["relu", "90", "90", "yes", "1.2e-07"]
    assert second.split() == ["fixed_batch_norm", "90", "90", "part"]


def test_a_fault_is_marked_and_explained_below() -> None:
    found = lines(data(row("concat", right=25, faults=[fault()])))
    assert found[1].endswith("DIES")
    text = " ".join(line.strip() for line in found[2:])
    assert text == ("H7 IDP605: concat (2,16,6,6) (2,8,6,6): SIGABRT: x (every number of threads); and 12 more")


def test_what_is_new_is_called_new_and_its_error_is_told() -> None:
    worst = {"op": "relu", "case": "(2,3)", "threads": "2", "error": 0.51, "message": "output is off by 0.51"}
    new = fault(hazard=None, code="IDP606", status="wrong", cases=1, threads=["2"], worst=worst)
    found = lines(data(row(faults=[new, fault(status="raised")])))
    assert found[1].endswith("WRONG, RAISES")
    assert found[2].strip() == "new IDP606: relu (2,3): off by 0.51 (2 threads)"


def test_why_ideep_was_not_used_and_what_was_not_tried() -> None:
    why = [{"text": "groups and depthwise: NumPy", "count": 12}]
    found = lines(data(row(used="part", why_not=why, not_run=[{"text": "h5py cannot be imported", "count": 5}])))
    assert [line.strip() for line in found[2:]] == [
        "not iDeep in 12: groups and depthwise: NumPy",
        "not tried in 5: h5py cannot be imported",
    ]


def test_threads_in_words() -> None:
    assert threads(SETTINGS, SETTINGS) == "every number of threads"
    assert threads(["4", "2", "10"], SETTINGS) == "2, 4, 10 threads"
    assert threads(["1", "1cpu"], SETTINGS) == "1 thread, one processor"
    assert threads(["2"], ["2"]) == "2 threads"


def test_notes_and_the_model() -> None:
    model = {
        "file": "/x/net.py",
        "function": "make",
        "cases": [],
        "ended": "crashed: SIGABRT (the last function that was begun: Concat)",
        "gradients": [
            {"name": "output 1", "error": 1e-7, "tolerance": 1e-4, "right": True},
            *({"name": f"/l{n}/W", "error": None if n else 0.5, "tolerance": 1e-4, "right": False} for n in range(10)),
        ],
        "others": [{"name": "Reshape", "why": "NumPy does it", "count": 3}],
        "notes": ["dropout was left out"],
    }
    memory = {"steps": 240, "step_bytes": 16384, "shapes": 200, "ideep_bytes": 63e6, "numpy_bytes": 1e5}
    found = lines(data(row(), memory=memory, unknown_files=["functions/new.py"], model=model))
    text = "\n".join(found)
    assert "note: 240 steps with the same shapes made the process grow by 0.0 MB" in text
    assert "note: H13: 200 new shapes made the process grow by 63 MB (NumPy: 0 MB)" in text
    assert "functions/new.py" in text
    assert "model /x/net.py:make" in found
    assert "1 of 11 are right" in text and "/l0/W: off by 0.5" in text and "/l1/W: not finite" in text
    assert "and 2 more" in text
    assert "not for iDeep: Reshape, 3 times (NumPy does it)" in text and "dropout was left out" in text


def test_no_line_is_wider_than_a_terminal() -> None:
    long = "x (64,2048,112,112) " * 20
    worst = {"op": "local_response_normalization", "case": long, "threads": "2", "error": 0.5, "message": long}
    why = [{"text": long, "count": 10000}]
    wide = row("local_response_normalization"[:18], cases=99999, tried=99999, right=99999, why_not=why, not_run=why)
    found = lines(
        data({**wide, "faults": [fault(worst=worst), fault(status="timeout")]}, unknown_files=["a/b.py"] * 30)
    )
    assert max(map(len, found)) <= WIDTH
    assert all(line == line.rstrip() for line in found)


def test_memory_and_forks_are_told_as_far_as_they_were_tried() -> None:
    nothing = {"steps": 0, "step_bytes": None, "shapes": 200, "ideep_bytes": 63e6, "numpy_bytes": None}
    good = {"ok": True, "error_text": None}
    notes = [line for line in lines(data(row(), memory=nothing, fork=good)) if line.startswith("note")]
    assert notes == [
        "note: H13: 200 new shapes made the process grow by 63 MB",
        "note: children that were forked after iDeep had computed could compute",
    ]
    steps = {"steps": 240, "step_bytes": 2000000, "shapes": 0, "ideep_bytes": None, "numpy_bytes": 5}
    notes = [line for line in lines(data(row(), memory=steps, fork={"ok": False})) if line.startswith("note")]
    assert notes == ["note: 240 steps with the same shapes made the process grow by 2.0 MB"]


def test_the_page_has_a_table_of_them() -> None:
    memory = {"steps": 240, "step_bytes": 16384, "shapes": 200, "ideep_bytes": 63e6, "numpy_bytes": None}
    fork = {"ok": False, "error_text": "a child hangs"}
    (group,) = lasting_effects({"memory": memory, "fork": fork}).groups
    assert group.rows == (
        ("steps with the same shapes", "240", "0.0 MB more"),
        ("new input shapes, iDeep", "200", "63.0 MB more"),
        ("children forked after iDeep", "", "a child hangs"),
    )
    (group,) = lasting_effects({"memory": None, "fork": {"ok": True, "error_text": None}}).groups
    assert group.rows == (("children forked after iDeep", "", "could compute"),)
