"""The end of standard input ends this process and all that it has started.

Runs before a payload on another machine or in a container, where a killed ssh or docker leaves running what it has
started; read and run by ``BOOT`` of targets/link.py, whose ``f`` holds standard input. sys.argv is then
[-c, COOKIE, SIZE, REQUEST]; SIZE bytes of payload follow on standard input, then nothing until the end.
"""

import os
import signal
import sys
import threading


def _leave_together(held):
    """Wait for the end of what this descriptor gives, then kill the whole group."""
    try:
        while os.read(held, 4096):
            pass
    except OSError:
        pass
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


def _begin(stream):
    """Become the head of a group, read the payload, and hold on to standard input; return the payload."""
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    source = stream.read(int(sys.argv.pop(2)))
    stream.close()
    held, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # A bare descriptor: a stream that a thread reads cannot be closed when the interpreter ends.
    watch = threading.Thread(target=_leave_together, args=(held,))
    watch.daemon = True
    watch.start()
    sys.argv[0] = "-"
    return source


if __name__ == "__main__":
    exec(compile(_begin(f), "<stdin>", "exec", 0, True))  # noqa: F821 (of BOOT)
