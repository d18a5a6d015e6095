"""to_intel64() called for a program: its numbers, its arrays and its pickles stay what they were, and iDeep is used."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.environments import copy_environment, doctor, site_packages

pytestmark = pytest.mark.e2e

PROGRAM = Path(__file__).parents[1] / "programs" / "auto_cases.py"
MOVED, LEFT = ["mdarray"], ["ndarray"]
# Where the arrays of a model were in the end; None: that is not the question.
WHERE = {
    "a_call_that_is_the_programs_own": MOVED,
    "a_copy_that_shares_before_there_are_arrays": None,
    "a_gradient_of_the_input": MOVED,
    "a_parallel_updater": None,
    "a_target_network": MOVED,
    "a_trainer_that_goes_on_from_a_snapshot": MOVED,
    "an_array_of_no_elements": None,
    "an_updater_with_a_converter": MOVED,
    "an_updater_with_a_device": MOVED,
    "arrays_that_the_program_holds": LEFT,
    "brought_back_to_numpy": LEFT,
    "copies_before_and_after": MOVED,
    "float64_and_float16": LEFT,
    "inference_before_the_optimizer": MOVED,
    "lazy_parameters": MOVED,
    "links_that_cannot_be_hashed": MOVED,
    "lists_and_sequences": MOVED,
    "methods_that_were_overridden": MOVED,
    "never_for_a_while": MOVED,
    "parameters_of_every_kind": LEFT * 4 + MOVED * 2,
    "part_of_a_model": MOVED + LEFT,
    "persistent_values_that_the_program_holds": None,
    "pickles": LEFT + MOVED,
    "recursion": MOVED,
    "set_up_twice": MOVED,
    "views_that_the_program_holds": LEFT,
    "warnings_that_are_errors": MOVED,
    "sums_over_axes": None,
    "weights_loaded_after_it_was_moved": MOVED,
    "weights_of_other_kinds": MOVED,
    "weights_that_are_tied": None,
    "workers_that_make_batches": MOVED,
}
STACKS = [
    ("3.7",),
    *(
        pytest.param(stack, marks=pytest.mark.slow)
        for stack in (
            ("2.7", "--stack", "chainer5.4.0-ideep4py2.0.0.post3"),
            ("2.7",),
            ("3.6", "--stack", "chainer6.7.0-ideep4py2.0.0.post3"),
            ("3.6",),
        )
    ),
]


Told = dict[str, dict[str, Any]]


def told(env: Path, *words: str, program: Path = PROGRAM, **environ: str) -> Told:
    done = doctor("run", "--python", str(env), "--", str(program), *words, environ=environ)
    assert (done.code, done.stderr) == (0, "")
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {row.get("case", "auto"): row for row in rows}


def wrong(plain: Told, ours: Told, where: dict[str, list[str] | None]) -> dict[str, Any]:
    """What differs: the numbers, or where the arrays are."""
    found: dict[str, Any] = {}
    for name, kinds in where.items():
        if "raised" in plain[name] or "raised" in ours[name]:
            found[name] = (plain[name].get("raised"), ours[name].get("raised"))
        elif ours[name]["numbers"] != pytest.approx(plain[name]["numbers"], rel=2e-4, abs=2e-5):
            found[name] = (plain[name]["numbers"], ours[name]["numbers"])
        elif kinds is not None and ours[name]["where"] != kinds:
            found[name] = ours[name]["where"]
    return found


def test_no_program_is_forgotten():
    cases = re.findall(r"^@case\ndef (\w+)", PROGRAM.read_text(), re.MULTILINE)
    assert sorted(cases) == sorted(WHERE)


@pytest.mark.parametrize("stack", STACKS, ids=str)
def test_every_program_computes_what_it_did(made, stack: tuple[str, ...]):
    env, answer = made(*stack)
    assert answer.code == 0
    plain, ours = told(env, *sorted(WHERE), CHAINER_USE_IDEEP="never"), told(env, *sorted(WHERE))
    assert wrong(plain, ours, WHERE) == {}
    assert set(plain["auto"]["auto"]["moved"].values()) == {0}
    assert min(ours["auto"]["auto"]["moved"].values()) > 10


def test_without_the_care_the_programs_would_tell(made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """The programs see what is wrong: a model that is moved although its arrays are held by the program, too."""
    env, _ = made("3.7")
    hasty = "import sys\nauto = sys.modules.get('_ideepdoctor_auto')\n"
    hasty += "if auto: auto._Arrays.shared = lambda self, link: False\n"
    (tmp_path / "sitecustomize.py").write_text(hasty)
    names = ("arrays_that_the_program_holds", "views_that_the_program_holds", "weights_that_are_tied")
    plain = told(env, *names, CHAINER_USE_IDEEP="never")
    ours = told(env, *names, PYTHONPATH=str(tmp_path))
    for name in names:
        assert ours[name]["numbers"] != pytest.approx(plain[name]["numbers"], rel=2e-4, abs=2e-5), name


PICKLED = """
import pickle, sys, chainer, chainer.functions as F, chainer.links as L, numpy as np
net = chainer.Sequential(L.Convolution2D(3, 16, 3), F.relu, L.BatchNormalization(16), L.Linear(None, 4))
optimizer = chainer.optimizers.Adam().setup(net)
x = np.random.RandomState(0).standard_normal((2, 3, 8, 8)).astype("f")
optimizer.update(lambda: F.sum(net(x)))
auto = sys.modules.get("_ideepdoctor_auto")
with open(sys.argv[1], "wb") as stream:
    pickle.dump((net, optimizer, np.array(net(x).array)), stream, 2)
print(type(net[0].W.array).__name__)
"""
UNPICKLED = """
import pickle, sys, chainer, chainer.functions as F, numpy as np
x = np.random.RandomState(0).standard_normal((2, 3, 8, 8)).astype("f")
with open(sys.argv[1], "rb") as stream:
    net, optimizer, y = pickle.load(stream)
assert np.allclose(net(x).array, y, 1e-4, 1e-5)
optimizer.update(lambda: F.sum(net(x)))
print("%s %s %s" % ("ideep4py" in sys.modules, type(net[0].W.array).__name__, getattr(net, "device", None)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("stack", [("3.7",), ("2.7", "--stack", "chainer5.4.0-ideep4py2.0.0.post3")], ids=str)
def test_a_pickle_is_for_machines_without_ideep(made, tmp_path: Path, stack: tuple[str, ...]):
    env, _ = made(*stack)
    path = str(tmp_path / "pickled")
    done = doctor("run", "--python", str(env), "--", "python", "-c", PICKLED, path)
    assert (done.stdout, done.stderr) == ("mdarray\n", "")
    other = copy_environment(env, tmp_path / "other")
    for folder in site_packages(other).glob("ideep4py*"):
        shutil.rmtree(folder)
    done = doctor("run", "--no-guard", "--python", str(other), "--", "python", "-c", UNPICKLED, path)
    assert done.stdout.split()[:2] == ["False", "ndarray"], done.stderr
    assert done.stdout.split()[2:] in (["None"], ["@numpy"])


HINT = "ideepdoctor run --no-auto"


def test_an_error_that_comes_of_moving_names_the_way_out(made):
    env, _ = made("3.7")
    make = "import chainer, numpy as np\nlink = chainer.links.Linear(4, 4)\nchainer.optimizers.SGD().setup(link)\n"
    for code, hinted in (
        ("np.copyto(link.W.array, 1)", True),
        ("np.add(link.W.array, 1, out=link.W.array)", True),
        ("None + 1", False),
    ):
        done = doctor("run", "--python", str(env), "--", "python", "-c", make + code)
        assert done.code == 1
        assert (HINT in done.stderr) is hinted, done.stderr
    done = doctor("run", "--no-auto", "--python", str(env), "--", "python", "-c", make + "np.copyto(link.W.array, 1)")
    assert (done.code, done.stderr) == (0, "")


LINKS = PROGRAM.with_name("every_link.py")


@pytest.mark.slow
@pytest.mark.parametrize("stack", [stack if isinstance(stack, tuple) else stack.values[0] for stack in STACKS], ids=str)
@pytest.mark.parametrize("rule", ["MomentumSGD", "Adam"])
def test_every_link_of_chainer_learns_the_same(made, stack: tuple[str, ...], rule: str):
    env, _ = made(*stack)
    plain, ours = told(env, rule, program=LINKS, CHAINER_USE_IDEEP="never"), told(env, rule, program=LINKS)
    assert set(plain) == set(ours) and len(plain) > 50
    assert {name for name in plain if "raised" in plain[name]} == set()
    assert wrong(plain, ours, dict.fromkeys(plain)) == {}
    moved = [name for name in ours if "mdarray" in ours[name].get("where", ())]
    assert len(moved) > 45
