"""``build``: ideep4py from source, for any Python, as a wheel that was proved."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ideepdoctor.builder.jobs import Jobs, cpus_of, jobs_for, memory_of
from ideepdoctor.builder.mkl import AUTO
from ideepdoctor.commands.build_run import Builder, Done, build_codes
from ideepdoctor.commands.build_target import interpreter_for
from ideepdoctor.commands.session import Session, examine, judge_all
from ideepdoctor.commands.source import SourceOptions, package_source
from ideepdoctor.errors import CouldNotCheck, DoctorError, UsageError
from ideepdoctor.model.build import BuildRequest, March
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Severity
from ideepdoctor.model.plan import PackageSource
from ideepdoctor.model.report import Failure, Report
from ideepdoctor.render.build import lines, plan_lines
from ideepdoctor.targets.target import Target
from ideepdoctor.treatment.state import cache_folder, existing_ancestor

if TYPE_CHECKING:
    from ideepdoctor.model.facts import Interpreter
    from ideepdoctor.stacks.catalog import Lock

DEFAULT_OUTPUT = "wheelhouse"
_MKL_WORDS = ("wheel", "none", "auto")

_BY_NETWORK = {"IDP805", "IDP806", "IDP808"}
"""The network's own rule, and those of the tools that it brings."""
_UNREACHABLE = Failure(CouldNotCheck.code, "the network is needed and not there", "", int(CouldNotCheck.exit_code))


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What ``build`` was asked.

    Attributes:
        python: as ``--python`` of other commands; None: the best interpreter here that has no ready wheel.
        output: folder for the wheel; None: ``./wheelhouse``.
        dry_run: look, tell what would be done, and stop.
        files: where the toolchain and what it is proved with come from.
        others: see ``BuildRequest``.
    """

    python: str | None = None
    source: str | None = None
    ref: str | None = None
    chainer: str | None = None
    march: str = "native"
    mkl: str = "wheel"
    mkldnn_source: str | None = None
    jobs: int | None = None
    output: str | None = None
    verify: bool = True
    fresh: bool = False
    dry_run: bool = False
    files: SourceOptions = field(default_factory=SourceOptions)


def build(session: Session, options: BuildOptions) -> Report:
    """Build a wheel, prove it and put it into a folder.

    Raises:
        UsageError: an interpreter, source, ref, processor or folder that cannot be.
        NotPossibleHere: no such interpreter here, or the wheel was refused: it does not compute, or not right.
        CouldNotCheck: the network is needed and not there.
        BuildFailed: a stage failed; its log is kept and nothing else.
        Busy: the same build is running.
        Interrupted: what is compiled is kept.
    """
    files = package_source(options.files, session.cwd)
    interpreter = interpreter_for(session, options.python)
    request = _request(session, options, interpreter)
    _require_plain(cache_folder(session.environ))
    lock = _lock(interpreter.abi, request)
    facts = _looked(session, request, interpreter, files)
    jobs = _jobs(facts, request)
    judgement = judge_all(facts, build_codes())
    before = Report("build", facts=facts, judgement=judgement)
    errors = {item.code for item in judgement.findings if item.severity is Severity.ERROR}
    if errors:
        # A network that is not there says nothing of this machine: the exit code is that of what could not be checked.
        failure = _UNREACHABLE if "IDP808" in errors <= _BY_NETWORK else None
        extra = {"verdict": "nothing was changed", "build": _asked(request)}
        return replace(before, failure=failure, extra=extra)
    request = replace(request, jobs=jobs.count)
    if options.dry_run:
        data = {**_asked(request), "jobs": asdict(jobs), "cache": cache_folder(session.environ)}
        extra = {"verdict": "nothing was changed (--dry-run)", "build": data}
        return replace(before, body=tuple(plan_lines(data)), extra=extra)
    builder = Builder(session, interpreter, _march(session, request, facts), lock, facts, files)
    return _report(session, request, before, builder.build(request))


def _require_plain(cache: str) -> None:
    """Refuse a cache whose path upstream's setup.py, which hands paths to a shell as they are, would take for more."""
    odd = re.sub(r"[\w./,+@~-]", "", cache)
    if odd:
        raise UsageError(
            f"upstream's setup.py cannot work in {cache}: its path has {' and '.join(sorted(map(repr, set(odd))))}",
            hint="IDEEPDOCTOR_CACHE_DIR=/var/tmp/ideepdoctor ideepdoctor build ...",
        )


def _request(session: Session, options: BuildOptions, interpreter: Interpreter) -> BuildRequest:
    source = options.source
    if source is not None and "://" not in source:
        local = Path(session.cwd, Path(source).expanduser())
        source = str(local) if local.exists() else source
    mkl = options.mkl
    if mkl == AUTO and not options.verify:
        raise UsageError("--mkl auto measures what is proved", hint="leave --no-verify out, or --mkl wheel or none")
    if mkl not in _MKL_WORDS:
        folder = Path(session.cwd, Path(mkl).expanduser())
        if not folder.is_dir():
            raise UsageError(f"--mkl {mkl}: there is no folder {folder}", hint=f"{', '.join(_MKL_WORDS)} or a folder")
        mkl = str(folder)
    output = Path(session.cwd, Path(options.output or DEFAULT_OUTPUT).expanduser())
    above = existing_ancestor(str(output))
    if not Path(above).is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise UsageError(f"cannot write to {output}", hint="choose another folder: -o DIR")
    return BuildRequest(
        python=interpreter.path,
        output=str(output),
        source=source,
        ref=options.ref,
        march=options.march,
        mkl=mkl,
        jobs=options.jobs,
        chainer=options.chainer,
        mkldnn_source=options.mkldnn_source,
        verify=options.verify,
        fresh=options.fresh,
    )


def _lock(abi: str, request: BuildRequest) -> Lock | None:
    """What the wheel is proved in. Raises before anything is built where Chainer cannot run on this interpreter."""
    if not request.verify:
        return None
    from ideepdoctor.stacks.catalog import lock_for_build

    try:
        return lock_for_build(abi, request.chainer)[1]
    except DoctorError as error:
        error.hint = "\n".join(part for part in (error.hint, "--no-verify builds the wheel unproved") if part)
        raise


def _looked(session: Session, request: BuildRequest, interpreter: Interpreter, files: PackageSource) -> Facts:
    """The facts that the rules judge. Raises CouldNotCheck where a network is needed that may not be used."""
    from ideepdoctor.builder.cache import Store
    from ideepdoctor.builder.trees import is_local, source_key
    from ideepdoctor.facts.build import collect_build
    from ideepdoctor.facts.collect import BARE

    store = Store(session.system, f"{cache_folder(session.environ)}/build", session.progress.detail)
    key = None if request.fresh else source_key(request)
    here = is_local(request) or (key is not None and store.find("source", key) is not None)
    environ = session.environ
    if files.no_index:
        if not here:
            raise CouldNotCheck(
                "--offline, and the source is a repository that was not fetched before",
                hint="bring it: ideepdoctor build --offline --source ARCHIVE --wheelhouse DIR",
            )
        environ = {**environ, "UV_OFFLINE": "1"}
    facts = examine(session, Target(interpreter.path, reason=f"to build for: {interpreter.source}"), BARE)
    found = collect_build(session.system, environ, request, facts=facts)
    if found.network and here and (files != PackageSource() or not is_local(request)):
        found = replace(found, network=None)  # nothing is fetched, or a folder is looked through first
    there = _in_folders(files)
    cmake, swig = there.get("cmake", found.cmake), there.get("swig", found.swig)
    return replace(facts, build=replace(found, cmake=cmake, swig=swig))


def _in_folders(files: PackageSource) -> dict[str, str]:
    """The pinned programs that a wheelhouse has, by name; those are not looked for in an index."""
    from ideepdoctor.builder.pins import program_pins

    return {
        pin.name: pin.version
        for pin in program_pins()
        if any(next(Path(folder).glob(f"{pin.name}-{pin.version}-*.whl"), None) for folder in files.find_links)
    }


def _jobs(facts: Facts, request: BuildRequest) -> Jobs:
    return jobs_for(cpus_of(facts.limits), memory_of(facts.limits), request.jobs)


def _march(session: Session, request: BuildRequest, facts: Facts) -> March:
    if facts.build is not None and facts.build.march is not None:
        return facts.build.march
    from ideepdoctor.builder.march import march_of

    return march_of(session.system, "c++", request.march, facts.cpu)


def _asked(request: BuildRequest) -> dict[str, Any]:
    from ideepdoctor.builder.recipe import SOURCE_URL
    from ideepdoctor.builder.trees import ref_of
    from ideepdoctor.treatment.sources import shown

    return {
        "source": shown(request.source or SOURCE_URL),
        "ref": ref_of(request),
        "march": request.march,
        "mkl": request.mkl,
        "output": request.output,
        "verify": request.verify,
    }


def _report(session: Session, request: BuildRequest, before: Report, done: Done) -> Report:
    from ideepdoctor.builder.compare import worth_trying

    outcome, wheel = done.outcome, done.outcome.wheel
    data = {
        **_asked(request),
        "wheel": asdict(wheel),
        "from_cache": outcome.from_cache,
        "release": outcome.tree.release,
        "jobs": request.jobs,
        "seconds": {str(stage): round(spent, 1) for stage, spent in outcome.seconds.items()},
        "log": done.log,
        "choice": done.choice,
    }
    how = "proved: smoke and certify are right in a fresh environment" if wheel.proof else "NOT PROVED (--no-verify)"
    verdict = f"BUILT: {wheel.name}{' (kept from an earlier build)' if outcome.from_cache else ''}; {how}"
    minor = "" if before.facts is None else f" --python {before.facts.python.minor}"
    use = f"use it: ideepdoctor setup{minor} --wheelhouse {shlex.quote(request.output)}"
    steps = [use, f"or: pip install {shlex.quote(wheel.path)}"]
    if before.facts is not None and before.facts.build is not None and (more := worth_trying(before.facts.build)):
        steps.append(more)
    extra = {"build": data, "verdict": verdict, "next": steps}
    return replace(before, body=tuple(lines(data)), extra=extra)
