"""A worker: a payload that lives as long as a run of bench and does what it is asked, one request after another.

A part: ``from talk import ...`` in a payload is replaced by this text before it is sent (see ``payload_source``). The
program comes over standard input, then one JSON object per line; each answer is one JSON object between two cookies on
standard output. An answer with ``error`` (``kind``: memory, import, refused or raised; ``message``) is one that could
not be done; the worker lives on. The end of standard input, or ``{"do": "end"}``, ends it.

The arguments are the cookie and a JSON object: ``bare``: take back the variables that an environment's start-up file
has set, because what is measured is what pip installs; ``affinity``: the CPUs to stay on, or null.
"""

import gc
import json
import os
import sys
import time

timer = getattr(time, "perf_counter", time.time)
MARK = "IDEEPDOCTOR_SET"
# Variables that decide how fast something computes, and the first letters of more of them.
DECIDING = ("OMP_", "KMP_", "GOMP_", "MKL_", "MALLOC_", "OPENBLAS_", "GLIBC_TUNABLES", "LD_PRELOAD")
DECIDING += ("CHAINER_USE_IDEEP", "CHAINER_DTYPE")


class CannotDo(Exception):
    """A request that cannot be done; its text says why."""


def one_line(error):
    """An exception as one line."""
    return " ".join(("%s: %s" % (type(error).__name__, error)).split())[:500]


def be_bare():
    """Forget the variables that a start-up file of ours has set; what reads them is not loaded yet."""
    for name in os.environ.pop(MARK, "").split(","):
        os.environ.pop(name, None)


def stay_on(cpus):
    """Bind this process, and the threads that it will start, to these CPUs; nothing where that cannot be done."""
    try:
        os.sched_setaffinity(0, cpus)  # novm: on 2.7 the AttributeError is caught
        return
    except AttributeError:
        pass
    except (OSError, ValueError):
        return
    import ctypes

    mask = bytearray(128)
    for cpu in cpus:
        if cpu < 8 * len(mask):
            mask[cpu // 8] |= 1 << cpu % 8
    buffer = (ctypes.c_char * len(mask)).from_buffer(mask)
    ctypes.CDLL(None).sched_setaffinity(0, ctypes.c_size_t(len(mask)), buffer)


def flush_libraries():
    """Write out what C libraries have printed: MKL-DNN's lines belong to the request that they were printed in."""
    try:
        import ctypes

        ctypes.CDLL(None).fflush(None)
    except (OSError, AttributeError):
        pass


def timed_steps(step, count):
    """Seconds of each of some steps: ``step`` returns those of its forward and its backward pass (or None)."""
    if step is None:
        raise CannotDo("nothing is loaded")
    # Before the clock runs: the garbage of what went before is not this step's.
    gc.collect()
    forward, backward = [], []
    for _ in range(count):
        first, second = step()
        forward.append(first)
        if second is not None:
            backward.append(second)
    return {"forward": forward, "backward": backward}


def sized_products(library, product_of, sizes):
    """GFLOP/s of square matrix products: the best of six at each size. ``product_of(n)`` makes what is then called."""
    found = []
    for n in sizes:
        multiply, best = product_of(n), None
        for _ in range(7):
            started = timer()
            multiply()
            spent = timer() - started
            best = spent if best is None else min(best, spent)
        found.append({"library": library, "size": n, "gflops": 2.0 * n**3 / max(best, 1e-9) / 1e9})
    return found


def variables():
    """The variables that decide speed, as they are in force here: a start-up file's, too."""
    return dict((name, os.environ[name]) for name in sorted(os.environ) if name.startswith(DECIDING))


def answer_of(handlers, request):
    """What a request gives: the handler's answer, or what went wrong."""
    try:
        handler = handlers.get(request.get("do"))
        if handler is None:
            raise CannotDo("this worker cannot do %r" % request.get("do"))
        answer = handler(request)
        if request["do"] in ("load", "sgemm"):
            answer = dict(answer, variables=variables(), python="%d.%d.%d" % sys.version_info[:3])
        return answer
    except MemoryError:
        return {"error": {"kind": "memory", "message": "there is not enough memory for this"}}
    except CannotDo as error:
        return {"error": {"kind": "refused", "message": str(error)}}
    except ImportError as error:
        return {"error": {"kind": "import", "message": one_line(error)}}
    except Exception as error:
        kind = "memory" if "memory" in str(error).lower() and "alloc" in str(error).lower() else "raised"
        return {"error": {"kind": kind, "message": one_line(error)}}


def serve_requests(handlers):
    """Answer until there is nothing more to answer. ``handlers``: a function of the request by what it is to do."""
    cookie, options = sys.argv[1], json.loads(sys.argv[2])
    out, given = os.dup(1), getattr(sys.stdin, "buffer", sys.stdin)
    if options.get("bare"):
        be_bare()
    if options.get("affinity"):
        stay_on(options["affinity"])
    while True:
        line = given.readline()
        request = json.loads(line.decode("ascii")) if line.strip() else {"do": "end"}
        if request.get("do") == "end":
            return
        answer = answer_of(handlers, request)
        sys.stdout.flush()
        flush_libraries()
        data = ("\n%s%s%s\n" % (cookie, json.dumps(answer, sort_keys=True), cookie)).encode("ascii")
        while data:
            data = data[os.write(out, data) :]
