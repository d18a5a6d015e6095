"""What pip is told before anybody types an option: its variables and its files, read as pip reads them.

A part: ``from pip_settings import ...`` in a payload or a part is replaced by this text before it is sent (see
``payload_source``). pip itself is not started: that takes longer than everything else of a quick look.
"""

import os
import re
import sys
from io import StringIO

from common import text
from distributions import read
from surroundings import PY2

PARSING = __import__("ConfigParser" if PY2 else "configparser")

PIP_OPTIONS = frozenset(
    (
        "build-constraint",
        "cert",
        "constraint",
        "extra-index-url",
        "find-links",
        "index-url",
        "no-binary",
        "no-build-isolation",
        "no-index",
        "only-binary",
        "platform",
        "pre",
        "prefix",
        "proxy",
        "python-version",
        "require-hashes",
        "require-virtualenv",
        "target",
        "trusted-host",
        "user",
    )
)
PIP_SECTIONS = ("global", "install", "download", "wheel")
SETTING_LIMIT = 1000

# User names and passwords, queries, and pieces of paths that look like keys: whoever reads facts must not get in.
CREDENTIALS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)[^/\s]*@")
QUERY = re.compile(r"(://[^\s?#]*)[?#]\S*")
KEY = re.compile(r"(?<=/)(?=[^/\s]*\d)(?=[^/\s]*[A-Za-z])[A-Za-z0-9_~-]{20,}(?=/|\s|$)")


def harmless(name, value):
    """Return the value of an option without what lets somebody in."""
    value = CREDENTIALS.sub(r"\1***@", value)
    if name == "proxy":
        value = re.sub(r"^[^/\s]*@", "***@", value)  # pip takes user:password@host too
    if "://" in value:
        value = KEY.sub("***", QUERY.sub(r"\1?***", value))
    return value[:SETTING_LIMIT]


def pip_files(environment):
    """Return the files that pip reads for this interpreter, in its order: what comes later counts more."""
    home = environment.get("HOME") or os.path.expanduser("~")
    own = environment.get("PIP_CONFIG_FILE")
    if own == os.devnull:
        return []
    shared = [one for one in (environment.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep) if one]
    files = [os.path.join(folder, "pip", "pip.conf") for folder in shared] + ["/etc/pip.conf"]
    if not (own and os.path.exists(own)):
        config = environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
        files += [os.path.join(home, ".pip", "pip.conf"), os.path.join(config, "pip", "pip.conf")]
    files.append(os.path.join(sys.prefix, "pip.conf"))
    return files + ([own] if own else [])


def option(name):
    """Return the long option that a line or a variable means, as it is typed without dashes."""
    name = name.lower().replace("_", "-")
    return name[2:] if name.startswith("--") else name


def settings_in(path):
    """Return [option, value, path, section] of a file; empty where it cannot be read or is no such file."""
    parser = PARSING.RawConfigParser()
    given = read(path)
    if given is None:
        return []
    try:
        getattr(parser, "readfp" if PY2 else "read_file")(StringIO(given))
    except (PARSING.Error, ValueError):
        return []
    told = []
    for section in PIP_SECTIONS:
        for name, value in parser.items(section) if parser.has_section(section) else ():
            if option(name) in PIP_OPTIONS and value:
                told.append([option(name), harmless(option(name), text(value)), path, section])
    return told


def pip_settings(environment):
    """Return what counts: [option, value, file or variable, section], each option once for a section.

    Those of files come before those of variables, whose section is ":env:": they count more than any file.
    """
    kept = {}
    for path in pip_files(environment):
        for row in settings_in(path):
            kept[row[3], row[0]] = row
    for name, value in sorted(environment.items()):
        if name.startswith("PIP_") and option(name[4:]) in PIP_OPTIONS and value:
            kept[":env:", option(name[4:])] = [option(name[4:]), harmless(option(name[4:]), text(value)), name, ":env:"]
    order = PIP_SECTIONS + (":env:",)
    return sorted(kept.values(), key=lambda row: (order.index(row[3]), row[0]))
