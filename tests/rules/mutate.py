"""Mutate the rules one condition at a time, and see whether the tests of the rules notice.

    python tests/rules/mutate.py [NAME ...] [--report FILE] [--together N]

runs the tests of tests/rules (without those that draw random machines) once for each mutant of the modules
ideepdoctor/rules/NAME.py (``idp305``, ``compat``; none: every module of that folder), and prints the mutants that no
test notices, with their lines, and the score. ``--report`` writes the scores as a table. It is no part of the test run.

The tests are collected once, and run once without any mutant, to see which functions of the rules each one calls. Each
mutant gets a fork of that process, in which the mutant's code takes the place of the module's, and in which the tests
run that call its function: those that name the rule first, until one fails. A mutant that changes what is made while
modules are imported, or that survives and is called then, is tried in a process that has imported nothing yet, with all
tests. A few survivors cannot be noticed, because the mutant does the same as the module: whoever runs it judges them.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.rules.mutants import PACKAGE, RULES, Mutant, Mutated, graft, modules, mutants  # noqa: E402

LEFT_OUT = "not whatever_else and not same_machines and not random_machine"
OPTIONS = ("-x", "-q", "-s", "-p", "no:cacheprovider", "-k", LEFT_OUT)
FIRST = ("test_examples.py", "test_measured_edges.py", "test_faults.py")
TIMEOUT_SECONDS = 600
NOTICED, SURVIVED, IMPORTED = 0, 3, 4
"""How a fork ends; anything else counts as noticed: it was killed, or pytest itself broke."""


class Server:
    """A plugin of pytest that runs the collected tests once for each mutant, each time in a fork."""

    def __init__(self, wanted: list[Mutant], together: int) -> None:
        self.waiting = list(wanted)
        self.together = together
        self.running: dict[int, Mutant] = {}
        self.survivors: list[Mutant] = []
        self.doubtful: list[Mutant] = []
        """Those that concern what is made while modules are imported."""
        self.sound = False
        self.calls = Calls()
        self.calls.watch()  # until the tests are collected: what they import calls functions, too

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Every mutant, some at once."""
        at_import = self.calls.taken()
        reached = _watched(session)
        self.sound = bool(session.items) and reached is not None
        started = len(self.waiting)
        while reached is not None and (self.waiting or self.running):
            while self.waiting and len(self.running) < self.together:
                mutant = self.waiting.pop(0)
                items = [item for item in session.items if mutant.function in reached.get(item.nodeid, ())]
                self.running[_forked(lambda: _run(session, items, mutant))] = mutant  # noqa: B023
            child, status = os.wait()
            mutant = self.running.pop(child)
            ending = os.WEXITSTATUS(status) if os.WIFEXITED(status) else NOTICED
            if ending == IMPORTED or (ending == SURVIVED and mutant.function in at_import):
                self.doubtful.append(mutant)
            elif ending == SURVIVED:
                self.survivors.append(mutant)
                print(f"\r{mutant}", file=sys.stderr)
            done = started - len(self.waiting) - len(self.running)
            print(f"\r{done} of {started}", end="", file=sys.stderr, flush=True)
        print(f"\n{len(self.doubtful)} more in new processes", file=sys.stderr)
        return True


class Calls:
    """Which functions of the rules are called: their modules and first lines."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, int]] = set()

    def watch(self) -> None:
        """From now on."""
        sys.setprofile(self._called)

    def taken(self) -> set[tuple[str, int]]:
        """What was called until now; nobody watches any more."""
        sys.setprofile(None)
        seen, self.seen = self.seen, set()
        return seen

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(RULES)):
            self.seen.add((Path(code.co_filename).stem, code.co_firstlineno))


def _watched(session: pytest.Session) -> dict[str, set[tuple[str, int]]] | None:
    """Run all tests in a fork without any mutant: what each one that passes calls, by its name; None: the fork died."""
    reading, writing = os.pipe()

    def run() -> int:
        calls, told, before = Calls(), {}, 0
        for number, item in enumerate(session.items):
            following = session.items[number + 1] if number + 1 < len(session.items) else None
            _forget()  # else only the first test that asks would call a function that keeps its answers
            calls.watch()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            called, failed = sorted(calls.taken()), session.testsfailed
            told[item.nodeid] = called if failed == before else None
            before = failed
        with os.fdopen(writing, "w") as stream:
            json.dump(told, stream)
        return SURVIVED

    child = _forked(run)
    os.close(writing)
    with os.fdopen(reading) as stream:
        text = stream.read()
    _, status = os.waitpid(child, 0)
    if not (os.WIFEXITED(status) and os.WEXITSTATUS(status) == SURVIVED):
        return None
    told = json.loads(text)
    for name in (name for name, rows in told.items() if rows is None):
        print(f"left out, it fails as it is: {name}", file=sys.stderr)
    return {name: {(module, line) for module, line in rows} for name, rows in told.items() if rows is not None}


def _forked(action: Callable[[], int]) -> int:
    """Start a fork that does this, silently, and ends with what it returns; return its number."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    ending = NOTICED
    try:
        signal.alarm(TIMEOUT_SECONDS)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        ending = action()
    finally:
        os._exit(ending)


def _run(session: pytest.Session, items: list[pytest.Item], mutant: Mutant) -> int:
    """Run these tests with the mutant until one fails."""
    if not graft(mutant):
        return IMPORTED
    _forget()
    items = sorted(items, key=lambda item: _distance(item, mutant))
    for number, item in enumerate(items):
        following = items[number + 1] if number + 1 < len(items) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return NOTICED
    return SURVIVED


def _forget() -> None:
    """Empty what functions of the rules keep of earlier answers."""
    for name in modules():
        for value in vars(importlib.import_module(f"{PACKAGE}.{name}")).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def _distance(item: pytest.Item, mutant: Mutant) -> int:
    """How early a test runs: those of the rule first, then those that notice most."""
    if mutant.module.upper() in item.nodeid.upper():
        return 0
    if mutant.module.upper() in _source(item.path).upper():
        return 1
    return 2 if item.path.name in FIRST else 3


def _source(path: Path, known: dict[Path, str] = {}) -> str:  # noqa: B006 - it is meant to last
    if path not in known:
        known[path] = path.read_text("utf-8")
    return known[path]


def in_new_process(module: str, number: int) -> int:
    """Run the tests in this process, which has imported nothing of ours, with a mutant; how pytest ends."""
    [mutant] = [item for item in mutants(module) if item.number == number]
    sys.meta_path.insert(0, Mutated(mutant))
    named = [str(path) for path in sorted(HERE.glob("test_*.py")) if module.upper() in _source(path).upper()]
    first = [str(HERE / name) for name in FIRST]
    others = [str(path) for path in sorted(HERE.glob("test_*.py")) if path.name not in FIRST]
    return pytest.main([*OPTIONS, *dict.fromkeys([*first, *named, *others])])


def survivors_of(doubtful: Iterable[Mutant], together: int) -> Iterator[Mutant]:
    """Those that a new process with the mutant does not notice either."""
    waiting, running = list(doubtful), dict[subprocess.Popen[bytes], Mutant]()
    while waiting or running:
        while waiting and len(running) < together:
            mutant = waiting.pop(0)
            words = [sys.executable, __file__, "--one", mutant.module, str(mutant.number)]
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            running[process] = mutant
        process = next(iter(running))
        mutant = running.pop(process)
        try:
            if process.wait(TIMEOUT_SECONDS) == 0:
                yield mutant
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def family(module: str) -> str:
    """What a module counts under in the table."""
    return f"IDP{module[3]}xx" if re.fullmatch(r"idp\d{3}", module) else "what rules share"


def report(tried: Counter[str], left: list[Mutant]) -> str:
    """The scores as a document."""
    lost = Counter(mutant.module for mutant in left)
    lines = [
        "# Conditions of the rules turned round",
        "",
        "Made by `python tests/rules/mutate.py --report tests/rules/mutation.md`: every comparison, condition and",
        "`and`/`or` of every rule turned round, one at a time, and whether a test fails then.",
        "",
        "| Rules | Modules | Mutants | Noticed |  |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name in sorted({family(module) for module in tried}):
        inside = [module for module in tried if family(module) == name]
        lines.append(_row(name, len(inside), sum(tried[one] for one in inside), sum(lost[one] for one in inside)))
    lines.append(_row("all", len(tried), sum(tried.values()), len(left)))
    if left:
        lines += ["", "Not noticed:", "", *(f"* `{mutant}`" for mutant in left)]
    return "\n".join(lines) + "\n"


def _row(name: str, count: int, tried: int, lost: int) -> str:
    share = f"{100 * (tried - lost) / max(tried, 1):.1f} %"
    return f"| {name} | {count} | {tried} | {tried - lost} | {share} |"


def main() -> int:
    """Print the survivors and the score; 1 where the tests cannot be run without any mutant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--report", type=Path)
    parser.add_argument("--together", type=int, default=2)
    parser.add_argument("--one", nargs=2, metavar=("MODULE", "NUMBER"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    os.chdir(HERE.parents[1])
    if asked.one:
        return int(in_new_process(asked.one[0], int(asked.one[1])))
    unknown = [name for name in asked.names if not (RULES / f"{name}.py").is_file()]
    if unknown:
        parser.error(f"no module of ideepdoctor/rules: {', '.join(unknown)}")
    wanted = [mutant for name in asked.names or modules() for mutant in mutants(name)]
    server = Server(wanted, asked.together)
    with contextlib.redirect_stdout(sys.stderr):
        pytest.main([*OPTIONS, str(HERE)], plugins=[server])
    if not server.sound:
        print("the tests cannot be run")
        return 1
    left = [*server.survivors, *survivors_of(server.doubtful, asked.together)]
    left.sort(key=lambda mutant: (mutant.module, mutant.number))
    tried = Counter(mutant.module for mutant in wanted)
    for mutant in left:
        print(mutant)
    share = 100 * (len(wanted) - len(left)) / max(len(wanted), 1)
    print(f"{len(wanted) - len(left)} of {len(wanted)} mutants noticed ({share:.1f} %)")
    if asked.report:
        asked.report.write_text(report(tried, left), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
