"""How uv and pip are told where distributions come from, and what goes wrong there, put into words.

The URL of a mirror may hold a password. It is handed to the installers by their environment variables, never as an
argument; plans, journals and messages hold it with ``***`` in the password's place (``shown``), and the whole one is
taken from IDEEPDOCTOR_INDEX_URL when it is used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from ideepdoctor.errors import ApplyFailed, CouldNotCheck, DoctorError
from ideepdoctor.model.plan import PackageSource

INDEX_VARIABLE = "IDEEPDOCTOR_INDEX_URL"
"""The variable of the option --index-url; the command line puts the option's value there too."""

_CREDENTIALS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)[^/\s]*@")
_SECRET = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/\s:]*:)?([^/\s]+)@")

_INDEX_SETTINGS = (
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "UV_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_NO_INDEX",
    "UV_NO_INDEX",
)

_DENIED = re.compile(
    r"(?i)\b40[137] (client error|unauthorized|forbidden|proxy auth|error)|error:? 40[137]\b|status code 40[137]\b|"
    r"valid authentication credentials|credentials not correct for|^user for \S+:"
)
_GONE = re.compile(r"(?i)\b(404|410|50[0234]) (not found|gone|client error|server error)|error:? (404|410|50[0234])\b")
_ABSENT = re.compile(
    r"(?i)there is no version of|(was|were) not found in|no matching distribution|could not find a version|"
    r"no versions of|not found in the (provided )?(package|cache)"
)
_INSECURE = re.compile(r"(?i)is not a trusted or secure host")


def shown(text: str) -> str:
    """The text with the user names and passwords of its URLs replaced by ``***``."""
    return _CREDENTIALS.sub(r"\1***@", text)


def cleaned(text: str, environ: Mapping[str, str]) -> str:
    """The text without the credentials of any URL, and without the asked mirror's password, however it is written."""
    text = shown(text)
    for secret in _SECRET.findall(environ.get(INDEX_VARIABLE, "")):
        text = text.replace(secret, "***")
    return text


def whole_url(source: PackageSource, environ: Mapping[str, str]) -> str | None:
    """The mirror's URL with its credentials; None where no mirror was asked for.

    Raises:
        CouldNotCheck: it had credentials, which are not kept, and the environment does not give them (a resumed run).
    """
    url = source.index_url
    if url is None or "@" not in url:
        return url
    given = environ.get(INDEX_VARIABLE, "")
    if given and shown(given) == shown(url):
        return given
    raise CouldNotCheck(
        f"{shown(url)} was given with credentials, which are not kept",
        hint=f"give them again: {INDEX_VARIABLE}=URL ideepdoctor ...",
    )


def variables(source: PackageSource, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of an installer, with the source put into it.

    Args:
        source: where files come from.
        environ: the user's variables (index, proxy, certificates), which hold where the source does not say otherwise.

    Raises:
        CouldNotCheck: see ``whole_url``.
    """
    kept = {name: value for name, value in environ.items() if name != INDEX_VARIABLE}
    url = whole_url(source, environ)
    if source.no_index and source.find_links:
        # Configuration files may name folders on the network.
        kept = {name: value for name, value in kept.items() if name not in _INDEX_SETTINGS}
        return {**kept, "UV_NO_CONFIG": "1", "UV_OFFLINE": "1", "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    if source.no_index:
        kept.pop("PIP_FIND_LINKS", None)  # it may name places on the network
        return {**kept, "UV_OFFLINE": "1", "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    if url is not None:
        kept = {name: value for name, value in kept.items() if name not in _INDEX_SETTINGS}
        # pip's configuration may name further indexes: the variable stands above it.
        mirror = {"UV_DEFAULT_INDEX": url, "PIP_INDEX_URL": url, "PIP_EXTRA_INDEX_URL": url}
        return {**kept, **mirror, "PIP_NO_INPUT": "1"}
    return kept


def uv_words(source: PackageSource) -> list[str]:
    """Arguments of ``uv pip install`` for a source."""
    words = [f"--find-links={folder}" for folder in source.find_links]
    if source.no_index:
        words += ["--offline", "--no-index"] if words else ["--offline"]
    return words


def trouble(said: str, what: str, source: PackageSource, context: Mapping[str, str]) -> DoctorError | None:
    """The error that an installer's words mean for a source without network; None where it may use the network.

    Args:
        said: what it printed, without credentials.
        what: was being done, as a phrase.
        source: where it looked.
        context: for the error.
    """
    if not source.no_index:
        return refusal(said, what, source, context) or absence(said, what, source, context)
    line = _line(said, _ABSENT)
    if source.find_links:
        where = ", ".join(source.find_links)
        return CouldNotCheck(
            f"{what}: {where} does not hold what is needed, and no network is used\n{line or _last(said)}",
            hint=f"look at it: ideepdoctor wheelhouse {source.find_links[0]} --check",
            context=context,
        )
    return CouldNotCheck(
        f"{what}: the caches do not hold what is needed, and --offline uses nothing else\n{line or _last(said)}",
        hint="on a machine with internet: ideepdoctor wheelhouse DIR; then here: --offline --wheelhouse DIR",
        context=context,
    )


def refusal(said: str, what: str, source: PackageSource, context: Mapping[str, str]) -> DoctorError | None:
    """The error of an index that answers and does not give what it lists; None where the words mean something else."""
    mirror = shown(source.index_url or "") or "the index"
    if _INSECURE.search(said):
        return CouldNotCheck(
            f"{what}: the environment's own pip takes nothing from {mirror}, which is plain http",
            hint="give an https URL, or bring the files: ideepdoctor wheelhouse DIR --index-url URL",
            context=context,
        )
    for pattern, words, hint in (
        (_DENIED, "wants a user and a password", f"give them: {INDEX_VARIABLE}=https://USER:PASSWORD@HOST/...; or "),
        (_GONE, "lists a file, or names itself an index, and does not serve it", ""),
    ):
        if line := _line(said, pattern):
            return CouldNotCheck(
                f"{what}: {mirror} {words}\n{line}",
                hint=f"{hint}try another mirror: --index-url URL; nothing was kept",
                context=context,
            )
    return None


def absence(said: str, what: str, source: PackageSource, context: Mapping[str, str]) -> DoctorError | None:
    """The error of an index that does not have a release; None where the words mean something else."""
    line, mirror = _line(said, _ABSENT), shown(source.index_url or "")
    if line and mirror:
        return CouldNotCheck(
            f"{what}: {mirror} does not have what is needed\n{line}",
            hint="try another mirror: --index-url URL; nothing was kept",
            context=context,
        )
    if line:
        hint = "look at the index that uv and pip are set up for; -v shows all of it"
        return ApplyFailed(f"{what} failed: {line}", hint=hint, context=context)
    return None


def _line(said: str, pattern: re.Pattern[str]) -> str:
    """The first line that a pattern is in, shortened; empty: none."""
    return next((text.strip()[:400] for text in said.splitlines() if pattern.search(text.strip())), "")


def _last(said: str) -> str:
    lines = [text.strip() for text in said.splitlines() if text.strip()]
    return " ".join(lines[-2:])[:300]
