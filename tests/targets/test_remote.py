"""Targets on another machine or in a container, over stand-ins that start things here."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ideepdoctor.errors import CouldNotCheck, UsageError
from ideepdoctor.facts.collect import BARE, collect
from ideepdoctor.system import RealSystem
from ideepdoctor.targets.address import parse_address
from ideepdoctor.targets.link import Link, run_there
from ideepdoctor.targets.remote import reach
from ideepdoctor.targets.target import Target, run_payload
from tests.conftest import legacy_python
from tests.doubles import CountingSystem, FakeSystem
from tests.targets.standins import put_standins

ADDRESSES = ["ssh:alice@far:2222", "docker:box", "podman:box", "kubectl:ns/pod/main"]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """The variables of a person here, with the stand-ins on PATH; nothing of Python on the other side's PATH."""
    given = put_standins(tmp_path)
    far = tmp_path / "far"
    far.mkdir()
    for name in ("sh", "env", "readlink", "sleep", "cat"):
        (far / name).symlink_to(shutil.which(name) or "")
    return {**given, "FAR_PATH": str(far)}


def far_python(tmp_path: Path, folder: str, name: str = "python", *packages: str) -> Path:
    """An interpreter on the other side, in ``folder`` below its home."""
    path = tmp_path / "home" / folder / "bin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(sys.executable)
    (path.parents[1] / "pyvenv.cfg").write_text("")
    for package in packages:
        (path.parents[1] / "lib" / "python3.11" / "site-packages" / package).mkdir(parents=True)
    return path


def reached(environ: dict[str, str], text: str, asked: str | None = None) -> Target:
    return reach(RealSystem(), environ, parse_address(text), asked)


@pytest.mark.parametrize("text", ADDRESSES)
def test_facts_over_a_link_are_those_of_this_machine_but_for_what_is_the_other_sides(
    text: str, environ: dict[str, str]
) -> None:
    system = RealSystem()
    target = reached(environ, text, sys.executable)
    assert (target.address, target.reason) == (text, f"asked for: {sys.executable}")
    far = collect(system, target, environ, BARE, cwd="/")
    near = collect(system, Target(sys.executable), environ, BARE, cwd="/")
    assert (far.target.address, far.target.transport) == (text, parse_address(text).words)
    assert replace(far.python, user_site=None) == replace(near.python, user_site=None)
    assert far.python.user_site is not None
    assert far.python.user_site.startswith(f"{environ['HOME']}/home/.local/")
    assert (far.packages, far.cpu) == (near.packages, near.cpu)
    assert near.variables.inherited["OMP_NUM_THREADS"] == "7"
    assert "OMP_NUM_THREADS" not in far.variables.inherited
    assert replace(far.platform, container=None) == replace(near.platform, container=None)


def test_who_is_there_is_known(environ: dict[str, str], tmp_path: Path) -> None:
    link = reached(environ, "ssh:far", sys.executable).link
    assert link is not None
    assert (link.home, link.host) == (str(tmp_path / "home"), os.uname().nodename)


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7"])
def test_every_old_python_answers_over_a_link(version: str, environ: dict[str, str]) -> None:
    target = reached(environ, "docker:box", legacy_python(version))
    answer = run_payload(RealSystem(), target, "identify", {}, timeout_seconds=20, env=environ)
    assert str(answer["version"]).startswith(f"{version}.")


@pytest.mark.parametrize("shell", ["/bin/sh", "/usr/bin/fish", "/usr/bin/tcsh", "/usr/bin/zsh"])
def test_any_login_shell_passes_the_words_on(shell: str, environ: dict[str, str], tmp_path: Path) -> None:
    if not Path(shell).exists():
        pytest.skip(f"no {shell}")
    python = far_python(tmp_path, 'it\'s a "$HOME" `x`')
    target = reached({**environ, "FAR_SHELL": shell}, "ssh:far", str(python))
    assert target.python == str(python)


def test_what_is_chosen_and_why(environ: dict[str, str], tmp_path: Path) -> None:
    """Everything is there; what was chosen is taken away, again and again."""
    folder = far_python(tmp_path, ".ideep")
    conda = far_python(tmp_path, "miniconda3/envs/b", "python", "chainer", "ideep4py")
    pyenv = far_python(tmp_path, ".pyenv/versions/3.7.16", "python", "chainer")
    path = tmp_path / "far" / "python3"
    path.symlink_to(sys.executable)
    for chosen, reason in (
        (folder, "the environment in its folder"),
        (pyenv, "its pyenv, the first that has chainer"),
        (conda, "its conda, the first that has chainer and ideep4py"),
        (path, "on its PATH; none found there has Chainer or ideep4py"),
    ):
        target = reached(environ, "docker:box")
        assert (target.python, target.reason) == (str(chosen), reason)
        chosen.unlink()


def test_what_does_not_answer_is_passed_over_and_what_was_asked_for_is_not(
    environ: dict[str, str], tmp_path: Path
) -> None:
    broken, good = tmp_path / "home" / ".ideep" / "bin" / "python", far_python(tmp_path, ".venv")
    broken.parent.mkdir(parents=True)
    broken.write_text("#!/nowhere/python\n")
    broken.chmod(0o755)
    assert reached(environ, "docker:box").python == str(good)
    with pytest.raises(CouldNotCheck) as caught:
        reached(environ, "docker:box", str(broken))
    assert str(broken) in caught.value.message


@pytest.mark.parametrize(("asked", "name"), [("python3.11", None), ("3", None), ("3.11", None), ("~/.venv", ".venv")])
def test_ways_to_name_one_that_is_there(asked: str, name: str | None, environ: dict[str, str], tmp_path: Path) -> None:
    on_path, venv = tmp_path / "far" / "python3.11", far_python(tmp_path, ".venv")
    on_path.symlink_to(sys.executable)
    found = reached(environ, "docker:box", asked).python
    assert found in ([str(venv)] if name else [str(on_path), str(venv)])


@pytest.mark.parametrize(
    ("text", "asked", "message"),
    [
        ("docker:gone", None, "there is no container gone"),
        ("docker:stopped", None, "the container stopped does not run"),
        ("docker:down", None, "the daemon of docker does not run here"),
        ("podman:closed", None, "you may not talk to the daemon of podman"),
        ("docker:distroless", None, "there is no shell to look for a Python with"),
        ("docker:distroless", "/nowhere/python", "there is no /nowhere/python there"),
        ("kubectl:none/pod", None, "there is no namespace none"),
        ("kubectl:other", None, "there is no pod other"),
        ("kubectl:ns/pod/gone", None, "the pod pod has no container gone"),
        ("kubectl:secret", None, "you may not start commands in that pod"),
        ("kubectl:bare", None, "there is no shell to look for a Python with"),
    ],
)
def test_a_place_that_cannot_be_examined_is_one_error(
    text: str, asked: str | None, message: str, environ: dict[str, str]
) -> None:
    with pytest.raises(CouldNotCheck) as caught:
        reached(environ, text, asked)
    assert caught.value.message.startswith(f"{text}: {message}")
    assert caught.value.hint


def test_a_place_without_any_python_says_so() -> None:
    system = FakeSystem().on("docker", lambda call: f"{call.argv[-2]} end\n")
    with pytest.raises(CouldNotCheck, match="docker:box: there is no Python there") as caught:
        reach(system, {}, parse_address("docker:box"), None)
    assert "--python PATH" in caught.value.hint


def test_a_container_without_a_shell_is_examined_by_the_path_of_its_python(environ: dict[str, str]) -> None:
    target = reached(environ, "docker:distroless", sys.executable)
    assert collect(RealSystem(), target, environ, BARE).python.executable == sys.executable


def test_an_interpreter_that_is_not_there_is_a_usage_error(environ: dict[str, str], tmp_path: Path) -> None:
    python = far_python(tmp_path, ".venv")
    with pytest.raises(UsageError, match=r"no such interpreter there: 2\.7") as caught:
        reached(environ, "docker:box", "2.7")
    assert str(python) in caught.value.hint
    with pytest.raises(UsageError, match="no such interpreter there: /nowhere/python"):
        reached(environ, "docker:box", "/nowhere/python")
    with pytest.raises(UsageError, match="cannot be split into words"):
        reached({**environ, "IDEEPDOCTOR_SSH_OPTIONS": "-o 'x"}, "ssh:far")


def test_ssh_never_asks_and_logs_in_once_unless_the_person_has_a_connection_of_their_own(
    environ: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "home" / "ssh.log"
    reached({**environ, "IDEEPDOCTOR_SSH_OPTIONS": "-o Port=2200"}, "ssh:far", sys.executable)
    sent = [line for line in log.read_text().splitlines() if "-G" not in line.split()]
    assert len(sent) >= 2
    for line in sent:
        assert line.startswith("-o Port=2200 -o BatchMode=yes -o ConnectTimeout=10 ")
    [socket] = {word for line in sent for word in line.split() if word.startswith("ControlPath=")}
    assert all("-o ControlMaster=auto " in line for line in sent)
    assert Path(socket.removeprefix("ControlPath=")).parent.stat().st_mode & 0o777 == 0o700
    log.unlink()
    reached({**environ, "OWN_CONTROL": "/run/mine"}, "ssh:far", sys.executable)
    assert "ControlPath=" not in log.read_text()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Path]:
    """A file to which a program writes the ids of its processes; none of them is left at the end."""
    path = tmp_path / "pids"
    yield path
    deadline = time.monotonic() + 10
    pids = [int(word) for word in path.read_text().split()]
    assert len(pids) == 2
    while time.monotonic() < deadline and any(alive(pid) for pid in pids):
        time.sleep(0.02)
    assert [pid for pid in pids if alive(pid)] == []


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


SLEEPS = """
import os, subprocess, sys, time
child = subprocess.Popen(["sleep", "600"])
with open({path!r}, "w") as stream:
    stream.write("%d %d" % (os.getpid(), child.pid))
time.sleep(600)
"""


@pytest.mark.parametrize("text", ["ssh:far", "docker:box"])
def test_a_payload_that_takes_too_long_is_ended_there_with_all_that_it_started(
    text: str, environ: dict[str, str], processes: Path
) -> None:
    address = parse_address(text)
    source = SLEEPS.format(path=str(processes)).encode()
    link = Link(address, address.words)
    came = run_there(
        RealSystem(), link, [sys.executable], source, "c00kie", "request", timeout_seconds=1.0, env=environ
    )
    assert (came.arrived, came.done.timed_out) == (True, True)


def test_nothing_is_written_there(environ: dict[str, str], tmp_path: Path) -> None:
    home = tmp_path / "home"
    system = CountingSystem()
    target = reach(system, environ, parse_address("docker:box"), sys.executable)
    collect(system, target, environ, BARE)
    assert (list(home.iterdir()), system.written) == ([], [])
