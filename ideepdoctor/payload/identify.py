"""Which Python is this? The few facts by which interpreters are told apart and chosen; nothing is imported but sys,
sysconfig and what they need, so that it costs hardly more than starting the interpreter.

Runs inside the target (Python 2.7, 3.5 and later), started as ``python -B -E -s - COOKIE REQUEST`` with this file on
standard input. REQUEST holds nothing that it needs. Answers with COOKIE json COOKIE:
    version         "3.7.16"; "3.13.0rc2" for one that is not final
    implementation  "CPython", "PyPy"...
    abi             the ABI tag of a wheel's file name: cp27mu, cp37m, cp311, cp313t; PyPy: pp310
    bits            size of a pointer, 32 or 64
    libc            "glibc 2.36", "musl", or null
    platform        sysconfig.get_platform(): "linux-x86_64"
    executable, prefix, base_prefix   as in sys (base_prefix: sys.real_prefix where an old virtualenv sets it)
"""

import sys

sys.path[:] = [entry for entry in sys.path if entry != ""]  # a json.py in the current folder must not be taken

import json  # noqa: E402
import os  # noqa: E402
import sysconfig  # noqa: E402

NAMES = {"cpython": "CPython", "pypy": "PyPy", "graalpy": "GraalPy"}


def implementation():
    """Name of the implementation, as platform.python_implementation() spells it."""
    if "__pypy__" in sys.builtin_module_names:
        return "PyPy"
    name = getattr(getattr(sys, "implementation", None), "name", "cpython")
    return NAMES.get(name, name)


def version():
    """The version as packaging spells it."""
    number = "%d.%d.%d" % tuple(sys.version_info[:3])
    level = {"alpha": "a", "beta": "b", "candidate": "rc"}.get(sys.version_info[3])
    return number if level is None else "%s%s%d" % (number, level, sys.version_info[4])


def abi(name):
    """The ABI tag that pip would ask for first; for PyPy the interpreter's tag."""
    digits = "%d%d" % tuple(sys.version_info[:2])
    if name != "CPython":
        return {"PyPy": "pp"}.get(name, name.lower()) + digits
    if sys.version_info[0] > 2:
        return "cp" + digits + getattr(sys, "abiflags", "")
    flags = "d" if hasattr(sys, "gettotalrefcount") else ""
    # An interpreter whose Makefile is not installed does not tell: then the default, which is pymalloc.
    flags += "m" if sysconfig.get_config_var("WITH_PYMALLOC") in (None, 1) else ""
    flags += "u" if sys.maxunicode == 0x10FFFF else ""
    return "cp" + digits + flags


def libc():
    """The C library, or None where nothing tells."""
    try:
        text = os.confstr("CS_GNU_LIBC_VERSION")
        if text:
            return text
    except (AttributeError, OSError, ValueError):
        pass  # musl does not know the name
    try:
        with open("/proc/self/maps") as lines:
            if any("ld-musl-" in line or "libc.musl-" in line for line in lines):
                return "musl"
    except (IOError, OSError):
        pass
    host = "%s %s" % (sysconfig.get_config_var("MULTIARCH"), sysconfig.get_config_var("HOST_GNU_TYPE"))
    if "musl" in host:
        return "musl"  # linked statically: no loader to see
    try:
        import ctypes

        function = ctypes.CDLL(None).gnu_get_libc_version
        function.restype = ctypes.c_char_p
        return "glibc " + function().decode("ascii")
    except (ImportError, OSError, AttributeError, TypeError):
        return None


def main():
    """Answer."""
    cookie = sys.argv[1]
    name = implementation()
    answer = {
        "version": version(),
        "implementation": name,
        "abi": abi(name),
        "bits": 64 if sys.maxsize > 2**32 else 32,
        "libc": libc(),
        "platform": sysconfig.get_platform(),
        "executable": sys.executable,
        "prefix": sys.prefix,
        "base_prefix": getattr(sys, "real_prefix", getattr(sys, "base_prefix", sys.prefix)),
    }
    sys.stdout.write(cookie + json.dumps(answer) + cookie + "\n")


main()
