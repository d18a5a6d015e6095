"""The quick tune of setup: when it is done, what it writes, and that it takes nothing from the setup."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ideepdoctor.commands import tune_quick
from ideepdoctor.commands.session import Session
from ideepdoctor.commands.tune import Tuned, steps_for
from ideepdoctor.commands.tune_quick import with_quick_tune
from ideepdoctor.errors import CouldNotCheck, Interrupted, UsageError
from ideepdoctor.facts.profile import parse_profile
from ideepdoctor.model.bench import Noise
from ideepdoctor.model.facts import Facts, Profile, Smoke
from ideepdoctor.model.findings import Judgement
from ideepdoctor.model.report import Report
from ideepdoctor.proof.statistics import Interval
from ideepdoctor.proof.tune_data import Choice, Refused
from ideepdoctor.proof.tune_measure import Subject
from ideepdoctor.proof.tune_space import DEFAULT, thread_option
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.profile import PROFILE_FILE
from ideepdoctor.treatment.progress import Quiet
from tests.rules.hosts import facts_on

SUBJECT, FAST = Subject(("alexnet",), 8), Interval(1.2, 1.3, 1.4)
ONE = DEFAULT.with_option(thread_option(1))


def choice(**changes) -> Choice:
    return replace(Choice(DEFAULT, None, (), (), True, True), **changes)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "env" / "lib" / "python3.7" / "site-packages"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def found(site: Path) -> Facts:
    facts = facts_on("py37-healthy")
    python = replace(facts.python, purelib=str(site), platlib=str(site), prefix=str(site.parents[2]))
    return replace(facts, python=python)


def session(tmp_path: Path, agrees=lambda report: True) -> Session:
    environ = {"IDEEPDOCTOR_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path)}
    return Session(RealSystem(), environ, str(tmp_path), Quiet(), agrees, "ideepdoctor setup")


def ready(facts: Facts, used: bool = True) -> Report:
    smoke = Smoke(2, used, "jit:avx2")
    extra = {"verdict": "READY.", "next": ["take it back: ideepdoctor undo 1"]}
    return Report("setup", facts=facts, judgement=Judgement(), smoke=smoke, extra=extra)


def searching(monkeypatch: pytest.MonkeyPatch, result: Choice | Exception) -> None:
    def search(session, target, facts, subject, budget, *, quick):
        assert quick and budget <= 20
        if isinstance(result, Exception):
            raise result
        return Tuned(facts, subject, result, Noise(), 9.0, budget)

    monkeypatch.setattr(tune_quick, "search", search)


def test_where_nothing_is_faster_nothing_is_written(monkeypatch, tmp_path, site, found):
    searching(monkeypatch, choice())
    report = with_quick_tune(session(tmp_path), ready(found), ask=False)
    assert not list(site.iterdir()) and report.extra["tune"]["choice"]["default"] is True
    assert report.extra["next"] == ["take it back: ideepdoctor undo 1"]


def test_what_is_faster_is_written_journalled_and_part_of_the_verdict(monkeypatch, tmp_path, site, found):
    searching(monkeypatch, choice(setting=ONE, gain=FAST))
    report = with_quick_tune(session(tmp_path), ready(found), ask=False)
    profile = parse_profile("x", (site / PROFILE_FILE).read_text())
    assert [(item.name, item.value) for item in profile.variables] == [("OMP_NUM_THREADS", "1")]
    assert (profile.cpu, profile.cpus, profile.subject) == (found.cpu.model_name, 2, "alexnet, batch 8")
    assert "OMP_NUM_THREADS" in (site / "_ideepdoctor_startup.py").read_text()
    assert report.extra["verdict"].startswith("READY. Tuned: OMP_NUM_THREADS=1 makes alexnet, batch 8 1.30 times")
    assert report.extra["next"][0] == f"take the tuning back: ideepdoctor undo {report.extra['tune_journal']}"


def no(report: Report) -> bool:
    return False


def nobody(report: Report) -> bool:
    raise UsageError("nobody can be asked here")


@pytest.mark.parametrize("agrees", [no, nobody])
def test_an_environment_that_was_there_before_is_not_changed_unasked(monkeypatch, tmp_path, site, found, agrees):
    searching(monkeypatch, choice(setting=ONE, gain=FAST))
    report = with_quick_tune(session(tmp_path, agrees), ready(found), ask=True)
    assert not list(site.iterdir()) and report.extra["verdict"].endswith(": ideepdoctor tune writes that.")


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (CouldNotCheck("not enough memory"), "It could not be tuned: not enough memory."),
        (Interrupted("interrupted"), "Tuning was interrupted: the default variables stay."),
        (choice(telling=False), ""),
        (choice(refused=(Refused(ONE, FAST, "gradients are off"),)), "OMP_NUM_THREADS=1 is faster and was refused"),
    ],
)
def test_what_comes_of_nothing_takes_nothing_from_the_setup(monkeypatch, tmp_path, site, found, result, said):
    searching(monkeypatch, result)
    report = with_quick_tune(session(tmp_path), ready(found), ask=False)
    assert report.extra["verdict"].startswith("READY.") and said in report.extra["verdict"]
    assert report.judgement == Judgement() and not list(site.iterdir())


def test_what_was_not_proved_or_is_tuned_already_is_not_tuned(monkeypatch, tmp_path, found):
    searching(monkeypatch, AssertionError("measured"))
    emulated = replace(found, cpu=replace(found.cpu, emulated=True))
    profile = Profile("x", cpu=found.cpu.model_name or "", cpus=2)
    for report in (ready(found, used=False), ready(emulated), ready(replace(found, profile=profile))):
        assert with_quick_tune(session(tmp_path), report, ask=False) == report


def test_a_profile_is_replaced_only_by_what_is_certain(found):
    held = replace(found, profile=Profile("x", cpu=found.cpu.model_name or "", cpus=2))

    def steps(result: Choice, facts: Facts) -> int:
        return len(steps_for(Tuned(facts, SUBJECT, result, Noise(), 1.0, 2.0)))

    assert steps(choice(), found) == steps(choice(telling=False), held) == 0
    assert steps(choice(), held) > 0 and steps(choice(setting=ONE, gain=FAST), found) > 0
