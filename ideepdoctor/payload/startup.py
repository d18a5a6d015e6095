"""Start-up file of an environment, written by ideepdoctor; `ideepdoctor undo` takes it away.

Sets the variables below where nobody has set them, for every program that this environment's Python runs, and lists
them in IDEEPDOCTOR_SET. Valid on Python 2.7 and 3.5 to 3.14; uses nothing but the os module.
"""

import os

# Name, value, and where: "" (everywhere), "amd-avx2", or "cpus=N" (N CPUs are open to this process).
DEFAULTS = ()
MARK = "IDEEPDOCTOR_SET"


def _head(path):
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(handle, 4096)
    except OSError:
        return b""
    finally:
        os.close(handle)


def _amd_avx2():
    # Opening /proc/cpuinfo takes 10 ms or more on kernels 4.15 to 5.16 (they measure frequencies), so ask sysfs first:
    # vendor 2 is AMD, feature 0x125 is AVX2.
    alias = _head("/sys/devices/system/cpu/modalias")
    if b",ven" in alias and b":feature:" in alias:
        return b",ven0002" in alias and b",0125," in alias.strip() + b","
    info = _head("/proc/cpuinfo")
    return b"AuthenticAMD" in info and b"avx2" in info.split()


def _cpus():
    try:
        return len(os.sched_getaffinity(0))  # novm: on 2.7 the AttributeError is caught
    except AttributeError:
        pass
    for line in _head("/proc/self/status").splitlines():
        if line.startswith(b"Cpus_allowed:"):
            return bin(int(line.split()[1].replace(b",", b""), 16)).count("1")
    return 0


def _holds(where):
    try:
        if where == "amd-avx2":
            return _amd_avx2()
        if where.startswith("cpus="):
            return _cpus() == int(where[5:])
    except Exception:  # what cannot be told is not so
        return False
    return not where


def _apply(environ):
    inherited = [name for name in environ.get(MARK, "").split(",") if name]
    handled = [name for name, _, _ in DEFAULTS]
    ours = [name for name in inherited if name not in handled and name in environ]
    for name, value, where in DEFAULTS:
        mine = name in inherited and environ.get(name) == value
        if name in environ and not mine:
            continue
        if _holds(where):
            environ[name] = value
            ours.append(name)
        elif mine:
            # Set by a parent process on another machine, or for other CPUs.
            del environ[name]
    if ours:
        environ[MARK] = ",".join(ours)
    elif MARK in environ:
        del environ[MARK]


# Whatever goes wrong here, the line in the .pth file keeps it from the program.
_apply(os.environ)
