"""What others took of the machine, from canned counters; the real ones can be read."""

from __future__ import annotations

import pytest

from ideepdoctor.proof.noise import Look, Monitor, look

START = Look(all=1000.0, busy=500.0, steal=10.0, throttled=3, load=0.5)


def seen(ours: float, *widths: float, **change: float):
    last = Look(**{"all": 1200.0, "busy": 600.0, "steal": 10.0, "throttled": 3, "load": 1.5, **change})
    return Monitor(iter((START, last))).verdict(ours, widths)


def test_a_quiet_machine() -> None:
    # One engine that varies by itself is not the machine's.
    noise = seen(98.0, 0.03, 0.02, 0.46)
    assert noise.quiet and noise.messages == ()
    assert (noise.steal_percent, noise.busy_percent, noise.load, noise.spread_percent) == (0.0, 1.0, 0.5, 46.0)


@pytest.mark.parametrize(
    ("ours", "widths", "change", "words"),
    [
        (50.0, (), {}, "other programs took 25 % of the processors"),
        (100.0, (), {"steal": 20.0}, "the hypervisor gave 5 % of the time to other machines"),
        (100.0, (), {"throttled": 4}, "the processors were slowed down"),
        (100.0, (0.2, 0.02, 0.3), {}, "half of the times spread by 20 % or more"),
    ],
)
def test_what_makes_it_noisy_is_said(
    ours: float, widths: tuple[float, ...], change: dict[str, float], words: str
) -> None:
    noise = seen(ours, *widths, **change)
    assert not noise.quiet
    assert [message for message in noise.messages if words in message] == list(noise.messages)


def test_more_of_our_own_than_was_busy_is_no_negative_load() -> None:
    assert seen(500.0).busy_percent == 0.0


def test_the_real_counters_go_up() -> None:
    before = look()
    sum(number * number for number in range(300_000))
    after = look()
    assert after.all >= before.all > 0
    assert after.busy >= before.busy > 0
