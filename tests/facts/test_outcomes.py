"""How children ended: signals, exit codes, stages, and whose library it is."""

from __future__ import annotations

from typing import Any

import pytest

from ideepdoctor.facts.answer import Answer
from ideepdoctor.facts.outcomes import read_chainer, read_ending, read_imports, read_libraries, read_shadows

FINE = {"ok": True, "seconds": 0.1, "version": "1", "path": "/site/m.py", "warnings": []}


def child(
    told: dict[str, Any], *, code: int | None = 0, stderr: list[str] | None = None, **ended: Any
) -> dict[str, Any]:
    """The probe's record of a child."""
    return {
        "told": told,
        "stderr": stderr or [""],
        "ended": {"code": code, "timed_out": False, "problem": None, "seconds": 0.5, **ended},
    }


def imports(**children: Any) -> Answer:
    """The probe's records of all children."""
    fine = {name: child({"import": FINE}) for name in ("numpy", "ideep4py", "chainer")}
    return Answer({**fine, **children})


@pytest.mark.parametrize(
    ("code", "emulated", "expected"),
    [
        (0, False, (None, 0)),
        (1, False, (None, 1)),
        (-6, False, ("SIGABRT", None)),
        (-4, True, ("SIGILL", None)),
        (132, True, ("SIGILL", None)),
        (134, True, ("SIGABRT", None)),
        (134, False, (None, 134)),
        (129, True, (None, 129)),
        (255, True, (None, 255)),
        (1, True, (None, 1)),
        (-200, False, ("signal 200", None)),
        (None, False, (None, None)),
    ],
)
def test_ending(code: int | None, emulated: bool, expected: tuple[str | None, int | None]) -> None:
    assert read_ending(code, emulated) == expected


def test_death_belongs_to_the_stage_that_was_not_told() -> None:
    died = child({"import": FINE, "after": {}}, code=-6, stderr=["loaded\n", "terminate called\n"])
    outcomes, first_op = read_imports(imports(ideep4py=died), False)
    assert outcomes["ideep4py"].ok and outcomes["ideep4py"].stderr_tail == "loaded\n"
    assert first_op is not None
    assert (first_op.ok, first_op.signal, first_op.stderr_tail) == (False, "SIGABRT", "terminate called\n")


def test_no_first_op_where_the_import_failed() -> None:
    outcomes, first_op = read_imports(imports(ideep4py=child({}, code=-4, stderr=["x" * 5000])), False)
    assert (outcomes["ideep4py"].signal, len(outcomes["ideep4py"].stderr_tail)) == ("SIGILL", 2000)
    assert first_op is None


def test_exception_and_timeout() -> None:
    raised = {**FINE, "ok": False, "error_type": "ImportError", "error_text": "no"}
    hung = child({}, code=-9, timed_out=True)
    outcomes, _ = read_imports(imports(numpy=child({"import": raised}), chainer=hung), False)
    assert (outcomes["numpy"].error_type, outcomes["numpy"].exit_code) == ("ImportError", 1)
    assert outcomes["chainer"].timed_out and outcomes["chainer"].signal is None


def test_caffe_only_where_it_was_asked_and_reached() -> None:
    reached = {"import": FINE, "after": {}, "chainer": {}}
    for record, expected in (
        ({**child(reached, code=-11), "caffe": True}, "SIGSEGV"),
        ({**child(reached), "caffe": False}, "absent"),
        ({**child({"import": FINE}, code=-11), "caffe": True}, "absent"),
    ):
        outcomes, _ = read_imports(imports(chainer=record), False)
        caffe = outcomes.get("chainer.links.caffe")
        assert (caffe.signal if caffe else "absent") == expected


def test_shadows_are_those_seen_or_those_possible() -> None:
    possible = [["json", "/here/json.py", "current folder"], ["turtle", "/here/turtle.py", "current folder"]]
    seen = {"import": FINE, "possible": possible, "after": {"shadows": possible[:1]}}
    assert [one.module for one in read_shadows(imports(chainer=child(seen)))] == ["json"]
    died = {"possible": possible}
    assert [one.module for one in read_shadows(imports(chainer=child(died, code=0)))] == ["json", "turtle"]


def test_libraries_belong_to_the_first_import_that_mapped_them() -> None:
    blas, omp = "/site/numpy.libs/libopenblasp-r0.so", "/site/ideep4py/lib/libiomp5.so"
    noise = ["/lib/libc.so.6", "/site/numpy/linalg/lapack_lite.so", "/lib/libcompose.so", "/lib/libgompertz/x.so"]
    found = read_libraries(
        imports(
            numpy=child({"after": {"maps": [blas, *noise]}}),
            ideep4py=child({"after": {"maps": [blas, omp, "/site/ideep4py/_ideep4py.so"]}}),
            chainer=child({"after": {"maps": [blas, omp, "/usr/lib/libmkl_rt.so"]}}),
        )
    )
    assert {library.name: library.imported_by for library in found} == {
        "libopenblasp-r0.so": "numpy",
        "libiomp5.so": "ideep4py",
        "_ideep4py.so": "ideep4py",
        "libmkl_rt.so": "chainer",
    }


def test_chainers_words() -> None:
    state = {"use_ideep": "auto", "dtype": "float32", "ideep_available": False, "ideep_reason": "no"}
    found = read_chainer(imports(chainer=child({"import": FINE, "chainer": state})))
    assert found is not None
    assert (found.use_ideep, found.ideep_available, found.ideep_reason) == ("auto", False, "no")
    assert read_chainer(imports()) is None
