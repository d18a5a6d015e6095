"""The command that a host runs: it finds the Python that was asked for and gives it the probe. Pure.

The command is one line (a csh on the host could not read more), for a POSIX shell, and reads the probe from its
standard input. It prints, each at the beginning of a line:
    COOKIE begin PYTHON    the interpreter that was started; what follows is the probe's own
    COOKIE end CODE        how it ended; 124 and 137: it was stopped after the time limit
    COOKIE none WORDS      no interpreter: what was asked for, or nothing
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

_HAS_CHAINER = (
    "import os, sys; "
    "sys.exit(not [1 for d in sys.path for n in ('chainer', 'ideep4py') if d and os.path.isdir(os.path.join(d, n))])"
)
_PLACES = (
    '"$VIRTUAL_ENV/bin/python"',
    '"$CONDA_PREFIX/bin/python"',
    '"$HOME/.ideep/bin/python"',
    "python python3 python3.7 python3.6 python3.5 python2.7 python2",
)
"""Where a Python is looked for, in the order of the doctor's own choice, as words of a shell."""
_STOPPED = (124, 137)

_SCRIPT = "; ".join(
    (
        "c=$1 s=$2 p=$3 x=$4",
        'if timeout -k 5 5 true 2>/dev/null; then t() { timeout -k 5 "$@"; }; else t() { shift; "$@"; }; fi',
        'case $p in "~/"*) p=$HOME/${p#"~/"};; [0-9].[0-9]*) p=python$p;; esac',
        'if [ -d "$p" ]; then p=$p/bin/python; fi',
        'if [ -n "$p" ]; then q=$(command -v "$p") || { echo "$c none $p"; exit 0; }; p=$q; else f='
        f"; for q in {' '.join(_PLACES)}"
        '; do q=$(command -v "$q") || continue; t 20 "$q" -B -E -c "$x" </dev/null >/dev/null 2>&1; r=$?'
        '; if [ $r = 0 ]; then p=$q; break; fi; if [ $r = 1 ] && [ -z "$f" ]; then f=$q; fi; done; p=${p:-$f}; fi',
        'if [ -z "$p" ]; then echo "$c none"; exit 0; fi',
        'echo "$c begin $p"; t "$s" "$p" -B -; r=$?; echo; echo "$c end $r"',
    )
)


@dataclass(frozen=True, slots=True)
class Told:
    """What the command printed, read.

    Attributes:
        python: the interpreter that was started; None: none was found.
        answer: what the probe printed.
        code: how it ended; None: the end did not arrive.
        asked: the interpreter that was asked for and is not there.
    """

    python: str | None
    answer: str = ""
    code: int | None = None
    asked: str = ""

    @property
    def stopped(self) -> bool:
        """Whether the time limit ended it."""
        return self.code in _STOPPED


def remote_command(cookie: str, seconds: int) -> tuple[str, str]:
    """The command line of a host, in two parts: the Python that is wanted there stands between them, as a shell's word.

    That is the path of an interpreter, a version (3.7) or the folder of an environment; empty: look for one.

    Args:
        cookie: a word without blanks that nothing else prints.
        seconds: after which the interpreter is stopped.
    """
    before = shlex.join(["/bin/sh", "-c", _SCRIPT, "ideepdoctor", cookie, str(seconds)])
    return f"{before} ", f" {shlex.quote(_HAS_CHAINER)}"


def read_told(text: str, cookie: str) -> Told | None:
    """Read what the command printed; None where it is nothing of the command's (banners before it do not count)."""
    lines = text.split("\n")
    places = [number for number, line in enumerate(lines) if line.startswith(f"{cookie} ")]
    if not places:
        return None
    first, last = places[0], places[-1]
    _, verb, *rest = lines[first].rstrip("\r").split(" ", 2)
    if verb != "begin":
        return Told(None, asked=rest[0] if rest else "")
    ended = lines[last].split() if last > first else []
    code = int(ended[2]) if len(ended) == 3 and ended[1] == "end" and ended[2].isdigit() else None
    return Told(rest[0] if rest else "", "\n".join(lines[first + 1 : last if code is not None else None]).strip(), code)
