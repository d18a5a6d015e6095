"""Runs ideep4py and another package in one process, in each order of import: what do they do to each other?

Runs inside the target (Python 2.7, 3.5 and later), started as ``python -B -E -s - COOKIE REQUEST`` with this file on
standard input; prints COOKIE json COOKIE.

REQUEST is URL-safe base64 of a JSON object:
    pairs            objects with package ("torch 1.4.0") and modules (the first that is there is imported)
    emulator         words to put before the interpreter for children
    timeout_seconds  for each child
    total_seconds    for all: a child that is not done by then counts as not tried
    cwd              folder in which the user would start Python (optional)
    loader_variables those of the user's variables that this process was started without (optional)

Answer:
    pairs            1
    checks           objects with package, module, before (the package was imported before ideep4py), after, alone (the
                     package without ideep4py)
    ideep4py         ideep4py without any of them
The last two kinds were tried where a pair failed, so that what is broken by itself is not laid to the pair.

Each is null (not tried) or the record of a child: told (by stage), stderr (one text for each stage and one for the end
of Python, each at most 2,000 characters, with what was printed to standard output) and ended, as the probe has them.
The stages are "import first", "import second", "ideep4py op" and "other op", in this order; the first that was not told
is the one in which the child died. One that could not be tried, because the import had failed, is told with ok null.
"""

# ruff: noqa: E402, I001
import sys

sys.path[:] = [entry for entry in sys.path if entry != ""]  # a json.py in the current folder must not be taken

import time

from common import Child, answer_with, begin
from surroundings import inherited_environment

STAGES = ("import first", "import second", "ideep4py op", "other op")
AT_ONCE = 2
TEXT_LIMIT = 2000

# It speaks in Python literals through a descriptor of its own, so that it needs no module that the user may have
# shadowed. What modules print goes to standard error: it cannot be taken for an answer, nor push one out.
PROLOGUE = r"""
import sys
first = sys.path[:1] == [""]
if first:
    del sys.path[0]
import os
import time
import warnings
cookie, order, modules = sys.argv[1:4]
modules = modules.split(",")
del sys.argv[1:]
out = os.dup(1)
err = os.dup(2)
os.dup2(2, 1)
literal = repr if sys.version_info[0] == 2 else ascii
def tell(name, value):
    data = (cookie + literal((name, value)) + cookie).encode("ascii")
    while data:
        data = data[os.write(out, data):]
limit = 2000
shown = []
def show(message, category, *rest, **others):
    if len(shown) < 20:
        shown.append("%s: %s" % (category.__name__, text(message)))
warnings.showwarning = show
def text(value):
    try:
        value = str(value)
    except Exception:
        value = repr(value)
    return value[:limit]
def stage(name, action):
    started = time.time()
    del shown[:]
    answer = {"ok": False}
    try:
        answer.update(action() or {})
        if answer["ok"] is not None:
            answer["ok"] = not answer.get("error_type")
    except BaseException as error:
        kind, value, place = sys.exc_info()
        answer.update(error_type=kind.__name__, error_text=text(error))
        while place is not None and place.tb_frame.f_code.co_filename == "<string>":
            place = place.tb_next
        try:
            value.__traceback__ = place
        except (AttributeError, TypeError):
            pass
        sys.__excepthook__(kind, value, place)
        place = None
    answer["seconds"] = time.time() - started
    answer["warnings"] = list(shown)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    os.write(err, cookie.encode("ascii"))
    tell(name, answer)
    return answer["ok"]
"""

# One small operation of each package that is known; its result is compared with NumPy's, or with what it must be.
OPERATIONS = r"""
def wrong(what):
    return {"error_type": "WrongNumbers", "error_text": what}
def compare(made, right):
    import numpy
    made = numpy.array(made)
    if made.shape != right.shape:
        return wrong("shape %s, not %s" % (made.shape, right.shape))
    error = float(abs(made - right).max() / abs(right).max())
    if not error < 1e-3:
        return wrong("relu of a convolution is off by %.1e" % error)
def convolution():
    # 16 channels: MKL-DNN then takes its blocked formats, in which its versions differ.
    import numpy
    given = (numpy.arange(2 * 16 * 8 * 8) % 23 / 23.0 - 0.4).astype("float32").reshape(2, 16, 8, 8)
    weights = (numpy.arange(16 * 16 * 9) % 17 / 17.0 - 0.5).astype("float32").reshape(16, 16, 3, 3)
    right = 0
    for row in range(3):
        for column in range(3):
            window = given[:, :, row:row + 6, column:column + 6].astype("float64")
            right = right + numpy.einsum("nchw,oc->nohw", window, weights[:, :, row, column].astype("float64"))
    return given, weights, numpy.maximum(right, 0)
def ideep4py_operation(ideep4py):
    import numpy
    given = numpy.array([[(column * 7 + row) % 9 - 4.0 for column in range(8)] for row in range(8)], dtype="float32")
    made = numpy.array(ideep4py.relu.Forward(ideep4py.array(given)))
    if made.tolist() != numpy.maximum(given, 0).tolist():
        return wrong("relu differs from NumPy's")
def mxnet(mx):
    given, weights, right = convolution()
    made = mx.nd.Convolution(data=mx.nd.array(given), weight=mx.nd.array(weights), no_bias=True, kernel=(3, 3),
                             num_filter=16)
    return compare(mx.nd.relu(made).asnumpy(), right)
def torch(torch):
    given, weights, right = convolution()
    with torch.no_grad():
        made = torch.nn.functional.conv2d(torch.tensor(given.tolist()), torch.tensor(weights.tolist()))
        return compare(torch.nn.functional.relu(made).tolist(), right)
def paddle(paddle):
    given, weights, right = convolution()
    if hasattr(paddle, "static"):
        paddle.enable_static()
        import paddle.static as static
        layers, relu, data, attribute = static.nn, paddle.nn.functional.relu, static.data, paddle.ParamAttr
        start_value = paddle.nn.initializer.Assign(weights)
    else:
        import paddle.fluid as static
        layers, relu, data, attribute = static.layers, static.layers.relu, static.data, static.ParamAttr
        start_value = static.initializer.NumpyArrayInitializer(weights)
    program, start = static.Program(), static.Program()
    place = getattr(static, "CPUPlace", None) or paddle.CPUPlace
    with static.program_guard(program, start):
        made = relu(layers.conv2d(data("given", list(given.shape), "float32"), 16, 3, bias_attr=False,
                                  param_attr=attribute(initializer=start_value)))
    for operation in program.global_block().ops:
        if operation.has_attr("use_mkldnn"):
            operation._set_attr("use_mkldnn", True)
    executor = static.Executor(place())
    executor.run(start)
    return compare(executor.run(program, feed={"given": given}, fetch_list=[made])[0], right)
def tensorflow(tf):
    given, weights, right = convolution()
    given, weights = given.transpose(0, 2, 3, 1), weights.transpose(2, 3, 1, 0)
    def made(images):
        return tf.nn.relu(tf.nn.conv2d(images, weights, strides=[1, 1, 1, 1], padding="VALID"))
    if hasattr(tf, "executing_eagerly") and tf.executing_eagerly():
        return compare(made(tf.constant(given)).numpy().transpose(0, 3, 1, 2), right)
    with tf.Graph().as_default(), tf.Session() as session:
        images = tf.placeholder(tf.float32, given.shape)
        return compare(session.run(made(images), {images: given}).transpose(0, 3, 1, 2), right)
def ngraph(ng):
    given, weights, right = convolution()
    inputs = [ng.parameter(list(given.shape), given.dtype.type), ng.parameter(list(weights.shape), given.dtype.type)]
    program = ng.runtime(backend_name="CPU").computation(ng.relu(ng.convolution(*inputs)), *inputs)
    return compare(program(given, weights)[0], right)
def sklearn(sklearn):
    import numpy
    from sklearn.cluster import KMeans
    points = numpy.array([[float(group), index / 100.0] for group in (0, 9) for index in range(20)])
    labels = [int(one) for one in KMeans(n_clusters=2, n_init=1, random_state=0).fit(points).labels_]
    if labels not in ([0] * 20 + [1] * 20, [1] * 20 + [0] * 20):
        return wrong("KMeans found other groups: %s" % labels)
def faiss(faiss):
    import numpy
    points = numpy.array([[float(index), 0.0] for index in range(8)], dtype="float32")
    index = faiss.IndexFlatL2(2)
    index.add(points)
    found = [[int(one) for one in row] for row in index.search(points, 1)[1]]
    if found != [[one] for one in range(8)]:
        return wrong("the nearest neighbours are not %s" % found)
def numpy(numpy):
    one = numpy.arange(64.0 * 64).reshape(64, 64) % 11
    if abs(numpy.dot(one, one.T) - numpy.einsum("ij,kj->ik", one, one)).max() > 1e-6:
        return wrong("dot differs from einsum")
def scipy(scipy):
    import numpy
    import scipy.linalg
    matrix = numpy.arange(64.0 * 64).reshape(64, 64) % 11 + 640 * numpy.eye(64)
    if not abs(numpy.einsum("ij,j->i", matrix, scipy.linalg.solve(matrix, numpy.ones(64))) - 1).max() < 1e-6:
        return wrong("the solution of linear equations does not solve them")
def cv2(cv2):
    import numpy
    if not abs(cv2.GaussianBlur(numpy.ones((32, 32), "float32"), (5, 5), 1.0) - 1).max() < 1e-5:
        return wrong("a blurred constant is not constant")
known = (mxnet, torch, paddle, tensorflow, ngraph, sklearn, faiss, numpy, scipy, cv2)
known = dict((one.__name__, one) for one in known)
"""

RUN = r"""
def missing(name, error):
    return str(error).replace("'", "").endswith("No module named " + name)
def importing(names, loaded):
    def action():
        for name in names:
            try:
                __import__(name)
            except ImportError as error:
                if missing(name, error):
                    continue
                raise
            module = sys.modules[name]
            path = getattr(module, "__file__", None)
            if path is None and name not in sys.builtin_module_names:
                continue  # a folder without code
            loaded.append(module)
            version = getattr(module, "__version__", None)
            return {"version": None if version is None else text(version), "path": path, "module": name}
        raise ImportError("No module named " + " or ".join(names))
    return action
def working(loaded, operations):
    def action():
        if not loaded:
            return {"ok": None}
        operation = operations.get(loaded[0].__name__.split(".")[0])
        return operation and operation(loaded[0])
    return action
if first:
    sys.path.insert(0, "")
ours, others = [], []
imports = [importing(modules, others), importing(["ideep4py"], ours)]
if order == "after":
    imports.reverse()
elif order == "alone":
    imports[1] = dict
elif order == "ideep4py":
    imports = [imports[1], dict]
stage("import first", imports[0])
stage("import second", imports[1])
stage("ideep4py op", working(ours, {"ideep4py": ideep4py_operation}))
stage("other op", working(others, known))
"""


class Trial(Child):
    """A running process in which a check's packages are imported in one order."""

    def __init__(self, check, order, setting, seconds):
        self.check, self.order, self.most = check, order, seconds
        source = PROLOGUE + OPERATIONS + RUN
        words = [sys.executable, "-B", "-c", source, setting["cookie"], order, ",".join(check["modules"])]
        Child.__init__(self, setting["emulator"] + words, setting["cookie"], setting["environment"])

    def record(self):
        """Return what became of it."""
        told = dict((name, one) for name, one in self.told().items() if name in STAGES and isinstance(one, dict))
        return {"told": told, "stderr": self.errors(len(told)), "ended": self.ended()}

    def errors(self, stages):
        """Return the end of standard error of each stage and of what came after the last that was told.

        Counted from the end, because of a long text only the end was kept.
        """
        parts = [part[-TEXT_LIMIT:] for part in self.output[2].split(self.cookie.encode("ascii"))]
        return ([b""] * (stages + 1) + parts)[-stages - 1 :]


def fine(record):
    """Return whether a child did all it was asked, and ended well."""
    return record["ended"]["code"] == 0 and all(record["told"].get(name, {}).get("ok") for name in STAGES)


def run_all(checks, setting, timeout, total):
    """Run every check in both orders, and alone what fails, and put the records into the checks.

    Returns the record of ideep4py alone, None where it was not needed or not tried.
    """
    deadline = time.time() + total
    ideep4py = {"modules": ["ideep4py"], "ideep4py": None}
    waiting = [(check, order) for check in checks for order in ("before", "after")]
    running, asked = [], set()
    while waiting or running:
        left = deadline - time.time()
        if left <= 0:
            for child in running:
                child.most = 0
            del waiting[:]
        while waiting and len(running) < AT_ONCE:
            check, order = waiting.pop(0)
            running.append(Trial(check, order, setting, timeout))
        for child in [one for one in running if one.over(one.most)]:
            running.remove(child)
            if child.timed_out and time.time() >= deadline:
                continue  # it might have come to an end: not tried
            record = child.check[child.order] = child.record()
            if child.order in ("before", "after") and not fine(record):
                for control in ((ideep4py, "ideep4py"), (child.check, "alone")):
                    if (id(control[0]), control[1]) not in asked:
                        asked.add((id(control[0]), control[1]))
                        waiting.insert(0, control)
        time.sleep(0.02)
    return ideep4py["ideep4py"]


def main():
    """Answer the request."""
    cookie, request = begin()
    setting = {
        "cookie": cookie,
        "emulator": request["emulator"],
        "environment": inherited_environment(request.get("loader_variables") or {}),
    }
    checks = [dict(one, before=None, after=None, alone=None) for one in request["pairs"]]
    ideep4py = run_all(checks, setting, float(request["timeout_seconds"]), float(request["total_seconds"]))
    for check in checks:
        records = [check[order] for order in ("before", "after", "alone") if check[order]]
        told = [record["told"].get(stage, {}).get("module") for record in records for stage in STAGES[:2]]
        found = [name for name in told if name not in (None, "ideep4py")]
        check["module"] = (found + check.pop("modules"))[0]
    answer_with(cookie, {"pairs": 1, "checks": checks, "ideep4py": ideep4py})


if __name__ == "__main__":
    main()
