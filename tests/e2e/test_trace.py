"""``trace`` on real Chainer and iDeep: what it finds is true, and the program is none the wiser."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.proof.verbose import parse
from tests.e2e.traced_programs import CLEAN, ENDS, PLANTED, WORK, line_of
from tests.readme import README

pytestmark = pytest.mark.e2e

VERSIONS = pytest.mark.parametrize("version", ["2.7", "3.6", "3.7"])
SPARED = ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE")


@dataclass
class Run:
    """A program that was run, and what was said of it."""

    code: int
    out: bytes
    errors: str
    trace: dict[str, Any]

    def changes(self) -> dict[str, dict[str, Any]]:
        """By cause."""
        return {change["cause"]: change for change in self.trace["changes"]}

    def work(self, function: str, line: int | None = None) -> dict[str, Any]:
        """The only work of a function, or that at a line."""
        [found] = [item for item in self.trace["work"] if item["function"] == function and line in (None, item["line"])]
        return found


def environment(**changed: str) -> dict[str, str]:
    return {**{name: value for name, value in os.environ.items() if name not in SPARED}, **changed}


def traced(env: Path, *words: str, cwd: Path, options: tuple[str, ...] = (), **environ: str) -> Run:
    """Run a program under ``trace``; its document is read from a file."""
    report = cwd / "report.json"
    command = [str(Path(sys.executable).with_name("ideepdoctor")), "trace", "--python", str(env)]
    command += ["--format", "json", "-o", str(report), *options, "--", *words]
    done = subprocess.run(command, cwd=cwd, env=environment(**environ), capture_output=True, timeout=120)
    document = json.loads(report.read_text()) if report.is_file() else {}
    return Run(done.returncode, done.stdout, done.stderr.decode(), document.get("trace", {}))


def plain(env: Path, *words: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[bytes]:
    python = str(env / "bin" / "python")
    return subprocess.run([python, *words], cwd=cwd, env=environment(**environ), capture_output=True, timeout=120)


@VERSIONS
def test_six_planted_faults_are_named_with_their_lines_and_what_to_write(made, tmp_path: Path, version: str):
    env, _ = made(version)
    (tmp_path / "planted.py").write_text(PLANTED)
    run = traced(env, "planted.py", cwd=tmp_path)
    alone = plain(env, "planted.py", cwd=tmp_path, CHAINER_USE_IDEEP="auto")
    assert (run.code, run.out, run.errors) == (0, alone.stdout, "")
    assert_planted(run)


def assert_planted(run: Run) -> None:
    def line(mark: str) -> int:
        return line_of(PLANTED, mark)

    assert run.trace["problems"] == []
    changes = run.changes()
    assert {cause: (change["file"], change["line"]) for cause, change in changes.items()} == {
        "dtype": ("planted.py", line("made")),
        "never": ("planted.py", line("never")),
        "groups": ("planted.py", line("groups")),
        "zero-size": ("planted.py", line("empty")),
        "not-to-intel64": ("planted.py", line("setup")),
    }
    # There is nothing to write against the sixth: it is named where it is.
    deep = run.work("ConvolutionND")
    assert (deep["line"], deep["forward"]["engine"], deep["why"][0]["cause"]) == (line("5d"), "NumPy", "dimensions")
    assert changes["dtype"]["write"] == "noise = np.random.rand(8, 3, 16, 16).astype('float32')"
    assert f"LeakyReLU at planted.py:{line('float64')} and 1 after it" in changes["dtype"]["found"]
    assert f"Convolution2DFunction at planted.py:{line('kept')}" in changes["never"]["found"]
    assert changes["not-to-intel64"]["write"].startswith("model.to_intel64()")
    first = run.work("Convolution2DFunction", line("first"))
    assert (first["forward"]["engine"], first["forward"]["calls"]) == ("iDeep", 4)
    assert first["forward"]["weight_reorders"] == 4
    assert first["backward"]["calls"] == 4
    assert first["backward"]["engine"] == "iDeep"
    assert any(name.startswith("convolution jit:") for name in first["kernels"])
    grouped = run.work("Convolution2DFunction", line("groups"))
    assert (grouped["forward"]["engine"], grouped["backward"]["engine"]) == ("NumPy", "NumPy")
    update = run.work("MomentumSGD")
    assert (update["line"], update["forward"]["calls"]) == (line("update"), 4)
    assert (update["optimizer"], update["forward"]["engine"]) == (True, "NumPy")
    served = {"LinearFunction", "ReLU"}
    assert {item["forward"]["engine"] for item in run.trace["work"] if item["function"] in served} == {"iDeep", "NumPy"}


@VERSIONS
def test_a_program_without_fault_has_none(made, tmp_path: Path, version: str):
    env, _ = made(version)
    (tmp_path / "clean.py").write_text(CLEAN)
    run = traced(env, "clean.py", cwd=tmp_path)
    assert (run.code, run.errors, run.trace["problems"], run.trace["notes"]) == (0, "", [], [])
    assert run.trace["changes"] == []
    for item in run.trace["work"]:
        curable = [why for why in item["why"] if why["curable"] or why["cause"] == "unknown"]
        assert (item["function"], curable) == (item["function"], [])
    numpys = {item["function"] for item in run.trace["work"] if item["forward"]["engine"] != "iDeep"}
    assert numpys == {"Reshape", "SoftmaxCrossEntropy", "Accuracy"}
    assert run.work("MomentumSGD")["forward"]["engine"] == "iDeep"


def test_the_report_of_the_readme_is_todays(made, tmp_path: Path):
    env, _ = made("3.7")
    (tmp_path / "train.py").write_text(PLANTED)
    command = [str(Path(sys.executable).with_name("ideepdoctor")), "trace", "--python", str(env), "--", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120)
    shown = README.read_text("utf-8").split("<!-- trace -->")[1].split("<!-- end trace -->")[0]
    # Which gain is the largest, and by how much, differs from run to run, and so do the ends of lines.
    said = without_times(done.stderr)
    advice, table = without_times(shown).split("\n\n      line  ")
    parts = re.split(r"TIME|\b(?:found|write|also|stays with NumPy:)\b|(?<=\s)\d\. ", advice)
    assert len(parts) > 15
    assert [part for part in parts if " ".join(part.split()) not in " ".join(said.split())] == []
    lines = {" ".join(line.split()) for line in said.splitlines()}
    assert {" ".join(line.split()) for line in table.splitlines()[1:]} <= lines


def without_times(text: str) -> str:
    return re.sub(r"<?\b\d+\.\d+\b( s\b)?", "TIME", text)


def test_with_auto_it_is_what_run_would_do(made, tmp_path: Path):
    env, _ = made("3.7")
    (tmp_path / "planted.py").write_text(PLANTED)
    run = traced(env, "planted.py", cwd=tmp_path, options=("--auto",))
    assert run.code == 0
    assert {cause: change["line"] for cause, change in run.changes().items()} == {
        "dtype": line_of(PLANTED, "made"),
        "never": line_of(PLANTED, "never"),
        "groups": line_of(PLANTED, "groups"),
        "zero-size": line_of(PLANTED, "empty"),
    }
    assert {item["file"] for item in run.trace["work"]} == {"planted.py"}
    assert run.work("MomentumSGD")["forward"]["engine"] == "iDeep"
    assert run.trace["processes"][0]["guard"] is not None


def test_what_the_guard_computes_is_a_part_of_the_function_that_it_corrects(made, tmp_path: Path):
    env, _ = made("3.7")
    code = """
    import numpy as np, chainer, chainer.functions as F
    x = chainer.Variable(np.random.rand(2, 16, 8, 8).astype('f'))
    x.array[0, 0, 0, 0] = np.nan
    for i in range(3):
        y = F.max_pooling_2d(x, 2)
        y.grad = np.ones(y.shape, 'f')
        y.backward()
    """
    (tmp_path / "nan.py").write_text(textwrap.dedent(code))
    run = traced(env, "nan.py", cwd=tmp_path)
    assert (run.code, run.trace["problems"], run.trace["changes"]) == (0, [], [])
    assert run.trace["processes"][0]["guard"] == {"maxpool": 6}
    [work] = run.trace["work"]
    assert (work["line"], work["forward"]["calls"], work["backward"]["calls"]) == (6, 3, 3)
    assert (work["forward"]["engine"], work["backward"]["engine"]) == ("iDeep", "NumPy")
    assert [why["cause"] for why in work["why"]] == ["guard"]


def test_every_line_of_mkldnn_is_counted_and_none_is_printed(made, tmp_path: Path):
    env, _ = made("3.7")
    (tmp_path / "clean.py").write_text(CLEAN)
    given = {"OMP_NUM_THREADS": "1", "IDEEPDOCTOR_GUARD": "off"}
    run = traced(env, "clean.py", cwd=tmp_path, **given)
    shown = plain(env, "clean.py", cwd=tmp_path, CHAINER_USE_IDEEP="auto", MKLDNN_VERBOSE="1", **given)
    lines = parse(shown.stdout.decode().splitlines())
    changed = [line for line in lines if line.primitive == "reorder" and is_change(line.formats)]
    passes = [item[way] for item in run.trace["work"] for way in ("forward", "backward")] + [run.trace["outside"]]
    assert sum(one["reorders"] + one["weight_reorders"] for one in passes) == len(changed)
    kernels = {f"{line.primitive} {line.implementation}" for line in lines if line.primitive != "reorder"}
    assert {name for item in run.trace["work"] for name in item["kernels"]} == kernels
    assert run.out == plain(env, "clean.py", cwd=tmp_path, CHAINER_USE_IDEEP="auto", **given).stdout
    verbose = traced(env, "clean.py", cwd=tmp_path, MKLDNN_VERBOSE="1", **given)
    assert Counter(map(is_line, verbose.out.splitlines())) == Counter(map(is_line, shown.stdout.splitlines()))
    assert any("MKLDNN_VERBOSE is set" in note for note in verbose.trace["notes"])
    assert verbose.work("BatchNormalization")["forward"]["engine"] == "iDeep"
    assert verbose.trace["changes"] == []


def is_change(formats: str) -> bool:
    before, after = formats.split()
    return before.split(":")[1] != after.split(":")[1]


def is_line(line: bytes) -> bool:
    return line.startswith(b"mkldnn_verbose,exec,")


def test_a_chrome_trace_of_a_real_run_nests(made, tmp_path: Path):
    env, _ = made("3.7")
    (tmp_path / "planted.py").write_text(PLANTED)
    run = traced(env, "planted.py", cwd=tmp_path, options=("--chrome", "calls.json"))
    events = json.loads((tmp_path / "calls.json").read_text())["traceEvents"]
    complete = [event for event in events if event["ph"] == "X"]
    assert len(complete) == run.trace["processes"][0]["calls"]
    assert {event["name"] for event in events if event["ph"] == "M"} == {"process_name", "thread_name"}
    for event in complete:
        assert event["ts"] >= 0
        assert event["dur"] >= 0
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert event["args"]["line"].startswith("planted.py:")
    open_ends: list[float] = []
    for event in sorted(complete, key=lambda item: (item["ts"], -item["dur"])):
        while open_ends and open_ends[-1] <= event["ts"] + 0.2:
            open_ends.pop()
        end = event["ts"] + event["dur"]
        assert not open_ends or end <= open_ends[-1] + 0.2  # times are rounded to 0.1 us
        open_ends.append(end)
    inner = [event for event in complete if event["name"] == "Convolution2DGradW"]
    assert {event["args"]["line"] for event in inner} >= {f"planted.py:{line_of(PLANTED, 'first')}"}


@pytest.mark.parametrize("end", ["raises", "exits", "dies", "forks", "redirects"])
def test_the_ways_of_a_program_are_kept_byte_for_byte(made, tmp_path: Path, end: str):
    keeps_its_ways(made("3.7")[0], tmp_path, end)


@pytest.mark.slow
@pytest.mark.parametrize("end", sorted(ENDS))
@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7"])
def test_every_way_in_every_version(made, tmp_path: Path, version: str, end: str):
    keeps_its_ways(made(version)[0], tmp_path, end)


def keeps_its_ways(env: Path, folder: Path, end: str) -> None:
    program = WORK + ENDS[end]
    (folder / "program.py").write_text(program)
    run = traced(env, "program.py", cwd=folder)
    alone = plain(env, "program.py", cwd=folder, CHAINER_USE_IDEEP="auto")
    assert (run.code, run.out) == (alone.returncode, alone.stdout)
    assert run.errors.splitlines() == alone.stderr.decode().splitlines()
    assert run.trace["problems"] == []
    work = run.work("Convolution2DFunction")
    assert (work["line"], work["forward"]["engine"]) == (line_of(program, "work"), "iDeep")
    calls = {"forks": 7, "replaces": 6, "redirects": 15, "threads": 15}
    assert end == "daemons" or work["forward"]["calls"] == calls.get(end, 3)
    if end == "dies":
        assert run.trace["program"]["signal"] == signal.SIGSEGV
        assert run.trace["processes"][0]["busy"] == [f"Death at program.py:{line_of(program, 'death')}, forward"]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_program_that_hangs_is_interrupted_as_ever(made, tmp_path: Path, name: str):
    env, _ = made("3.7")
    loop = "try:\n    print('ready'); sys.stdout.flush()\n    while True: work(); time.sleep(0.01)\n"
    (tmp_path / "hang.py").write_text(WORK + loop + "except KeyboardInterrupt:\n    print('stopped'); sys.exit(9)\n")
    command = [str(Path(sys.executable).with_name("ideepdoctor")), "trace", "--python", str(env), "--", "hang.py"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(getattr(signal, name))
        out, errors = process.communicate(timeout=60)
    lines = errors.splitlines()
    assert lines[0] == "trace of hang.py"
    if name == "SIGINT":
        assert (process.returncode, out) == (9, "stopped\n")
        assert lines[1].startswith("  ended     exit code 9 after")
    else:
        assert (process.returncode, out) == (-signal.SIGTERM, "")
        assert lines[1].startswith("  ended     SIGTERM after")
    assert any("Convolution2DFunction" in line for line in lines)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("/bin/true",), 0, "no Python was started"),
        (("sh", "-c", "echo a; exit 4"), 4, "no Python was started"),
        (("python", "-c", "print('a')"), 0, "no process imported Chainer"),
        (("python", "-E", "-c", "import chainer"), 0, "no Python was started"),
        (("python", "-c", "import chainer"), 0, "none of its functions was called"),
    ],
)
def test_where_there_is_nothing_to_tell_it_says_why(made, tmp_path: Path, words: tuple[str, ...], code: int, said: str):
    env, _ = made("3.7")
    run = traced(env, *words, cwd=tmp_path)
    assert run.code == code
    assert said in " ".join(run.trace["notes"])
    assert run.trace["work"] == []


def test_a_program_within_a_shell_is_seen(made, tmp_path: Path):
    env, _ = made("3.7")
    (tmp_path / "planted.py").write_text(PLANTED)
    run = traced(env, "sh", "-c", f"cd .. && python {tmp_path.name}/planted.py; echo done; exit 3", cwd=tmp_path)
    assert (run.code, run.out.splitlines()[-1]) == (3, b"done")
    assert run.changes()["groups"]["file"] == "planted.py"


def test_without_ideep_everything_has_one_cause(made, tmp_path: Path):
    env, _ = made("3.7")
    (tmp_path / "planted.py").write_text(PLANTED)
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['ideep4py'] = None\n")
    run = traced(env, "planted.py", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert run.code == 0
    assert run.changes()["not-available"]["write"].startswith("ideepdoctor fix --python")
    assert {item["forward"]["engine"] for item in run.trace["work"]} == {"NumPy"}


@pytest.mark.parametrize(
    ("environ", "cause", "where"),
    [
        ({"CHAINER_USE_IDEEP": "never"}, "never", "your environment"),
        ({"CHAINER_DTYPE": "float64"}, "default-dtype", "your environment"),
    ],
)
def test_variables_that_keep_ideep_out_are_named(made, tmp_path: Path, environ: dict[str, str], cause: str, where: str):
    env, _ = made("3.7")
    text = CLEAN.replace("astype(np.float32)", "astype(chainer.config.dtype)").replace("    model.to_intel64()\n", "")
    (tmp_path / "clean.py").write_text(text)
    run = traced(env, "clean.py", cwd=tmp_path, **environ)
    assert run.code == 0, run.errors
    assert run.changes()[cause]["where"] == where
    assert run.changes()[cause]["seconds"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "options"),
    [("3.7", ("--chainer", "5.4.0")), ("3.7", ("--chainer", "6.7.0")), ("2.7", ("--chainer", "5.4.0"))],
)
def test_six_planted_faults_with_other_chainers(made, tmp_path: Path, version: str, options: tuple[str, ...]):
    env, _ = made(version, *options)
    (tmp_path / "planted.py").write_text(PLANTED)
    run = traced(env, "planted.py", cwd=tmp_path)
    assert run.code == 0, run.errors
    assert_planted(run)
    (tmp_path / "clean.py").write_text(CLEAN)
    run = traced(env, "clean.py", cwd=tmp_path)
    assert (run.code, run.errors, run.trace["problems"], run.trace["changes"]) == (0, "", [], [])
    assert {item["function"] for item in run.trace["work"] if item["forward"]["engine"] != "iDeep"} == {
        "Reshape",
        "SoftmaxCrossEntropy",
        "Accuracy",
    }


@pytest.mark.slow
def test_tracing_costs_less_than_a_tenth_of_a_convolution_net(made, tmp_path: Path):
    env, _ = made("3.7")
    benchmark = Path(__file__).parents[1] / "benchmarks" / "trace_cost.py"
    words = ["--python", str(env / "bin" / "python"), "--net", "Plain", "--rounds", "20"]
    done = subprocess.run([sys.executable, str(benchmark), *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    # Of all processors: other programs on the machine disturb it less than the time that passes.
    used = done.stdout.split("of all processors")[1]
    ratio = float(used.split(" traced / untraced: ")[1].split()[0])
    assert ratio < 1.1, done.stdout
