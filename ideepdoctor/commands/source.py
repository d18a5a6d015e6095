"""``--offline``, ``--wheelhouse`` and ``--index-url``: where a command takes distributions from."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from ideepdoctor.errors import CouldNotCheck, UsageError
from ideepdoctor.model.plan import PackageSource
from ideepdoctor.treatment.sources import shown


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What the command line says about it.

    Attributes:
        offline: use no network.
        wheelhouse: a folder that ``wheelhouse`` made; looked through first, with ``offline`` alone.
        index_url: of a mirror, instead of the index that the machine is set to. It may hold credentials.
    """

    offline: bool = False
    wheelhouse: str | None = None
    index_url: str | None = None


def package_source(options: SourceOptions, cwd: str = "") -> PackageSource:
    """The source that the options mean; without credentials (the installers take them from IDEEPDOCTOR_INDEX_URL).

    Args:
        options: of the command line.
        cwd: the folder that a relative wheelhouse refers to.

    Raises:
        UsageError: the options exclude each other, or the URL is none.
        CouldNotCheck: there is no such folder.
    """
    if options.offline and options.index_url:
        raise UsageError(
            "--offline and --index-url exclude each other", hint="without a network there is no index: leave one out"
        )
    url = options.index_url
    if url and not re.match(r"(?i)(https?|file)://\S+$", url):
        raise UsageError(f"--index-url {shown(url)!r} is no URL", hint="such as https://mirror.example/simple")
    return PackageSource(
        find_links=() if options.wheelhouse is None else (existing_folder(options.wheelhouse, cwd),),
        no_index=options.offline,
        index_url=None if not url else shown(url),
    )


def existing_folder(path: str, cwd: str) -> str:
    """Absolute path of a wheelhouse. Raises CouldNotCheck where it is no folder that can be read."""
    folder = Path(cwd) / Path(path).expanduser()
    try:
        next(folder.iterdir(), None)
    except OSError as error:
        raise CouldNotCheck(
            f"there is no wheelhouse {folder}: {error.strerror}",
            hint=f"make it where there is internet, and bring it here: ideepdoctor wheelhouse {shlex.quote(path)}",
        ) from error
    return str(folder)
