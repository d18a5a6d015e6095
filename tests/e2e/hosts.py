"""Real ssh hosts on one machine: Debian's sshd in network namespaces that are made here and taken away again.

    with ssh_hosts(tmp_path, "one", "two", HostSpec("gone", Kind.CLOSED)) as hosts:
        subprocess.run([*hosts.ssh("one"), "hostname"])

Each host has its own namespace, address, host key, host name (uts namespace) and HOME; files are this machine's. Only
the pair of virtual network cards reaches it, so nothing leaves this machine. Needs root.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import pytest

SSHD = "/usr/sbin/sshd"
PROGRAMS = {SSHD: "openssh-server", "ip": "iproute2", "ssh": "openssh-client", "unshare": "util-linux"}
"""What this needs, and the Debian package of each."""
NETWORK = "198.18.{}.{}"
"""Addresses that RFC 2544 sets aside for tests of networks."""
_PREFIX = "idpd"
_SILENT = """
import socket, sys
server = socket.create_server((sys.argv[1], 22))
held = []
while True:
    held.append(server.accept())
"""


class Kind(StrEnum):
    """What listens on port 22."""

    SSHD = "sshd"
    CLOSED = "closed"  # nothing: connections are refused
    SILENT = "silent"  # something that accepts connections and never answers


@dataclass(frozen=True)
class HostSpec:
    """A host that is wanted; ``variables`` are set for every session there (PATH and HOME may be among them)."""

    name: str
    kind: Kind = Kind.SSHD
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SshHost:
    """A host that is there."""

    name: str
    address: str
    kind: Kind
    home: Path
    namespace: str


@dataclass(frozen=True)
class SshHosts:
    """Hosts, and how to reach them: ``config`` is a file for ``ssh -F`` in which their names are aliases."""

    hosts: tuple[SshHost, ...]
    config: Path

    def __getitem__(self, name: str) -> SshHost:
        return next(host for host in self.hosts if host.name == name)

    def ssh(self, name: str) -> list[str]:
        """Words that start a command on a host."""
        return ["ssh", "-F", str(self.config), name]

    def inventory(self, path: Path, variables: Mapping[str, Mapping[str, str]] | None = None, **common: str) -> Path:
        """Write an Ansible inventory of them: variables of each host by its name, and variables of all."""
        lines = ["[all]"]
        for host in self.hosts:
            own = (variables or {}).get(host.name, {})
            lines.append(" ".join([host.name, *(f'{name}="{value}"' for name, value in own.items())]))
        # No connection outlives its task: the next test may have another host at the same address.
        lines += ["[all:vars]", f'ansible_ssh_common_args="-F {self.config}"', 'ansible_ssh_args="-o ControlMaster=no"']
        lines += [f'{name}="{value}"' for name, value in common.items()]
        path.write_text("\n".join(lines) + "\n")
        return path


def require_hosts() -> None:
    """Skip a test where such hosts cannot be made; fail where only a program is missing and CI promised it."""
    missing = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    if missing:
        reason = f"Debian packages are missing: {' '.join(missing)}"
        if os.environ.get("IDEEPDOCTOR_REQUIRE_LEGACY") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    if os.geteuid() != 0:
        pytest.skip("hosts in network namespaces need root")
    name = f"{_PREFIX}{os.getpid()}try"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"network namespaces are not allowed here: {done.stderr.strip()}")
    subprocess.run(["ip", "netns", "delete", name], check=True)


@contextlib.contextmanager
def ssh_hosts(folder: Path, *wanted: HostSpec | str) -> Iterator[SshHosts]:
    """Make hosts that log this user in by a key, wait until they answer, and take them away at the end.

    Args:
        folder: for keys, settings, logs (NAME.log) and homes (home/NAME).
        wanted: the hosts; a name alone is an ordinary one.
    """
    require_hosts()
    _remove_leftovers()
    specs = [HostSpec(item) if isinstance(item, str) else item for item in wanted]
    with contextlib.ExitStack() as stack:
        subnet = stack.enter_context(_free_subnet())
        key = _make_key(folder / "id_ed25519")
        known, config = folder / "known_hosts", folder / "ssh_config"
        hosts = []
        for number, spec in enumerate(specs):
            address = NETWORK.format(subnet, number + 2)
            hosts.append(stack.enter_context(_host(folder, spec, subnet, number, address)))
        known.write_text(
            "".join(f"{host.address} {(folder / f'{host.name}.key.pub').read_text()}" for host in hosts),
        )
        always = f"User root\n IdentityFile {key}\n IdentitiesOnly yes\n UserKnownHostsFile {known}\n"
        always += " StrictHostKeyChecking yes\n BatchMode yes\n LogLevel ERROR\n"
        blocks = [f"Host {host.name}\n HostName {host.address}\n {always}" for host in hosts]
        config.write_text("\n".join(blocks))
        yield SshHosts(tuple(hosts), config)


@contextlib.contextmanager
def _host(folder: Path, spec: HostSpec, subnet: int, number: int, address: str) -> Iterator[SshHost]:
    """One host, as long as the block lasts."""
    name = f"{_PREFIX}{os.getpid()}n{subnet}x{number}"
    card, home = f"id{subnet}x{number}", folder / "home" / spec.name
    home.mkdir(parents=True)
    _make_key(folder / f"{spec.name}.key")
    _ip("netns", "add", name)
    try:
        _ip("link", "add", card, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("address", "add", NETWORK.format(subnet, 1), "peer", address, "dev", card)
        _ip("link", "set", card, "up")
        _ip("-n", name, "address", "add", address, "peer", NETWORK.format(subnet, 1), "dev", "eth0")
        _ip("-n", name, "link", "set", "eth0", "up")
        _ip("-n", name, "link", "set", "lo", "up")
        words = _server(folder, spec, address, home)
        with _serving(name, spec.name, words, folder / f"{spec.name}.log"):
            if words:
                _wait_for(address, folder / f"{spec.name}.log")
            yield SshHost(spec.name, address, spec.kind, home, name)
    finally:
        _remove_namespace(name)
        # The kernel takes its cards away at its leisure; the next host may want the address at once.
        subprocess.run(["ip", "link", "delete", card], capture_output=True)


def _server(folder: Path, spec: HostSpec, address: str, home: Path) -> list[str]:
    """The command line of what listens there."""
    if spec.kind is Kind.CLOSED:
        return []
    if spec.kind is Kind.SILENT:
        return [sys.executable, "-c", _SILENT, address]
    Path("/run/sshd").mkdir(exist_ok=True)  # Debian's own start-up makes it; sshd refuses to start without it
    variables = {"HOME": str(home), **spec.variables}
    settings = folder / f"{spec.name}.conf"
    settings.write_text(
        f"ListenAddress {address}\nHostKey {folder / spec.name}.key\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {folder}/id_ed25519.pub\nStrictModes no\nPermitRootLogin prohibit-password\n"
        "PasswordAuthentication no\nPrintMotd no\nMaxStartups 100\nSubsystem sftp internal-sftp\n"
        "SetEnv " + " ".join(f'"{name}={value}"' for name, value in variables.items()) + "\n"
    )
    return [SSHD, "-D", "-e", "-f", str(settings)]


@contextlib.contextmanager
def _serving(namespace: str, hostname: str, words: list[str], log: Path) -> Iterator[None]:
    """Run a server in a namespace under its own host name."""
    if not words:
        yield
        return
    named = ["unshare", "--uts", "sh", "-c", 'hostname "$1" && shift && exec "$@"', "sh", hostname]
    with log.open("wb") as stream:
        server = subprocess.Popen(
            ["ip", "netns", "exec", namespace, *named, *words],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    try:
        yield
    finally:
        server.kill()
        server.wait()


def _wait_for(address: str, log: Path) -> None:
    """Wait until something listens there."""
    deadline = time.monotonic() + 20
    while True:
        with contextlib.suppress(OSError), socket.create_connection((address, 22), timeout=1):
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"nothing listens at {address}: {log.read_text()}")
        time.sleep(0.02)


def _remove_namespace(name: str) -> None:
    """End what runs in a namespace, by its ids, and remove it."""
    for _ in range(100):
        found = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True).stdout.split()
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        if not found:
            break
        time.sleep(0.02)
    subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def _remove_leftovers() -> None:
    """Namespaces of test runs that were killed: the process in their name is gone."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout.split()
    for name in listed:
        owner, _, rest = name.removeprefix(_PREFIX).partition("n")
        if name.startswith(_PREFIX) and rest and owner.isdigit() and not Path("/proc", owner).exists():
            _remove_namespace(name)


@contextlib.contextmanager
def _free_subnet() -> Iterator[int]:
    """A third number of the addresses that no other test run uses at the same time."""
    for number in range(256):
        with socket.socket(socket.AF_UNIX) as lock:
            try:
                lock.bind(f"\0{_PREFIX}-subnet-{number}")  # a name without a file: gone with its process
            except OSError:
                continue
            yield number
            return
    raise AssertionError("no subnet is free")


def _make_key(path: Path) -> Path:
    """A new key without a passphrase."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"
