"""What the system refuses this process: limits of resources, shared memory, code in memory; raw texts and numbers.

A part: ``from host_limits import ...`` in a payload or a part is replaced by this text before it is sent (see
``payload_source``).
"""

import os
import sys
import sysconfig

from distributions import read

ST_NOEXEC = 8  # a flag of statvfs on Linux; Python 2.7 has no name for it
SHARED_MEMORY = "/dev/shm"

# For a child on x86-64: 256 KiB of the heap on a page border are written, made executable and writable at once, and
# called, as the code generator of MKL-DNN 0.14 does it (strace: mprotect(..., 262144, PROT_READ|PROT_WRITE|PROT_EXEC)).
# mov eax, 42; ret. Tells "runs" or why not; nothing where there is no ctypes.
EXECUTABLE = r"""
def try_executable():
    import ctypes
    size = 1 << 18
    libc = ctypes.CDLL(None, use_errno=True)
    place = ctypes.c_void_p()
    if libc.posix_memalign(ctypes.byref(place), ctypes.c_size_t(4096), ctypes.c_size_t(size)):
        return None
    code = b"\xb8\x2a\x00\x00\x00\xc3"
    ctypes.memmove(place, code, len(code))
    if libc.mprotect(place, ctypes.c_size_t(size), 7):
        return "errno %d" % ctypes.get_errno()
    return "runs" if ctypes.CFUNCTYPE(ctypes.c_int)(place.value)() == 42 else "wrong number"
tell("executable_started", True)
try:
    executable = try_executable()
except MemoryError:
    executable = "MemoryError"
except (ImportError, AttributeError, OSError):
    executable = None
tell("executable", executable)
"""


def executable_memory(told, ended):
    """Return what a child told that began with EXECUTABLE; None where it was not tried.

    A child that was killed in the attempt has its signal for an answer.
    """
    if "executable" in told or "executable_started" not in told or ended["timed_out"]:
        return told.get("executable")
    return "signal %d" % -ended["code"] if (ended["code"] or 0) < 0 else None


def shared_memory_bytes():
    """Return the size of the file system at /dev/shm: 0 where there is none; None where it has no limit or no size."""
    try:
        found = os.statvfs(SHARED_MEMORY)
    except OSError:
        return None if os.path.lexists(SHARED_MEMORY) else 0
    return found.f_blocks * found.f_frsize or None


def refuses_code(folders):
    """Return whether one of these folders lies on a file system that refuses to map code; None where none tells."""
    flags = []
    for folder in folders:
        try:
            flags.append(os.statvfs(folder).f_flag & ST_NOEXEC)
        except OSError:
            pass
    return any(flags) if flags else None


def host_limits():
    """Return the limits that Linux sets this process; nothing is known on other systems."""
    if not sys.platform.startswith("linux"):
        return {}
    return {
        "limits": read("/proc/self/limits"),
        "uid_map": read("/proc/self/uid_map"),
        "shared_memory_bytes": shared_memory_bytes(),
        "prefix_noexec": refuses_code([sys.prefix, sysconfig.get_paths().get("platlib") or sys.prefix]),
    }
