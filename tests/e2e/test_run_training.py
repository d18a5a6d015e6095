"""The training of recipes/guard_training.py: wrong with iDeep alone, NumPy's with the guard."""

from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.conftest import legacy_python
from tests.e2e.environments import doctor, site_packages
from tests.readme import README

pytestmark = pytest.mark.e2e

RECIPE = Path(__file__).parents[2] / "recipes" / "guard_training.py"
WIDTH = 38  # of the names in its table
EVERY = [
    ("3.7",),
    *(
        pytest.param(stack, marks=pytest.mark.slow)
        for stack in (
            ("2.7",),
            ("3.6",),
            ("2.7", "--stack", "chainer5.4.0-ideep4py2.0.0.post3"),
            ("3.6", "--stack", "chainer6.7.0-ideep4py2.0.0.post3"),
        )
    ),
]


def rows(text: str) -> dict[str, tuple[list[float], float]]:
    """The table: name, losses, and greatest difference (0 for the reference)."""
    lines = iter(text.splitlines())
    steps = next(line for line in lines if line.startswith("loss ")).count("step ")
    found = {}
    for line in lines:
        if not line or line.startswith("Chainer "):
            continue
        fields = line[WIDTH:].split()
        losses, rest = [float(field) for field in fields[:steps]], fields[steps:]
        found[line[:WIDTH].strip()] = (losses, float(rest[0]) if rest else 0.0)
    return found


@pytest.mark.parametrize("stack", EVERY, ids=str)
def test_the_losses_are_numpys_only_with_the_guard(made, tmp_path: Path, stack: tuple[str, ...]):
    env, answer = made(*stack)
    assert answer.code == 0
    done = doctor("run", "--python", str(env), "--", str(RECIPE), cwd=tmp_path)
    assert (done.code, done.stderr) == (0, ""), done.stdout
    found = rows(done.stdout)
    assert list(found) == ["NumPy", "iDeep without the guard", "iDeep with the guard"]
    (numpys, _), (alone, off), (guarded, on) = found.values()
    assert numpys[2] < 0.85 * numpys[0]  # it has learned something
    assert on < 1e-3 and guarded == pytest.approx(numpys, rel=1e-3)
    assert off > 0.2 and alone[2] > 1.2 * numpys[2]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_each_correction_is_worth_something(made):
    env, _ = made("3.7")
    done = doctor("run", "--no-auto", "--python", str(env), "--", str(RECIPE), "--each")
    found = rows(done.stdout)
    worst = {name.rpartition("-")[2]: difference for name, (_, difference) in found.items() if "same" in name}
    assert set(worst) == {"bn", "lrn", "load", "optimizer"}
    guarded = found["iDeep with the guard"][1]
    assert min(worst.values()) > 4 * guarded


def test_what_keeps_it_from_the_comparison_is_told(broken_copy):
    words = [legacy_python("3.7"), str(RECIPE)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "the training could not be begun: exit code 1" in done.stderr
    without = broken_copy("3.7")
    (site_packages(without) / "_ideepdoctor_guard.py").unlink()
    words = [str(without / "bin" / "python"), str(RECIPE), "--steps", "1"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("there is no guard here")


def test_the_table_of_the_readme_is_what_it_prints(made):
    """Numbers of iDeep without the guard depend on the processor; the others do not."""
    [table] = re.findall(
        r"<!-- recipe: training -->.*?(    loss .*?)<!-- end of recipe -->", README.read_text("utf-8"), re.DOTALL
    )
    shown = rows(textwrap.dedent(table))
    env, _ = made("3.7")
    printed = rows(doctor("run", "--python", str(env), "--", str(RECIPE), "--steps", "1").stdout)
    assert list(shown)[:3] == list(printed)
    for name in ("NumPy", "iDeep with the guard"):
        assert shown[name][0][0] == pytest.approx(printed[name][0][0], rel=1e-3)
    (numpys, _), (alone, off), (guarded, on) = list(shown.values())[:3]
    assert on < 1e-3 and guarded == pytest.approx(numpys, rel=1e-3) and off > 0.2 and alone[2] > 1.2 * numpys[2]
