"""The two machines of the talk get the advice of the talk: two Xeon Platinum 8180, and a Xeon E3-1505M v5 (a laptop).

The talk's two things not to forget are CHAINER_USE_IDEEP=auto and model.to_intel64(); it warns of the libmkldnn that
comes with Intel's Python, and shows NumPy with MKL slower on the server than on the laptop.
"""

from __future__ import annotations

from typing import Any

import pytest

from ideepdoctor.commands.cpu import reason, verdict
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Severity
from ideepdoctor.rules import RULES
from ideepdoctor.rules.compat import RELEASES, kernel
from ideepdoctor.rules.engine import judge
from ideepdoctor.stacks.catalog import choose
from ideepdoctor.treatment.variables import recommended
from tests.hosts.review import facts_of
from tests.lint.sources import found
from tests.rules.hosts import facts_on, faults, judged, recorded

SERVER, LAPTOP = "xeon-8180-pair", "xeon-e3-1505m-v5"
BOTH = pytest.mark.parametrize("machine", [SERVER, LAPTOP])
AUTO = {"variables": {"inherited": {"CHAINER_USE_IDEEP": "auto"}, "effective": {"CHAINER_USE_IDEEP": "auto"}}}


def variables(facts: Facts) -> dict[str, str]:
    return {item.name: item.value for item in recommended(facts)}


@BOTH
def test_the_variable_that_is_not_to_be_forgotten_is_asked_for(machine: str):
    judgement = judge(facts_of(machine), RULES)
    [finding] = [item for item in judgement.findings if item.code == "IDP501"]
    assert finding.severity is Severity.WARNING
    assert variables(facts_of(machine))["CHAINER_USE_IDEEP"] == "auto"
    assert "IDP501" not in {item.code for item in judged(machine, AUTO).findings}


@BOTH
def test_a_wheel_exists_for_each_python_that_may_be_there(machine: str):
    facts = facts_of(machine)
    assert {"cp27mu", "cp36m", "cp37m"} <= {abi for release in RELEASES.values() for abi in release.abis}
    for abi in ("cp36m", "cp37m"):
        stack, lock = choose(abi, facts.cpu)
        [pinned] = [item for item in lock.requirements if item.name == "ideep4py"]
        assert (stack.ideep4py, pinned.version) == ("2.0.0.post3", "2.0.0.post3")
        assert pinned.sha256
    assert not {"IDP110", "IDP201"} & {item.code for item in judge(facts, RULES).findings}


def test_the_server_has_the_registers_of_avx512_and_the_laptop_those_of_avx2():
    server, laptop = facts_of(SERVER).cpu, facts_of(LAPTOP).cpu
    assert {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"} <= (server.flags or frozenset())
    assert "avx512f" not in (laptop.flags or frozenset())
    assert "avx2" in (laptop.flags or frozenset())
    assert (server.emulated, laptop.emulated) == (False, False)
    assert (kernel(server), kernel(laptop)) == ("jit:avx512_common", "jit:avx2")
    assert reason(laptop, "avx512").startswith(
        "avx512: Intel(R) Xeon(R) CPU E3-1505M v5 @ 2.80GHz does not show avx512f"
    )
    assert reason(server, "avx512") == "avx512: it is there, and the system saves its registers"
    for cpu in (server, laptop):
        assert verdict(cpu, RELEASES["2.0.0.post3"]) == verdict(cpu, RELEASES["1.0.4"]) == "runs"


def test_one_thread_for_each_core_and_not_for_each_hyper_thread():
    server, laptop = facts_of(SERVER), facts_of(LAPTOP)
    assert (server.cpu.sockets, server.cpu.physical_cores, server.cpu.logical_cpus) == (2, 56, 112)
    assert (laptop.cpu.sockets, laptop.cpu.physical_cores, laptop.cpu.logical_cpus) == (1, 4, 8)
    assert (variables(server)["OMP_NUM_THREADS"], variables(laptop)["OMP_NUM_THREADS"]) == ("56", "4")


def test_numpy_that_is_slower_on_the_larger_machine_is_a_matter_of_threads():
    """As the talk shows it: NumPy with MKL slower with 56 threads than with 4."""
    steps = [
        {"engine": "mkl", "subject": "alexnet, batch 32", "threads": threads, "seconds": mid, "low": low, "high": high}
        for threads, low, mid, high in ((4, 0.9, 1.0, 1.1), (56, 1.9, 2.0, 2.1))
    ]
    measured: dict[str, Any] = {"bench": {"steps": steps, "quiet": True}}
    [finding] = [item for item in judged(SERVER, measured).findings if item.code == "IDP703"]
    assert "56" in finding.found
    assert "4" in finding.next_step


@BOTH
def test_an_mkl_of_intel_gets_no_variable_for_amd(machine: str):
    assert "MKL_DEBUG_CPU_TYPE" not in variables(facts_of(machine))
    assert "IDP701" not in {item.code for item in judge(facts_of(machine), RULES).findings}


@BOTH
def test_the_library_of_intels_python_is_left_where_it_lies_as_long_as_nothing_takes_it(machine: str):
    """It is really there, and ideep4py's own is taken: its DT_RPATH comes before any folder of the environment."""
    facts = facts_of(machine)
    assert facts.native is not None
    strays = [item for item in facts.native.files if item.kind == "mkldnn" and not item.own]
    assert {item.file.path.rpartition("/")[2] for item in strays} == {"libmkldnn.so", "libmkldnn.so.0"}
    assert {item.name for item in strays} == {"MKL-DNN 0.12"}
    assert not [item for item in judge(facts, RULES).findings if item.code.startswith("IDP4")]
    in_path = facts_of("py37-intel-python-path")
    assert in_path.variables.inherited["LD_LIBRARY_PATH"].endswith("/intelpython3/lib")
    assert not [item for item in judge(in_path, RULES).findings if item.code.startswith("IDP4")]


@BOTH
def test_it_is_to_go_where_it_is_loaded_first(machine: str):
    """The same library in LD_PRELOAD, as it was really recorded, on the machines of the talk."""
    preloaded = recorded("py37-preload")
    overlay = {name: preloaded[name] for name in ("variables", "native", "imports", "first_op", "chainer", "python")}
    findings = {item.code: item for item in judge(facts_on(machine, overlay), RULES).findings}
    assert findings["IDP401"].severity is Severity.ERROR
    assert findings["IDP401"].next_step == "unset LD_PRELOAD"
    assert "MKL-DNN 0.12" in findings["IDP401"].found


@BOTH
def test_nothing_else_is_wrong_but_the_guard_that_corrects_what_is_known(machine: str):
    assert faults(judged(machine, AUTO)) == ["IDP610"]


@pytest.mark.parametrize("optimizer", ["SGD", "MomentumSGD"])
def test_the_call_that_is_not_to_be_forgotten_is_asked_for_in_programs(optimizer: str):
    program = (
        "import chainer\n"
        "import chainer.functions as F\n"
        "import chainer.links as L\n\n\n"
        "class Net(chainer.Chain):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        with self.init_scope():\n"
        "            self.conv = L.Convolution2D(3, 8, 3)\n\n"
        "    def __call__(self, x, t):\n"
        "        return F.sum(self.conv(x))\n\n\n"
        "model = Net()\n"
        "{}"
        f"optimizer = chainer.optimizers.{optimizer}()\n"
        "optimizer.setup(model)\n"
        "for x, t in batches():\n"
        "    optimizer.update(model, x, t)\n"
    )
    [located] = found(program.format(""))
    assert located.finding.code == "IDP901"
    assert located.finding.next_step.startswith("model.to_intel64()")
    assert found(program.format("model.to_intel64()\n")) == ()
