"""Compares every function and optimizer that Chainer gives to iDeep with float64, a batch of cases at a time.

Started as ``python -B -E -s - COOKIE REQUEST`` with this text, parts joined, on standard input; prints COOKIE json
COOKIE.

REQUEST is URL-safe base64 of a JSON object:
  emulator         list of words to put before the interpreter for children
  loader_variables the user's variables that this process was started without (optional)
  action           plan, run or model
  threads          OMP_NUM_THREADS for the children, or null: what the user has
  one_cpu          whether children may use one processor only
  seconds          after these no further case is begun
  op_seconds       for the imports, and for each case
  cases            of run: what to try, as plan or model told (see certify_ops)
  file, function   of model: where the user's model is

Answer to plan:
  failure          why nothing could run, or ""
  ready            threads (of the OpenMP runtime, or null), available (Chainer's word on iDeep), reason, chainer
  cases            the catalogue: cases with key, text, seconds (an estimate), family and risk (see risk_of)
  unknown          files of Chainer that speak of iDeep and that the catalogue knows nothing of
  guard            null, or file, digest (SHA-256), active, why_not and corrections (names) of the doctor's guard

Answer to run:
  failure, ready   as above
  results          objects with key, status (right, wrong, crashed, raised, timeout or not-run), hazard, forward and
                   backward (whether iDeep was used, null where that cannot be told), why (not used), error (null where
                   it is not finite, or none), tolerance, wrong (names of outputs and gradients), message, kernels,
                   seconds, measured (of the cases memory and fork)
                   Cases that there was no time for are not among them.

Answer to model: see certify_model.
"""

import sys

sys.path[:] = [entry for entry in sys.path if entry]

import hashlib  # noqa: E402
import os  # noqa: E402
import pickle  # noqa: E402
import re  # noqa: E402
import signal  # noqa: E402
import time  # noqa: E402

from certify_cases import catalogue  # noqa: E402
from certify_model import Recording, examine_model  # noqa: E402
from certify_models import (  # noqa: E402
    EXPRESSIONS,
    run_keep,
    run_load,
    run_mdarray,
    run_optimizer,
    run_resume,
)
from certify_ops import ELEMENTWISE, MASKED, run_dropout, run_function  # noqa: E402
from lab import DEATHS, Child, Group, NotRun, begin, describe, new_setting, relative_error, serve, tolerance  # noqa: E402
from lasting import run_fork, run_memory  # noqa: E402

HOOKS = ("WeightDecay", "GradientClipping", "GradientHardClipping", "Lasso", "GradientLARS")
RUNNERS = {
    "optimizer": run_optimizer,
    "load": run_load,
    "resume": run_resume,
    "keep": run_keep,
    "mdarray": run_mdarray,
    "memory": run_memory,
    "fork": run_fork,
    "dropout": run_dropout,
}
# Files of chainer/functions and chainer/optimizers that speak of iDeep, and what here is about them.
KNOWN_FILES = (
    "convolution_2d deconvolution_2d linear relu leaky_relu max_pooling_2d max_pooling_nd average_pooling_2d "
    "local_response_normalization batch_normalization concat split_axis dropout lstm slstm basic_math "
    "adam sgd momentum_sgd corrected_momentum_sgd"
).split()


# ------------------------------------------------------------------------------------------- in a child


def one_cpu():
    """Let this process use the first of its processors only. Python 2 has no function for it."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    mask = (ctypes.c_ulong * 16)()
    if libc.sched_getaffinity(0, ctypes.sizeof(mask), mask) < 0:
        return
    for word, bits in enumerate(mask):
        mask[word] = bits & -bits & (2**64 - 1)
        if bits:
            mask[word + 1 :] = [0] * (15 - word)
            break
    libc.sched_setaffinity(0, ctypes.sizeof(mask), mask)


def flusher():
    """A function that empties C's buffers, so that MKLDNN_VERBOSE lines come before what is told next."""
    import ctypes

    libc = ctypes.CDLL(None)
    return lambda: libc.fflush(None)


def unknown_files(chainer):
    """Files of the installed Chainer's functions and optimizers that speak of iDeep, without those known here."""
    folder, found = os.path.dirname(os.path.abspath(chainer.__file__)), []
    for part in ("functions", "optimizers"):
        for here, _, names in os.walk(os.path.join(folder, part)):
            for name in names:
                if name.endswith(".py") and name[:-3] not in KNOWN_FILES:
                    with open(os.path.join(here, name), "rb") as stream:
                        text = stream.read()
                    if b"intel64" in text or b"ideep" in text:
                        found.append(os.path.relpath(os.path.join(here, name), folder))
    return sorted(found)


def guard_state():
    """What is known of the doctor's guard in this process; None where it is not there."""
    guard = sys.modules.get("_ideepdoctor_guard")
    if guard is None:
        return None
    path = re.sub("[.]py[co]$", ".py", guard.__file__)
    try:
        with open(path, "rb") as stream:
            digest = hashlib.sha256(stream.read()).hexdigest()
    except (OSError, IOError):
        digest = ""
    told = guard.status()
    names = sorted(name for name, row in told["corrections"].items() if row["active"])
    return {"file": path, "digest": digest, "active": told["active"], "why_not": told["why_not"], "corrections": names}


def optimizers_of(chainer):
    """Names of the optimizers that change parameters by their gradients."""
    found = []
    for name in dir(chainer.optimizers):
        value = getattr(chainer.optimizers, name)
        if isinstance(value, type) and issubclass(value, chainer.optimizer.GradientMethod):
            found.append(name)
    return found


def plan(lab):
    """The catalogue for this environment."""
    protocols = range(pickle.HIGHEST_PROTOCOL + 1)
    cases = catalogue(lab, optimizers_of(lab.chainer), EXPRESSIONS, protocols, HOOKS)
    return {"cases": cases, "unknown": unknown_files(lab.chainer), "guard": guard_state()}


def compared(np, ours, reference):
    """The relative error, where NaN and infinity must stand where the reference has them."""
    if ours is None or reference is None:
        return relative_error(np, ours, reference)
    ours, reference = np.array(ours).astype(np.float64), np.array(reference).astype(np.float64)
    if ours.shape != reference.shape:
        return float("inf")
    for test in (np.isnan, np.isposinf, np.isneginf):
        if not np.array_equal(test(ours), test(reference)):
            return float("inf")
    finite = np.isfinite(reference)
    return relative_error(np, np.where(finite, ours, 0), np.where(finite, reference, 0))


def judged(np, result):
    """The fields of a result."""
    limit = max(tolerance(result.terms), getattr(result, "allowed", 0.0))
    errors = [(compared(np, ours, true), name) for name, ours, true in result.pairs]
    worst, where = max(errors) if errors else (0.0, "")
    wrong = [name for error, name in errors if not error <= limit]
    finite, message = worst != float("inf"), result.note
    if wrong:
        message = "%s is off by %.2g" % (where, worst)
        if not finite:
            message = "%s has other NaN, infinities or another shape" % where
    return {
        "status": getattr(result, "status", "wrong" if wrong or result.note else "right"),
        "forward": result.used[0],
        "backward": result.used[1],
        "error": worst if finite and errors else None,
        "tolerance": limit,
        "wrong": wrong,
        "message": message,
        "measured": getattr(result, "measured", None),
    }


def runner_of(case):
    """The function that runs a case."""
    if case["op"] in MASKED or case["op"] in RUNNERS:
        return RUNNERS[case["op"]]
    return run_function


def child_main(cookie, order):
    """Do what the parent asks, and tell it before and after each case."""
    if order.get("one_cpu"):
        one_cpu()
    lab, tell = begin(cookie, order)
    if lab is None:
        return
    if order["work"] == "plan":
        tell(event="plan", plan=plan(lab))
        return
    if order["work"] == "model":
        Recording(lab, order, tell).run()
        return
    flush = flusher()

    def say(**event):
        flush()
        tell(**event)

    for index in order["indexes"]:
        if time.time() > order["stop_at"]:
            tell(event="stopped")
            return
        case = order["cases"][index]
        signal.alarm(order["op_seconds"])
        say(event="start", index=index)
        started = time.time()
        try:
            result = runner_of(case)(lab, case, lambda phase: say(event="phase", index=index, phase=phase))
            fields = judged(lab.np, result)
        except NotRun as reason:
            fields = {"status": "not-run", "message": str(reason)}
        except MemoryError:
            fields = {"status": "not-run", "message": "not enough memory"}
        except Exception as error:
            fields = {"status": "raised", "message": describe(error)[:500]}
        say(event="done", index=index, fields=dict(fields, seconds=time.time() - started))
    signal.alarm(0)


# ------------------------------------------------------------------------------------------- in the parent


def last_of(sizes):
    """The last of two sizes (rows, columns), or the size of both."""
    return sizes[-1] if isinstance(sizes, (list, tuple)) else sizes


def hazard_of(case, fields, ready):
    """The known hazard whose trigger this case has and that ends like this; None if there is none.

    Args:
        case: see certify_ops.
        fields: of the result; status, message, wrong.
        ready: threads, chainer, garbage of the child.
    """
    op, options = case["op"], case.get("options") or {}
    status, message = fields["status"], fields.get("message", "")
    wrong = fields.get("wrong") or []
    of_convolution = "b" in case.get("inputs", "") or case.get("gradient") == "b"
    name, expression = options.get("name", ""), str(options.get("expression", ""))
    if op == "fork":
        return None if status in ("right", "not-run") else "fork"
    if status == "wrong":
        gradients = wrong and not any(word.startswith("output") for word in wrong)
        if op == "batch_normalization":
            # Chainer 5 hands on blocked arrays, for which the output may be wrong as well.
            blocked = ready["chainer"].startswith("5.") and of_convolution
            known = gradients and (ready["threads"] or 1) > 1 or blocked
            return "H6" if ready["garbage"] else "H1" if known else None
        products = op in ELEMENTWISE or op in ("lstm", "slstm")
        if of_convolution and products or op == "mdarray" and re.search("[*/]", expression):
            return "H2"
        if op in ("load", "resume"):
            return "H3"
        if op == "optimizer" and (name in ("AdaGrad", "MSVAG") or ready["chainer"].startswith("5.")):
            return "H4"
        if op == "max_pooling_2d" and case.get("special") == "nan":
            return "H5"
        if op == "relu" and case.get("special") == "inf":
            return "H16"
        if op in ("max_pooling_2d", "average_pooling_2d") and of_convolution and not case.get("read"):
            return "H17" if last_of(options.get("pad", 0)) > 1 and last_of(options.get("stride", 1)) > 1 else None
        return "H14" if op == "local_response_normalization" and fields.get("error") is not None else None
    if op == "keep" and str(options.get("how", "")).startswith("pickle"):
        return "H10" if status == "crashed" or "pickle" in message else None
    if status == "crashed" and op == "max_pooling_2d":
        return "H17" if options.get("cover_all", True) else None
    if status == "crashed":
        return {"concat": "H7", "split_axis": "H8"}.get(op)
    if status == "raised":
        if op == "fixed_batch_normalization" and "mdarray_sum" in message:
            return "H9"
        if op in ("slstm", "im2col", "as_strided"):
            return "H15" if of_convolution else None
        return "H11" if re.search("unsupported operand|copyto", message) else None
    return None


def why_not(case, ready):
    """Why iDeep was not used for a case."""
    if not ready["available"]:
        return ready["reason"] or "Chainer has no iDeep here"
    options, shapes = case.get("options") or {}, case.get("shapes") or [[]]
    if case["op"] in ELEMENTWISE:
        return "NumPy does it, element by element"
    if options.get("groups", 1) > 1:
        return "groups and depthwise: NumPy"
    if case["op"] == "deconvolution_2d" and options.get("dilate", 1) != 1:
        return "dilated deconvolution: NumPy"
    if len(shapes[0]) not in (2, 4) or case["op"] in ("concat", "split_axis") and len(shapes[0]) != 4:
        return "%d-dimensional arrays: NumPy" % len(shapes[0])
    if case["op"] == "split_axis" and options.get("axis", 1) == 1 and shapes[0][1] == 8:
        return "8 channels: Chainer keeps it on NumPy"
    if case["op"] in ("lstm", "slstm", "add"):
        return "NumPy for these arrays"
    return "Chainer gave it to NumPy"


def phases_of(start):
    """MKLDNN_VERBOSE lines by phase, reorders left out: primitive and implementation."""
    found, phase = {}, "start"
    for event in [start] + start.get("more", []):
        phase = event.get("phase", phase)
        for line in event.get("lines", []):
            words = line.split(",")
            if len(words) > 3 and words[1] == "exec" and words[2] != "reorder":
                found.setdefault(phase, []).append("%s %s" % (words[2], words[3]))
    return found


def as_result(case, record, ready):
    """A result, as the answer has it."""
    _, start, fields = record
    phases = phases_of(start)
    found = {"key": case["key"], "forward": None, "backward": None, "error": None, "tolerance": None, "wrong": []}
    found.update({"message": "", "measured": None, "seconds": None}, **fields)
    for phase in ("forward", "backward"):
        found[phase] = True if phases.get(phase) else found[phase]
    found["kernels"] = sorted(set(phases.get("forward", []) + phases.get("backward", [])))
    found["hazard"] = hazard_of(case, found, ready)
    found["why"] = why_not(case, ready) if found["forward"] is False else ""
    return found


def examine(request):
    """Answer a request."""
    setting = new_setting(request)
    stop_at = setting["deadline"]
    setting["deadline"] += 2 * request["op_seconds"]
    order = {"work": request["action"], "one_cpu": request.get("one_cpu"), "stop_at": stop_at, "indexes": []}
    if request["action"] == "plan":
        child = Child(setting, dict(order, quiet=True))
        told = child.first("plan")
        return dict(whether_ready(child, told), **(told["plan"] if told else {}))
    if request["action"] == "model":
        return examine_model(setting, order, request, whether_ready)
    order["cases"] = request["cases"]
    order["deaths"] = DEATHS + sum(1 for case in order["cases"] if case["risk"])
    group = Group(setting, order, range(len(order["cases"])))
    group.run()
    ready = group.ready
    failure = "" if ready else group.failure or "no child answered in time"
    records = group.records if ready else []
    results = [as_result(order["cases"][record[0]], record, ready) for record in records]
    return {"failure": failure, "ready": ready, "results": results}


def whether_ready(child, told):
    """failure and ready of an answer that needs one child only; ``told`` is what it was to tell, or None."""
    ready, failed = child.first("ready"), child.first("failed")
    failure = ""
    if ready is None:
        failure = "import of chainer: %s" % (failed["message"] if failed else "%s: %s" % child.ending())
    elif told is None:
        failure = "%s: %s" % child.ending()
    return {"failure": failure, "ready": ready}


if __name__ == "__main__":
    serve(child_main, examine)
