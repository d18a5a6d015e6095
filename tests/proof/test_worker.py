"""Workers in this Python: the protocol, what goes wrong, what a worker takes back."""

from __future__ import annotations

import os
import sys

import pytest

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.proof.worker import Refusal, Worker, WorkerDied
from ideepdoctor.system import RealSystem
from ideepdoctor.targets.target import Target
from tests.doubles import FakeSystem

HERE = Target(sys.executable)


@pytest.fixture
def worker():
    with Worker(RealSystem(), HERE, "bench") as made:
        yield made


def test_what_a_net_takes_needs_no_chainer(worker: Worker) -> None:
    told = worker.ask({"do": "describe", "net": "alexnet", "batch": 2}, timeout_seconds=60)
    assert told["parameters"] == 61_100_840
    assert told["flops"][1] > told["flops"][0] > 2e9
    first = told["layers"][0]
    assert (first["layer"], first["problem"]) == ("conv1", "mb2_g1ic3oc64_ih224oh55kh11sh4dh0ph2")
    assert told["layers"][-1]["problem"] == "mb2ic4096oc1000"


def test_a_refusal_says_why_and_the_worker_lives_on(worker: Worker) -> None:
    for request, kind, words in (
        ({"do": "describe", "net": "lenet", "batch": 1}, "refused", "no network lenet"),
        ({"do": "dance"}, "refused", "cannot do"),
        ({"do": "steps", "count": 1}, "refused", "nothing is loaded"),
        ({"do": "load", "net": "alexnet", "batch": 1, "use": "auto"}, "import", "chainer"),
    ):
        with pytest.raises(Refusal, match=words) as caught:
            worker.ask(request, timeout_seconds=60)
        assert caught.value.kind == kind
    assert worker.ask({"do": "describe", "net": "conv", "batch": 1}, timeout_seconds=60)["layers"]


PAYLOADS = {
    "bare": b"""
import os, sys
from talk import serve_requests
names = {"set": "OMP_NUM_THREADS", "mark": "IDEEPDOCTOR_SET", "guard": "IDEEPDOCTOR_GUARD", "asked": "ASKED"}
serve_requests({"see": lambda request: dict((key, os.environ.get(name)) for key, name in names.items())})
""",
    "dies": b"""
import os, sys
from talk import serve_requests
def die(request):
    sys.stderr.write("terminate called\\n"); sys.stderr.flush(); os.kill(os.getpid(), request["signal"])
def leave(request):
    sys.exit(7)
serve_requests({"die": die, "leave": leave, "sleep": lambda request: __import__("time").sleep(60)})
""",
    "noisy": b"""
import sys
from talk import serve_requests
def shout(request):
    print("mkldnn_verbose,exec,reorder,simple:any,undef,in,num:1,16,0.1")
    raise MemoryError
serve_requests({"shout": shout})
""",
}


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch):
    """Workers whose program is one of PAYLOADS."""
    from ideepdoctor.proof import worker as module
    from ideepdoctor.targets.target import payload_source

    def source(name: str) -> bytes:
        return PAYLOADS[name].replace(b"from talk import serve_requests", payload_source("talk"))

    monkeypatch.setattr(module, "payload_source", source)
    return lambda name, variables=None, **options: Worker(RealSystem(), HERE, name, variables, **options)


def test_a_bare_worker_forgets_what_a_start_up_file_has_set(sent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDEEPDOCTOR_SET", "OMP_NUM_THREADS,GONE")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    with sent("bare", {"ASKED": "yes"}) as worker:
        assert worker.ask({"do": "see"}, timeout_seconds=60) == {
            "set": "3",
            "mark": "OMP_NUM_THREADS,GONE",
            "guard": None,
            "asked": "yes",
        }
    with sent("bare", {"ASKED": None}, bare=True) as worker:
        assert worker.ask({"do": "see"}, timeout_seconds=60) == {
            "set": None,
            "mark": None,
            "guard": "off",
            "asked": None,
        }


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"do": "die", "signal": 6}, "ended by SIGABRT: terminate called"),
        ({"do": "die", "signal": 9}, "ended by SIGKILL; the system had no memory left, most likely: terminate called"),
        ({"do": "leave"}, "ended with exit code 7"),
    ],
)
def test_how_a_worker_died(sent, request_, words: str) -> None:
    with sent("dies") as worker, pytest.raises(WorkerDied) as caught:
        worker.ask(request_, timeout_seconds=60)
    assert str(caught.value) == words


def test_a_worker_that_does_not_answer_is_ended(sent) -> None:
    with sent("dies") as worker, pytest.raises(WorkerDied, match="did not answer within 1 s"):
        worker.ask({"do": "sleep"}, timeout_seconds=1)


def test_lines_of_mkldnn_come_with_the_answer_and_errors_have_a_kind(sent) -> None:
    with sent("noisy") as worker:
        with pytest.raises(Refusal) as caught:
            worker.ask({"do": "shout"}, timeout_seconds=60)
        assert caught.value.kind == "memory"
        assert worker.lines == ("mkldnn_verbose,exec,reorder,simple:any,undef,in,num:1,16,0.1",)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity here")
def test_a_worker_stays_on_its_cpus(sent, monkeypatch: pytest.MonkeyPatch) -> None:
    one = sorted(os.sched_getaffinity(0))[0]
    seen = b"serve_requests({'see': lambda request: {'cpus': sorted(os.sched_getaffinity(0))}})"
    monkeypatch.setitem(PAYLOADS, "pinned", b"import os\nfrom talk import serve_requests\n" + seen)
    with sent("pinned", affinity=[one]) as worker:
        assert worker.ask({"do": "see"}, timeout_seconds=60) == {"cpus": [one]}


def test_an_interpreter_that_is_not_there() -> None:
    with pytest.raises(CouldNotCheck, match="could not be started"):
        Worker(FakeSystem(), Target("python3.7"), "bench")
