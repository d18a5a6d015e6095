"""How ssh is started: never asking, never waiting for ever, and logging in once for all that one run sends."""

from __future__ import annotations

import atexit
import contextlib
import shlex
from collections.abc import Mapping

from ideepdoctor.errors import UsageError
from ideepdoctor.system import System
from ideepdoctor.targets.address import Address

OPTIONS_VARIABLE = "IDEEPDOCTOR_SSH_OPTIONS"
CONNECT_SECONDS = 10
_LEFT_OPEN_SECONDS = 30
"""How long the shared connection outlives a doctor that was killed."""
_SETTINGS_SECONDS = 10.0
_LONGEST_SOCKET = 80
"""A socket's path may have 108 bytes, and ssh adds 17 while it makes one."""

_ALWAYS = (
    "BatchMode=yes",
    f"ConnectTimeout={CONNECT_SECONDS}",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=3",
    "ClearAllForwardings=yes",
    "RemoteCommand=none",
    "RequestTTY=no",
)


def ssh_words(system: System, environ: Mapping[str, str], address: Address) -> tuple[str, ...]:
    """The words that start a command on a host, options included.

    The options of IDEEPDOCTOR_SSH_OPTIONS come first, for ssh takes the first value that it is given, so they win over
    ours; ours win over ~/.ssh/config but for a shared connection: where a person has set one up there (it may have
    taken a second factor to open), it is used, and none of our own is made.

    Raises:
        UsageError: IDEEPDOCTOR_SSH_OPTIONS cannot be split into words.
    """
    try:
        given = shlex.split(environ.get(OPTIONS_VARIABLE, ""))
    except ValueError as error:
        raise UsageError(
            f"{OPTIONS_VARIABLE} cannot be split into words: {error}", hint="quote it as for a shell: -o Port=2222"
        ) from None
    program, *rest = address.words
    always = [word for option in _ALWAYS for word in ("-o", option)]
    words = [program, *given, *always]
    if not _has_own_connection(system, environ, [*words, *rest]):
        words += _shared_connection(system, environ, words, rest)
    return (*words, *rest)


def _has_own_connection(system: System, environ: Mapping[str, str], words: list[str]) -> bool:
    """Whether the person's settings name a shared connection for this host; nothing is connected to."""
    done = system.run([words[0], "-G", *words[1:]], timeout_seconds=_SETTINGS_SECONDS, env=environ)
    settings = dict(line.split(" ", 1) for line in done.text().splitlines() if " " in line)
    return settings.get("controlpath", "none") != "none"


def _shared_connection(system: System, environ: Mapping[str, str], words: list[str], rest: list[str]) -> list[str]:
    """Options for one connection in a private folder, which ends with this process; none where it cannot be made."""
    try:
        folder = system.make_temporary_folder()
    except OSError:
        return []
    socket = f"{folder}/ssh"
    if len(socket) > _LONGEST_SOCKET or "%" in socket:
        system.remove_tree(folder)
        return []

    def close() -> None:
        with contextlib.suppress(OSError):
            leave = [*words, "-o", f"ControlPath={socket}", "-O", "exit", *rest]
            system.run(leave, timeout_seconds=_SETTINGS_SECONDS, env=environ)
            system.remove_tree(folder)

    atexit.register(close)
    return ["-o", "ControlMaster=auto", "-o", f"ControlPersist={_LEFT_OPEN_SECONDS}", "-o", f"ControlPath={socket}"]
