"""What a build says of how far it is."""

from __future__ import annotations

import pytest

from ideepdoctor.builder.progress import Meter, percent_of, shown_time
from ideepdoctor.model.build import Stage

STAGES = (Stage.SOURCE, Stage.LIBRARY, Stage.EXTENSION)


class Heard:
    """A ``Progress`` that remembers."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, int, str]] = []
        self.details: list[str] = []
        self.shares: list[float] = []

    def step(self, index: int, total: int, title: str) -> None:
        self.steps.append((index, total, title))

    def detail(self, text: str) -> None:
        self.details.append(text)

    def share(self, part: float) -> None:
        self.shares.append(part)

    def note(self, text: str) -> None:
        self.details.append(text)

    def close(self) -> None:
        pass


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def scene() -> tuple[Meter, Heard, Clock]:
    heard, clock = Heard(), Clock()
    return Meter(heard, STAGES, 2, clock), heard, clock


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("[ 37%] Building CXX object a.o", (37, "Building CXX object a.o")),
        ("[100%] Built target mkldnn", (100, "Built target mkldnn")),
        ("[  0%]", (0, "")),
        ("[140%] what", None),
        ("  [ 37%] indented", None),
        ("-- Configuring done", None),
        ("", None),
    ],
)
def test_the_lines_of_make(line: str, found: tuple[int, str] | None) -> None:
    assert percent_of(line) == found


def test_times_are_rounded_as_estimates_are() -> None:
    assert [shown_time(value) for value in (0.2, 13, 88, 91, 330)] == ["5 s", "15 s", "90 s", "2 min", "6 min"]


def test_each_stage_is_a_step_and_its_time_is_kept(scene: tuple[Meter, Heard, Clock]) -> None:
    meter, heard, clock = scene
    meter.begin(Stage.SOURCE)
    clock.now += 7
    meter.begin(Stage.LIBRARY)
    clock.now += 100
    meter.end()
    assert [(index, total) for index, total, _ in heard.steps] == [(1, 3), (2, 3)]
    assert meter.seconds == {Stage.SOURCE: 7.0, Stage.LIBRARY: 100.0}
    assert meter.stage is None


def test_the_time_left_is_what_was_measured_and_what_comes_after(scene: tuple[Meter, Heard, Clock]) -> None:
    meter, heard, clock = scene
    meter.begin(Stage.LIBRARY)
    meter.line("[  0%] Building a.o")
    clock.now += 60
    meter.line("[ 25%] Building b.o")
    meter.line("[ 25%] Building c.o")
    meter.line("a warning")
    # 115 s for two compilers at first, then 3 times the 60 s that a quarter took; 25 s for the extension.
    assert heard.details == ["0 %, 2 min left  Building a.o", "25 %, 3 min left  Building b.o"]
    assert heard.shares == [0.0, 0.25, 0.25]


def test_the_percentages_of_a_library_that_is_there_do_not_move_the_extension(
    scene: tuple[Meter, Heard, Clock],
) -> None:
    meter, heard, _ = scene
    meter.begin(Stage.EXTENSION)
    for line in ("[100%] Built target mkldnn", "running build_ext", "swigging a.i to a_wrap.cpp", "gcc -pthread x"):
        meter.line(line)
    assert heard.shares == []
    assert heard.details == ["running build_ext", "swigging a.i to a_wrap.cpp"]
