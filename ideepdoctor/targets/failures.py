"""Why nothing answers over a link: what ssh, docker, podman and kubectl print, as one error that says what to do.

Pure: texts in, an error out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.system import Completed
from ideepdoctor.targets.address import DOCKER, KUBECTL, PODMAN, SSH, Address

NOT_FOUND, NOT_EXECUTABLE = 127, 126
_SSH_ITSELF = 255
"""The exit code of ssh where it, and not the command there, failed."""


@dataclass(frozen=True, slots=True)
class _Known:
    """Something that one of these programs prints, what it means, and what to do about it."""

    pattern: str
    message: Callable[[Address], str]
    hint: Callable[[Address], str]


_SSH = (
    _Known(
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        lambda at: f"{at.text}: its host key is not the one that is known",
        lambda at: (
            f"if it was set up anew, remove the old key: ssh-keygen -R {at.name}; if not, somebody may be in between"
        ),
    ),
    _Known(
        "Host key verification failed|No .* host key is known",
        lambda at: f"{at.text}: its host key is not known yet, and nobody can be asked here",
        lambda at: f"log in once and look at the key: {_typed(at)}",
    ),
    _Known(
        "Could not resolve hostname",
        lambda at: f"{at.text}: the name {at.name} does not resolve",
        lambda at: f"check the name, and Host in ~/.ssh/config; try it yourself: {_typed(at)}",
    ),
    _Known(
        "Permission denied|Too many authentication failures|No supported authentication methods",
        lambda at: f"{at.text}: the login was refused (permission denied)",
        lambda at: (
            f"passwords cannot be asked for here: {_typed(at)} must log in without one (a key: ssh-copy-id, ssh-add; "
            "or a connection that is open: ControlMaster in ~/.ssh/config)"
        ),
    ),
    _Known(
        "Connection refused",
        lambda at: f"{at.text}: connection refused: the machine is there, and no sshd listens at that port",
        lambda _at: "start sshd there, or name its port: ssh:HOST:PORT",
    ),
    _Known(
        "timed out|No route to host|Network is unreachable|Host is down",
        lambda at: f"{at.text}: the machine does not answer",
        lambda at: (
            "is it up, and is there a way to it (VPN, firewall, ProxyJump in ~/.ssh/config)? "
            f"try it yourself: {_typed(at)}"
        ),
    ),
    _Known(
        "Bad configuration option|command-line|extra arguments|no argument after keyword|Bad owner|[Cc]an't open user",
        lambda at: f"{at.text}: ssh does not understand its settings",
        lambda at: f"look at ~/.ssh/config and IDEEPDOCTOR_SSH_OPTIONS; try it yourself: {_typed(at)}",
    ),
    _Known(
        "Connection (closed|reset)|kex_exchange_identification|Broken pipe|not responding",
        lambda at: f"{at.text}: the connection was closed by the other side",
        lambda at: f"try it yourself: {_typed(at)}",
    ),
)
_CONTAINERS = (
    _Known(
        "permission denied while trying to connect|dial unix .*permission denied",
        lambda at: f"{at.text}: you may not talk to the daemon of {at.kind} (permission denied)",
        lambda _at: "join the group docker, or run the doctor as a user who may",
    ),
    _Known(
        "Cannot connect to the .*daemon|docker daemon running|connect: connection refused|unable to connect to Podman",
        lambda at: f"{at.text}: the daemon of {at.kind} does not run here",
        lambda at: f"start it (systemctl start {at.kind}), or say where it is: DOCKER_HOST, CONTAINER_HOST",
    ),
    _Known(
        "[Nn]o such container|no container with name or ID",
        lambda at: f"{at.text}: there is no container {at.name}",
        lambda at: f"those that run: {at.kind} ps",
    ),
    _Known(
        "is not running|container state improper|is paused|is restarting|on running containers",
        lambda at: f"{at.text}: the container {at.name} does not run",
        lambda at: f"start it: {at.kind} start {at.name}; or examine its image: {at.kind} run -d IMAGE sleep 1d",
    ),
)
_KUBERNETES = (
    _Known(
        "connection to the server .* was refused|Unable to connect to the server|no configuration has been provided"
        "|dial tcp|i/o timeout|stat .*kubeconfig|context .* does not exist|certificate signed by unknown",
        lambda at: f"{at.text}: kubectl reaches no cluster",
        lambda _at: "is the right one chosen? kubectl config get-contexts; kubectl cluster-info",
    ),
    _Known(
        "You must be logged in|Unauthorized|[Ff]orbidden",
        lambda at: f"{at.text}: you may not start commands in that pod",
        lambda _at: "it takes the right to create pods/exec: kubectl auth can-i create pods/exec",
    ),
    _Known(
        "namespaces .* not found",
        lambda at: f"{at.text}: there is no namespace {at.namespace}",
        lambda _at: "those that there are: kubectl get namespaces",
    ),
    _Known(
        "pods? .* not found",
        lambda at: f"{at.text}: there is no pod {at.name}",
        lambda _at: "those that there are: kubectl get pods -A; with its namespace: kubectl:NAMESPACE/POD",
    ),
    _Known(
        "container .* (is not valid|not found)|invalid container",
        lambda at: f"{at.text}: the pod {at.name} has no container {at.container or 'that runs'}",
        lambda at: f"what it has: kubectl describe pod {at.name}",
    ),
    _Known(
        "completed pod|not running|ContainerCreating|CrashLoopBackOff",
        lambda at: f"{at.text}: the pod {at.name} does not run",
        lambda at: f"how it is: kubectl describe pod {at.name}",
    ),
)
_BY_KIND = {SSH: _SSH, DOCKER: _CONTAINERS, PODMAN: _CONTAINERS, KUBECTL: _KUBERNETES}
_NOT_STARTED = re.compile("executable file not found|exec failed|command terminated with exit code")
"""What the programs for containers print where the place was reached and the command was not started."""
_NO_PROGRAM = re.compile(
    r"executable file not found|no such file or directory|not found|command terminated with exit code 127", re.I
)
_CANNOT_EXECUTE = re.compile(r"permission denied|cannot execute|exec format error", re.I)


def not_reached(address: Address, done: Completed, seconds: float, program: str) -> CouldNotCheck:
    """The error for a program that should have answered over a link and did not.

    Args:
        address: of the link.
        done: how what was started here ended.
        seconds: how long it was waited for.
        program: what was started there: an interpreter, or sh.
    """
    errors = done.stderr.decode("utf-8", "replace")
    message, hint = _told(address, done, errors, seconds, program)
    return CouldNotCheck(
        message,
        hint=hint,
        context={
            "target": address.text,
            "ended": "timeout" if done.timed_out else "not started" if done.error else str(done.returncode),
            "standard error": errors[-2000:],
        },
    )


def _told(address: Address, done: Completed, errors: str, seconds: float, program: str) -> tuple[str, str]:
    """What happened, and what to do."""
    name, yourself = address.text, f"try it yourself: {_typed(address)}"
    if done.error:
        missing = "No such file" in done.error
        return (
            f"{name}: there is no {address.kind} here" if missing else f"{name}: {address.kind}: {done.error}",
            f"install {address.kind}, or put it on PATH; without it: ideepdoctor probe > probe.py, and run that there",
        )
    if done.timed_out:
        return f"{name}: no answer within {seconds:.0f} s", f"it hangs or is very busy; {yourself}"
    known = _known(address, done, errors)
    if known is not None:
        return known.message(address), known.hint(address)
    if _is_missing(address, done, errors):
        return f"{name}: there is no {program} there", "name the interpreter there by its path: --python PATH"
    if _is_unusable(address, done, errors):
        return f"{name}: {program} cannot be executed there", "name another interpreter there: --python PATH"
    said = last_line(errors) or last_line(done.text()) or "it printed nothing"
    if address.kind == SSH and done.returncode == _SSH_ITSELF:
        return f"{name}: ssh failed: {said}", yourself
    return f"{name}: {program} there ended with {done.returncode} and no answer: {said}", yourself


def is_missing(address: Address, done: Completed) -> bool:
    """Whether the program that should have been started is not there, while the place itself was reached."""
    errors = done.stderr.decode("utf-8", "replace")
    if done.timed_out or done.error or _known(address, done, errors) is not None:
        return False
    return _is_missing(address, done, errors) or _is_unusable(address, done, errors)


def last_line(text: str) -> str:
    """The last line that is not empty."""
    return next((line.strip()[:300] for line in reversed(text.splitlines()) if line.strip()), "")


def _typed(address: Address) -> str:
    """What a person types to see for themselves."""
    return " ".join([*address.words, "true"])


def _known(address: Address, done: Completed, errors: str) -> _Known | None:
    if address.kind == SSH and done.returncode != _SSH_ITSELF:
        return None  # what the command there printed is not about the connection
    if done.returncode in (0, NOT_FOUND, NOT_EXECUTABLE) or _NOT_STARTED.search(errors):
        return None
    return next((item for item in _BY_KIND[address.kind] if re.search(item.pattern, errors)), None)


def _is_missing(address: Address, done: Completed, errors: str) -> bool:
    if done.returncode == NOT_FOUND:
        return True
    return address.kind != SSH and done.returncode != 0 and _NO_PROGRAM.search(errors) is not None


def _is_unusable(address: Address, done: Completed, errors: str) -> bool:
    if done.returncode == NOT_EXECUTABLE:
        return True
    return address.kind != SSH and done.returncode != 0 and _CANNOT_EXECUTE.search(errors) is not None
