"""What the payloads share that look at a target: texts, the user's environment, children that may die, the answer.

A part: ``from common import ...`` in a payload is replaced by this text before it is sent (see ``payload_source``). The
payload drops '' from sys.path before that line.
"""

import ast
import base64
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

from surroundings import PY2, leave_no_core_files, native

TEXT = type(b"".decode("ascii"))
TRACE_BYTES = 1 << 14  # of a dump
KEPT_BYTES = 1 << 20  # of each stream of a child: an import that prints without end must not fill the memory
LISTENER_STACK_BYTES = 1 << 18  # 8 MiB for each of them would not fit a limited address space

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

# What a child that may die says of where: Python's own dump goes to a descriptor that nothing else writes to. A dump is
# made when a deadly signal comes, and when the parent asks for it before it ends a child that hangs: no thread, no
# timer, nothing that a healthy child would do otherwise. Python 2.7 has no faulthandler.
DUMPING = r"""
if watch:
    try:
        faulthandler = __import__("faulthandler")  # Python 3 alone has it
        faulthandler.enable(file=watch[0], all_threads=False)
        faulthandler.register(watch[1], file=watch[0], all_threads=False)
        for number in watch[2]:
            faulthandler.register(number, file=watch[0], all_threads=False, chain=True)
    except Exception:
        pass
"""

# For a second run of what died without a dump: every line of Python is told before it runs.
FOLLOWING = r"""
def described(frame):
    found = []
    while frame is not None and len(found) < 16:
        if frame.f_code.co_filename[:1] != "<":
            found.append("{0}:{1} in {2}".format(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return found
def follow(frame, event, argument):
    if frame.f_code.co_filename[:1] == "<":
        return None
    outer = described(frame.f_back)
    def line(frame, event, argument):
        if event in ("line", "return"):
            tell("line", (described(frame)[:1] + outer)[:16] if event == "line" else outer)
        return line
    return line
sys.settrace(follow)
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

    ``output`` holds the end of what came on its streams 1 and 2, and of what it dumped (3); ``code``, ``timed_out``,
    ``problem`` (why it did not start) and ``seconds`` are known once it is over; ``mapped`` are the lines of its memory
    map where it hung.
    """

    def __init__(self, argv, cookie, environment, watch=None):
        self.cookie, self.output = cookie, {1: b"", 2: b"", 3: b""}
        self.watch, self.mapped = watch, []
        self.code, self.timed_out, self.problem, self.seconds = None, False, None, 0.0
        self.process, self.threads, self.finished = None, [], False
        self.started = time.time()
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        if watch:
            streams["pass_fds"] = watch[1:]
        try:
            with open(os.devnull, "rb") as nothing:
                self.process = subprocess.Popen(argv, stdin=nothing, env=environment, close_fds=True, **streams)
        except (OSError, ValueError) as error:
            self.problem = str(error)
        finally:
            if watch:
                os.close(watch[1])
        if self.process is None:
            if watch:
                os.close(watch[0])
            return
        descriptors = [self.process.stdout.fileno(), self.process.stderr.fileno()] + list(watch or ())[:1]
        usual = threading.stack_size(LISTENER_STACK_BYTES)
        for number, descriptor in enumerate(descriptors, 1):
            thread = threading.Thread(target=self.listen, args=(number, descriptor))
            thread.daemon = True
            thread.start()
            self.threads.append(thread)
        threading.stack_size(usual)

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
            self.last_words()
            self.process.kill()
            self.process.wait()
        self.code, self.seconds, self.finished = self.process.returncode, time.time() - self.started, True
        for thread in self.threads:
            thread.join(1)  # not for ever: a grandchild may hold the pipe after the child itself has ended
        return True

    def last_words(self):
        """Note what a child that hangs has mapped, and have it dump where it is."""
        if not self.watch:
            return
        try:
            with open("/proc/%d/maps" % self.process.pid) as stream:
                self.mapped = [line.split(None, 5)[5].strip() for line in stream if ".so" in line and "/" in line]
            self.process.send_signal(signal.SIGUSR1)
        except (EnvironmentError, IndexError, ValueError):
            return
        until = time.time() + 1
        while time.time() < until and not self.output[3].endswith(b"\n") and self.process.poll() is None:
            time.sleep(0.01)

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


def python_child(source, request, cookie, environment, arguments=(), options=("-B",), watched=False):
    """Start a child Python with this source; one that is ``watched`` knows how to say where it dies (see DUMPING)."""
    watch = None
    if watched:
        numbers = None
        if not PY2:
            watch = os.pipe()
            deadly = [getattr(signal, name, None) for name in ("SIGSYS", "SIGTRAP")]
            numbers = (watch[1], int(signal.SIGUSR1), [int(one) for one in deadly if one])
        source = "watch = %r\n%s" % (numbers, source)
    argv = request["emulator"] + [sys.executable] + list(options) + ["-c", source, cookie] + list(arguments)
    return Child(argv, cookie, environment, watch)


def after_death(child, stages, start, environment):
    """Return what is known of where a child died, None where it did not: stack, lines, mapped.

    A child that died without a dump, or of which it is not known what it had loaded, is started once more by
    ``start(environment, follow)``: the loader then tells each file that it initializes, and Python each line. One that
    was killed from outside (no memory) is left alone.

    Args:
        child: one that is over.
        stages: names of what it had to tell.
        start: starts the same again in this environment; ``follow``: put FOLLOWING before.
        environment: what it was started with.
    """
    told = child.told()
    dumped = text(child.output[3])[-TRACE_BYTES:]
    if child.problem or child.code == 0 and all(name in told for name in stages):
        return None
    seen = {"stack": dumped, "lines": [], "mapped": child.mapped, "again": False}
    if child.code == -9 and not child.timed_out or child.mapped and dumped:
        return seen
    second = start(dict(environment, LD_DEBUG="files"), not dumped)
    second.wait(10 if child.timed_out else 20 + 4 * child.seconds)
    same = (second.code, second.timed_out) == (child.code, child.timed_out)
    words = re.findall(r"calling init: (/\S.*)", text(second.output[2]))
    if same:
        seen["again"] = True
        seen["lines"] = second.told().get("line") or []
        seen["mapped"] = child.mapped or [one.strip() for one in words]
    return seen
