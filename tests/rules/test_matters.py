"""Why a library does or does not matter, in words that are true."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ideepdoctor.model.native import ElfFile, LibraryFile, Loaded, Native, PairCheck, Started
from ideepdoctor.model.outcome import Outcome
from ideepdoctor.rules.loading import predicted
from ideepdoctor.rules.matters import in_use, short_step, why

FOLDER = "/env/lib/python3.7/site-packages/ideep4py"
BINDING = f"{FOLDER}/_ideep4py.so"
OWN = f"{FOLDER}/lib/libmkldnn.so.0"
FINE = Outcome(ok=True, seconds=1.0)
DEAD = Outcome(ok=False, seconds=1.0, signal="SIGABRT")


def row(path: str, kind: str = "mkldnn", owner: str | None = None, *places: str, **fields: Any) -> LibraryFile:
    return LibraryFile(ElfFile(path, fields.pop("real_path", path), **fields), kind, "name", False, owner, places)


def world(*files: LibraryFile, **changes: Any) -> Native:
    own = row(OWN, "mkldnn", "ideep4py 2.0.0.post3", "ideep4py", soname="libmkldnn.so.0")
    binding = ElfFile(BINDING, BINDING)
    objects = {item.file.path: item.file for item in (own, *files)} | {BINDING: binding}
    taken = Loaded("libmkldnn.so.0", OWN, BINDING, f"DT_RPATH of {BINDING}")
    found = Native(BINDING, (replace(own, own=True), *files), objects, (taken,))
    return replace(found, **changes)


def process(*after: str, **fields: Any) -> Started:
    return Started(after=after, imported=FINE, first_op=FINE, **fields)


def test_what_is_predicted_is_in_use_until_a_process_says_otherwise():
    other = row("/opt/libmkldnn.so.0", soname="libmkldnn.so.0")
    found = world(other)
    assert [in_use(found, item) for item in found.files] == [True, False]
    mapped = replace(found, started=process("/opt/libmkldnn.so.0"))
    assert [in_use(mapped, item) for item in mapped.files] == [False, True]
    died = replace(found, started=Started(imported=DEAD))
    assert [in_use(died, item) for item in died.files] == [True, False]


def test_the_winner_says_which_step_decided():
    found = world()
    assert why(found, found.files[0]) == "used, by DT_RPATH of _ideep4py.so"


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (row(f"{FOLDER}/lib/libmkldnn.so", soname="libmkldnn.so.0"), "another copy in the same folder"),
        (row("/opt/libmkldnn.so", soname="libdnnl.so.2"), "only RTLD_GLOBAL would matter"),
        (row("/x/libtorch.so", "contained", None, "site-packages", soname="libtorch.so"), "only RTLD_GLOBAL"),
        (
            row("/x/libmkldnn.so.0", "mkldnn", None, "LD_LIBRARY_PATH", soname="libmkldnn.so.0"),
            "before LD_LIBRARY_PATH",
        ),
        (row("/x/libmkldnn.so.0", "mkldnn", None, "prefix", soname="libmkldnn.so.0"), "before the interpreter's"),
        (
            row("/x/libmkldnn.so.0", "mkldnn", "mxnet-mkl 1.5.0", "site-packages", soname="libmkldnn.so.0"),
            "matters if mxnet-mkl is imported before ideep4py",
        ),
        (row("/x/libmkldnn.so.0", "mkldnn", None, "disk", soname="libmkldnn.so.0"), "unless something loads it"),
        (row("/x/libmkldnn.so.0", problem="empty"), "not usable: empty"),
        (row("/x/libopenblas.so", "openblas"), "ideep4py does not need it"),
        (row("/x/libmkl_rt.so", "mkl"), "ideep4py does not need it"),
        (row("/x/libiomp5.so", "iomp", None, "LD_LIBRARY_PATH"), "before LD_LIBRARY_PATH"),
        (row("/x/libomp.so", "omp"), "ideep4py does not take it"),
    ],
)
def test_what_is_not_used_says_why_it_is_no_conflict_or_when_it_is(item: LibraryFile, words: str):
    assert words in why(world(item), item)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (FINE, FINE, "no conflict: both work"),
        (DEAD, FINE, "matters: import ideep4py before mxnet"),
        (DEAD, DEAD, "matters: mxnet and ideep4py do not work in one process"),
        (FINE, DEAD, "matters: import mxnet before ideep4py"),
    ],
)
def test_what_was_measured_counts_more(before: Outcome, after: Outcome, words: str):
    item = row("/x/libmkldnn.so.0", "mkldnn", "mxnet-mkl 1.5.0", "site-packages", soname="libmkldnn.so.0")
    found = world(item, pairs=(PairCheck("mxnet-mkl 1.5.0", "mxnet", before, after),))
    assert why(found, item).startswith(words)


def test_libgomp_beside_libiomp5_is_said_to_be_idle():
    gomp, iomp = row("/usr/lib/libgomp.so.1", "gomp"), f"{FOLDER}/lib/libiomp5.so"
    idle = world(gomp, started=process(OWN, "/usr/lib/libgomp.so.1", bound={"__kmpc_fork_call": iomp}))
    assert why(idle, gomp).endswith("idle")
    alone = world(gomp, started=process(OWN, "/usr/lib/libgomp.so.1"))
    assert why(alone, gomp) == "mapped"


def test_the_blas_of_numpy_is_named_as_such():
    blas = row("/x/libopenblas.so", "openblas")
    assert why(world(blas, started=process("/x/libopenblas.so")), blas) == "used by NumPy; ideep4py does not need it"


def test_without_ideep4py_nothing_matters():
    item = row("/lib/libgomp.so.1", "gomp")
    assert why(world(item, binding=None, predicted=()), item) == "there is no ideep4py here that could meet it"


def test_a_step_is_shortened_to_the_name_of_its_file():
    assert short_step("DT_RPATH of /a/b/c.so") == "DT_RPATH of c.so"
    assert short_step("ld.so cache") == "ld.so cache"


def test_a_preload_that_is_ignored_is_not_what_is_taken():
    ignored = Loaded("libmkldnn.so.0", None, "LD_PRELOAD", "not found")
    found = world()
    assert predicted(replace(found, predicted=(ignored, *found.predicted)), "libmkldnn.so.0") == found.predicted[0]
    assert predicted(replace(found, predicted=(ignored,)), "libmkldnn.so.0") is None
