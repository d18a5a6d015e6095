"""Which Python this is, and whose: what the doctor asks first on another machine or in a container.

Runs there (Python 2.7, 3.5 and later), as ``python -B -E -s ... COOKIE REQUEST`` with this program on standard input;
the request is not read. Answers with COOKIE json COOKIE:
    executable, version, implementation    of the interpreter
    home, user, host                       of the person who it runs as, and of the machine; empty where not known
"""

# ruff: noqa: E402, I001
import sys

sys.path[:] = [entry for entry in sys.path if entry != ""]  # a json.py in the current folder must not be taken

import json
import os

from surroundings import PY2, inherited_environment


def clean(value):
    """Return text without lone surrogates."""
    data = value if PY2 else value.encode("utf-8", "surrogateescape")
    return data.decode("utf-8", "replace")


def user_of(environment):
    """Return the name of the user that this process runs as."""
    try:
        import pwd

        return pwd.getpwuid(os.getuid())[0]
    except (ImportError, KeyError):
        return environment.get("USER") or environment.get("LOGNAME") or ""


def main():
    """Answer."""
    cookie, environment = sys.argv[1], inherited_environment({})
    answer = {
        "executable": sys.executable or "",
        "version": "%d.%d.%d" % sys.version_info[:3],
        "implementation": "PyPy" if "PyPy" in sys.version else "CPython",
        "home": environment.get("HOME") or "",
        "user": user_of(environment),
        "host": os.uname()[1] if hasattr(os, "uname") else "",
    }
    answer = dict((name, clean(value)) for name, value in answer.items())
    sys.stdout.write("%s%s%s\n" % (cookie, json.dumps(answer, sort_keys=True), cookie))


if __name__ == "__main__":
    main()
