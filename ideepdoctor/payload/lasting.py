"""What goes on in a process after an operation has ended: its memory over many steps, and its children after a fork.

A part of the certify payload. Each of these cases has a process of its own (see ``risk_of`` in certify_cases), so that
no memory is measured that other cases had left free.
"""

import gc
import os
import signal
import threading
import time

from lab import LEAST_TERMS, Result, describe, signal_name

WARM_UP = 30  # steps after which caches, arenas and threads are there
SAMPLES = 24  # of the resident memory; six in each quarter of the steps
FORK_SECONDS = 15  # that a forked child may take; it computes for a tenth of a second
FORK_SECONDS_EMULATED = 40
SAME = "the same"


def resident_bytes():
    """Resident memory of this process."""
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def median(values):
    """The middle one; of an even number the upper one of the two."""
    return sorted(values)[len(values) // 2]


def steady_growth(samples):
    """Bytes by which memory grew all the time: four times the least step between the medians of its quarters.

    One arena that is taken at once, or memory that comes and goes, leaves a quarter without growth and so is none.
    """
    size = len(samples) // 4
    medians = [median(samples[number * size : (number + 1) * size]) for number in range(4)]
    return max(0, 4 * min(later - sooner for sooner, later in zip(medians, medians[1:])))


def training(lab):
    """A training step of a small net: convolution, BatchNormalization, ReLU, pooling, linear, loss, SGD."""
    np, F, L = lab.np, lab.F, lab.L
    random = np.random.RandomState(7)
    net = lab.chainer.Chain()
    with net.init_scope():
        net.c, net.b, net.l = L.Convolution2D(16, 16, 3, pad=1), L.BatchNormalization(16), L.Linear(16 * 64, 10)
    optimizer = lab.chainer.optimizers.SGD(0.001)
    optimizer.setup(net)
    x = random.standard_normal((4, 16, 16, 16)).astype(np.float32)
    t = np.arange(4).astype(np.int32)

    def step():
        net.cleargrads()
        h = F.max_pooling_2d(F.relu(net.b(net.c(lab.chainer.Variable(x)))), 2)
        F.softmax_cross_entropy(net.l(h), t).backward()
        optimizer.update()

    return step


def convolving(lab):
    """A step of one shape: convolution and ReLU, forward and backward."""
    np = lab.np
    w = np.ones((16, 16, 3, 3), np.float32)

    def step(shape):
        x = lab.chainer.Variable(np.ones(shape, np.float32))  # a generator has a lock, which a fork would copy
        y = lab.F.relu(lab.F.convolution_2d(x, w, pad=1))
        y.grad = np.ones(y.shape, np.float32)
        y.backward()

    return step


def growth_of_same(lab, count):
    """Steady growth over as many training steps, all with the same shapes."""
    step, samples = training(lab), []
    for _ in range(WARM_UP):
        step()
    for number in range(count):
        step()
        if (number + 1) % (count // SAMPLES) == 0:
            gc.collect()  # what only waits for it is no leak
            samples.append(resident_bytes())
    return steady_growth(samples)


def growth_of_new(lab, count):
    """Growth over as many steps, each with an input shape of its own."""
    step = convolving(lab)
    for _ in range(2):
        step((2, 16, 40, 40))
    gc.collect()
    before = resident_bytes()
    for index in range(count):
        step((2, 16, 8 + index % 24, 8 + index // 24))
    gc.collect()
    return resident_bytes() - before


def run_memory(lab, case, mark):
    """Measure how resident memory grows; nothing is compared, nothing judged."""
    lab.need_ideep()
    options = case["options"]
    ours, count = options.get("engine") != "NumPy", int(options["count"])
    with lab.ideep() if ours else lab.numpy(), lab.chainer.using_config("train", True):
        grown = growth_of_same(lab, count) if options["shapes"] == SAME else growth_of_new(lab, count)
    result = Result((ours or None, ours or None), [], LEAST_TERMS)
    kind = "same" if options["shapes"] == SAME else "ideep" if ours else "numpy"
    result.measured = {"count": count, kind + "_bytes": grown}
    return result


def waited(pid, seconds):
    """How a child ended: a word, a signal or exit code, and whether it took longer than that and was killed."""
    until = time.time() + seconds
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if time.time() > until:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return {"timed_out": True, "signal": None, "exit_code": None}
        time.sleep(0.005)
    died = os.WIFSIGNALED(status)
    name = signal_name(os.WTERMSIG(status)) if died else None
    return {"timed_out": False, "signal": name, "exit_code": None if died else os.WEXITSTATUS(status)}


def working(compute, seconds):
    """What a forked child does: computes, tells an exception over a pipe, and ends without any further act."""
    reading, writing = os.pipe()

    def work():
        signal.alarm(int(seconds) + 5)  # where nobody is left to end it
        try:
            compute()
        except BaseException as error:
            os.write(writing, describe(error)[:500].encode("ascii", "replace"))
            os._exit(3)
        os._exit(0)

    def said():
        os.close(writing)
        text = os.read(reading, 4096).decode("ascii", "replace")
        os.close(reading)
        return text

    return work, said


def by_fork(work):
    """The number of a child of os.fork()."""
    pid = os.fork()
    if not pid:
        work()
    return pid


def by_multiprocessing(work):
    """The number of a child of multiprocessing, forked as it is on Linux unless somebody chose another method."""
    import multiprocessing

    choose = getattr(multiprocessing, "get_context", None)  # from 3.4 on
    process = (choose("fork") if choose else multiprocessing).Process(target=work)
    process.start()
    return process.pid


def run_fork(lab, case, mark):
    """Fork after iDeep has computed, in three ways, and let each child compute; the first that ends badly counts.

    The matrix product is in it for the threads of NumPy's BLAS, but not where another thread computes: a child that is
    forked while OpenBLAS works hangs without iDeep, too.
    """
    lab.need_ideep()
    np, step = lab.np, convolving(lab)
    square = np.ones((256, 256), np.float32)
    seconds = FORK_SECONDS_EMULATED if lab.emulated else FORK_SECONDS

    def convolve():
        with lab.ideep():
            step((8, 16, 32, 32))

    def compute():
        convolve()
        square.dot(square)

    compute()
    result, ended = Result((True, True), [], LEAST_TERMS), False

    def spin():
        while not ended:
            convolve()

    other = threading.Thread(target=spin)
    other.daemon = True
    ways = (
        ("os.fork()", by_fork, compute),
        ("multiprocessing", by_multiprocessing, compute),
        ("os.fork() while another thread computes", by_fork, convolve),
    )
    for how, start, act in ways:
        if act is convolve:
            other.start()
        work, said = working(act, seconds)
        started = time.time()
        told = waited(start(work), seconds)
        told.update({"how": how, "seconds": time.time() - started, "said": said()})
        result.measured = told
        if told["exit_code"] != 0:
            break
    ended = True
    judge_child(result, told, seconds)
    return result


def judge_child(result, told, seconds):
    """Set status and note of a result by how the last child ended."""
    if told["exit_code"] == 0:
        return
    words = {3: "raised"}.get(told["exit_code"], "crashed")
    result.status = "timeout" if told["timed_out"] else words
    how = "was not done after %d s" % seconds if told["timed_out"] else told["said"]
    how = (
        how or (told["signal"] and "was ended by %s" % told["signal"]) or "ended with exit code %s" % told["exit_code"]
    )
    result.note = "a child of %s %s" % (told["how"], how)
