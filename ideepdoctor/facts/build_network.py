"""Whether what a build fetches can be fetched: the source by git, the tools by uv. Nothing is downloaded."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from ideepdoctor.builder.git import git_environment
from ideepdoctor.builder.pins import program_pins
from ideepdoctor.builder.trees import source_key
from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.model.build import BuildRequest
from ideepdoctor.model.plan import PackageSource
from ideepdoctor.rules.idp808 import SLOW
from ideepdoctor.system import System
from ideepdoctor.treatment import sources
from ideepdoctor.treatment.installers import uv_program

_SECONDS = 4.0
"""The whole preflight is to take five. A server that takes longer may only be slow."""
_ABSENT = re.compile(r"there is no version of (\w+)|(\w+) was not found")


def reach_source(
    system: System, environ: Mapping[str, str], git: str, url: str, ref: str | None
) -> tuple[str, bool | None]:
    """Ask the repository for its head and a ref.

    Args:
        system: starts git.
        environ: the person's variables (proxy, certificates).
        git: the program; empty: there is none, and nothing is tried.
        url: of the repository.
        ref: tag, branch or commit; None: none is asked for.

    Returns:
        Why it cannot be reached, empty where it can; and whether it has such a tag or branch (None: not known).
    """
    if not git:
        return "", None
    names = [] if ref is None else [ref] if ref.startswith("refs/") else [f"refs/tags/{ref}", f"refs/heads/{ref}"]
    argv = [git, "ls-remote", "--", url, "HEAD", *names]
    done = system.run(argv, timeout_seconds=_SECONDS, env=git_environment(environ))
    if done.timed_out:
        return f"{sources.shown(url)} {SLOW} {_SECONDS:.0f} s", None
    if not done.ok:
        said = done.error_text().strip().splitlines() or [f"git ended with {done.returncode}"]
        told = next((line for line in said if line.startswith(("fatal:", "error:"))), said[-1])
        return f"{sources.shown(url)} cannot be reached: {sources.shown(told)[:200]}", None
    refs = [line.split("\t")[-1] for line in done.text().splitlines()]
    return "", any(name in names for name in refs) if ref else None


def source_is_kept(cache: str, request: BuildRequest) -> bool:
    """Whether an earlier run kept this very source."""
    key = source_key(request)
    return key is not None and not request.fresh and _kept(cache, "source", key)


def missing_tools(
    system: System, environ: Mapping[str, str], cache: str, request: BuildRequest
) -> tuple[str | None, tuple[str, ...]]:
    """Ask uv for the pinned programs: in its cache first, then where it would fetch them.

    Returns:
        None where an earlier build keeps everything, or uv does; else why the package index cannot be reached, empty
        where it can; and the programs that it does not have.
    """
    kinds = ["tools", "python", *(["mkl"] if request.mkl in ("wheel", "auto") else [])]
    if all(_kept(cache, kind, "*") for kind in kinds) and not request.fresh:
        return None, ()
    wanted = "".join(f"{pin.name}=={pin.version}\n" for pin in program_pins()).encode()
    uv = [uv_program(), "pip"]
    here = ["--no-deps", "--python", sys.executable]
    if not request.fresh and _uv_keeps(system, environ, [*uv, "install", "--dry-run", "--offline", *here], wanted):
        return None, ()
    argv = [*uv, "compile", "--quiet", "--no-header", *here, "-"]
    try:
        mirror = PackageSource(index_url=environ.get(sources.INDEX_VARIABLE) or None)
        variables = {**sources.variables(mirror, environ), "UV_HTTP_TIMEOUT": f"{_SECONDS:.0f}"}
    except CouldNotCheck as error:
        return error.message, ()
    done = system.run(argv, timeout_seconds=_SECONDS, env={**variables, "UV_HTTP_RETRIES": "0"}, stdin=wanted)
    if done.ok:
        return "", ()
    said = sources.cleaned(done.error_text(), environ)
    if absent := {name for names in _ABSENT.findall(said) for name in names if name}:
        return "", tuple(sorted(absent))
    if done.timed_out:
        return f"the package index {SLOW} {_SECONDS:.0f} s", ()
    lines = [line.strip(" ×├╰─▶│") for line in said.splitlines() if line.strip()]
    return f"the package index cannot be reached: {(lines[-1] if lines else 'uv failed')[:200]}", ()


def _uv_keeps(system: System, environ: Mapping[str, str], argv: list[str], wanted: bytes) -> bool:
    """Whether uv could install this with what is in its cache."""
    folder = system.make_temporary_folder()  # uv makes the target even where it only says what it would do
    try:
        words = [*argv, "--target", f"{folder}/target", "-r", "-"]
        done = system.run(words, timeout_seconds=_SECONDS, env=environ, stdin=wanted)
    finally:
        system.remove_tree(folder)
    return done.ok and "Would download" not in done.error_text() + done.text()


def _kept(cache: str, kind: str, key: str) -> bool:
    return any(Path(cache, "build", kind).glob(f"{key}.json"))
