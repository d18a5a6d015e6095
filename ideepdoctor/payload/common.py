"""What the payloads share that look at a target: texts, the user's environment, children that may die, the answer.

A part: ``from common import ...`` in a payload is replaced by this text before it is sent (see ``payload_source``). The
payload drops '' from sys.path before that line.
"""

import ast
import base64
import json
import os
import subprocess
import sys
import threading
import time

from surroundings import PY2, leave_no_core_files, native

TEXT = type(b"".decode("ascii"))
KEPT_BYTES = 1 << 20  # of each stream of a child: an import that prints without end must not fill the memory

# What a child starts with: it speaks through a descriptor of its own, in Python literals, so that it needs no module
# that the user may have shadowed and so that what modules print cannot be taken for an answer.
CHILD = r"""
import sys
first = sys.path[:1] == [""]
if first:
    del sys.path[0]
import os
import time
cookie = sys.argv[1]
arguments = sys.argv[2:]
del sys.argv[1:]
out = os.dup(1)
err = os.dup(2)
literal = repr if sys.version_info[0] == 2 else ascii
def tell(name, value):
    data = (cookie + literal((name, value)) + cookie).encode("ascii")
    while data:
        data = data[os.write(out, data):]
"""


def text(value):
    """Return Unicode text without lone surrogates, whatever bytes or text is given; None stays None."""
    if value is None or PY2 and not isinstance(value, bytes):
        return value
    if not isinstance(value, bytes):
        try:
            value = value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            value = value.encode("utf-8", "replace")
    return value.decode("utf-8", "replace")


def clean(value):
    """Return the value with every text in it cleaned, ready for JSON."""
    if isinstance(value, dict):
        return dict((text(key), clean(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return [clean(item) for item in value]
    return text(value) if isinstance(value, (bytes, TEXT)) else value


def with_paths(value):
    """Return the value with every text in it as the type that paths have."""
    if isinstance(value, dict):
        return dict((with_paths(key), with_paths(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return [with_paths(item) for item in value]
    if isinstance(value, TEXT):
        return native(value.encode("utf-8", *([] if PY2 else ["surrogateescape"])))
    return value


def begin():
    """Return the cookie and the request of this payload, in the folder and with the limits that it is to work in."""
    cookie = sys.argv[1]
    request = with_paths(json.loads(base64.urlsafe_b64decode(sys.argv[2].encode("ascii")).decode("ascii")))
    request["emulator"] = request.get("emulator") or []
    leave_no_core_files()
    if request.get("cwd"):
        try:
            os.chdir(request["cwd"])
        except OSError:
            pass  # a folder of the doctor's machine need not exist on the target's
    return cookie, request


def answer_with(cookie, answer):
    """Print the answer."""
    data = (cookie + json.dumps(clean(answer)) + cookie + "\n").encode("ascii")
    sys.stdout.flush()
    while data:
        data = data[os.write(1, data) :]


class Child(object):
    """A process that is started now and waited for later; threads read what it prints.

    ``output`` holds the end of what came on its streams 1 and 2; ``code``, ``timed_out``, ``problem`` (why it did not
    start) and ``seconds`` are known once it is over.
    """

    def __init__(self, argv, cookie, environment):
        self.cookie, self.output = cookie, {1: b"", 2: b""}
        self.code, self.timed_out, self.problem, self.seconds = None, False, None, 0.0
        self.process, self.threads, self.finished = None, [], False
        self.started = time.time()
        try:
            with open(os.devnull, "rb") as nothing:
                self.process = subprocess.Popen(
                    argv, stdin=nothing, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, close_fds=True
                )
        except (OSError, ValueError) as error:
            self.problem = str(error)
            return
        for number, stream in ((1, self.process.stdout), (2, self.process.stderr)):
            thread = threading.Thread(target=self.listen, args=(number, stream.fileno()))
            thread.daemon = True
            thread.start()
            self.threads.append(thread)

    def listen(self, number, descriptor):
        """Keep the last of what comes."""
        while True:
            try:
                data = os.read(descriptor, 65536)
            except OSError:
                return
            if not data:
                return
            self.output[number] = (self.output[number] + data)[-KEPT_BYTES:]

    def over(self, timeout):
        """Return whether it has ended, after ending it where more than ``timeout`` seconds passed since its start."""
        if self.process is None or self.finished:
            return True
        if self.process.poll() is None:
            if time.time() - self.started <= timeout:
                return False
            self.timed_out = True
            self.process.kill()
            self.process.wait()
        self.code, self.seconds, self.finished = self.process.returncode, time.time() - self.started, True
        for thread in self.threads:
            thread.join(1)  # not for ever: a grandchild may hold the pipe after the child itself has ended
        return True

    def wait(self, timeout):
        """Wait until it is over, and return it."""
        while not self.over(timeout):
            time.sleep(0.002)
        return self

    def told(self):
        """Return what the child told, by name."""
        answers = {}
        for part in self.output[1].split(self.cookie.encode("ascii")):
            if not part.startswith(b"('"):
                continue  # what an import printed
            try:
                name, value = ast.literal_eval(part.decode("ascii"))
            except (ValueError, SyntaxError, TypeError):
                continue
            answers[name] = value
        return answers

    def ended(self):
        """Return how it ended, as data."""
        return {"code": self.code, "timed_out": self.timed_out, "problem": self.problem, "seconds": self.seconds}


def python_child(source, request, cookie, environment, arguments=(), options=("-B",)):
    """Start a child Python with this source."""
    argv = request["emulator"] + [sys.executable] + list(options) + ["-c", source, cookie] + list(arguments)
    return Child(argv, cookie, environment)
