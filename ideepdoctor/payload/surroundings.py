"""What every payload needs of the process that it runs in: texts as this Python has them, the user's environment.

A part: ``from surroundings import ...`` in a payload or a part is replaced by this text before it is sent (see
``payload_source``).
"""

import os
import sys

PY2 = sys.version_info[0] == 2


def native(data):
    """Return bytes of a file or an environment as the text type that paths have."""
    return data if PY2 else data.decode(sys.getfilesystemencoding(), "surrogateescape")


def inherited_environment(held):
    """Return the variables that the user has: a .pth file may have changed os.environ since this process was started,
    and those in ``held`` were kept from it.
    """
    try:
        with open("/proc/self/environ", "rb") as stream:
            pairs = [item.split(b"=", 1) for item in stream.read().split(b"\0") if b"=" in item]
    except (IOError, OSError):
        pairs = []
    environment = dict((native(name), native(value)) for name, value in pairs) or dict(os.environ)
    for name, value in held.items():
        environment[str(name)] = value.encode("utf-8") if PY2 and not isinstance(value, bytes) else value
    return environment


def leave_no_core_files():
    """Have children that abort leave no core file in the folder where the user stands."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    except (ImportError, ValueError, OSError):
        pass
