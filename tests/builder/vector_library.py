"""Calls the six functions of libmklml_intel.so, MKL's or the one in its place, in a process of their own.

python vector_library.py LIBRARY [NEEDED...] < requests: a JSON list; prints a JSON list of answers. Vectors of floats
go both ways as base64 of their bytes, draws come as text of 0 and 1 (and ? for what was not written). A request that
kills the process kills the answers with it: ask for such a thing alone.
"""

import array
import base64
import ctypes
import json
import struct
import sys
from pathlib import Path

MCG31 = 1 << 20
LEFT = 0x3F3F3F3F


class Library:
    def __init__(self, path, needed):
        for other in needed:
            ctypes.CDLL(other, ctypes.RTLD_GLOBAL)
        self.functions = ctypes.CDLL(path)

    def new(self, seed, generator=MCG31):
        stream = ctypes.c_void_p(LEFT)
        return self.functions.vslNewStream(ctypes.byref(stream), generator, ctypes.c_uint(seed)), stream

    def draw(self, stream, n, p, method=0, there=True):
        room = (ctypes.c_int * (max(n, 0) + 1))(*[LEFT] * (max(n, 0) + 1))
        given = room if there else None
        status = self.functions.viRngBernoulli(method, stream, n, given, ctypes.c_double(p))
        return status, "".join("?" if value == LEFT else str(value) for value in room)

    def draws(self, seed, counts, p, skips=()):
        """Status codes other than 0, and the draws of calls in a row, after skips in a row."""
        status, stream = self.new(seed)
        codes = [status]
        codes += [self.functions.vslSkipAheadStream(stream, ctypes.c_longlong(skip)) for skip in skips]
        text = ""
        for count in counts:
            status, drawn = self.draw(stream, count, float(p))
            codes.append(status)
            text += drawn[:count] if drawn[count:] == "?" else "beyond the end"
        codes.append(self.functions.vslDeleteStream(ctypes.byref(stream)))
        return {"codes": [code for code in codes if code], "draws": text, "left": stream.value}

    def powx(self, a, b, in_place=False):
        data, count = vector(a)
        out = data if in_place else (ctypes.c_float * (count or 1))()
        self.functions.vsPowx(count, data, ctypes.c_float(float(b)), out)
        return text_of(out, count)

    def mul(self, a, b, in_place=False):
        one, count = vector(a)
        other, _ = vector(b)
        out = one if in_place else (ctypes.c_float * (count or 1))()
        self.functions.vsMul(count, one, other, out)
        return text_of(out, count)

    def many(self, count):
        """Whether a long product is right everywhere, and how many threads this process has afterwards."""
        one, other = array.array("f", range(1, 1001)), array.array("f", range(1000, 0, -1))
        a, b = one * (count // 1000 + 1), other * (count // 1000 + 1)
        out = array.array("f", [0.0]) * (len(a))
        places = [(ctypes.c_float * len(a)).from_buffer(values) for values in (a, b, out)]
        self.functions.vsMul(count, *places)
        wanted = array.array("f", [x * y for x, y in zip(one, other, strict=True)]) * (count // 1000 + 1)
        right = out[:count] == wanted[:count] and not any(out[count:])
        return {"right": right, "threads": len(list(Path("/proc/self/task").iterdir()))}

    def idle(self):
        """What vsMul and vsPowx leave of a vector when they are called with nothing to do, or with no place."""
        found = []
        for count, places in ((0, "aby"), (-1, "aby"), (3, "by"), (3, "ay"), (3, "ab"), (3, "")):
            given = {name: (ctypes.c_float * 3)(2, 3, 4) if name in places else None for name in "aby"}
            self.functions.vsMul(count, given["a"], given["b"], given["y"])
            found.append(list(given["y"] or ()))
            if "b" in places or not places:
                self.functions.vsPowx(count, given["a"], ctypes.c_float(2), given["y"])
                found.append(list(given["y"] or ()))
        return found

    def codes(self):
        """Status codes of wrong calls, by what is wrong."""
        f, found = self.functions, {}
        foreign = ctypes.create_string_buffer(b"\x55" * 256, 256)
        _, stream = self.new(5)
        cases = {
            "n 0": (stream, 0, 0.5),
            "n 0, no place": (stream, 0, 0.5, 0, False),
            "n 0, p 2": (stream, 0, 2.0),
            "n 0, method 1": (stream, 0, 0.5, 1),
            "n -1": (stream, -1, 0.5),
            "n -1, p 2": (stream, -1, 2.0),
            "no place": (stream, 5, 0.5, 0, False),
            "p -0.1": (stream, 5, -0.1),
            "p 1.1": (stream, 5, 1.1),
            "p inf": (stream, 5, float("inf")),
            "p nan": (stream, 5, float("nan")),
            "p 0": (stream, 5, 0.0),
            "p -0": (stream, 5, -0.0),
            "p 1": (stream, 5, 1.0),
            "method 1": (stream, 5, 0.5, 1),
            "method -1": (stream, 5, 0.5, -1),
            "no stream": (None, 5, 0.5),
            "no stream, n -1": (None, -1, 0.5),
            "no stream, n 0": (None, 0, 0.5),
            "no stream, p 2": (None, 5, 2.0),
            "foreign stream": (foreign, 5, 0.5),
            "after all of these": (stream, 5, 0.5),
        }
        for name, arguments in cases.items():
            found[name] = list(self.draw(*arguments))
        found["skip no stream"] = f.vslSkipAheadStream(None, ctypes.c_longlong(1))
        found["skip foreign"] = f.vslSkipAheadStream(foreign, ctypes.c_longlong(1))
        for name, place in (("none", ctypes.c_void_p()), ("foreign", ctypes.cast(foreign, ctypes.c_void_p))):
            before = place.value
            found["delete " + name] = [f.vslDeleteStream(ctypes.byref(place)), place.value == before]
        found["delete"] = [f.vslDeleteStream(ctypes.byref(stream)), stream.value]
        for generator in (-1, MCG31 + 1, MCG31 // 2, 20 * MCG31, 1 << 30):
            status, made = self.new(1, generator)
            found[f"generator {generator}"] = [status, made.value == LEFT]
        return found

    def generator(self, number):
        status, stream = self.new(1, number)
        return [status, stream.value != LEFT]

    def no_place(self, what):
        """What kills MKL: no place for the stream's address."""
        if what == "new":
            return self.functions.vslNewStream(None, MCG31, 1)
        return self.functions.vslDeleteStream(None)


def vector(text):
    data = base64.b64decode(text)
    count = len(data) // 4
    return (ctypes.c_float * (count or 1)).from_buffer_copy(data or bytes(4)), count


def text_of(values, count):
    return base64.b64encode(bytes(values)[: 4 * count]).decode("ascii")


def floats(values):
    """A vector for a request."""
    return base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode("ascii")


def numbers(text):
    """The vector of an answer."""
    data = base64.b64decode(text)
    return struct.unpack(f"<{len(data) // 4}f", data)


if __name__ == "__main__":
    LIBRARY = Library(sys.argv[1], sys.argv[2:])
    ANSWERS = []
    for REQUEST in json.load(sys.stdin):
        ANSWERS.append(getattr(LIBRARY, REQUEST.pop("do"))(**REQUEST))
    print("\n" + json.dumps(ANSWERS))
