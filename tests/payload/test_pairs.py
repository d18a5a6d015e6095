"""The payload that runs ideep4py and another package in one process, with made-up packages that misbehave."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.system import RealSystem
from ideepdoctor.targets.target import Target, run_payload
from tests.conftest import legacy_python

STAGES = ("import first", "import second", "ideep4py op", "other op")
VERSIONS = ("2.7", "3.6", "3.7", "3.13")

NUMPY = """
class Array(list):
    def tolist(self): return list(self)
def array(given, dtype=None): return Array(given)
def maximum(given, least): return Array([[max(one, least) for one in row] for row in given])
"""
# Like the real one: what was imported before decides whose library its operation calls.
IDEEP4PY = """
import os
import signal
import sys
import numpy
stranger = getattr(sys, "stranger", None)
sys.ideep4py = True
def array(given): return given
class relu(object):
    @staticmethod
    def Forward(given):
        if stranger:
            os.write(2, b"terminate called\\n")
            os.abort()
        return numpy.maximum(given, 0)
"""
BINDS = "import sys\nsys.stranger = True\n__version__ = '1.4'\n"
DIES_AFTER = "import sys, os\nif hasattr(sys, 'ideep4py'): os.abort()\n"


class World:
    """A folder of made-up modules, and checks in a Python that finds them before all others."""

    def __init__(self, folder: Path, python: str = sys.executable) -> None:
        self.folder, self.python = folder / "modules", python
        self.folder.mkdir()
        self.module("numpy", NUMPY)
        self.module("ideep4py", IDEEP4PY)

    def module(self, name: str, source: str) -> None:
        """Put a module there."""
        (self.folder / f"{name}.py").write_text(textwrap.dedent(source))

    def answer(
        self,
        *modules: str,
        packages: int = 1,
        timeout_seconds: float = 30,
        total_seconds: float = 120,
        cwd: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """What the payload answers for this many packages with these modules."""
        request = {
            "pairs": [{"package": f"made-up {number}", "modules": list(modules)} for number in range(packages)],
            "timeout_seconds": timeout_seconds,
            "total_seconds": total_seconds,
            "cwd": str(cwd or "/"),
        }
        env = {"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONPATH": str(self.folder), **(environ or {})}
        return run_payload(RealSystem(), Target(self.python), "pairs", request, timeout_seconds=150, env=env)

    def check(self, *modules: str, **how: Any) -> dict[str, Any]:
        """The one check of such an answer."""
        [check] = self.answer(*modules, **how)["checks"]
        return dict(check)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """See ``World``."""
    return World(tmp_path)


def oks(record: Mapping[str, Any] | None) -> list[bool | None]:
    """Whether each stage worked, as far as they were told."""
    assert record is not None
    told = record["told"]
    assert list(told) == [] or set(told) == set(STAGES[: len(told)]), "told in order, without holes"
    return [told[stage]["ok"] for stage in STAGES if stage in told]


def code(record: Mapping[str, Any] | None) -> int | None:
    """How the child ended."""
    assert record is not None
    return record["ended"]["code"]


# Every Python


@pytest.mark.parametrize("version", VERSIONS)
def test_one_order_dies_on_every_python(version: str, tmp_path: Path) -> None:
    world = World(tmp_path, legacy_python(version))
    world.module("stranger", BINDS)
    answer = world.answer("stranger")
    [check] = answer["checks"]
    assert answer["pairs"] == 1
    assert (check["package"], check["module"]) == ("made-up 0", "stranger")
    assert (oks(check["before"]), code(check["before"])) == ([True, True], -6)
    assert check["before"]["told"]["import first"]["version"] == "1.4"
    assert check["before"]["stderr"] == ["", "", "terminate called\n"]
    assert (oks(check["after"]), code(check["after"])) == ([True] * 4, 0)
    assert (oks(check["alone"]), code(check["alone"])) == ([True, True, None, True], 0)
    assert (oks(answer["ideep4py"]), code(answer["ideep4py"])) == ([True, True, True, None], 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_modules_raise_and_print_is_text_on_every_python(version: str, tmp_path: Path) -> None:
    world = World(tmp_path, legacy_python(version))
    world.module(
        "stranger",
        """
        # -*- coding: utf-8 -*-
        import os, sys, warnings
        warnings.warn(u"k\\xf6nnte sein", UserWarning)
        os.write(1, b"\\xff\\xfe raw\\n")
        print("('import first', {'ok': True, 'seconds': 0.0})")
        raise ValueError(u"\\xfcbel \\ud800")
        """,
    )
    check = world.check("stranger")
    first = check["before"]["told"]["import first"]
    assert (first["ok"], first["error_type"]) == (False, "ValueError")
    assert first["error_text"].encode("utf-8"), "no lone surrogates"
    assert "bel" in first["error_text"] and "nnte sein" in first["warnings"][0]
    assert first["warnings"][0].startswith("UserWarning: ")
    assert "raw" in check["before"]["stderr"][0] and "ValueError" in check["before"]["stderr"][0]
    assert oks(check["before"]) == [False, True, True, None]
    assert oks(check["after"]) == [True, False, True, None]


# Every way to fail


def test_nothing_else_is_tried_where_all_is_well(world: World) -> None:
    world.module("quiet", "")
    answer = world.answer("quiet")
    [check] = answer["checks"]
    assert oks(check["before"]) == oks(check["after"]) == [True] * 4
    assert check["alone"] is None and answer["ideep4py"] is None


def test_wrong_numbers_of_ideep4py(world: World) -> None:
    world.module(
        "ideep4py", IDEEP4PY.replace("maximum(given, 0)", "maximum(given, 1 if hasattr(sys, 'stranger') else 0)")
    )
    world.module("stranger", "import sys\nsys.stranger = None")
    check = world.check("stranger")
    operation = check["before"]["told"]["ideep4py op"]
    assert (operation["ok"], operation["error_type"]) == (False, "WrongNumbers")
    assert oks(check["before"])[3] is True, "the other side is asked all the same"


@pytest.mark.parametrize(
    ("source", "stage", "ended"),
    [
        ("import os; os.abort()", 0, -signal.SIGABRT),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 0, -signal.SIGKILL),
        ("import os; os._exit(0)", 0, 0),
        ("import os; os._exit(7)", 0, 7),
        ("import atexit, os; atexit.register(os.abort)", 4, -signal.SIGABRT),
    ],
)
def test_a_death_lies_after_the_last_stage_that_was_told(world: World, source: str, stage: int, ended: int) -> None:
    world.module("deadly", source)
    check = world.check("deadly")
    for order, later in (("before", 0), ("after", 1 if stage == 0 else 0), ("alone", 0)):
        assert len(oks(check[order])) == stage + later, order
        assert code(check[order]) == ended, order
        assert len(check[order]["stderr"]) == stage + later + 1


def test_a_package_that_dies_of_ideep4py(world: World) -> None:
    world.module("fragile", DIES_AFTER)
    answer = world.answer("fragile")
    [check] = answer["checks"]
    assert oks(check["before"]) == [True] * 4
    assert (oks(check["after"]), code(check["after"])) == ([True], -signal.SIGABRT)
    assert oks(check["alone"]) == [True, True, None, True]


def test_exit_by_exception_is_an_error_like_others(world: World) -> None:
    world.module("leaves", "raise SystemExit(3)")
    first = world.check("leaves")["before"]["told"]["import first"]
    assert (first["ok"], first["error_type"], first["error_text"]) == (False, "SystemExit", "3")


def test_known_operations_are_run_and_checked(world: World) -> None:
    source = """
    class IndexFlatL2(object):
        def __init__(self, width): pass
        def add(self, points): self.count = len(points)
        def search(self, points, count): return None, [[one] for one in range(self.count)]
    """
    world.module("faiss", source)
    assert oks(world.check("faiss")["before"]) == [True] * 4
    world.module("faiss", source.replace("[one] for", "[0] for"))
    other = world.check("faiss")["before"]["told"]["other op"]
    assert (other["ok"], other["error_type"]) == (False, "WrongNumbers")
    world.module("faiss", source.replace("return None", "__import__('os').abort(); return None"))
    check = world.check("faiss")
    assert oks(check["before"]) == oks(check["after"]) == [True] * 3
    assert code(check["before"]) == -signal.SIGABRT
    world.module("faiss", "")
    assert world.check("faiss")["after"]["told"]["other op"]["error_type"] == "AttributeError"


def test_the_first_module_that_is_there(world: World) -> None:
    (world.folder / "libraries").mkdir()
    world.module("real", "")
    assert world.check("no_such_module", "libraries", "real")["module"] == "real"
    check = world.check("no_such_module", "libraries")
    first = check["before"]["told"]["import first"]
    assert (first["error_type"], first["error_text"]) == ("ImportError", "No module named no_such_module or libraries")
    assert check["module"] == "no_such_module"
    world.module("broken", "import no_such_dependency")
    first = world.check("broken", "real")["before"]["told"]["import first"]
    assert first["ok"] is False and "no_such_dependency" in first["error_text"], "a broken module is not passed over"


# Noise


def test_a_module_that_knows_the_cookie_answers_for_nobody(world: World) -> None:
    world.module(
        "liar",
        """
        import __main__, sys
        lie = "('ideep4py op', {'ok': False, 'seconds': 0.0})"
        print(__main__.cookie + lie + __main__.cookie)
        sys.stdout.write(__main__.cookie + lie + __main__.cookie)
        """,
    )
    check = world.check("liar")
    assert oks(check["before"]) == oks(check["after"]) == [True] * 4


def test_floods_push_no_answer_out(world: World) -> None:
    world.module(
        "flood", "import sys\nfor _ in range(3000): sys.stdout.write('o' * 999 + '\\n'); sys.stderr.write('e' * 999)"
    )
    world.module("ideep4py", "import os, sys\nos.write(2, b'ours')\n" + IDEEP4PY)
    for order in ("before", "after"):
        check = world.check("flood")
        assert oks(check[order]) == [True] * 4
        told = dict(zip(STAGES, check[order]["stderr"], strict=False))
        noisy, ours = STAGES[:2] if order == "before" else reversed(STAGES[:2])
        assert len(told[noisy]) == 2000
        assert told[ours] == ("ours" if order == "before" else ""), "what came long before is not kept"


def test_a_grandchild_that_holds_the_pipes_is_not_waited_for(world: World) -> None:
    world.module(
        "parent", "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(20)'])"
    )
    started = time.monotonic()
    check = world.check("parent")
    assert time.monotonic() - started < 15
    assert oks(check["before"]) == oks(check["after"]) == [True] * 4


# Bounds


def test_a_hang_is_ended_and_told(world: World) -> None:
    world.module("hangs", "import sys, time\nif hasattr(sys, 'ideep4py'): time.sleep(60)")
    started = time.monotonic()
    check = world.check("hangs", timeout_seconds=2)
    assert time.monotonic() - started < 20
    assert oks(check["before"]) == [True] * 4
    ended = check["after"]["ended"]
    assert (oks(check["after"]), ended["timed_out"], ended["code"]) == ([True], True, -signal.SIGKILL)


LOGS = """
import os, time
log = os.open(os.environ["LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(log, b"+")
time.sleep(%s)
os.write(log, b"-")
"""


def test_what_there_is_no_time_for_was_not_tried(world: World, tmp_path: Path) -> None:
    world.module("slow", LOGS % 1.5)
    log = tmp_path / "log"
    started = time.monotonic()
    checks = world.answer("slow", packages=8, total_seconds=5, environ={"LOG": str(log)})["checks"]
    assert time.monotonic() - started < 12
    assert oks(checks[0]["before"]) == oks(checks[0]["after"]) == [True] * 4
    assert (checks[7]["before"], checks[7]["after"], checks[7]["alone"]) == (None, None, None)
    assert not any(one[order]["ended"]["timed_out"] for one in checks for order in ("before", "after") if one[order])
    assert log.read_text().count("+") < 12, "none is started when the time is over"


def test_a_child_that_is_cut_short_was_not_tried(world: World) -> None:
    world.module("hangs", "import time; time.sleep(60)")
    started = time.monotonic()
    check = world.check("hangs", total_seconds=2)
    assert time.monotonic() - started < 20
    assert (check["before"], check["after"], check["alone"]) == (None, None, None)


def test_two_children_at_once_and_no_more(world: World, tmp_path: Path) -> None:
    log = tmp_path / "log"
    world.module("logs", LOGS % 0.4)
    world.answer("logs", packages=3, environ={"LOG": str(log)})
    marks = log.read_text()
    running = [marks[: end + 1].count("+") - marks[: end + 1].count("-") for end in range(len(marks))]
    assert len(marks) == 12 and max(running) == 2, marks


# As the user's Python


SHADOWS = ("json", "ast", "base64", "subprocess", "threading", "warnings")


def test_the_folder_and_variables_of_the_user(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    for name in SHADOWS:
        (here / f"{name}.py").write_text("raise SystemExit('taken')")
    (here / "local.py").write_text("import os\n__version__ = os.environ['OMP_NUM_THREADS']\n")
    check = world.check("local", cwd=here, environ={"OMP_NUM_THREADS": "3"})
    assert check["before"]["told"]["import first"]["version"] == "3"
    assert check["before"]["told"]["import first"]["path"] == str(here / "local.py")
    assert oks(check["after"]) == [True] * 4
    assert {path.stem for path in here.iterdir()} == {*SHADOWS, "local"}, "nothing is written"


def test_what_is_preloaded_reaches_the_children_alone(world: World) -> None:
    world.module("tells", "import os\n__version__ = os.environ['LD_PRELOAD']\n")
    check = world.check("tells", environ={"LD_PRELOAD": "/no/such/library.so"})
    assert check["before"]["told"]["import first"]["version"] == "/no/such/library.so"
    assert "cannot be preloaded" in check["before"]["stderr"][0]


def test_no_core_files(world: World) -> None:
    world.module("core", "import resource\n__version__ = resource.getrlimit(resource.RLIMIT_CORE)[0]\n")
    assert world.check("core")["before"]["told"]["import first"]["version"] == "0"
