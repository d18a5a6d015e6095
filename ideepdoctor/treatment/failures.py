"""How an installer ended, put into an error: what happened, the likely cause, what to do."""

from __future__ import annotations

import os
import re

from ideepdoctor.errors import ApplyFailed, CouldNotCheck, DoctorError
from ideepdoctor.model.plan import PackageSource
from ideepdoctor.system import Completed
from ideepdoctor.treatment import sources

_NETWORK = re.compile(
    r"(?i)failed to fetch|error sending request|dns error|could not connect|connection (refused|reset|error)|"
    r"network is unreachable|name resolution|max retries exceeded|newconnectionerror|timed out|tunnel|"
    r"could not fetch url|no route to host|network (connectivity )?(is|was) disabled|connecttimeout"
)
_HASH = re.compile(r"(?is)hash mismatch|do not match the hashes")
_DAMAGED = re.compile(r"(?i)failed to extract archive|is not a (valid )?zip|bad magic number|not a gzip")
_FULL = re.compile(r"(?i)no space left on device|os error 28|disk quota exceeded")
_ANY = PackageSource()


class HashMismatch(ApplyFailed):
    """A downloaded file is not the one that the stack was locked with."""

    code = "hash-mismatch"


def failure(done: Completed, what: str, source: PackageSource = _ANY) -> DoctorError:
    """The error that an installer's end means.

    Args:
        done: how it ended.
        what: was being done, as a phrase.
        source: where it looked for files.
    """
    said = sources.cleaned(f"{done.error_text()}\n{done.text()}".strip(), os.environ)
    context = {"command": " ".join(done.argv), "output": said[-4000:]}
    if done.timed_out:
        return CouldNotCheck(f"{what}: no end within {done.seconds:.0f} s", hint="look at the network", context=context)
    if _HASH.search(said):
        return HashMismatch(
            f"{what}: a file is not the one that the stack was locked with\n{_telling(said, _HASH)}",
            hint="do not use that file: look at the index or mirror that it came from; nothing of it was kept",
            context=context,
        )
    if _FULL.search(said):
        return ApplyFailed(f"{what}: the disk is full", hint="make room (about 1 GB), then try again", context=context)
    if _DAMAGED.search(said):
        return HashMismatch(
            f"{what}: an archive is damaged: it is not the one that was locked\n{_telling(said, _DAMAGED)}",
            hint="try again; if it stays, look at the index or mirror that it came from; nothing of it was kept",
            context=context,
        )
    if source.no_index and (found := sources.trouble(said, what, source, context)) is not None:
        return found
    if (found := sources.refusal(said, what, source, context)) is not None:
        return found
    if _NETWORK.search(said):
        return CouldNotCheck(
            f"{what}: the network is needed and not there\n{_telling(said, _NETWORK)}",
            hint="check the network, the proxy and the index that uv and pip are set up for; then try again",
            context=context,
        )
    if (found := sources.absence(said, what, source, context)) is not None:
        return found
    last = [line for line in said.splitlines() if line.strip()]
    return ApplyFailed(f"{what} failed: {' '.join(last[-3:])[:400]}", hint="-v shows all of it", context=context)


def _telling(said: str, pattern: re.Pattern[str]) -> str:
    """The lines around the first one that tells."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    at = next((number for number, line in enumerate(lines) if pattern.search(line)), 0)
    return "\n".join(line[:200] for line in lines[at : at + 5])
