"""What ssh, docker, podman and kubectl print when nothing answers, as one error that says what to do."""

from __future__ import annotations

import pytest

from ideepdoctor.targets.address import parse_address
from ideepdoctor.targets.failures import is_missing, not_reached
from tests.doubles import completed
from tests.targets.standins import DOCKER_NO_DAEMON, DOCKER_NO_PROGRAM

# Those of ssh, of a daemon that does not run and of a cluster that is not reached were seen; the others are as these
# programs are known to say it (no container engine and no cluster was at hand).
SEEN = [
    ("ssh:far", 255, "ssh: Could not resolve hostname far: Name or service not known", "does not resolve", "ssh far"),
    ("ssh:far", 255, "ssh: connect to host far port 22: Connection refused", "connection refused", "ssh:HOST:PORT"),
    ("ssh:far", 255, "ssh: connect to host far port 22: Connection timed out", "does not answer", "VPN"),
    ("ssh:far", 255, "Connection timed out during banner exchange", "does not answer", "VPN"),
    ("ssh:far", 255, "ssh: connect to host far port 22: No route to host", "does not answer", "VPN"),
    ("ssh:far", 255, "Host key verification failed.", "host key is not known", "ssh far true"),
    (
        "ssh:far",
        255,
        "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
        "host key is not the one",
        "ssh-keygen -R far",
    ),
    ("ssh:me@far", 255, "me@far: Permission denied (publickey).", "permission denied", "ssh me@far true must log in"),
    ("ssh:far", 255, "/x: line 1: Bad configuration option: nonsense", "settings", "IDEEPDOCTOR_SSH_OPTIONS"),
    ("ssh:far", 255, "kex_exchange_identification: read: Connection reset by peer", "closed by the other", "ssh far"),
    ("ssh:far", 255, "something new", "ssh failed: something new", "ssh far true"),
    ("ssh:far", 127, "sh: 1: exec: /py: not found", "there is no /py there", "--python PATH"),
    ("ssh:far", 126, "sh: 1: exec: /py: Permission denied", "cannot be executed", "--python PATH"),
    # What the program there prints is not about the connection.
    ("ssh:far", 1, "Connection refused", "/py there ended with 1 and no answer: Connection refused", "ssh far true"),
    ("docker:box", 1, DOCKER_NO_DAEMON, "the daemon of docker does not run", "systemctl start docker"),
    ("docker:box", 1, "Error response from daemon: No such container: box", "no container box", "docker ps"),
    ("docker:box", 1, "Error response from daemon: Container 1 is not running", "does not run", "docker start box"),
    ("docker:box", 127, DOCKER_NO_PROGRAM.format("/py"), "there is no /py there", "--python PATH"),
    ("docker:box", 126, DOCKER_NO_PROGRAM.format("/py"), "there is no /py there", "--python PATH"),
    ("podman:box", 125, 'Error: no container with name or ID "box" found: no such container', "no container box", "ps"),
    (
        "podman:box",
        255,
        "Error: can only create exec sessions on running containers: container state improper",
        "does not run",
        "podman start box",
    ),
    (
        "kubectl:pod",
        1,
        'E1130 memcache.go:265] err="Get http://localhost:8080/api: dial tcp 127.0.0.1:8080: connect: refused"\n'
        "The connection to the server localhost:8080 was refused - did you specify the right host or port?",
        "reaches no cluster",
        "kubectl config get-contexts",
    ),
    ("kubectl:pod", 1, 'Error from server (NotFound): pods "pod" not found', "no pod pod", "kubectl get pods -A"),
    ("kubectl:n/pod", 1, 'Error from server (NotFound): namespaces "n" not found', "no namespace n", "get namespaces"),
    (
        "kubectl:n/pod/c",
        1,
        "Error from server (BadRequest): container c is not valid for pod pod",
        "has no container c",
        "kubectl describe pod pod",
    ),
    ("kubectl:pod", 1, 'Error from server (Forbidden): pods "pod" is forbidden', "may not start", "auth can-i"),
    ("kubectl:pod", 127, "command terminated with exit code 127", "there is no /py there", "--python PATH"),
    ("kubectl:pod", 1, DOCKER_NO_PROGRAM.format("/py"), "there is no /py there", "--python PATH"),
]


@pytest.mark.parametrize(("address", "code", "errors", "message", "hint"), SEEN)
def test_each_is_one_error_that_says_what_to_do(address: str, code: int, errors: str, message: str, hint: str) -> None:
    error = not_reached(parse_address(address), completed(returncode=code, stderr=f"{errors}\n"), 30, "/py")
    assert error.message.startswith(f"{address}: ")
    assert message in error.message
    assert hint in error.hint
    assert int(error.exit_code) == 3
    assert error.context["standard error"] == f"{errors}\n"


def test_no_answer_and_no_program() -> None:
    address = parse_address("podman:box")
    assert not_reached(address, completed(timed_out=True), 30, "sh").message == "podman:box: no answer within 30 s"
    gone = completed(returncode=127, error="[Errno 2] No such file or directory: 'podman'")
    error = not_reached(address, gone, 30, "sh")
    assert error.message == "podman:box: there is no podman here"
    assert "ideepdoctor probe > probe.py" in error.hint


@pytest.mark.parametrize(
    ("address", "code", "errors", "missing"),
    [
        ("docker:box", 127, DOCKER_NO_PROGRAM.format("sh"), True),
        ("docker:box", 1, "Error response from daemon: No such container: box", False),
        ("kubectl:pod", 1, DOCKER_NO_PROGRAM.format("sh"), True),
        ("ssh:far", 255, "Permission denied (publickey).", False),
        ("ssh:far", 127, "", True),
    ],
)
def test_a_place_without_the_program_is_told_from_a_place_that_is_not_reached(
    address: str, code: int, errors: str, missing: bool
) -> None:
    assert is_missing(parse_address(address), completed(returncode=code, stderr=errors)) is missing
