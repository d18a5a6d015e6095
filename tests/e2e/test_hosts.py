"""The ssh hosts that other tests ask for: they are hosts of their own, and nothing of them is left."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.e2e.hosts import HostSpec, Kind, ssh_hosts

pytestmark = pytest.mark.e2e


def namespaces() -> set[str]:
    return set(subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout.split())


def test_hosts_have_their_own_names_homes_and_networks_and_leave_nothing(tmp_path):
    log = Path(tmp_path, "one.log")
    with (
        pytest.raises(ZeroDivisionError),
        ssh_hosts(tmp_path, HostSpec("one", variables={"WORD": "a b"}), "two", HostSpec("shut", Kind.CLOSED)) as hosts,
    ):
        told = "hostname; echo $HOME; echo $WORD"
        one = subprocess.run([*hosts.ssh("one"), told], capture_output=True, text=True, timeout=20)
        two = subprocess.run([*hosts.ssh("two"), told], capture_output=True, text=True, timeout=20)
        shut = subprocess.run([*hosts.ssh("shut"), "true"], capture_output=True, text=True, timeout=20)
        assert one.stdout.splitlines() == ["one", str(tmp_path / "home" / "one"), "a b"], one.stderr + log.read_text()
        assert two.stdout.splitlines() == ["two", str(tmp_path / "home" / "two"), ""]
        assert (shut.returncode, "refused" in shut.stderr) == (255, True)
        # A session that still runs when the block ends is ended, too.
        left = subprocess.Popen([*hosts.ssh("one"), "sleep 60"])
        ours = {host.namespace for host in hosts.hosts}
        assert ours <= namespaces()
        raise ZeroDivisionError
    assert left.wait(timeout=10) == 255
    assert not ours & namespaces()
    addresses = subprocess.run(["ip", "-o", "address"], capture_output=True, text=True).stdout
    assert hosts["one"].address not in addresses
