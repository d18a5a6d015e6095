"""Fleets of real ssh hosts (see hosts.py) through real Ansible."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import legacy_python
from tests.e2e.environments import doctor, pip_install
from tests.e2e.hosts import HostSpec, Kind, ssh_hosts

pytestmark = pytest.mark.e2e

DOCTOR = str(Path(sys.executable).with_name("ideepdoctor"))
PLAIN_PATH = "/usr/bin:/bin"
SLEEPER = "#!/bin/sh\necho $$ >> '{folder}/sleeping'\nexec sleep 300\n"


def sleeper(folder: Path) -> Path:
    """A Python that never answers."""
    path = folder / "sleeper"
    path.write_text(SLEEPER.format(folder=folder))
    path.chmod(0o755)
    return path


def statuses(folder: Path) -> dict[str, str]:
    """Status of each host's file, by the host's name."""
    documents = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    return {item["host"]["name"]: item["host"]["status"] for item in documents}


def still_runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()


def test_six_hosts_two_faults_one_unreachable_one_hanging(made, broken_copy, tmp_path):
    good, _answer = made("3.7")
    broken = broken_copy("3.7")
    pip_install(broken, "numpy==1.15.4")
    variables = {"PATH": f"{good}/bin:{PLAIN_PATH}"}
    specs = (
        HostSpec("node1", variables=variables),
        HostSpec("node2", variables=variables),
        HostSpec("node3", variables={"PATH": f"{broken}/bin:{PLAIN_PATH}"}),
        HostSpec("node4", variables={**variables, "LD_LIBRARY_PATH": "/opt/other lib", "CHAINER_DTYPE": "float16"}),
        HostSpec("node5", Kind.CLOSED),
        HostSpec("node6", variables=variables),
    )
    with ssh_hosts(tmp_path, *specs) as hosts:
        # The one that hangs names its Python itself, as an inventory does.
        inventory = hosts.inventory(tmp_path / "hosts.ini", {"node6": {"ideepdoctor_python": str(sleeper(tmp_path))}})
        before = {path.name for path in hosts["node1"].home.iterdir()}
        started = time.monotonic()
        answer = doctor(
            *("fleet", "diagnose", "-i", str(inventory), "--timeout", "20", "--format", "json"),
            *("--also", "text:fleet.txt", "--also", "html:fleet.html"),
            cwd=tmp_path,
        )
        seconds = time.monotonic() - started
        assert answer.code == 1, answer.stdout + answer.stderr
        # Nothing is installed there; the Python that hung is gone.
        assert {path.name for path in hosts["node1"].home.iterdir()} == before
        assert not still_runs(int((tmp_path / "sleeping").read_text().split()[-1]))
    assert seconds < 60
    reports = tmp_path / "fleet-reports"
    assert statuses(reports) == {
        **dict.fromkeys(("node1", "node2", "node3", "node4"), "ok"),
        "node5": "unreachable",
        "node6": "timeout",
    }
    document = answer.document
    causes = {(item["code"], item["hosts"]) for item in document["fleet"]["causes"]}
    assert {("IDP305", "node3"), ("IDP503", "node4"), ("unreachable", "node5"), ("timeout", "node6")} <= causes
    assert not [hosts for _code, hosts in causes if hosts in ("node1", "node2", "node[1-2]")]
    [one] = json.loads((reports / "node3.json").read_text())["facts"]["packages"][:1]
    assert one["name"]
    text = (tmp_path / "fleet.txt").read_text()
    assert "node[1-2]" in text
    for word in ("IDP305", "Connection refused", "no answer within 20 seconds"):
        assert word in text
        assert word in (tmp_path / "fleet.html").read_text()
    # The same files, by the command that merges them.
    merged = doctor("fleet", "merge", str(reports), "--format", "json")
    assert (merged.code, merged.document["fleet"]["causes"]) == (1, document["fleet"]["causes"])


@pytest.mark.slow
def test_ctrl_c_keeps_what_came_and_leaves_no_process(made, tmp_path):
    good, _answer = made("3.7")
    with ssh_hosts(tmp_path, HostSpec("quick", variables={"PATH": f"{good}/bin:{PLAIN_PATH}"}), "hangs") as hosts:
        own = {"hangs": {"ideepdoctor_python": str(sleeper(tmp_path))}}
        inventory = hosts.inventory(tmp_path / "hosts.ini", own)
        words = [DOCTOR, "fleet", "diagnose", "-i", str(inventory), "--timeout", "120", "--format", "json"]
        running = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while not ((tmp_path / "fleet-reports" / "quick.json").exists() and (tmp_path / "sleeping").exists()):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)
        assert running.returncode == 130, out + err
        document = json.loads(out)
        assert document["error"]["code"] == "interrupted"
        assert statuses(tmp_path / "fleet-reports") == {"quick": "ok", "hangs": "failed"}
        listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
        assert str(inventory) not in listed
        assert not [line for line in listed.splitlines() if line.startswith("ssh ") and str(hosts.config) in line]


@pytest.mark.slow
def test_a_host_that_accepts_and_never_answers_is_unreachable_in_bounded_time(tmp_path):
    with ssh_hosts(tmp_path, HostSpec("silent", Kind.SILENT)) as hosts:
        inventory = hosts.inventory(tmp_path / "hosts.ini")
        started = time.monotonic()
        words = ("fleet", "diagnose", "-i", str(inventory), "--timeout", "5", "--format", "json")
        answer = doctor(*words, cwd=tmp_path)
        assert time.monotonic() - started < 30
    assert (answer.code, answer.document["summary"]["status"]) == (3, "unknown")
    [status] = statuses(tmp_path / "fleet-reports").values()
    assert status in ("unreachable", "timeout")


@pytest.fixture(scope="module")
def wheelhouse(tmp_path_factory) -> tuple[Path, Path]:
    """A wheel of this clone, and a folder with all that a host without a network needs."""
    folder = tmp_path_factory.mktemp("wheelhouse")
    root = Path(__file__).parents[2]
    words = [sys.executable, "-m", "uv", "build", "--wheel", "--quiet", "--out-dir", str(folder / "dist"), str(root)]
    subprocess.run(words, check=True, timeout=300)
    [wheel] = (folder / "dist").glob("*.whl")
    answer = doctor("wheelhouse", str(folder / "wh"), "--python", "3.7", "--doctor", timeout_seconds=900)
    assert answer.code == 0, answer.stderr
    return wheel, folder / "wh"


@pytest.mark.slow
def test_setup_of_two_hosts_without_a_network(wheelhouse, tmp_path):
    """What would be done, the real thing, and once more, which changes nothing."""
    wheel, folder = wheelhouse
    path = f"{Path(legacy_python('3.7')).parent}:{PLAIN_PATH}"
    specs = [HostSpec(name, variables={"PATH": path}) for name in ("one", "two")]
    with ssh_hosts(tmp_path, *specs, HostSpec("shut", Kind.CLOSED)) as hosts:
        inventory = hosts.inventory(tmp_path / "hosts.ini", ideepdoctor_runner=sys._base_executable)
        words = ("fleet", "setup", "-i", str(inventory), "--requirement", str(wheel), "--format", "json", "--yes")
        words = (*words, "--offline", "--wheelhouse", str(folder))
        asked = doctor(*words, "--check", "--limit", "one,two", cwd=tmp_path)
        assert asked.code == 0, asked.stdout + asked.stderr
        rows = asked.document["fleet_setup"]["hosts"]
        assert [len(row["steps"]) for row in rows] == [3, 3]
        homes = [hosts[name].home for name in ("one", "two")]
        assert not [home for home in homes if (home / ".ideep").exists() or (home / ".local").exists()]

        real = doctor(*words, "--serial", "1", "--limit", "one,two", cwd=tmp_path, timeout_seconds=900)
        assert real.code == 0, real.stdout + real.stderr
        rows = real.document["fleet_setup"]["hosts"]
        assert [(row["changed"], row["message"][:6]) for row in rows] == [(True, "READY:"), (True, "READY:")]
        assert all((home / ".ideep" / "bin" / "python").exists() for home in homes)
        assert statuses(tmp_path / "fleet-reports") == {"one": "ok", "two": "ok"}

        again = doctor(*words, cwd=tmp_path, timeout_seconds=900)
        assert again.code == 3, again.stdout + again.stderr
        rows = {row["name"]: row for row in again.document["fleet_setup"]["hosts"]}
        assert [rows[name]["changed"] for name in ("one", "two")] == [False, False]
        assert (rows["shut"]["status"], rows["shut"]["exit_code"]) == ("unreachable", 3)
        assert rows["one"]["message"].startswith("READY:")

        # What diagnose finds there without a word is what was set up.
        found = doctor("fleet", "diagnose", "-i", str(inventory), "--limit", "one", "--format", "json", cwd=tmp_path)
        assert found.code == 0, found.stdout + found.stderr
        one = json.loads((tmp_path / "fleet-reports" / "one.json").read_text())
        assert one["target"]["python"] == str(hosts["one"].home / ".ideep" / "bin" / "python")


@pytest.fixture
def rendered(tmp_path, wheelhouse) -> Path:
    """The recipe, as a user gets it."""
    answer = doctor("recipe", "ansible", "--output", str(tmp_path / "role"), "--requirement", str(wheelhouse[0]))
    assert answer.code == 0, answer.stderr
    return tmp_path / "role"


def playbook(folder: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """ansible-playbook as the recipe's start says, with the doctor's environment on PATH."""
    start = ["ansible-playbook", "-i", "inventory.ini", "playbook.yml"]
    path = f"{Path(sys.executable).parent}:{Path(legacy_python('3.7')).parent}:{PLAIN_PATH}"
    environ = {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "IDEEPDOCTOR_TUNE": "0"}
    environ |= {name: value for name, value in os.environ.items() if name.startswith(("UV_", "PIP_", "SSL_"))}
    return subprocess.run([*start, *words], cwd=folder, env=environ, capture_output=True, text=True, timeout=900)


@pytest.mark.slow
def test_the_role_by_ansible_playbook_on_this_machine(rendered, wheelhouse, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (rendered / "reports").mkdir()
    wheels = str(wheelhouse[1])
    more = {
        "ideepdoctor_runner": sys._base_executable,
        "ideepdoctor_pip_arguments": ["--no-index", f"--find-links={wheels}"],
        "ideepdoctor_setup_arguments": ["--offline", f"--wheelhouse={wheels}"],
    }
    words = ("-e", json.dumps(more))
    asked = playbook(rendered, home, *words, "--check")
    assert asked.returncode == 0, asked.stdout + asked.stderr
    assert "changed=3" in asked.stdout
    assert not (home / ".ideep").exists()
    first = playbook(rendered, home, *words)
    assert first.returncode == 0, first.stdout + first.stderr
    assert json.loads((rendered / "reports" / "localhost.json").read_text())["verdict"].startswith("READY:")
    second = playbook(rendered, home, *words)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "changed=0" in second.stdout
    after = playbook(rendered, home, *words, "--check")
    assert (after.returncode, "changed=0" in after.stdout) == (0, True), after.stdout
    # What cannot be is told by name, and the play fails.
    refused = playbook(rendered, home, *words, "-e", "ideepdoctor_stack=chainer5.4.0-ideep4py2.0.0.post3")
    assert refused.returncode == 2
    assert "exists and is not the stack" in refused.stdout
    none = playbook(rendered, home, *words, "-e", "ideepdoctor_runner=/no/python")
    assert (none.returncode, "there is no Python 3.11 or later" in none.stdout) == (2, True)


@pytest.mark.slow
def test_ansible_lint_has_nothing_to_say_in_its_strictest_profile(rendered, tmp_path):
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv"
    words = [
        uv,
        "tool",
        "run",
        "--python",
        sys._base_executable,
        "ansible-lint",
        "--offline",
        "--profile",
        "production",
    ]
    done = subprocess.run(words, cwd=rendered, capture_output=True, text=True, timeout=600)
    if "ansible-lint" not in done.stdout + done.stderr and "Passed" not in done.stderr:
        pytest.skip(f"ansible-lint cannot be had here: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stdout + done.stderr
