"""Bad input and bad surroundings: one clear error, the right exit code, one document, nothing half-done."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from ideepdoctor.treatment.journal import runs
from tests.conftest import legacy_python
from tests.e2e.environments import Answer, doctor, pip_install, site_packages
from tests.e2e.test_setup import SCHEMA

pytestmark = pytest.mark.e2e


def refused(answer: Answer, code: int, *words: str) -> None:
    """One valid document with an error of this exit code that says these words; no traceback."""
    document = answer.document
    jsonschema.validate(document, SCHEMA)
    assert (answer.code, document["summary"]["exit_code"]) == (code, code), answer.stdout
    error = document["error"]
    said = f"{error['message']}\n{error['hint']}"
    for word in words:
        assert word in said
    assert error["hint"]
    assert "Traceback" not in answer.stderr


def nothing_left(folder: Path, state: Path) -> None:
    assert not (folder / ".ideep").exists()
    assert all(run.status == "rolled-back" for run in runs(str(state)))


@pytest.fixture
def alone(tmp_path: Path) -> dict[str, str]:
    """A state folder of this test's own."""
    return {"IDEEPDOCTOR_STATE_DIR": str(tmp_path / "state")}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """An empty current folder."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def network_namespace() -> list[str]:
    probe = subprocess.run(["unshare", "-n", "true"], capture_output=True) if shutil.which("unshare") else None
    if probe is None or probe.returncode:
        pytest.skip("no network namespace can be made here")
    return ["unshare", "-n"]


def offline(*words: str, work: Path, environ: dict[str, str]) -> Answer:
    argv = [*network_namespace(), sys.executable, "-m", "ideepdoctor", *words, "--format", "json"]
    env = {**os.environ, **environ}
    done = subprocess.run(argv, capture_output=True, text=True, cwd=work, env=env, timeout=300)
    return Answer(done.returncode, done.stdout, done.stderr)


def test_pythons_that_are_none(work, alone):
    (work / "text").write_text("hello\n")
    (work / "folder").mkdir()
    for name, words in {
        "/no/such/python": "no such",
        "folder": "bin/python",
        "text": "text",
        "9.9": "9.9",
    }.items():
        for command in ("setup", "diagnose", "smoke", "fix"):
            refused(doctor(command, "--python", name, "--format", "json", cwd=work, environ=alone), 2, words)
    nothing_left(work, Path(alone["IDEEPDOCTOR_STATE_DIR"]))


def test_a_python_in_a_folder_that_is_closed(work, alone):
    (work / "closed" / "bin").mkdir(parents=True)
    (work / "closed" / "bin" / "python").write_text("#!/bin/sh\n")
    (work / "closed").chmod(0)
    # Root may look everywhere unless it gives that up.
    humbly = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    if humbly and (not shutil.which("setpriv") or subprocess.run([*humbly, "true"], capture_output=True).returncode):
        pytest.skip("root cannot give up its rights here")
    for name in ("closed", "closed/bin/python"):
        argv = [*humbly, sys.executable, "-m", "ideepdoctor", "diagnose", "--python", name, "--format", "json"]
        done = subprocess.run(argv, capture_output=True, text=True, cwd=work, env={**os.environ, **alone}, timeout=60)
        refused(Answer(done.returncode, done.stdout, done.stderr), 2, "closed", "ermission")
    (work / "closed").chmod(0o700)


def test_a_python_without_a_wheel_names_the_nearest_that_has_one(work, alone):
    answer = doctor("setup", "--python", legacy_python("3.11"), "--format", "json", cwd=work, environ=alone)
    refused(answer, 1, "3.11", "3.7", "ideepdoctor setup --python")
    nothing_left(work, Path(alone["IDEEPDOCTOR_STATE_DIR"]))


@pytest.mark.parametrize("version", ["3.7", pytest.param("2.7", marks=pytest.mark.slow)])
def test_no_network_and_nothing_in_the_cache(work, alone, tmp_path, version):
    names = ("UV_CACHE_DIR", "PIP_CACHE_DIR", "XDG_CACHE_HOME", "IDEEPDOCTOR_CACHE_DIR")
    empty = {name: str(tmp_path / name.lower()) for name in names}
    answer = offline("setup", "--python", legacy_python(version), work=work, environ={**alone, **empty})
    refused(answer, 3, "network is needed")
    nothing_left(work, Path(alone["IDEEPDOCTOR_STATE_DIR"]))


@pytest.mark.parametrize("version", ["3.7", pytest.param("2.7", marks=pytest.mark.slow)])
def test_no_network_but_everything_in_the_cache(made, work, alone, version):
    _, first = made(version)
    assert first.code == 0, first.stdout + first.stderr
    answer = offline("setup", "--python", legacy_python(version), work=work, environ=alone)
    assert answer.code == 0, answer.stdout + answer.stderr
    assert answer.document["proof"]["used"] is True
    assert answer.document["target"]["packages"] == first.document["target"]["packages"]


def test_a_hash_that_does_not_match(work, alone):
    driver = (
        "import dataclasses, sys\n"
        "from ideepdoctor.stacks import catalog\n"
        "def wrong(lock):\n"
        "    bad = dict(sha256=('0' * 64,))\n"
        "    pins = [dataclasses.replace(r, **bad) if r.name == 'six' else r for r in lock.requirements]\n"
        "    return dataclasses.replace(lock, requirements=tuple(pins))\n"
        "right = catalog.all_stacks()\n"
        "stacks = tuple(dataclasses.replace(s, locks=tuple(map(wrong, s.locks))) for s in right)\n"
        "catalog.all_stacks = lambda: stacks\n"
        "from ideepdoctor.cli import main\n"
        "main(['setup', '--format', 'json', '--python', sys.argv[1]])\n"
    )
    argv = [sys.executable, "-c", driver, legacy_python("3.7")]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=work, env={**os.environ, **alone}, timeout=120)
    refused(Answer(done.returncode, done.stdout, done.stderr), 4, "six")
    nothing_left(work, Path(alone["IDEEPDOCTOR_STATE_DIR"]))


def started(*words: str, work: Path, environ: dict[str, str]) -> subprocess.Popen[str]:
    """A doctor that leads a process group of its own, as under a shell."""
    return subprocess.Popen(
        [sys.executable, "-m", "ideepdoctor", *words, "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=work,
        env={**os.environ, **environ},
        start_new_session=True,
    )


def wait_for(path: Path, running: subprocess.Popen[str]) -> None:
    while not path.exists():
        assert running.poll() is None, running.communicate()
        time.sleep(0.005)


def processes_about(folder: Path) -> list[str]:
    """Command lines of the processes that name this folder or work in it."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(folder) in line or (entry / "cwd").readlink().is_relative_to(folder):
                found.append(line)
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("version", ["3.7", "2.7"])
def test_interrupted_in_the_middle_of_the_installation(work, alone, number, version):
    running = started("setup", "--python", legacy_python(version), work=work, environ=alone)
    wait_for(work / ".ideep" / "bin" / "python", running)
    assert processes_about(work)
    os.killpg(running.pid, number)
    answer = Answer(running.returncode, *running.communicate(timeout=60))
    jsonschema.validate(answer.document, SCHEMA)
    assert (running.returncode, answer.document["summary"]["exit_code"]) == (130, 130)
    assert "Traceback" not in answer.stderr
    nothing_left(work, Path(alone["IDEEPDOCTOR_STATE_DIR"]))
    assert processes_about(work) == []


def test_two_at_once(work, alone):
    first = started("setup", "--python", legacy_python("3.7"), work=work, environ=alone)
    wait_for(Path(alone["IDEEPDOCTOR_STATE_DIR"]) / "lock.owner", first)
    words = ("setup", "--python", legacy_python("3.7"), "--env", "other", "--format", "json")
    second = doctor(*words, cwd=work, environ=alone)
    refused(second, 6, "another ideepdoctor is at work", str(first.pid))
    assert not (work / "other").exists()
    out, err = first.communicate(timeout=120)
    assert json.loads(out)["summary"]["exit_code"] == first.returncode == 0, err


@pytest.fixture
def small_disk(work: Path) -> Iterator[Path]:
    """A disk of 60 MB."""
    small = work / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60m", "tmpfs", str(small)], capture_output=True).returncode:
        pytest.skip("no tmpfs can be mounted here")
    yield small
    subprocess.run(["umount", str(small)], check=True)


@pytest.fixture
def full_disk(small_disk: Path) -> Path:
    """A disk without a free byte."""
    with contextlib.suppress(OSError), (small_disk / "fill").open("wb", buffering=0) as stream:
        while stream.write(bytes(2**20)):
            pass
    assert shutil.disk_usage(small_disk).free == 0
    return small_disk


def test_a_disk_that_is_too_small(work, alone, small_disk):
    python, env = legacy_python("3.7"), str(small_disk / "env")
    answer = doctor("setup", "--python", python, "--env", env, "--format", "json", cwd=work, environ=alone)
    refused(answer, 3, "disk", "MB", "nothing was changed")
    assert list(small_disk.iterdir()) == []


@pytest.mark.parametrize("variable", ["IDEEPDOCTOR_STATE_DIR", "UV_CACHE_DIR"])
def test_a_full_disk_under_the_journal_or_the_installer(work, alone, full_disk, variable):
    environ = {**alone, variable: str(full_disk)}
    answer = doctor("setup", "--python", legacy_python("3.7"), "--format", "json", cwd=work, environ=environ)
    refused(answer, 4, "make room")
    nothing_left(work, Path(environ["IDEEPDOCTOR_STATE_DIR"]))
    (full_disk / "fill").unlink()
    said = doctor("history", "--format", "json", environ=environ)
    assert (said.code, [run["status"] for run in said.document["history"] if run["status"] != "rolled-back"]) == (0, [])


def test_a_full_disk_for_temporary_files_is_passed_by(work, alone, full_disk):
    environ = {**alone, "TMPDIR": str(full_disk)}
    answer = doctor("setup", "--python", legacy_python("3.7"), "--format", "json", cwd=work, environ=environ)
    assert answer.document["proof"]["used"] is True, answer.stdout


def test_a_home_that_cannot_be_written(made, work):
    env, _ = made("3.7")
    nowhere = {"HOME": "/proc/nowhere"}
    dropped = ("IDEEPDOCTOR_STATE_DIR", "IDEEPDOCTOR_CACHE_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME")
    fine = doctor("diagnose", "--python", str(env), "--format", "json", environ=nowhere, unset=dropped, cwd=work)
    assert fine.code == 0, fine.stdout
    python = legacy_python("3.7")
    answer = doctor("setup", "--python", python, "--format", "json", environ=nowhere, unset=dropped, cwd=work)
    refused(answer, 3, "IDEEPDOCTOR_STATE_DIR")
    assert not (work / ".ideep").exists()


def test_modules_of_the_same_name_in_the_current_folder(made, work, alone):
    for name in ("json", "numpy", "typing"):
        (work / f"{name}.py").write_text("raise RuntimeError('the wrong one')\n")
    env, _ = made("3.7")
    answer = doctor("diagnose", "--python", str(env), "--format", "json", cwd=work)
    assert answer.codes() == ["IDP204"], answer.stdout
    assert str(work) in answer.document["findings"][0]["found"]
    again = doctor("setup", "--python", legacy_python("3.7"), "--format", "json", cwd=work, environ=alone)
    assert again.document["proof"]["used"] is True, again.stdout


def test_a_numpy_on_pythonpath(made, tmp_path):
    fake = tmp_path / "lib" / "numpy"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text("__version__ = '1.0'\n")
    env, _ = made("3.7")
    answer = doctor("diagnose", "--python", str(env), "--format", "json", environ={"PYTHONPATH": str(fake.parent)})
    assert answer.codes() == ["IDP204"], answer.stdout
    assert answer.document["findings"][0]["treatment"]["next_step"] == "unset PYTHONPATH"


def test_facts_that_are_none(work):
    good = {"schema": "ideepdoctor-facts", "schema_version": "9"}
    text = json.dumps(good)
    for bad in ("", "{", "[]", "{}", "\0", "[" * 100_000, text, json.dumps({**good, "schema_version": "1"})):
        (work / "facts.json").write_text(bad)
        refused(doctor("diagnose", "--facts", "facts.json", "--format", "json", cwd=work), 2, "facts.json")
    (work / "facts.json").write_bytes(b"\xff\xfe\x00")
    refused(doctor("diagnose", "--facts", "facts.json", "--format", "json", cwd=work), 2, "facts.json")
    refused(doctor("diagnose", "--facts", ".", "--format", "json", cwd=work), 2, "directory")


def test_saved_facts_judge_the_same_and_tell_nobodys_name(made, work):
    env, _ = made("3.7")
    words = ("diagnose", "--python", str(env), "--format", "json")
    wrong = {"CHAINER_USE_IDEEP": "1", "HOME": str(env.parent), "USER": "somebody"}
    live = doctor(*words, "--save-facts", "facts.json", cwd=work, environ=wrong)
    replayed = doctor("diagnose", "--facts", "facts.json", "--format", "json", cwd=work)
    assert live.codes() == replayed.codes() == ["IDP502"]
    text = (work / "facts.json").read_text()
    (work / "half.json").write_text(text[: len(text) // 2])
    refused(doctor("diagnose", "--facts", "half.json", "--format", "json", cwd=work), 2, "half.json")
    assert str(env.parent) not in text
    assert "somebody" not in text
    assert not re.search(rf"(?<!\w){re.escape(os.uname().nodename)}(?!\w)", text)


def test_plain_terminals_get_plain_ascii(made, work):
    env, _ = made("3.7")
    plain = {"LANG": "C", "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "TERM": "dumb", "COLUMNS": "40"}
    answer = doctor("diagnose", "--python", str(env), "-v", environ={**plain, "CHAINER_USE_IDEEP": "1"}, cwd=work)
    assert answer.code == 1
    assert "\x1b" not in answer.stdout
    assert answer.stdout.isascii()
    assert max(map(len, answer.stdout.splitlines())) <= 40
    for variables in ({"NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "80"}, {"TERM": "dumb", "COLUMNS": "80"}):
        quiet = doctor("diagnose", "--python", str(env), environ=variables, cwd=work)
        assert "\x1b" not in quiet.stdout + quiet.stderr
        assert max(map(len, quiet.stdout.splitlines())) <= 80
    coloured = doctor("diagnose", "--python", str(env), environ={"FORCE_COLOR": "1", "TERM": "xterm"}, cwd=work)
    assert "\x1b[" in coloured.stdout


def without_a_reader(words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """Run a doctor whose standard output is a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        argv = [sys.executable, "-m", "ideepdoctor", *words]
        return subprocess.run(argv, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60)
    finally:
        os.close(writer)


TALKATIVE = {
    "diagnose": ("diagnose", "--quick"),
    "json": ("diagnose", "--quick", "--format", "json"),
    "explain": ("explain",),
    "schema": ("schema",),
    "help": ("--help",),
}


@pytest.mark.parametrize("case", TALKATIVE)
def test_standard_output_that_is_no_good(made, case):
    words = TALKATIVE[case]
    if "diagnose" in words:
        words = (*words, "--python", str(made("3.7")[0]))
    gone = without_a_reader(words)
    assert (gone.returncode, gone.stderr) == (0, "")
    argv = [sys.executable, "-m", "ideepdoctor", *words]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 3
    assert done.stderr.startswith("error  cannot write the result: ")
    assert len(done.stderr.splitlines()) == 1
    closed = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *argv], stderr=subprocess.PIPE, text=True, timeout=60)
    assert closed.returncode == 3
    assert closed.stderr.startswith("error  ")
    assert len(closed.stderr.splitlines()) == 1
    mute = subprocess.run(["sh", "-c", 'exec "$@" 2>&- <&-', "sh", *argv], stdout=subprocess.PIPE, timeout=60)
    assert (mute.returncode, bool(mute.stdout)) == (0, True)


def test_nobody_is_asked_where_nobody_is(broken_copy, work, alone):
    env = broken_copy("3.7")
    pip_install(env, "numpy==1.15.4", options=("--force-reinstall",))
    before = sorted(path.name for path in site_packages(env).iterdir())
    for environ, words in (({"CI": "true"}, ()), ({}, ("--format", "json"))):
        answer = doctor("fix", "--python", str(env), *words, environ={**alone, **environ}, cwd=work)
        assert answer.code == 2, answer.stdout + answer.stderr
        assert "--yes" in answer.stderr + answer.stdout
        assert "Traceback" not in answer.stderr
    assert sorted(path.name for path in site_packages(env).iterdir()) == before
    assert runs(alone["IDEEPDOCTOR_STATE_DIR"]) == ()


@pytest.mark.parametrize(("typed", "code", "said"), [(b"n\n", 0, "nothing was changed"), (b"\x04", 130, "interrupted")])
def test_a_person_who_does_not_agree(made, work, alone, typed, code, said):
    env, _ = made("3.7")
    argv = [sys.executable, "-m", "ideepdoctor", "env", "--python", str(env), "--write", str(work / "profile")]
    keyboard, terminal = os.openpty()
    os.write(keyboard, typed)
    done = subprocess.run(argv, stdin=terminal, capture_output=True, text=True, env={**os.environ, **alone}, timeout=60)
    os.close(keyboard)
    os.close(terminal)
    assert "Go on?" in done.stderr
    assert (done.returncode, said in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr
    assert "itself failed" not in done.stderr
    assert not (work / "profile").exists()
    assert runs(alone["IDEEPDOCTOR_STATE_DIR"]) == ()


def test_a_new_environment_asks_nothing_under_ci(work, alone):
    answer = doctor("setup", "--python", legacy_python("3.7"), cwd=work, environ={**alone, "CI": "true"})
    assert answer.code == 0, answer.stdout + answer.stderr
    assert "\x1b" not in answer.stdout + answer.stderr
    assert "?" not in answer.stderr
    assert "READY" in answer.stdout
