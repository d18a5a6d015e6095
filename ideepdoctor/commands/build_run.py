"""A build as the command runs it: alone, with a log, its work kept when it is interrupted and gone when it fails."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ideepdoctor.builder.cache import key_of
from ideepdoctor.builder.failure import explained, of_system, with_log
from ideepdoctor.builder.log import BuildLog
from ideepdoctor.builder.mkl import AUTO, NONE, WHEEL
from ideepdoctor.builder.pipeline import Build, Outcome, Places
from ideepdoctor.builder.progress import Meter
from ideepdoctor.builder.works import at_work, sweep
from ideepdoctor.commands.session import Session, judge_all
from ideepdoctor.errors import BuildFailed, Busy, DoctorError, Interrupted, NotPossibleHere
from ideepdoctor.model.build import BuildRequest, March, Stage
from ideepdoctor.model.facts import Facts, Interpreter
from ideepdoctor.model.plan import PackageSource
from ideepdoctor.treatment.state import cache_folder, locked, state_folder

if TYPE_CHECKING:
    from ideepdoctor.stacks.catalog import Lock


@dataclass(frozen=True, slots=True)
class Done:
    """A build that ended well.

    Attributes:
        outcome: what it gave.
        log: path of its log.
        choice: of ``--mkl auto``: why this one.
    """

    outcome: Outcome
    log: str
    choice: str = ""


@dataclass(frozen=True, slots=True)
class Builder:
    """Builds for one interpreter.

    Attributes:
        session: this run.
        interpreter: to build for.
        march: what for.
        lock: what a wheel is proved in; None: it is not.
        facts: of the interpreter and the machine.
        source: where distributions come from.
    """

    session: Session
    interpreter: Interpreter
    march: March
    lock: Lock | None
    facts: Facts
    source: PackageSource = field(default_factory=PackageSource)

    def build(self, request: BuildRequest) -> Done:
        """Build what was asked for; of ``--mkl auto`` both, and the better one is handed out.

        Raises:
            as ``commands.build.build``.
        """
        return self._both(request) if request.mkl == AUTO else self._one(request)

    def _both(self, request: BuildRequest) -> Done:
        from ideepdoctor.builder.compare import choose

        assert self.lock is not None
        system = self.session.system
        aside = f"{cache_folder(self.session.environ)}/build/auto/{self._key(request)}"
        done: dict[str, Done] = {}
        refused: list[NotPossibleHere] = []
        try:
            for kind in (WHEEL, NONE):
                try:
                    done[kind] = self._one(replace(request, mkl=kind, output=f"{aside}/{kind}"))
                except NotPossibleHere as error:
                    refused.append(error)
            if not done:
                raise refused[0]
            wheels = {kind: each.outcome.wheel for kind, each in done.items()}
            tell = self.session.progress.detail
            kind, why = choose(self.session, wheels, self.lock, request.python, tell, source=self.source)
            outcome, wheel = done[kind].outcome, wheels[kind]
            path = str(Path(request.output, wheel.name))
            system.make_folder(request.output)
            system.write_file(path, Path(wheel.path).read_bytes())
            return Done(replace(outcome, wheel=replace(wheel, path=path)), done[kind].log, f"{kind}: {why}")
        finally:
            system.remove_tree(aside)

    def _one(self, request: BuildRequest) -> Done:
        session, cache = self.session, cache_folder(self.session.environ)
        key = self._key(request)
        places = Places(cache, f"{cache}/build/work/{key}")
        log = BuildLog(session.system, f"{state_folder(session.environ)}/logs")
        session.progress.note(f"log: {log.path}")
        log.write(f"# {session.command_line}")
        log.write(f"# {request}")
        left_out = (Stage.PREFLIGHT,) if self.lock else (Stage.PREFLIGHT, Stage.VERIFY)
        stages = tuple(stage for stage in Stage if stage not in left_out)
        meter = Meter(session.progress, stages, request.jobs or 1)
        made = Build(session, request, self.interpreter.abi, self.march, self.lock, places, log, meter, self.source)
        try:
            with _alone(session, f"{cache}/build/locks/{key}"), _hang_up_interrupts():
                _alive(places.work)
                sweep(session.system, f"{cache}/build")
                if request.fresh:
                    session.system.remove_tree(places.work)
                session.system.make_folder(places.work)
                outcome = self._carried_out(made)
                session.system.remove_tree(places.work)
        except DoctorError as error:
            raise with_log(error, log.path) from error
        return Done(outcome, log.path)

    def _carried_out(self, made: Build) -> Outcome:
        """Run it; of a failed one the work folder goes, of an interrupted one it stays."""
        try:
            return made.run()
        except KeyboardInterrupt as error:
            raise Interrupted(
                f"interrupted ({made.meter.stage or 'build'}); what is compiled is kept",
                hint=f"the same command goes on from there: {_without_fresh(self.session.command_line)}",
                context={"work": made.places.work},
            ) from error
        except OSError as error:
            failure: DoctorError = of_system(error)
        except DoctorError as error:
            failure = error
        with contextlib.suppress(OSError):
            self.session.system.remove_tree(made.places.work)
        raise self._told(failure, made)

    def _told(self, failure: DoctorError, made: Build) -> DoctorError:
        if not isinstance(failure, BuildFailed):
            return failure
        made.log.write(f"# {failure.message}")
        return explained(
            failure,
            made.meter.stage,
            tuple(made.log.lines),
            made.log.path,
            self.facts,
            lambda found: judge_all(found, build_codes()).findings,
            made.request,
        )

    def _key(self, request: BuildRequest) -> str:
        """Name of the work folder: what was asked, but for what changes nothing of the wheel."""
        python = self.interpreter.real_path
        same = replace(request, output="", jobs=None, verify=True, fresh=False, python=python)
        return key_of(request=asdict(same), abi=self.interpreter.abi)


def _without_fresh(command: str) -> str:
    """With ``--fresh`` it would begin anew."""
    return " ".join(word for word in command.split(" ") if word != "--fresh")


def build_codes() -> frozenset[str]:
    """Codes of the rules about builds."""
    from ideepdoctor.rules import RULES

    return frozenset(rule.code() for rule in RULES if rule.code().startswith("IDP8"))


@contextlib.contextmanager
def _alone(session: Session, folder: str) -> Iterator[None]:
    """Keep another build of the very same away. Raises Busy."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(session.system, folder))
        except Busy as error:
            raise Busy(
                error.message.replace("another ideepdoctor is at work", "the same build is running already"),
                hint="wait until it has finished: this command gives its wheel then",
                context=error.context,
            ) from error
        yield


def _alive(work: str) -> None:
    """Raise Busy where compilers of a run that was killed go on: two makes in one folder spoil each other's files."""
    if left := at_work(work):
        shown = ", ".join(str(number) for number in left)
        raise Busy(
            f"compilers of a build that was killed are still at work (process {shown})",
            hint=f"wait, or end them (kill {shown.replace(',', '')}); then the same command goes on",
            context={"work": work},
        )


@contextlib.contextmanager
def _hang_up_interrupts() -> Iterator[None]:
    """A terminal that is closed ends a build like Ctrl-C; under nohup it does not."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGHUP)
    try:
        if before is not signal.SIG_IGN:
            signal.signal(signal.SIGHUP, interrupt)
    except ValueError:  # not the main thread: a program that uses this one
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
