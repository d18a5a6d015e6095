"""Stand-ins for ssh, docker, podman and kubectl: programs on a PATH of their own that start things on this machine.

They take the words that the real ones take and pass them on as those do: ssh one line to a login shell, the others
words; the variables are those of the other side alone. For some names they print what the real ones were seen to print.
"""

from __future__ import annotations

import os
from pathlib import Path

DOCKER_NO_DAEMON = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
DOCKER_NO_PROGRAM = (
    'OCI runtime exec failed: exec failed: unable to start container process: exec: "{}": '
    "executable file not found in $PATH: unknown"
)

_CONTAINERS = """#!/bin/sh
# exec -i NAME WORDS...
[ "$1 $2" = "exec -i" ] || { echo "unknown: $*" >&2; exit 64; }
name=$3; shift 3
case $name in
    box) ;;
    gone) echo "Error response from daemon: No such container: gone" >&2; exit 1 ;;
    stopped) echo "Error response from daemon: Container 0123 is not running" >&2; exit 1 ;;
    down) echo "@NO_DAEMON@" >&2; exit 1 ;;
    closed) echo "permission denied while trying to connect to the Docker daemon socket at unix:///x" >&2; exit 1 ;;
    distroless)
        case $1 in sh) echo '@NO_SH@' >&2; exit 127 ;; esac ;;
    *) echo "no such name: $name" >&2; exit 64 ;;
esac
cd "@HOME@" || exit 1
exec env -i HOME="@HOME@" PATH="$FAR_PATH" IN_BOX=yes ${FAR_VARIABLE:+OMP_NUM_THREADS="$FAR_VARIABLE"} "$@"
"""

_KUBECTL = """#!/bin/sh
# exec -i [-n NAMESPACE] POD [-c CONTAINER] -- WORDS...
echo "$*" >>"@HOME@/kubectl.log"
shift 2
[ "$1" = -n ] && { space=$2; shift 2; }
pod=$1; shift
[ "$1" = -c ] && { container=$2; shift 2; }
[ "$1" = -- ] || exit 64
shift
case ${space:-default}/$pod/${container:-first} in
    none/*) echo 'Error from server (NotFound): namespaces "none" not found' >&2; exit 1 ;;
    */pod/gone) echo 'Error from server (BadRequest): container gone is not valid for pod pod' >&2; exit 1 ;;
    */pod/*) ;;
    */bare/*) echo 'error: Internal error occurred: error executing command in container: @NO_SH@' >&2; exit 1 ;;
    */secret/*) echo 'Error from server (Forbidden): pods "secret" is forbidden: User "x" cannot create' >&2; exit 1 ;;
    *) echo "Error from server (NotFound): pods \\"$pod\\" not found" >&2; exit 1 ;;
esac
cd "@HOME@" || exit 1
exec env -i HOME="@HOME@" PATH="$FAR_PATH" "$@"
"""

_SSH = """#!/bin/sh
# [OPTIONS] HOST COMMAND; -G prints settings; -O exit ends the shared connection
echo "$*" >>"@HOME@/ssh.log"
for word; do
    case $word in
        -G) echo "controlpath ${OWN_CONTROL:-none}"; exit 0 ;;
        -O) exit 0 ;;
    esac
done
while :; do
    case $1 in
        -o | -p | -F) shift 2 ;;
        *) break ;;
    esac
done
host=$1 command=$2
case $host in
    *far) ;;
    silent) exec sleep 600 ;;
    *) cat "@HOME@/said-$host" >&2; exit 255 ;;
esac
echo "Welcome to far!"
echo "You have mail." >&2
cd "@HOME@" || exit 1
exec env -i HOME="@HOME@" PATH="$FAR_PATH" LOGNAME=alice "${FAR_SHELL:-/bin/sh}" -c "$command"
"""


def put_standins(folder: Path) -> dict[str, str]:
    """Write them into ``folder``/bin, the other side's home being ``folder``/home.

    Returns:
        The variables of a person who has them on PATH. FAR_PATH is the PATH of the other side.
    """
    programs, home = folder / "bin", folder / "home"
    programs.mkdir()
    home.mkdir()
    texts = {"docker": _CONTAINERS, "podman": _CONTAINERS, "kubectl": _KUBECTL, "ssh": _SSH}
    for name, text in texts.items():
        filled = text.replace("@HOME@", str(home)).replace("@NO_DAEMON@", DOCKER_NO_DAEMON)
        path = programs / name
        path.write_text(filled.replace("@NO_SH@", DOCKER_NO_PROGRAM.format("sh")))
        path.chmod(0o755)
    return {
        "PATH": f"{programs}:{os.defpath}",
        "HOME": str(folder),
        "FAR_PATH": os.defpath,
        "OMP_NUM_THREADS": "7",
    }
