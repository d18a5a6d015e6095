"""Ansible as the engine: the hosts that it lists, and what is said where it is missing or cannot read an inventory."""

from __future__ import annotations

import importlib.util

import pytest

from ideepdoctor.errors import UsageError
from ideepdoctor.fleet.engine import INSTALL, AnsibleEngine, Play
from tests.doubles import FakeSystem, completed

LISTED = "[WARNING]: something\n  hosts (3):\n    n1\n    n2\n    odd name\n"


def engine(system: FakeSystem, cwd, **environ: str) -> AnsibleEngine:
    return AnsibleEngine(system, {"PATH": "/usr/bin", **environ}, str(cwd))


def test_the_hosts_are_ansibles_own_list_of_the_inventory(tmp_path):
    (tmp_path / "hosts").write_text("n1\n")
    system = FakeSystem().on("ansible", LISTED)
    assert engine(system, tmp_path).hosts("hosts", "n*") == ("n1", "n2", "odd name")
    [call] = system.calls
    assert call.argv == ("ansible", "all", "-i", f"{tmp_path}/hosts", "--list-hosts", "--limit", "n*")
    assert call.env is not None
    assert call.env["ANSIBLE_INVENTORY_UNPARSED_FAILED"] == "true"
    assert "ANSIBLE_CONFIG" not in call.env


def test_names_alone_are_an_inventory_and_an_ansible_cfg_of_the_folder_counts(tmp_path):
    (tmp_path / "ansible.cfg").write_text("[defaults]\n")
    system = FakeSystem().on("ansible", LISTED)
    assert engine(system, tmp_path).hosts("one,two,", "")
    assert system.calls[0].argv[3] == "one,two,"
    assert (system.calls[0].env or {})["ANSIBLE_CONFIG"] == f"{tmp_path}/ansible.cfg"
    engine(system, tmp_path, ANSIBLE_CONFIG="/other").hosts("one,two,", "")
    assert (system.calls[1].env or {})["ANSIBLE_CONFIG"] == "/other"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (completed(returncode=4, stderr="[WARNING]: x\n[ERROR]: No inventory was parsed\n"), "No inventory was parsed"),
        (completed("[WARNING]: none\n  hosts (0):\n"), "there is no host in the inventory"),
        (completed(returncode=127, error="No such file or directory: 'ansible'"), "No such file or directory"),
    ],
)
def test_an_inventory_that_gives_no_host_is_a_usage_error(tmp_path, answer, words):
    (tmp_path / "hosts").write_text("n1\n")
    with pytest.raises(UsageError, match=words) as caught:
        engine(FakeSystem().on("ansible", answer), tmp_path).hosts("hosts", "")
    assert caught.value.hint


def test_a_missing_file_is_told_before_ansible_is_asked(tmp_path):
    system = FakeSystem()
    with pytest.raises(UsageError, match="there is no inventory") as caught:
        engine(system, tmp_path).hosts("no-such-file", "")
    assert "-i one,two," in caught.value.hint
    assert system.calls == []


def test_without_ansible_the_command_that_installs_it_is_named(tmp_path, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, package=None: None if name == "ansible_runner" else real(name, package),
    )
    with pytest.raises(UsageError, match=r"needs Ansible, and ansible-runner cannot be imported") as caught:
        engine(FakeSystem(), tmp_path)
    assert INSTALL in caught.value.hint
    assert INSTALL == "pip install 'ideepdoctor[fleet]'"


def test_a_playbook_that_ansible_cannot_run_is_a_problem_in_its_words(tmp_path):
    from ideepdoctor.system import RealSystem

    (tmp_path / "hosts").write_text("localhost ansible_connection=local\n")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "play.yml").write_text("- hosts: all\n  tasks: [{no_such_module: {}}]\n")
    (tmp_path / "scratch").mkdir()
    import os

    ansible = AnsibleEngine(RealSystem(), os.environ, str(tmp_path))
    ends = []
    play = Play(str(tmp_path / "project"), "play.yml", "hosts", str(tmp_path / "scratch"))
    end = ansible.run(play, ends.append)
    assert "no_such_module" in end.problem
    assert (ends, end.interrupted) == ([], False)
