"""Signals of a process that waits for a program: they are the program's, and handed on to it."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Set

SI_KERNEL = 0x80
"""``si_code`` of a signal that the kernel itself sent. From a terminal (Ctrl-C) the program has it, too."""

_OURS = ("SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGCONT", "SIGPIPE", "SIGPROF", "SIGVTALRM", "SIGXCPU", "SIGXFSZ", "SIGURG")
"""Job control, which the kernel does with the whole process group; and what a process brings on itself."""
_FAULTS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGABRT", "SIGSYS")
_POLL_SECONDS = 1.0
"""How often to look without a signal: a parent that ignores SIGCHLD may have made us ignore it."""


def handed_on() -> Set[int]:
    """The signals that go to the program."""
    kept = {int(getattr(signal, name)) for name in (*_OURS, *_FAULTS, "SIGKILL", "SIGSTOP") if hasattr(signal, name)}
    return {int(number) for number in signal.valid_signals()} - kept


@contextlib.contextmanager
def held_back() -> Iterator[Set[int]]:
    """Block the signals of the program in this process; give the mask that was there before, for the program."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, handed_on())
    try:
        yield before
    except BaseException:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise


def wait_for(child: int) -> int:
    """Wait for a child and hand it the signals that come to this process, which are blocked here.

    Returns:
        Its exit code; negative for the signal that ended it; 1 where somebody else has taken its end.
    """
    waited_for = handed_on() | {int(signal.SIGCHLD)}
    while True:
        told = signal.sigtimedwait(waited_for, _POLL_SECONDS)
        if told is not None and told.si_signo != signal.SIGCHLD:
            # One that the child sent to its whole group has reached it already.
            if told.si_code != SI_KERNEL and told.si_pid != child:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(child, told.si_signo)
            continue
        try:
            ended, status = os.waitpid(child, os.WNOHANG)
        except ChildProcessError:
            return 1
        if ended:
            return os.waitstatus_to_exitcode(status)
