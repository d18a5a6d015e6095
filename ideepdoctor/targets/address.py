"""What ``--target`` may say: ``ssh:[USER@]HOST[:PORT]``, ``docker:NAME``, ``kubectl:POD``, ``conda:NAME``...

Pure: words in, words out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ideepdoctor.errors import UsageError

SSH, DOCKER, PODMAN, KUBECTL, CONDA = "ssh", "docker", "podman", "kubectl", "conda"
FORMS = "ssh:[USER@]HOST[:PORT], docker:NAME, podman:NAME, kubectl:[NAMESPACE/]POD[/CONTAINER], conda:NAME"

# A word that begins with a dash would be an option to the program that it is handed to.
_USER = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.@\\+-]*")
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9_.-]+)?")
_CONTAINER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_KUBERNETES = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_ENVIRONMENT = re.compile(r"[^-\s/:#][^/:#\n]*|/[^\n]*")


@dataclass(frozen=True, slots=True)
class Address:
    """A place that was named.

    Attributes:
        kind: ssh, docker, podman, kubectl or conda.
        text: as it was given.
        name: host (without user and port), container, pod, or environment.
        user: of ssh; empty: whatever ssh takes.
        port: of ssh; None: whatever ssh takes.
        namespace: of kubectl; empty: the current one.
        container: of kubectl; empty: the pod's first.
    """

    kind: str
    text: str
    name: str
    user: str = ""
    port: int | None = None
    namespace: str = ""
    container: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """Words that reach it, before the command to start there, as a person would type them; empty for conda."""
        if self.kind == SSH:
            port = () if self.port is None else ("-p", str(self.port))
            return ("ssh", *port, f"{self.user}@{self.name}" if self.user else self.name)
        if self.kind in (DOCKER, PODMAN):
            return (self.kind, "exec", "-i", self.name)
        if self.kind == KUBECTL:
            namespace = ("-n", self.namespace) if self.namespace else ()
            container = ("-c", self.container) if self.container else ()
            return ("kubectl", "exec", "-i", *namespace, self.name, *container, "--")
        return ()


def parse_address(text: str) -> Address:
    """Read an address. Raises UsageError where it is none."""
    kind, colon, rest = text.partition(":")
    if not colon or kind not in (SSH, DOCKER, PODMAN, KUBECTL, CONDA):
        raise UsageError(f"{text!r} is no target on another machine or in a container", hint=f"--target takes {FORMS}")
    if kind == SSH:
        found = _ssh(text, rest.removeprefix("//").removesuffix("/"))
    elif kind == KUBECTL:
        found = _kubectl(text, rest)
    else:
        pattern = _ENVIRONMENT if kind == CONDA else _CONTAINER
        found = Address(kind, text, rest) if pattern.fullmatch(rest) else None
    if found is None:
        raise UsageError(f"{text!r} does not name a target", hint=f"--target takes {FORMS}")
    return found


def _ssh(text: str, rest: str) -> Address | None:
    user, at, place = rest.rpartition("@")
    port: str | None
    if bracketed := re.fullmatch(r"\[([^\]]*)\](?::(.*))?", place):
        host, port = bracketed[1], bracketed[2]
    elif place.count(":") > 1:
        host, port = place, None  # IPv6 without brackets has no port
    else:
        host, colon, after = place.partition(":")
        port = after if colon else None
    if (at and not _USER.fullmatch(user)) or not _HOST.fullmatch(host):
        return None
    if port is not None and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        return None
    return Address(SSH, text, host, user=user, port=None if port is None else int(port))


def _kubectl(text: str, rest: str) -> Address | None:
    """POD, NAMESPACE/POD, NAMESPACE/POD/CONTAINER, or /POD/CONTAINER in the current namespace."""
    parts = rest.split("/")
    if len(parts) == 1:
        parts = ["", *parts]
    namespace, pod, container = (*parts, "")[:3]
    if len(parts) > 3 or not _KUBERNETES.fullmatch(pod):
        return None
    if any(part and not _KUBERNETES.fullmatch(part) for part in (namespace, container)):
        return None
    if len(parts) == 3 and not container:
        return None
    return Address(KUBECTL, text, pod, namespace=namespace, container=container)
