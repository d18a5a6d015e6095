"""What ``trace`` records in a program, with stand-ins for Chainer and NumPy, under old and new Pythons."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from ideepdoctor.proof.trace_records import read_events
from tests.payload.test_guard import PYTHONS, interpreter
from tests.payload.traced_world import World, only, places


@pytest.fixture
def world(tmp_path: Path, version: str) -> World:
    return World(tmp_path, interpreter(version))


NET = """
import os, sys
import numpy
import chainer
from chainer.function_node import relu

def net(x):
    h = relu(x)
    return relu(h)

x = chainer.Variable(numpy.ndarray((2, 3)))
"""


@PYTHONS
def test_calls_count_at_the_users_line_and_backward_at_the_line_of_the_forward_call(world: World):
    records = world.run(NET + "for i in range(3):\n    loss = net(x)\n    loss.backward()\n")
    assert records.problems == ()
    assert records.ended
    assert places(records) == [("ReLU", 7), ("ReLU", 8)]
    for row in records.rows[:2]:
        assert (row.forward.calls, row.backward.calls) == (3, 3)
        assert row.text("in") == "net"
        assert row.rows("stack")[0][2:] == ["net", 6]
        assert row.rows("inputs") == [["n", "float32", [2, 3], False]]
    inner = [row for row in records.rows if row.text("function") == "ReLUGrad2"]
    assert {row.count("inside") for row in inner} == {row.number for row in records.rows[:2]}
    assert [row.forward.calls for row in inner] == [3, 3]


@PYTHONS
def test_a_process_without_chainer_leaves_one_short_file(world: World):
    records = world.run("import os\nopen(os.devnull).close()\n")
    assert [path.suffix for path in world.records.iterdir()] == [".txt"]
    assert (records.chainer, records.rows, records.ended) == ({}, (), True)


@PYTHONS
def test_no_file_is_left_open_and_nothing_is_printed(world: World):
    code = NET + "net(x)\nprint(sorted(os.listdir('/proc/self/fd')), len(sys.meta_path) > 2)\n"
    traced, plain = world.start(code), world.start(code, traced=False)
    assert (traced.stdout, traced.stderr) == (plain.stdout, "")


@PYTHONS
@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), 9)", "os.execv('/bin/true', ['true'])"])
def test_a_sudden_end_loses_nothing(world: World, end: str):
    world.start(NET + f"for i in range(5): net(x)\n{end}\n")
    [records] = world.read()
    assert not records.ended
    assert [row.forward.calls for row in records.rows] == [5, 5]


@PYTHONS
def test_what_was_being_computed_at_the_end_is_known(world: World):
    code = """
    class Death(chainer.FunctionNode):
        def forward(self, inputs):
            os.kill(os.getpid(), 11)
    Death().apply((x,))
    """
    done = world.start(NET + code.replace("\n    ", "\n"))
    assert done.returncode == -signal.SIGSEGV
    [records] = world.read()
    assert records.busy == (only(records, "Death").number,)


@PYTHONS
def test_a_forked_child_writes_files_of_its_own(world: World):
    code = """
    h = net(x)
    child = os.fork()
    net(x)
    h.backward()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    """
    assert world.start(NET + code.replace("\n    ", "\n")).returncode == 0
    parent, child = sorted(world.read(), key=lambda one: one.process["forked_from"] is not None)
    assert child.process["forked_from"] == parent.pid
    assert parent.problems == child.problems == ()
    assert [(row.forward.calls, row.backward.calls) for row in parent.rows[:2]] == [(2, 1), (2, 1)]
    assert places(child) == [("ReLU", 7), ("ReLU", 8)]
    assert [(row.forward.calls, row.backward.calls) for row in child.rows[:2]] == [(1, 1), (1, 1)]


@PYTHONS
def test_an_exception_in_a_function_does_not_shift_what_follows(world: World):
    code = """
    class Failing(chainer.FunctionNode):
        def forward(self, inputs):
            if self.fails == "forward":
                raise ValueError()
            return chainer.FunctionNode.forward(self, inputs)
        def backward(self):
            raise ValueError()
    for where in ("forward", "backward"):
        try:
            node = Failing()
            node.fails = where
            node.apply((x,))[0].backward()
        except ValueError:
            net(x).backward()
    """
    records = world.run(NET + code.replace("\n    ", "\n"))
    assert records.problems == ()
    assert [(row.forward.calls, row.backward.calls) for row in records.rows if row.text("function") == "ReLU"] == [
        (2, 2),
        (2, 2),
    ]
    assert all("inside" not in row.facts for row in records.rows if row.text("function") != "ReLUGrad2")


@PYTHONS
def test_an_exception_in_a_function_keeps_no_graph_alive(world: World):
    code = """
    import weakref
    class Failing(chainer.FunctionNode):
        def forward(self, inputs):
            raise ValueError()
    def work():
        node = Failing()
        kept = weakref.ref(node)
        try:
            node.apply((x,))
        except ValueError:
            pass
        if hasattr(sys, "exc_clear"):
            sys.exc_clear()
        del node
        return kept
    assert work()() is None
    """
    world.run(NET + code.replace("\n    ", "\n"))


@PYTHONS
def test_threads_have_rows_of_their_own(world: World):
    code = """
    import threading
    def work():
        for i in range(200):
            net(x).backward()
    threads = [threading.Thread(target=work) for i in range(4)]
    for one in threads: one.start()
    for one in threads: one.join()
    """
    records = world.run(NET + code.replace("\n    ", "\n"))
    assert records.problems == ()
    rows = [row for row in records.rows if row.text("function") == "ReLU"]
    assert sum(row.forward.calls for row in rows) == sum(row.backward.calls for row in rows) == 1600


@PYTHONS
def test_who_set_use_ideep_is_found(world: World):
    code = """
    relu(x)
    chainer.global_config.use_ideep = 'always'
    with chainer.using_config('use_ideep', 'never'):
        relu(x)
        with chainer.using_config('use_ideep', 'auto'):
            relu(x)
        relu(x)
    relu(x)
    chainer.config.use_ideep = 'never'
    relu(x)
    chainer.global_config.use_ideep = 'never'
    del chainer.config.use_ideep
    relu(x)
    """
    records = world.run(NET + code.replace("\n    ", "\n"))
    assert records.problems == ()
    start = NET.count("\n")
    told = [(row.count("line") - start, row.text("use"), row.table("set").get("line")) for row in records.rows]
    assert told == [
        (1, "never", None),
        (4, "never", start + 3),
        (6, "auto", None),
        (7, "never", start + 3),
        (8, "always", None),
        (10, "never", start + 9),
        (13, "never", start + 11),
    ]
    assert [row.table("set").get("scope") for row in records.rows if row.text("use") == "never"] == [
        "global",
        "thread",
        "thread",
        "thread",
        "global",
    ]
    assert [row.table("set").get("context") for row in records.rows[1:2]] == [True]


@PYTHONS
def test_what_is_not_float32_is_followed_to_where_it_began(world: World):
    code = """
    def double(data):
        h = relu(data)
        del data
        h = relu(h)
        return relu(h)

    batch = numpy.ndarray((4, 3), 'float64')
    part = numpy.ndarray((2, 3), 'float64', batch)
    double(chainer.Variable(part))
    double(chainer.Variable(numpy.ndarray((2, 3), 'float64')))
    relu(numpy.ndarray((2, 3), 'int32'))
    """
    records = world.run(NET + code.replace("\n    ", "\n"))
    assert records.problems == ()
    first, second, third, labels = records.rows
    assert [row.count("origin") for row in (first, second, third)] == [first.number] * 3
    assert [1, "batch"] in first.rows("names")
    assert [1, "part"] in first.rows("names")
    assert first.rows("stack")[1][2] == "<module>"
    assert first.facts["dataset"] is False
    assert "names" not in second.facts
    assert "origin" not in labels.facts


@PYTHONS
def test_looking_for_a_name_keeps_nothing_alive(world: World):
    code = """
    import weakref
    def work():
        data = numpy.ndarray((2, 3), 'float64')
        kept = weakref.ref(data)
        relu(data)
        del data
        assert kept() is None
    work()
    """
    assert world.run(NET + code.replace("\n    ", "\n")).problems == ()


@PYTHONS
def test_optimizers_are_timed_and_their_setup_is_noted(world: World):
    code = """
    model = chainer.Link(chainer.Parameter(numpy.ndarray((2, 3))), chainer.Parameter(numpy.ndarray((1, 2, 3))))
    optimizer = chainer.SGD()
    assert optimizer.setup(model) is optimizer
    for i in range(3):
        optimizer.update()
        net(x)
    """
    records = world.run(NET + code.replace("\n    ", "\n"))
    start = NET.count("\n")
    assert records.problems == ()
    assert [(facts["line"] - start, facts["optimizer"], facts["model"]) for facts in records.setups] == [
        (3, "SGD", "Link")
    ]
    row = only(records, "SGD")
    assert (row.count("line") - start, row.forward.calls, row.rows("parameters")) == (5, 3, [0, 1, 1])
    assert [row.forward.calls for row in records.rows if row.text("function") == "ReLU"] == [3, 3]


@PYTHONS
def test_an_exception_from_the_users_signal_handler_is_theirs(world: World):
    code = """
    import functools, signal, _ideepdoctor_trace as trace
    class Late(Exception):
        pass
    class Handlers(object):
        def method(self, number, frame):
            raise Late()
        def __call__(self, number, frame):
            raise Late()
    def handler(number, frame):
        raise Late()
    def slow(*args):  # as if the signal had come while trace was at work
        os.kill(os.getpid(), signal.SIGUSR1)
        for i in range(1000): pass
        raise KeyError('of ours')
    for one in (handler, Handlers().method, Handlers(), functools.partial(handler)):
        signal.signal(signal.SIGUSR1, one)
        kept, trace._row_of = trace._row_of, slow
        try:
            relu(x)
            raise SystemError('the exception was swallowed')
        except Late:
            pass
        trace._row_of = kept
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    trace._row_of = slow
    relu(x)
    """
    records = world.run(NET + code.replace("\n    ", "\n"))
    assert records.problems == ("forward: KeyError: 'of ours'",)


@PYTHONS
@pytest.mark.parametrize(
    "harm",
    [
        "import shutil; shutil.rmtree(os.environ['IDEEPDOCTOR_TRACE'])",
        "os.environ.clear()",
        "os.closerange(3, 50)",
        "os.chdir('/')",
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))",
        "sys.path[:] = []",
        "sys._getframe = None",
        "import chainer; chainer.get_function_hooks().clear()",
    ],
)
def test_what_a_program_does_to_itself_does_not_make_trace_stop_it(world: World, harm: str):
    code = NET + "net(x).backward()\n" + harm + "\nfor i in range(100): net(x).backward()\nprint('well')\n"
    done = world.start("import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "well\n", "")


@PYTHONS
@pytest.mark.parametrize("folder", ["none/such", "/proc", "", "/dev/full"])
def test_a_place_that_cannot_be_written_stops_nothing(world: World, folder: str):
    code = NET + "net(x).backward()\nprint('well')\n"
    place = str(world.folder / folder) if folder else ""
    environ = {"IDEEPDOCTOR_RUN": "_ideepdoctor_trace", "IDEEPDOCTOR_TRACE": place}
    done = world.start(code, traced=False, **environ)
    assert (done.returncode, done.stdout, done.stderr) == (0, "well\n", "")


@PYTHONS
def test_each_call_is_an_event_where_that_was_asked_for(world: World):
    records = world.run(NET + "for i in range(4): net(x).backward()\n", IDEEPDOCTOR_TRACE_EVENTS="10")
    events = list(read_events(records))
    assert len(events) == 10
    assert records.skipped_events == 4 * 6 - 10
    assert {number for number, _, _, _ in events} <= {row.number for row in records.rows}
    assert {backward for _, backward, _, _ in events} == {0, 1}
    starts = [start for _, backward, start, _ in events if not backward]
    assert starts == sorted(starts)
    assert all(duration >= 0 for _, _, _, duration in events)


@PYTHONS
def test_names_that_are_no_ascii_are_read_back(world: World):
    world.program = world.folder / "us\u00e9r \u00b5" / "pr\u00f3gram's.py"
    records = world.run(NET + "net(x)\n", LANG="C.UTF-8")
    assert records.rows[0].text("file") == str(world.program)


@PYTHONS
@pytest.mark.parametrize(
    "order",
    [
        "import chainer",
        "from chainer import config",
        "__import__('chainer.optimizer')",
        "import chainer; import chainer",
    ],
)
def test_any_import_of_chainer_is_seen_once(world: World, order: str):
    records = world.run(
        f"{order}\nimport sys, numpy\nfrom chainer.function_node import relu\nrelu(numpy.ndarray((2,)))\n"
    )
    assert records.chainer["version"] == "7.8.1"
    assert places(records) == [("ReLU", 4)]
