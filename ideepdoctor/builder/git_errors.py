"""What git says when it fails, in words for a person."""

from __future__ import annotations

import re

from ideepdoctor.builder.urls import is_remote, shown
from ideepdoctor.errors import ApplyFailed, BuildFailed, CouldNotCheck, DoctorError, UsageError
from ideepdoctor.system import Completed


class GitUnusable(CouldNotCheck):
    """There is no git on PATH, or it is too old."""

    code = "no-git"


class NoSuchRef(UsageError):
    """The repository has no such tag, branch or commit."""

    code = "no-such-ref"


class WrongCommit(ApplyFailed):
    """What came is another commit than the one that is known for this release: the tag has been moved, or worse."""

    code = "wrong-commit"


class CannotFetch(CouldNotCheck):
    """The repository does not answer, or may not be read; nothing was kept."""

    code = "cannot-fetch"


class Refused(CannotFetch):
    """The server does not give this in this way (a commit by its hash, a part of the history); another may work."""

    code = "fetch-refused"


_REFUSED = re.compile(
    r"not our ref|unadvertised object|does not support shallow|couldn't find remote ref|"
    r"filtering not recognized|not support --?filter|remote did not send all necessary objects|expected shallow"
)
_AWAY = re.compile(
    r"(?i)could not resolve|name or service not known|temporary failure in name|failed to connect|couldn't connect|"
    r"connection (refused|timed out|reset|closed)|network is unreachable|no route to host|timed out|proxy|"
    r"early eof|rpc failed|hung up unexpectedly|gnutls|ssl|certificate|transfer closed|bytes/sec"
)
_NO_ACCESS = re.compile(
    r"(?i)authentication failed|could not read (username|password)|prompts disabled|permission denied|"
    r"error: 40[0-9]|repository .* not found|host key verification failed|access denied"
)
_NO_REPOSITORY = re.compile(r"(?i)does not appear to be a git repository|not a git repository|does not exist|not found")
_FULL = re.compile(r"(?i)no space left on device|out of disk ?space|disk quota exceeded")
_OWNER = re.compile(r"(?i)dubious ownership")


def explained(done: Completed, url: str) -> DoctorError:
    """The error for a git that failed while it had to do with an address."""
    told = shown(done.error_text()).strip()
    where, context = shown(url), {"git": told[-2000:]}
    said = told.replace(where, "it").replace(url, "it")  # the words of an address are no symptoms
    if done.timed_out:
        return CannotFetch(f"{where} did not answer in time", hint="try again", context=context)
    if _REFUSED.search(said):
        return Refused(f"{where} does not give what was asked of it: {_last(told)}", context=context)
    if _FULL.search(said):
        return BuildFailed(f"no room to fetch {where}: No space left on device", hint="make room", context=context)
    if _OWNER.search(said):
        hint = f"git config --global --add safe.directory {where}, if you trust it"
        return CannotFetch(f"git refuses {where}, which belongs to another user", hint=hint, context=context)
    if _NO_ACCESS.search(said):
        hint = "check the address; the doctor never asks for a password: use ssh keys or a credential helper"
        return CannotFetch(f"there is no repository at {where} that may be read", hint=hint, context=context)
    if _AWAY.search(said):
        hint = "check the network and the proxy variables; without a network: --source with a folder or archive"
        return CannotFetch(f"{where} cannot be reached: {_last(told)}", hint=hint, context=context)
    if _NO_REPOSITORY.search(said):
        what = "there is no repository at" if is_remote(url) else "there is no git repository in"
        return CannotFetch(f"{what} {where}", hint="check --source", context=context)
    return CannotFetch(f"git failed with {where}: {_last(told) or f'exit code {done.returncode}'}", context=context)


def _last(said: str) -> str:
    """The line that says most: the first with ``fatal``, else the last."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("fatal: ")), lines[-1] if lines else "").removeprefix(
        "fatal: "
    )
