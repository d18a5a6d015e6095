"""The whole look at this interpreter where no doctor runs: one JSON document on standard output.

Runs on Python 2.7, 3.5 and later, as a file (``python probe.py > facts.json``) or over standard input. It starts the
payloads ``probe`` and ``libraries`` as the doctor does (``python -B -E -s -``; what is imported and tried is tried in
children of theirs, with the user's variables) and prints their raw answers:
    schema, schema_version    ideepdoctor-probe, 1
    collected_at              UTC, as 2026-01-31T12:00:00Z
    python                    the interpreter that was looked at: the one that runs this file
    emulator                  words that it and its children were started under
    probe, libraries          what each payload told; libraries is null where it could not
    problems                  why, by the name of the payload
Nothing is written and nothing is sent. Ends with 0; with 3 and one line on standard error where there is no answer.
IDEEPDOCTOR_EMULATOR (``qemu-x86_64 -cpu Haswell``): start Python under this.
"""

# ruff: noqa: E402, I001
import sys

sys.dont_write_bytecode = True
HERE = globals().get("__file__") and sys.path[0]
SOURCES = {}  # by name, the texts of the payloads; empty where their files lie beside this one
if SOURCES and HERE:
    del sys.path[0]  # a json.py beside this file must not be taken

import base64
import json
import os
import re
import shlex
import subprocess
import threading
import time

from surroundings import PY2, inherited_environment

SCHEMA, SCHEMA_VERSION = "ideepdoctor-probe", "1"
PRELOADING = ("LD_PRELOAD", "LD_AUDIT")  # what can kill every program: given to the children alone
CHILD_SECONDS, EMULATED_CHILD_SECONDS = 30, 180
PAYLOADS = {"probe": 5, "libraries": 4}  # with the time for each, in children's time limits
PART = re.compile(r"^from (\w+) import (?:\([^)]*\)|[^(\n]+)[^\n]*\n", re.M)


def source_of(name):
    """Return the text of a payload with its parts in place, as bytes."""
    if SOURCES:
        return SOURCES[name].encode("ascii")
    folder, there = os.path.dirname(os.path.abspath(__file__)), set([name])

    def path_of(part):
        return os.path.join(folder, part + ".py")

    def joined(part):
        with open(path_of(part), "rb") as stream:
            return PART.sub(part_or_line, stream.read().decode("ascii"))

    def part_or_line(found):
        part = found.group(1)
        if part in there:
            return ""
        if not os.path.isfile(path_of(part)):
            return found.group(0)
        there.add(part)
        return joined(part)

    return joined(name).encode("ascii")


def utf8(value):
    """Return a value of the environment as JSON can carry it: text without lone surrogates."""
    data = value if PY2 else value.encode("utf-8", "surrogateescape")
    return data.decode("utf-8", "replace")


def ask(name, emulator, environment, running, answers, problems):
    """Run one payload; put what it told into ``answers``, or why it told nothing into ``problems``."""
    limit = EMULATED_CHILD_SECONDS if emulator else CHILD_SECONDS
    request = {
        "phase": "full",
        "start": True,
        "timeout_seconds": limit,
        "emulator": emulator,
        "home": utf8(environment.get("HOME") or "") or None,
        "loader_variables": dict((one, utf8(environment[one])) for one in PRELOADING if one in environment),
    }
    cookie = base64.b16encode(os.urandom(16)).decode("ascii").lower()
    encoded = base64.urlsafe_b64encode(json.dumps(request).encode("ascii")).decode("ascii")
    given = dict((one, value) for one, value in environment.items() if one not in PRELOADING)
    argv = emulator + [sys.executable, "-B", "-E", "-s", "-", cookie, encoded]
    seconds, pipe = limit * PAYLOADS[name] + 30, subprocess.PIPE
    try:
        process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, env=given, close_fds=True)
        running.append(process)
        timer = threading.Timer(seconds, process.kill)
        timer.daemon = True
        timer.start()
        out, err = process.communicate(source_of(name))
        timer.cancel()
        timer.join()  # Python 2.7 says so when it ends while a thread is waking up
        parts = out.decode("utf-8", "replace").split(cookie)
        if len(parts) >= 3:
            answers[name] = json.loads(parts[1])
            return
    except (IOError, OSError, ValueError) as error:
        problems[name] = "could not be asked: %s" % error
        return
    last = err.decode("utf-8", "replace").strip().splitlines()[-1:]
    problems[name] = "ended with %d and no answer%s" % (process.returncode, "".join(": " + one for one in last))


def look(emulator, environment):
    """Run the payloads side by side; return what they told and their problems, by their names."""
    running, answers, problems = [], {}, {}
    rest = (emulator, environment, running, answers, problems)
    threads = [threading.Thread(target=ask, args=(name,) + rest) for name in PAYLOADS]
    try:
        for thread in threads:
            thread.daemon = True
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)  # with an end, so that Python 2.7 hears Ctrl-C
    except BaseException:
        for process in running:
            if process.poll() is None:
                process.kill()
        raise
    return answers, problems


def main():
    """Print the document, and return the exit code."""
    if not sys.executable:
        sys.stderr.write("error  this Python does not know its own path (sys.executable): start it by its full path\n")
        return 3
    environment = inherited_environment({})
    emulator = [str(word) for word in shlex.split(environment.get("IDEEPDOCTOR_EMULATOR") or "")]
    collected_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    try:
        answers, problems = look(emulator, environment)
    except KeyboardInterrupt:
        return 130
    if "probe" not in answers:
        sys.stderr.write("error  the probe told nothing: it %s\n" % problems.get("probe", "failed"))
        return 3
    document = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "collected_at": collected_at,
        "python": utf8(sys.executable),
        "emulator": [utf8(word) for word in emulator],
        "probe": answers["probe"],
        "libraries": answers.get("libraries"),
        "problems": problems,
    }
    data = (json.dumps(document, sort_keys=True) + "\n").encode("ascii")
    try:
        while data:
            data = data[os.write(1, data) :]
    except OSError as error:
        sys.stderr.write("error  cannot write the answer: %s\n" % error.strerror)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
