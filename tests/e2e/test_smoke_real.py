"""The smoke test on real environments: what is known to be wrong is found, what is right is not blamed."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.model.facts import OpCheck, Smoke
from ideepdoctor.proof.smoke import UNNAMED, healthy, run_smoke, worst
from ideepdoctor.system import RealSystem
from ideepdoctor.targets.target import Target, run_payload
from tests.e2e.environments import QEMU, Answer, pip_install

pytestmark = pytest.mark.e2e

Made = Callable[..., tuple[Path, Answer]]

SEEN_WRONG = {
    1: set(),
    2: {"(8,16,56,56)", "(32,16,28,28)", "(4,3,112,112)"},
    3: {"(8,16,56,56)", "(32,16,28,28)", "(8,64,56,56)", "(32,64,28,28)"},
    4: {"(8,32,56,56)", "(32,32,28,28)"},
    8: {"(8,64,56,56)", "(32,64,28,28)"},
}
"""Shapes with wrong BatchNormalization gradients by number of threads, on processors that are not Intel's."""


def python_of(made: Made, version: str, *options: str) -> str:
    return str(made(version, *options)[0] / "bin" / "python")


@pytest.fixture
def unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an environment without the guard: a clean install."""
    monkeypatch.setenv("IDEEPDOCTOR_GUARD", "off")


def smoke(python: str, *emulator: str, **options: Any) -> Smoke:
    return run_smoke(RealSystem(), Target(python, emulator=emulator), **{"timing": False, **options})


def about(seen: Smoke, hazard: str | None) -> list[OpCheck]:
    return [check for check in seen.checks if check.hazard == hazard]


def statuses(seen: Smoke, hazard: str | None) -> set[str]:
    return {check.status for check in about(seen, hazard)}


def is_intel() -> bool:
    return "GenuineIntel" in Path("/proc/cpuinfo").read_text()


@pytest.mark.usefixtures("unguarded")
@pytest.mark.parametrize("version", [pytest.param("2.7", marks=pytest.mark.slow), "3.6", "3.7"])
def test_a_clean_install_is_used_fast_and_not_healthy(made: Made, version: str) -> None:
    seen = smoke(python_of(made, version), timing=True)
    assert seen.failure == ""
    assert seen.used is True
    assert seen.kernel is not None and seen.kernel.startswith("jit:")
    assert statuses(seen, None) == {"right"}
    assert statuses(seen, "to_intel64-bn") == {"right"}
    for hazard in ("H2", "H3", "H4", "H5"):
        assert statuses(seen, hazard) == {"wrong"}, hazard
    assert statuses(seen, "H7") == {"crashed"}
    # 8 of 16 channels are inside a block with AVX-512, and a whole one without.
    assert statuses(seen, "H8") == ({"crashed"} if "avx512" in seen.kernel else {"right"})
    assert statuses(seen, "H9") == statuses(seen, "H11") == {"raised"}
    assert statuses(seen, "H10") == ({"crashed"} if version == "2.7" else {"raised"})
    assert "SIGABRT" in about(seen, "H7")[0].message and "mkldnn::error" in about(seen, "H7")[0].message
    lrn = {check.case: check.status for check in about(seen, "H14")}
    assert lrn == {
        "(2,16,8,8)": "right",
        "of a convolution (2,16,8,8)": "wrong",
        "(2,16,8,8), then a convolution": "wrong",
    }
    assert not healthy(seen)
    assert worst(seen) == about(seen, "H7")[0]
    assert seen.timing is not None
    assert seen.timing.ratio_low <= seen.timing.ratio <= seen.timing.ratio_high
    assert seen.timing.repeats >= 7
    assert seen.timing.ideep_gflops > 0


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7"])
def test_with_the_guard_everything_is_right(made: Made, version: str, threads: int) -> None:
    seen = smoke(python_of(made, version), threads=threads)
    assert healthy(seen), [check for check in seen.checks if check.status != "right"]
    assert len(seen.checks) > 30


@pytest.mark.usefixtures("unguarded")
@pytest.mark.parametrize("threads", sorted(SEEN_WRONG))
def test_wrong_batch_normalization_is_found_where_it_is_and_nowhere_else(made: Made, threads: int) -> None:
    seen = smoke(python_of(made, "3.7"), threads=threads)
    assert seen.threads == threads
    checks = about(seen, "H1")
    assert {check.status for check in checks} <= {"right", "wrong"}
    wrong = {check.case for check in checks if check.status == "wrong"}
    made_for_this_machine = checks[-1].case
    if not is_intel():
        assert wrong - {made_for_this_machine} == SEEN_WRONG[threads]
    assert (made_for_this_machine in wrong) is (threads > 1)
    assert all((check.max_relative_error or 1) > 0.01 for check in checks if check.status == "wrong")


@pytest.mark.parametrize("version", [pytest.param("2.7", marks=pytest.mark.slow), "3.6"])
def test_chainer_4_with_its_own_ideep_has_few_faults(made: Made, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    python = python_of(made, version, "--stack", "chainer4.5.0-ideep4py1.0.4")
    seen = smoke(python, threads=3)
    # Its pooling is wrong for plain arrays, too: the guard leaves it.
    assert {check.hazard for check in seen.checks if check.status != "right"} == {"H17"}
    monkeypatch.setenv("IDEEPDOCTOR_GUARD", "off")
    bare = smoke(python, threads=3)
    faults = {check.hazard for check in bare.checks if check.status != "right"}
    assert {"H5", "H7", "H10", "H11"} <= faults <= {"H5", "H7", "H8", "H9", "H10", "H11", "H15", "H16", "H17"}
    assert statuses(bare, "H7") == {"crashed"}
    assert statuses(bare, "H2") == statuses(bare, "H3") == statuses(bare, "H4") == {"right"}


@pytest.mark.usefixtures("unguarded")
@pytest.mark.skipif(shutil.which(QEMU) is None, reason="qemu-user is not installed")
def test_an_emulated_intel_processor_shows_the_same_faults_at_other_shapes(made: Made) -> None:
    seen = smoke(python_of(made, "3.7"), QEMU, "-cpu", "Haswell", threads=2, timing=True)
    assert (seen.used, seen.kernel, seen.timing) == (True, "jit:avx2", None)
    assert statuses(seen, None) == {"right"}
    assert [check.status for check in about(seen, "H1")] == ["right"] * 7 + ["wrong"]
    assert statuses(seen, "H2") == statuses(seen, "H3") == {"wrong"}
    assert statuses(seen, "H7") == {"crashed"}


def mischief(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Change Chainer in the children alone: they look where PYTHONPATH says."""
    (folder / "sitecustomize.py").write_text("import chainer.functions as F\n" + textwrap.dedent(text))
    monkeypatch.setenv("PYTHONPATH", str(folder))


def test_a_wrong_result_is_called_wrong(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mischief(
        tmp_path,
        monkeypatch,
        """
        import chainer
        right = F.relu

        def relu(x):
            y = right(x)
            return y * 1.0001 if chainer.config.use_ideep == "auto" else y

        F.relu = relu
        """,
    )
    seen = smoke(python_of(made, "3.7"), threads=1)
    relu = next(check for check in seen.checks if check.op == "relu")
    assert relu.status == "wrong"
    assert relu.max_relative_error == pytest.approx(1e-4, rel=0.05)
    assert relu.tolerance is not None and relu.tolerance < 1e-5
    others = [
        check for check in seen.checks if check.hazard is None and check.op not in ("relu", "sgd", "momentum_sgd")
    ]
    assert {check.status for check in others} == {"right"}


def test_a_wrong_gradient_behind_a_right_output_is_called_wrong(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mischief(
        tmp_path,
        monkeypatch,
        """
        import chainer
        from chainer.functions.connection.linear import LinearFunction
        right = LinearFunction.backward

        def backward(self, indexes, gy):
            gx = right(self, indexes, gy)
            return tuple(g * 0.5 for g in gx) if chainer.config.use_ideep == "auto" else gx

        LinearFunction.backward = backward
        """,
    )
    seen = smoke(python_of(made, "3.7"), threads=1)
    linear = next(check for check in seen.checks if check.op == "linear")
    assert linear.status == "wrong"
    assert linear.max_relative_error == pytest.approx(0.5, rel=0.01)
    assert linear.message.startswith("gradient of ")


def test_numpy_in_place_of_ideep_is_not_use(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mischief(
        tmp_path,
        monkeypatch,
        """
        import chainer.backends.intel64 as intel64
        intel64.inputs_all_ready = lambda *args, **options: False
        """,
    )
    seen = smoke(python_of(made, "3.7"), threads=2)
    assert seen.used is False
    assert statuses(seen, None) == {"right"}
    assert seen.checks[0].used_ideep is False


def test_a_death_and_a_hang_cost_one_check_each(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mischief(
        tmp_path,
        monkeypatch,
        """
        import os, time
        F.average_pooling_2d = lambda *args: os.kill(os.getpid(), 11)
        F.lstm = lambda *args: time.sleep(600)
        F.dropout = lambda *args: 1 / 0
        """,
    )
    request = {"threads": 1, "timing": False, "seconds": 60, "op_seconds": 5}
    target = Target(python_of(made, "3.7"))
    answer = run_payload(RealSystem(), target, "smoke", request, timeout_seconds=90)
    core = {check["op"]: check for check in answer["checks"] if check["hazard"] is None}
    assert core["average_pooling"]["status"] == "crashed" and "SIGSEGV" in core["average_pooling"]["message"]
    assert core["lstm"]["status"] == "timeout"
    assert core["dropout"]["status"] == "raised" and "ZeroDivisionError" in core["dropout"]["message"]
    bad = {"average_pooling", "lstm", "dropout"}
    assert {check["status"] for op, check in core.items() if op not in bad} == {"right"}


def test_an_ideep_that_chainer_does_not_know_is_not_used_and_not_blamed(broken_copy: Callable[..., Path]) -> None:
    env = broken_copy("3.6")
    pip_install(env, "ideep4py==1.0.4", "numpy==1.13.0")
    seen = smoke(str(env / "bin" / "python"), threads=2)
    assert seen.used is False
    assert "Unsupported iDeep version" in seen.checks[0].message
    assert {check.status for check in seen.checks} == {"right", "not-run"}
    skipped = [check for check in seen.checks if check.status == "not-run"]
    trained = {"sgd", "momentum_sgd", "sgd with batch_normalization", "ada_grad"}
    assert {check.op for check in skipped} == {*trained, "load_npz", "pickle"}
    assert all("not available" in check.message for check in skipped)


def test_garbage_in_the_gradients_is_wrong_without_a_known_name(broken_copy: Callable[..., Path]) -> None:
    env = broken_copy("3.6")
    pip_install(env, "chainer==4.5.0", options=["--no-build-isolation"])
    seen = smoke(str(env / "bin" / "python"), threads=1)
    assert seen.used is True
    checks = [check for check in seen.checks if check.op == "batch_normalization backward"]
    assert {(check.status, check.hazard) for check in checks} == {("wrong", None)}


@pytest.mark.skipif(shutil.which(QEMU) is None, reason="qemu-user is not installed")
def test_a_library_that_cannot_name_its_kernel_is_proved_by_the_code_it_makes(
    broken_copy: Callable[..., Path],
) -> None:
    env = broken_copy("3.6")
    pip_install(env, "chainer==4.0.0b4", "ideep4py==1.0.3", "numpy==1.13.0", options=["--no-build-isolation"])
    python = str(env / "bin" / "python")
    seen = smoke(python, QEMU, "-cpu", "Haswell")
    assert (seen.used, seen.kernel) == (True, UNNAMED)
    assert statuses(seen, None) == {"right"}
    (moved,) = about(seen, "to_intel64-bn")
    assert moved.status == "raised"
    assert "has no attribute 'ideep4'" in moved.message
    if not is_intel():
        dead = smoke(python)
        assert dead.used is None
        assert "SIGABRT" in dead.failure and "Xbyak::Error" in dead.failure
