"""What healthy programs write names no cause; nothing raises, and time grows with the length alone."""

from __future__ import annotations

import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ideepdoctor.symptoms.endings import ending_of, ending_of_code
from ideepdoctor.symptoms.search import search
from ideepdoctor.symptoms.table import CLUES, INSTALLING, RUNNING
from tests.rules.test_signatures import logs

NOISE = (
    "epoch       main/loss   main/accuracy  validation/main/loss  elapsed_time",
    "9           0.134       0.9611         0.0899                132.4",
    "     total [##################................................] 37.00%",
    "  1%|          | 137/19000 [00:12<31:10,  9.21it/s, loss=1.34]",
    "this epoch [####..............................................]  4.00%",
    "UserWarning: This figure includes Axes that are not compatible with tight_layout",
    "/e/lib/python3.7/site-packages/chainer/functions/array/concat.py:12: DeprecationWarning: x",
    "DeprecationWarning: `np.float` is a deprecated alias for the builtin `float`.",
    "Collecting ideep4py==2.0.0.post3",
    "  Downloading ideep4py-2.0.0.post3-cp37-cp37m-manylinux1_x86_64.whl (57.1 MB)",
    "Requirement already satisfied: ideep4py in /e/lib/python3.7/site-packages (2.0.0.post3)",
    "Successfully installed chainer-7.8.1 ideep4py-2.0.0.post3 numpy-1.21.6",
    "mkldnn_verbose,exec,convolution,jit:avx512_common,forward_training,fsrc:nChw16c,0.13",
    "import torch; import mxnet; LD_PRELOAD= libmkldnn.so.0 libiomp5.so libmklml_intel.so",
    "[12345.678901] chrome[812]: segfault at 0 ip 00007f sp 00007f error 4 in libc-2.31.so[7f+1b0000]",
    "[12345.678901] traps: gnome-shell[99] trap invalid opcode ip:7f sp:7f error:0 in libmutter.so[7f+1000]",
    "[12345.678901] Out of memory: Killed process 4321 (java) total-vm:9kB",
    'type=AVC msg=audit(1:2): avc:  denied  { read } for  pid=7 comm="python3" name="x"',
    "Aborted trials: 3, killed workers: 0, terminated: 2",
    "Killed all zombies in 3 steps",
    "The process is killed when it takes too long.",
    "exit code: 0",
    "Process finished with exit code 1",
    "ModuleNotFoundError: No module named 'sklearn'",
    "ImportError: cannot import name 'foo' from 'bar'",
    "AttributeError: module 'numpy' has no attribute 'foo'",
    "ValueError: invalid literal for int() with base 10: 'abc'",
    "TypeError: unsupported operand type(s) for ** or pow(): 'str' and 'int'",
    "TypeError: can't pickle _thread.lock objects",
    "RuntimeError: CUDA environment is not correctly set up",
    "signal 9 of 12 channels: 0.3",
    "saved snapshot_iter_139 with rc 3.7.139",
    "step 124 exited loop at 137.5 s",
    "loss=nan at iteration 134, returned 12 samples",
    "some lines about multiprocessing and pickle and /dev/shm",
    "Installing collected packages: six, numpy, chainer",
)


@pytest.mark.parametrize("line", NOISE)
def test_what_a_healthy_program_writes_names_nothing(line: str):
    found = search([line] * 3)
    assert [one.cause.code for one in found.causes] == []
    assert found.build.hits == ()


def test_pages_of_it_name_nothing_together():
    found = search(list(NOISE) * 50)
    assert (found.causes, found.build.hits) == ((), ())
    assert found.build.line_count == 50 * len(NOISE)


@pytest.mark.parametrize("name", sorted(logs()))
def test_a_log_of_a_build_keeps_its_findings(name: str):
    """Logs of real builds: what is wrong with the build stands among the findings, or is named by the first cause."""
    from tests.e2e.build_failures import FAILURES

    found = search(logs()[name])
    expected = next((failure.code for failure in FAILURES if failure.name == name), None)
    if expected is None:
        assert (found.causes, found.build.hits) == ((), ())
    elif found.build.hits:
        assert found.build.hits[0].code == expected
    else:
        assert any(expected in one.cause.codes for one in found.causes)


MARKS = [one.mark for one in (*INSTALLING, *RUNNING)] + [clue for clue, _ in CLUES]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(MARKS), st.text(max_size=60)), max_size=30), st.text(max_size=12))
def test_nothing_raises(parts: list[str], exit_code: str):
    found = search([" ".join(parts), *parts])
    assert [one.cause.code for one in found.causes] == list(dict.fromkeys(one.cause.code for one in found.causes))
    ending_of_code(exit_code)
    ending_of(exit_code)


HOSTILE = (
    "a: " * 1300,
    "1 " * 2000,
    " " * 3900 + "Killed",
    "Killed" + " " * 3900 + "x",
    "Killed (" * 500,
    "avc: denied { execmem } " + "comm " * 700,
    "exit " * 780,
    "exitcode exit_code " + "exit - - " * 400,
    "MKL ERROR: " * 350,
    "requires has requirement " + "x," * 1800,
)


@pytest.mark.parametrize("line", HOSTILE)
def test_no_line_takes_long(line: str):
    begun = time.process_time()
    search([line] * 20)
    assert time.process_time() - begun < 0.5


def test_a_long_log_needs_no_memory():
    def pages():
        for _ in range(400):
            yield from NOISE
            yield "terminate called after throwing an instance of 'mkldnn::error'"
            yield "Killed"

    tracemalloc.start()
    found = search(pages())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000
    assert found.causes[0].cause.code == "IDP402"
    assert len(found.causes) < 12
