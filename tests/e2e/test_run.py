"""``run`` on programs that never heard of iDeep: it is used, the numbers are NumPy's, the program's ways are kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.environments import doctor

pytestmark = pytest.mark.e2e

SCRIPT = Path(__file__).parents[1] / "programs" / "image_classes.py"

# A sitecustomize: what the script's optimizer has worked with is looked at from outside, when the script has ended.
LOOKER = """
import atexit, gc, json, os, sys


def look():
    import chainer
    found = [thing for thing in gc.get_objects() if isinstance(thing, chainer.Optimizer)]
    params = [param for optimizer in found for param in optimizer.target.params()]
    states = [value for param in params for value in param.update_rule.state.values()]
    kinds = lambda arrays: sorted(set(type(array).__name__ for array in arrays))
    told = {"weights": kinds(param.data for param in params), "states": kinds(states), "optimizers": len(found)}
    convolutions = [link for link in found[0].target.links() if isinstance(link, chainer.links.Convolution2D)]
    x = chainer.Variable(__import__("numpy").ones((2, convolutions[0].W.shape[1], 8, 8), "f"))
    told["output"] = type(convolutions[0](x).data).__name__
    auto = sys.modules.get("_ideepdoctor_auto")
    told["moved"] = auto and auto.status()["moved"]
    with open(os.environ["LOOKED"], "w") as stream:
        json.dump(told, stream)


if os.path.basename(sys.executable).startswith("python") and "LOOKED" in os.environ:
    atexit.register(look)
"""


def looked_at(env: Path, folder: Path, *options: str, **environ: str) -> dict[str, Any]:
    """Run the script, unchanged; what was seen of it, with its losses and what it printed but for times."""
    (folder / "sitecustomize.py").write_text(LOOKER)
    given = {"LOOKED": str(folder / "looked"), "PYTHONPATH": str(folder), **environ}
    done = doctor("run", *options, "--python", str(env), "--", str(SCRIPT), cwd=folder, environ=given)
    assert done.code == 0, done.stderr
    log = json.loads((folder / "result" / "log").read_text())
    losses = [row[key] for row in log for key in ("main/loss", "validation/main/loss")]
    return {**json.loads((folder / "looked").read_text()), "losses": losses, "printed": done.stdout + done.stderr}


STACKS = [
    ("3.7",),
    ("2.7",),
    *(
        pytest.param(stack, marks=pytest.mark.slow)
        for stack in (
            ("3.6",),
            ("3.6", "--stack", "chainer6.7.0-ideep4py2.0.0.post3"),
            ("2.7", "--stack", "chainer5.4.0-ideep4py2.0.0.post3"),
            ("3.7", "--stack", "chainer5.4.0-ideep4py2.0.0.post3"),
        )
    ),
]


@pytest.mark.parametrize("stack", STACKS, ids=str)
def test_an_unchanged_script_uses_ideep_and_learns_the_same(made, tmp_path: Path, stack: tuple[str, ...]):
    env, answer = made(*stack)
    assert answer.code == 0
    ours = looked_at(env, tmp_path)
    plain = looked_at(env, tmp_path, CHAINER_USE_IDEEP="never")
    assert (ours["output"], ours["weights"], ours["states"]) == ("mdarray", ["mdarray"], ["mdarray"])
    assert (plain["output"], plain["weights"], plain["states"]) == ("ndarray", ["ndarray"], ["ndarray"])
    assert (ours["optimizers"], ours["moved"]["optimizer"] > 0, plain["moved"]["optimizer"]) == (1, True, 0)
    assert ours["losses"] == pytest.approx(plain["losses"], rel=1e-4)
    assert len(ours["losses"]) == 6 and ours["losses"][-2] < 0.8 * ours["losses"][0]
    assert ours["printed"].split("\n")[0] == plain["printed"].split("\n")[0]
    assert ours["printed"].count("\n") == plain["printed"].count("\n") == 4


def test_without_auto_the_model_stays_as_the_script_made_it(made, tmp_path: Path):
    env, _ = made("3.7")
    found = looked_at(env, tmp_path, "--no-auto")
    assert (found["weights"], found["states"], found["output"]) == (["ndarray"], ["ndarray"], "mdarray")
    assert found["moved"] is None


def started(made_env: Path, *words: str, **options) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("ideepdoctor")), "run", "--python", str(made_env), "--", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def test_the_exit_code_the_streams_and_the_arguments_are_the_programs(made):
    env, _ = made("3.7")
    code = "import sys; sys.stdout.write(sys.stdin.read()); sys.stderr.write(repr(sys.argv[1:])); sys.exit(7)"
    done = started(env, "python", "-c", code, "--format", "-v", "x y", input="over standard input")
    assert (done.returncode, done.stdout, done.stderr) == (7, "over standard input", "['--format', '-v', 'x y']")


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL", "SIGPIPE", "SIGTERM"])
def test_a_signal_that_ends_the_program_is_seen_outside(made, name: str):
    env, _ = made("3.7")
    code = f"import os, signal; signal.signal(13, signal.SIG_DFL); os.kill(os.getpid(), signal.{name})"
    assert started(env, "python", "-c", code).returncode == -getattr(signal, name)


def test_the_users_own_sitecustomize_runs_too_and_child_processes_are_served(made, tmp_path: Path):
    env, _ = made("3.7")
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.mine = 'mine'\n")
    script = tmp_path / "tell.py"
    script.write_text(
        "import subprocess, sys\n"
        "ours = '_ideepdoctor_auto' in sys.modules\n"
        "if sys.argv[1:]:\n"
        "    sys.exit(0 if ours else 1)\n"
        "child = subprocess.call([sys.executable, sys.argv[0], 'child'])\n"
        "print(sys.mine, ours, child, any('/run/' in path for path in sys.path))\n"
    )
    done = started(env, "python", str(script), env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.stdout == "mine True 0 False\n", done.stderr


def test_a_sitecustomize_that_fails_is_told_as_python_tells_it_and_the_program_runs(made, tmp_path: Path):
    env, _ = made("3.7")
    (tmp_path / "sitecustomize.py").write_text("raise RuntimeError('of mine')\n")
    done = started(env, "python", "-c", "print('ran')", env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "of mine" in done.stderr


def test_a_preloaded_mkldnn_is_named_and_left_out(made, tmp_path: Path):
    env, _ = made("3.7")
    older, _ = made("3.6", "--stack", "chainer4.5.0-ideep4py1.0.4")
    other = next((older / "lib").glob("python3.6/site-packages/ideep4py/lib/libmkldnn.so.0"))
    code = "import os, ideep4py, numpy; ideep4py.relu.Forward(ideep4py.array(numpy.ones((2, 2), 'f')));"
    code += "print(os.environ.get('LD_PRELOAD'))"
    environ = {**os.environ, "LD_PRELOAD": str(other), "LD_LIBRARY_PATH": str(other.parent)}
    done = started(env, "python", "-c", code, env=environ)
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr
    assert "IDP401" in done.stderr
