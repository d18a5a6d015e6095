"""``wheelhouse``: everything that a stack needs in a folder, for machines without internet; is it whole?"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ideepdoctor.commands.session import Session
from ideepdoctor.commands.source import SourceOptions, existing_folder, package_source
from ideepdoctor.errors import CouldNotCheck, DoctorError, Exit, UsageError
from ideepdoctor.model.report import Report

if TYPE_CHECKING:
    from ideepdoctor.stacks.catalog import Lock, Stack
    from ideepdoctor.wheelhouse.fill import Filled
    from ideepdoctor.wheelhouse.manifest import Manifest
    from ideepdoctor.wheelhouse.wanted import FileSet


class WheelhouseIncomplete(DoctorError):
    """A wheelhouse lacks files, or holds others than its manifest says."""

    code = "wheelhouse-incomplete"
    exit_code = Exit.FINDINGS


@dataclass(frozen=True, slots=True)
class WheelhouseOptions:
    """What ``wheelhouse`` was asked.

    Attributes:
        folder: the wheelhouse.
        stack: name of a stack; None: for each Python the best.
        pythons: minor versions; none: the newest one that ideep4py has a wheel for.
        all_pythons: every Python of the stack.
        with_build: also what ``build`` needs, and Pythons that need a build.
        archive: upstream's source as a file, to be put beside it.
        doctor: also the doctor itself.
        check: change nothing, say whether everything is there.
        index_url: of a mirror.
    """

    folder: str
    stack: str | None = None
    pythons: tuple[str, ...] = ()
    all_pythons: bool = False
    with_build: bool = False
    archive: str | None = None
    doctor: bool = False
    check: bool = False
    index_url: str | None = None


def wheelhouse(session: Session, options: WheelhouseOptions) -> Report:
    """Fill a wheelhouse, or check it.

    Raises:
        UsageError: no such stack or Python; the folder cannot be written; options that exclude each other.
        WheelhouseIncomplete: ``check`` found something.
        CouldNotCheck: the network, or a manifest, is needed and not there.
        HashMismatch, ApplyFailed: see ``wheelhouse.fetch``.
    """
    if options.check:
        return _checked(session, options)
    from ideepdoctor.treatment.state import cache_folder
    from ideepdoctor.wheelhouse.fill import Surroundings, fill, refusing
    from ideepdoctor.wheelhouse.wanted import locks_for

    folder = str(Path(session.cwd) / Path(options.folder).expanduser())
    if options.all_pythons and options.pythons:
        raise UsageError("--all-pythons and --python exclude each other", hint="leave one of them out")
    source = package_source(SourceOptions(index_url=options.index_url), session.cwd)
    chosen = locks_for(options.stack, options.pythons, every=options.all_pythons, build=options.with_build)
    sets = _sets(chosen, with_build=options.with_build)
    around = Surroundings(session.system, cache_folder(session.environ), session.progress, source)
    if options.archive is not None:
        with refusing(folder):
            sets.append(_brought(session, options.archive, folder))
    filled = fill(around, folder, sets, with_doctor=options.doctor)
    return _report(folder, filled, chosen)


def _sets(chosen: Sequence[tuple[Stack, Lock]], *, with_build: bool) -> list[FileSet]:
    from ideepdoctor.treatment.installers import virtualenv_pins
    from ideepdoctor.wheelhouse.wanted import lock_set, pins_set

    sets = [lock_set(lock) for _stack, lock in chosen]
    if any(lock.installer == "virtualenv" for _stack, lock in chosen):
        text = virtualenv_pins().decode("ascii")
        sets.append(pins_set("the tool that makes Python 2.7 environments", "virtualenv", text))
    if with_build:
        from ideepdoctor.wheelhouse.build_sets import build_sets

        sets += build_sets(chosen)
    return sets


def _brought(session: Session, archive: str, folder: str) -> FileSet:
    """Copy upstream's source into the folder, which is made. Raises UsageError where it is no file."""
    from ideepdoctor.model.plan import Requirement
    from ideepdoctor.treatment.snapshot import sha256_of
    from ideepdoctor.wheelhouse.wanted import FileSet

    path = Path(session.cwd) / Path(archive).expanduser()
    if not path.is_file():
        raise UsageError(f"there is no file {path}", hint="--archive FILE: upstream's source as a tar or zip archive")
    session.system.make_folder(folder)
    target = Path(folder) / path.name
    digest = sha256_of(str(path))
    if not (target.is_file() and sha256_of(str(target)) == digest):
        session.system.copy_file(str(path), str(target))
    pin = Requirement(path.name, "as given", (digest,))
    return FileSet(f"upstream's source {path.name}", f"source-{path.name}", (pin,), every=True, index=False)


def _report(folder: str, filled: Filled, chosen: Sequence[tuple[Stack, Lock]]) -> Report:
    manifest = filled.manifest
    body = _listing(folder, manifest)
    shown = shlex.quote(folder)
    for label, names in (
        ("damaged, fetched anew", filled.anew),
        ("built here", filled.built),
        ("not ours, left alone", filled.foreign),
        ("still open", filled.open),
    ):
        body += [f"{label}: {', '.join(names)}"] if names else []
    stack, lock = chosen[0]
    steps = [
        f"is it whole: ideepdoctor wheelhouse {shown} --check",
        f"on the machine without internet: ideepdoctor setup --offline --wheelhouse {shown} "
        f"--python {lock.python} --stack {stack.name}",
    ]
    steps += [
        f"build what no index has: ideepdoctor build --python {lock.python} -o {shown} "
        f"(there: --offline --wheelhouse {shown} --source ARCHIVE)"
        for _stack, lock in chosen
        if any(f"for Python {lock.python})" in text for text in filled.open)
    ]
    count = len(filled.fetched)
    note = f"fetched {count} file{'s' if count != 1 else ''}" if count else "nothing to fetch: everything is there"
    data = {**_data(folder, manifest), "fetched": list(filled.fetched), "fetched_anew": list(filled.anew)}
    data |= {"foreign": list(filled.foreign), "built": list(filled.built), "open": list(filled.open)}
    return Report("wheelhouse", body=tuple(body), extra={"wheelhouse": data, "verdict": note, "next": steps})


def _listing(folder: str, manifest: Manifest) -> list[str]:
    size = sum(entry.size for entry in manifest.files.values())
    lines = [f"wheelhouse {folder}: {len(manifest.files)} files, {size / 1e6:.1f} MB"]
    for held in manifest.sets:
        digests = {digest for item in held.requirements for digest in item.sha256}
        mine = [entry.size for entry in manifest.files.values() if entry.sha256 in digests]
        lines.append(f"  {held.name}: {len(mine)} files, {sum(mine) / 1e6:.1f} MB")
    return lines


def _data(folder: str, manifest: Manifest) -> dict[str, Any]:
    return {"folder": folder, "manifest": manifest.as_data()}


def _checked(session: Session, options: WheelhouseOptions) -> Report:
    """Say whether everything is there; asks nobody."""
    from ideepdoctor.wheelhouse.manifest import OPEN, digests_in, problems, read

    folder = existing_folder(options.folder, session.cwd)
    manifest = read(folder)
    if manifest is None:
        raise CouldNotCheck(
            f"{folder} has no manifest.json: it is no wheelhouse, or was never completed",
            hint=f"make it where there is internet: ideepdoctor wheelhouse {shlex.quote(folder)}",
        )
    there = digests_in(folder)
    wrong = problems(manifest, there)
    if wrong:
        build = (
            "\nthen build what no index has: ideepdoctor build -o DIR" if any(OPEN in text for text in wrong) else ""
        )
        raise WheelhouseIncomplete(
            f"{folder} is not whole: {'; '.join(wrong[:10])}" + (f"; and {len(wrong) - 10} more" if wrong[10:] else ""),
            hint=f"where there is internet, with the same options: ideepdoctor wheelhouse {shlex.quote(folder)}{build}",
            context={"problems": "\n".join(wrong)},
        )
    foreign = sorted(set(there) - set(manifest.files))
    body = _listing(folder, manifest) + ([f"not ours: {', '.join(foreign)}"] if foreign else [])
    note = f"everything is there and unaltered ({len(manifest.files)} files, as of {manifest.made})"
    data = {**_data(folder, replace(manifest)), "foreign": foreign}
    return Report("wheelhouse", body=tuple(body), extra={"wheelhouse": data, "verdict": note})
