"""Files by hash into a folder: by a pinned pip's own network, which knows the index, proxies and passwords."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from ideepdoctor.errors import ApplyFailed, CouldNotCheck, DoctorError, UsageError
from ideepdoctor.model.plan import PackageSource, Requirement
from ideepdoctor.system import System
from ideepdoctor.targets.target import payload_source
from ideepdoctor.treatment import installers, sources

_SECONDS = 3600.0
"""For all files together: a gigabyte over a slow line."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Ask:
    """A release whose files are wanted: one for each digest (``every``), or one for any of them."""

    requirement: Requirement
    every: bool


def pip_program(system: System, cache: str, tell: Tell, source: PackageSource) -> str:
    """An interpreter (the doctor's Python) with the pinned pip. Raises as ``installers.install``."""
    pins = (files("ideepdoctor") / "wheelhouse" / "pip.txt").read_bytes()
    return installers.tool_program(system, cache, "pip", pins, "the tool that downloads", tell, source)


def environment(source: PackageSource) -> dict[str, str]:
    """The variables that pip is started with; uv's index holds where pip was not told of one."""
    given = dict(os.environ)
    uv_index = given.get("UV_DEFAULT_INDEX") or given.get("UV_INDEX_URL")
    if uv_index and not given.get("PIP_INDEX_URL"):
        given["PIP_INDEX_URL"] = uv_index
    kept = sources.variables(source, given)
    return {name: value for name, value in kept.items() if name not in ("PIP_REQUIRE_VIRTUALENV", "PIP_TARGET")}


def fetch(
    system: System,
    cache: str,
    folder: str,
    asked: Sequence[Ask],
    source: PackageSource,
    tell: Tell,
    done: Callable[[int], None],
) -> Mapping[str, str]:
    """Fetch files; what was fetched before an error stays.

    Args:
        system: starts pip's Python.
        cache: the doctor's cache folder, where the pinned pip is kept.
        folder: where to; exists.
        asked: what.
        source: which index.
        tell: told each file.
        done: told how many of ``asked`` are dealt with.

    Returns:
        Names of files by digest.

    Raises:
        CouldNotCheck: the network, the index or a password is missing, or it has not all of it.
        HashMismatch: it serves another file.
        ApplyFailed: the disk is full.
        UsageError: the folder cannot be written.
    """
    program = pip_program(system, cache, tell, source)
    request = f"{folder}/.request.json"
    wanted = [
        {
            "name": ask.requirement.name,
            "version": ask.requirement.version,
            "sha256": list(ask.requirement.sha256),
            "every": ask.every,
        }
        for ask in asked
    ]

    def heard(line: str) -> None:
        try:
            told = json.loads(line)
            tell(f"{told['name']}, {told['bytes'] / 1e6:.1f} MB")
            done(told["done"])
        except (ValueError, KeyError, TypeError):
            tell(sources.cleaned(line, os.environ))

    system.write_file(request, json.dumps({"folder": folder, "wanted": wanted}).encode("utf-8"))
    try:
        ended = system.run(
            [program, "-I", "-", request],
            timeout_seconds=_SECONDS,
            stdin=payload_source("fetch"),
            env=environment(source),
            on_line=heard,
        )
    finally:
        system.remove_file(request)
    try:
        answer = json.loads(ended.text())
        errors = [(item["kind"], item["what"], item["text"]) for item in answer["errors"]]
    except (ValueError, KeyError, TypeError):
        raise installers.failure(ended, "downloading", source) from None
    if errors:
        raise _error(errors, folder, source)
    return dict(answer["files"])


def _error(errors: Sequence[tuple[str, str, str]], folder: str, source: PackageSource) -> DoctorError:
    """The error that the most telling of several reasons means."""
    ranks = ("disk", "hash", "denied", "network", "gone", "missing")
    kind, what, text = min(errors, key=lambda item: ranks.index(item[0]))
    text = sources.cleaned(text, os.environ)[:400]
    where = sources.shown(source.index_url) if source.index_url else "the index"
    names = ", ".join(item[1] for item in errors if item[0] == kind)
    again = "what was fetched stays; the same command goes on"
    context = {"reason": text}
    if kind == "disk" and "Permission" not in text and "Read-only" not in text:
        return ApplyFailed(f"{folder}: the disk is full at {what}", hint=f"make room; {again}", context=context)
    if kind == "disk":
        return UsageError(f"cannot write to {folder}: {text}", hint="choose a folder that you can write")
    if kind == "hash":
        return installers.HashMismatch(
            f"{what}: {where} has another file than the one that the stack was locked with\n{text}",
            hint=f"look at that index; nothing of that file was kept; {again}",
            context=context,
        )
    if kind == "denied":
        return CouldNotCheck(
            f"{where} wants a user and a password\n{text}",
            hint=f"give them: {sources.INDEX_VARIABLE}=https://USER:PASSWORD@HOST/... ideepdoctor ...",
            context=context,
        )
    if kind == "network":
        return CouldNotCheck(
            f"the network is needed and not there ({what})\n{text}",
            hint=f"check the network, the proxy and the index that pip and uv are set up for; {again}",
            context=context,
        )
    if kind == "gone":
        return CouldNotCheck(
            f"{where} lists {names} and does not serve it\n{text}", hint=f"try another mirror; {again}", context=context
        )
    return CouldNotCheck(
        f"{where} does not have {names} with the hash that is pinned",
        hint=f"try another mirror; {again}",
        context=context,
    )
