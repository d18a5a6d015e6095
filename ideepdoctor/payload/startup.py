"""Start-up file of an environment, written by ideepdoctor; `ideepdoctor undo` takes it away.

Sets the variables below where nobody has set them, for every program that this environment's Python runs, and lists
them in IDEEPDOCTOR_SET. Where there are packages that end a process in which they are imported before ideep4py, their
first import imports ideep4py before them. The import of Chainer loads the guard, the file _ideepdoctor_guard.py beside
this one. From Python 3.12 on Chainer finds what it asks NumPy for and NumPy no longer has. Valid on Python 2.7 and 3.5
to 3.14; a start imports nothing but os and sys.
"""

import os
import sys

from modern import MODERN_NAMES

# Name, value ("": it is left unset), and where: "" (everywhere), or conditions with "&" between them: "amd-avx512",
# "amd-avx2", "cpus=N" (N CPUs are open to this process), "cpu=VENDOR-FAMILY-MODEL as in modalias". Of several with one
# name the first that holds counts.
DEFAULTS = ()
# Top-level modules that ideep4py must come before.
FIRST = ()
# Whether the import of Chainer loads the guard: True, False (somebody disabled it), None (there is none).
GUARD = None
MARK = "IDEEPDOCTOR_SET"
MODALIAS = "/sys/devices/system/cpu/modalias"
MODERN = sys.version_info >= (3, 12)


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


def _emulated():
    # Emulators show programs the machine's own /proc and /sys, with what the emulated processor does not have.
    try:
        path = os.readlink("/proc/self/task/%d/exe" % os.getpid())
    except (AttributeError, OSError):
        return False
    return "/valgrind/" in path or path.rpartition("/")[2].startswith("qemu-")


def _amd(features):
    # Opening /proc/cpuinfo takes 10 ms or more on kernels 4.15 to 5.16 (they measure frequencies), so ask sysfs first:
    # vendor 2 is AMD.
    if _emulated():
        return False
    alias = _head(MODALIAS)
    if b",ven" in alias and b":feature:" in alias:
        numbers = alias.strip() + b","
        return b",ven0002" in alias and all(number in numbers for number, _ in features)
    info = _head("/proc/cpuinfo")
    words = info.split()
    return b"AuthenticAMD" in info and all(word in words for _, word in features)


AMD = {
    "amd-avx2": ((b",0125,", b"avx2"),),
    "amd-avx512": (
        (b",0130,", b"avx512f"),
        (b",0131,", b"avx512dq"),
        (b",013C,", b"avx512cd"),
        (b",013E,", b"avx512bw"),
        (b",013F,", b"avx512vl"),
    ),
}


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
        for word in where.split("&") if where else ():
            if word in AMD:
                right = _amd(AMD[word])
            elif word.startswith("cpus="):
                right = _cpus() == int(word[5:])
            elif word.startswith("cpu="):
                right = word[4:].encode("ascii") + b":" in _head(MODALIAS) and not _emulated()
            else:
                right = False  # of a later release
            if not right:
                return False
    except Exception:  # what cannot be told is not so
        return False
    return True


def _apply(environ):
    inherited = [name for name in environ.get(MARK, "").split(",") if name]
    values = [(name, value) for name, value, _ in DEFAULTS]
    handled = [name for place, (name, _) in enumerate(values) if name not in dict(values[:place])]
    ours = [name for name in inherited if name not in handled and name in environ]
    for name in handled:
        # Ours may be from a parent process on another machine, or for other CPUs.
        mine = name in inherited and (name, environ.get(name)) in values
        if name in environ and not mine:
            continue
        for other, value, where in DEFAULTS:
            if other == name and _holds(where):
                break
        else:
            value = ""
        if value:
            environ[name] = value
            ours.append(name)
        elif mine:
            del environ[name]
    if ours:
        environ[MARK] = ",".join(ours)
    elif MARK in environ:
        del environ[MARK]


class _Watch(object):
    """A finder that waits for imports: of a module of FIRST, before which ideep4py comes, of Chainer, and by Chainer.

    It stays in sys.meta_path when it has nothing left to do: a list that is being walked must not get shorter. Its
    methods use no name of this module: on 2.7 those are gone while a program ends.
    """

    def __init__(self, names, guard, modern):
        self.names, self.guard, self.modern = set(names), guard, modern

    def find_spec(self, fullname, path=None, target=None):
        if self.modern and fullname in self.modern:
            return self.modern[fullname](fullname, path)
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
if FIRST or GUARD or MODERN:
    sys.meta_path.insert(0, _Watch(FIRST, GUARD, MODERN and MODERN_NAMES))
