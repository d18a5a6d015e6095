"""Mutate the rules one condition at a time, and see whether the tests of the rules notice.

    python tests/rules/mutate.py [NAME ...] [--report FILE] [--together N]

runs the tests of tests/rules (without those that draw random machines) once for each mutant of the modules
ideepdoctor/rules/NAME.py (``idp305``, ``compat``; none: every module of that folder), and prints the mutants that no
test notices, with their lines, and the score. ``--report`` writes the scores as a table. It is no part of the test run.

The tests are collected once. Each mutant gets a fork of that process, in which the mutant's code takes the place of the
module's; the tests that name the rule run first, and the first failure ends it. A mutant that nobody notices, or that
also changes what is made while its module is imported, is tried again in a process that has imported nothing yet. A few
survivors cannot be noticed, because the mutant does the same as the module: whoever runs it judges them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.rules.mutants import RULES, Mutant, Mutated, graft, modules, mutants  # noqa: E402

LEFT_OUT = "not whatever_else and not same_machines and not random_machine"
OPTIONS = ("-x", "-q", "-s", "-p", "no:cacheprovider", "-k", LEFT_OUT)
FIRST = ("test_examples.py", "test_measured_edges.py", "test_faults.py")
TIMEOUT_SECONDS = 300
NOTICED, SURVIVED, IMPORTED = 0, 3, 4
"""How a fork ends; anything else counts as noticed: it was killed, or pytest itself broke."""


class Server:
    """A plugin of pytest that runs the collected tests once for each mutant, each time in a fork."""

    def __init__(self, wanted: list[Mutant], together: int) -> None:
        self.waiting = list(wanted)
        self.together = together
        self.running: dict[int, Mutant] = {}
        self.doubtful: list[Mutant] = []
        self.collected = 0
        self.sound = False

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Every mutant, some at once."""
        self.collected = len(session.items)
        self.sound = self.collected > 0 and self._passes(session)
        while self.sound and (self.waiting or self.running):
            while self.waiting and len(self.running) < self.together:
                mutant = self.waiting.pop(0)
                self.running[_forked(session, mutant)] = mutant
            child, status = os.wait()
            mutant = self.running.pop(child)
            if os.WIFEXITED(status) and os.WEXITSTATUS(status) in (SURVIVED, IMPORTED):
                self.doubtful.append(mutant)
        return True

    def _passes(self, session: pytest.Session) -> bool:
        """Whether the tests pass without any mutant."""
        _, status = os.waitpid(_forked(session, None), 0)
        return os.WIFEXITED(status) and os.WEXITSTATUS(status) == SURVIVED


def _forked(session: pytest.Session, mutant: Mutant | None) -> int:
    """Start a fork that runs the tests with this mutant (None: without any); return its number."""
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
        ending = _run(session, mutant)
    finally:
        os._exit(ending)


def _run(session: pytest.Session, mutant: Mutant | None) -> int:
    if mutant is not None and not graft(mutant):
        return IMPORTED
    items = sorted(session.items, key=lambda item: _distance(item, mutant))
    for number, item in enumerate(items):
        following = items[number + 1] if number + 1 < len(items) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return NOTICED
    return SURVIVED


def _distance(item: pytest.Item, mutant: Mutant | None) -> int:
    """How early a test runs: those of the rule first, then those that notice most."""
    if mutant is not None and mutant.module.upper() in item.nodeid.upper():
        return 0
    if mutant is not None and mutant.module.upper() in _source(item.path).upper():
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
    """Print the survivors and the score; 1 where the tests fail without any mutant."""
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
        print("the tests fail as it is")
        return 1
    left = sorted(survivors_of(server.doubtful, asked.together), key=lambda mutant: (mutant.module, mutant.number))
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
