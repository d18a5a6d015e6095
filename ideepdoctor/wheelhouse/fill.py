"""Make a folder hold what some sets need: what is there and right stays, the rest is fetched."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from ideepdoctor import __version__
from ideepdoctor.errors import ApplyFailed, UsageError
from ideepdoctor.model.plan import PackageSource, Requirement
from ideepdoctor.system import System
from ideepdoctor.treatment import installers
from ideepdoctor.treatment.action import missing_parents, remove_if_empty
from ideepdoctor.treatment.progress import Progress
from ideepdoctor.treatment.snapshot import sha256_of
from ideepdoctor.wheelhouse import doctor
from ideepdoctor.wheelhouse.fetch import Ask, environment, fetch, pip_program
from ideepdoctor.wheelhouse.manifest import NAME, OPEN, Entry, Manifest, digests_in, problems, read
from ideepdoctor.wheelhouse.wanted import FileSet

DOCTOR = f"the doctor on Python {sys.version_info[0]}.{sys.version_info[1]}"
_DOCTOR_SLUG = f"doctor-py{sys.version_info[0]}.{sys.version_info[1]}"


@dataclass(frozen=True, slots=True)
class Filled:
    """What filling a folder came to.

    Attributes:
        manifest: as written.
        fetched: names of files that were fetched now.
        anew: of those, the ones that were there and damaged.
        foreign: files that belong to no set; left alone.
        built: wheels of ideep4py that ``build`` made.
        open: what is still to be built, a phrase each.
    """

    manifest: Manifest
    fetched: tuple[str, ...]
    anew: tuple[str, ...]
    foreign: tuple[str, ...]
    built: tuple[str, ...]
    open: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What filling needs of a session."""

    system: System
    cache: str
    progress: Progress
    source: PackageSource


def fill(around: Surroundings, folder: str, sets: Sequence[FileSet], *, with_doctor: bool) -> Filled:
    """Bring a folder to hold some sets, beside those that it holds already.

    Args:
        around: of the session.
        folder: absolute path; made where it does not exist.
        sets: what it shall hold.
        with_doctor: also the doctor itself, for the Python that it runs on now.

    Raises:
        UsageError: the folder cannot be made or written.
        CouldNotCheck, HashMismatch, ApplyFailed: see ``fetch``; what is complete stays, and the next run goes on.
    """
    made = [path for path in (folder, *missing_parents(folder)) if not Path(path).exists()]
    with refusing(folder):
        try:
            around.system.make_folder(folder)
            return _filled(around, folder, sets, with_doctor)
        finally:
            # A folder that nothing came into is not left behind.
            remove_if_empty(around.system, made)


@contextlib.contextmanager
def refusing(folder: str) -> Iterator[None]:
    """Errors of the file system at a wheelhouse in words: UsageError where it cannot be written, else ApplyFailed."""
    try:
        yield
    except PermissionError as error:
        raise UsageError(
            f"cannot write to {folder}: {error.strerror}", hint="choose a folder that you can write"
        ) from error
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(f"{folder} is no folder", hint="choose another place") from error
    except OSError as error:
        raise ApplyFailed(
            f"{folder}: {error.strerror or error}", hint="make room or choose another disk; the same command goes on"
        ) from error


def _filled(around: Surroundings, folder: str, sets: Sequence[FileSet], with_doctor: bool) -> Filled:
    before = read(folder) or Manifest()
    # What a run that was killed had begun.
    for left in (*Path(folder).glob(".*.part"), Path(folder, ".request.json"), Path(folder, ".doctor")):
        around.system.remove_tree(str(left))
    around.progress.detail(f"reading {folder}")
    there = digests_in(folder)
    damaged = {name for name, entry in before.files.items() if name in there and there[name] != entry}
    every = [*sets, *(held for held in before.sets if held.slug not in {item.slug for item in sets})]
    # What an earlier run was interrupted in is brought to its end, too.
    asked = _asks(every, {entry.sha256 for entry in there.values()})
    fetched: list[str] = []
    if asked:
        around.progress.step(1, 1, f"fetching {len(asked)} releases into {folder}")
        names = fetch(
            around.system,
            around.cache,
            folder,
            asked,
            around.source,
            around.progress.detail,
            lambda count: around.progress.share(count / len(asked)),
        )
        fetched += sorted(set(names.values()))
    if with_doctor:
        every = [held for held in every if held.slug != _DOCTOR_SLUG]
        added, new = _with_doctor(around, folder, before)
        every.append(added)
        fetched += new
    every.sort(key=lambda held: held.slug)
    for held in every:
        if not held.index:
            continue
        path, text = f"{folder}/{held.requirements_name}", held.text().encode("ascii")
        if not Path(path).is_file() or Path(path).read_bytes() != text:
            around.system.write_file(path, text)
    there = digests_in(folder)
    return _noted(around, folder, before, there, tuple(every), tuple(fetched), damaged)


def _noted(
    around: Surroundings,
    folder: str,
    before: Manifest,
    there: Mapping[str, Entry],
    every: tuple[FileSet, ...],
    fetched: tuple[str, ...],
    damaged: set[str],
) -> Filled:
    """Write the manifest where it changes, and say what there is."""
    wanted = {digest for held in every for item in held.requirements for digest in item.sha256}
    texts = {held.requirements_name for held in every}
    built = {name for name in there if _is_built(name)}
    ours = {name: entry for name, entry in there.items() if entry.sha256 in wanted or name in texts or name in built}
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    manifest = Manifest(ours, every, now, __version__)
    if replace(before, made=now, version=__version__) == manifest:
        manifest = before
    else:
        data = json.dumps(manifest.as_data(), sort_keys=True, indent=2, ensure_ascii=False) + "\n"
        around.system.write_file(f"{folder}/{NAME}", data.encode("utf-8"))
    return Filled(
        manifest,
        fetched,
        tuple(sorted(damaged & set(fetched))),
        tuple(sorted(set(there) - set(ours))),
        tuple(sorted(built)),
        tuple(text for text in problems(manifest, there) if OPEN in text),
    )


def _asks(sets: Sequence[FileSet], digests: set[str]) -> list[Ask]:
    """What is to be fetched, each release once."""
    found: dict[tuple[str, str, bool], Requirement] = {}
    for held in sets:
        for item in held.lacking(digests) if held.index else ():
            key = (item.name, item.version, held.every)
            known = found.get(key, item)
            found[key] = replace(known, sha256=tuple(dict.fromkeys((*known.sha256, *item.sha256))))
    return [Ask(item, every) for (_name, _version, every), item in sorted(found.items(), key=lambda pair: pair[0])]


def _with_doctor(around: Surroundings, folder: str, before: Manifest) -> tuple[FileSet, list[str]]:
    """The doctor's wheel and what it runs with; what an earlier run brought is kept."""
    name, data = doctor.own_wheel()
    new = []
    if not Path(folder, name).is_file() or Path(folder, name).read_bytes() != data:
        around.system.write_file(f"{folder}/{name}", data)
        new.append(name)
    wanted = doctor.releases()
    there = {entry.sha256 for entry in digests_in(folder).values()}
    known = next((held for held in before.sets if held.slug == _DOCTOR_SLUG), None)
    pins = {
        item.name: item
        for item in (known.requirements if known else ())
        if wanted.get(item.name) == item.version and set(item.sha256) & there
    }
    left = [f"{item}=={version}" for item, version in wanted.items() if item not in pins]
    if left:
        around.progress.step(1, 1, f"fetching {len(left)} releases that the doctor runs with")
        for file in _download(around, folder, left):
            new.append(file)
            release, version = _release(file)
            pins[release] = Requirement(release, version, (sha256_of(f"{folder}/{file}"),))
    own = Requirement(doctor.NAME, _release(name)[1], (sha256_of(f"{folder}/{name}"),))
    requirements = (own, *(pins[item] for item in sorted(pins)))
    return FileSet(DOCTOR, _DOCTOR_SLUG, requirements, every=True), new


def _download(around: Surroundings, folder: str, pins: Sequence[str]) -> list[str]:
    """Fetch wheels for the doctor's Python with pip; their names. Only their versions are known: nobody locked them."""
    program = pip_program(around.system, around.cache, around.progress.detail, around.source)
    aside = f"{folder}/.doctor"
    around.system.remove_tree(aside)
    around.system.make_folder(aside)
    try:
        words = ["-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--dest", aside, *pins]
        ended = around.system.run(
            [program, "-I", *words],
            timeout_seconds=1200,
            env={**environment(around.source), "PIP_CONSTRAINT": os.devnull},
            on_line=around.progress.detail,
        )
        if not ended.ok:
            raise installers.failure(ended, "downloading what the doctor runs with", around.source)
        names = sorted(path.name for path in Path(aside).iterdir())
        for name in names:
            around.system.rename(f"{aside}/{name}", f"{folder}/{name}")
        return names
    finally:
        around.system.remove_tree(aside)


def _release(file: str) -> tuple[str, str]:
    name, version, _build, _tags = parse_wheel_filename(file)
    return canonicalize_name(name), str(version)


def _is_built(file: str) -> bool:
    """Whether a file is a wheel of ideep4py that ``build`` made."""
    try:
        name, version, _build, _tags = parse_wheel_filename(file)
    except InvalidWheelFilename:
        return False
    return name == "ideep4py" and (version.local or "").startswith("doctor")
