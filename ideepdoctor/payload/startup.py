"""Start-up file of an environment, written by ideepdoctor; `ideepdoctor undo` takes it away.

Sets the variables below where nobody has set them, for every program that this environment's Python runs, and lists
them in IDEEPDOCTOR_SET. Where there are packages that end a process in which they are imported before ideep4py, their
first import imports ideep4py before them. The import of Chainer loads the guard, the file _ideepdoctor_guard.py beside
this one. Valid on Python 2.7 and 3.5 to 3.14; a start imports nothing but os and sys.
"""

import os
import sys

# Name, value, and where: "" (everywhere), "amd-avx2", or "cpus=N" (N CPUs are open to this process).
DEFAULTS = ()
# Top-level modules that ideep4py must come before.
FIRST = ()
# Whether the import of Chainer loads the guard: True, False (somebody disabled it), None (there is none).
GUARD = None
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


class _Watch(object):
    """A finder that waits for imports: of a module of FIRST, before which ideep4py comes, and of Chainer.

    It stays in sys.meta_path when it has nothing left to do: a list that is being walked must not get shorter. Its
    methods use no name of this module: on 2.7 those are gone while a program ends.
    """

    def __init__(self, names, guard):
        self.names, self.guard = set(names), guard

    def find_spec(self, fullname, path=None, target=None):
        if fullname == "chainer" and self.guard:
            finder = self.load()
            return finder and finder.find_spec(fullname, path, target)
        if fullname not in self.names:
            return None
        # Before the import, which asks here again for every module that ideep4py needs.
        self.names.discard(fullname)
        try:
            import warnings

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # Nothing where it is there already; waits where another thread is about to import it.
                __import__("ideep4py")
        except KeyboardInterrupt:
            raise
        except BaseException:  # an ideep4py that cannot be imported is in nobody's way
            pass
        return None

    def find_module(self, fullname, path=None):  # Python 2.7
        if fullname == "chainer" and self.guard:
            finder = self.load()
            return finder and finder.find_module(fullname, path)
        return self.find_spec(fullname)

    def load(self):
        # The guard registers a finder of its own, before this one; but this import is being looked for already.
        self.guard = False
        try:
            import _ideepdoctor_guard

            return _ideepdoctor_guard.STATE.finder
        except KeyboardInterrupt:
            raise
        except BaseException:  # a guard that was taken away, or half written
            return None


try:
    _apply(os.environ)
except Exception:  # no variable is worth a program
    pass
# Last: a module that fails after this would leave a finder behind.
if FIRST or GUARD:
    sys.meta_path.insert(0, _Watch(FIRST, GUARD))
