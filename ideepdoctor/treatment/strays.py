"""Installers that outlive the doctor that started them: a killed doctor's uv goes on by itself for a while."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ideepdoctor.errors import Busy

PATIENCE_SECONDS = 60.0
"""How long an installer of a killed run is waited for; installing from the cache takes a second."""


def wait_for_installers(backup: str, paths: Sequence[str], tell: Callable[[str], None]) -> None:
    """Wait until no installer of a run is left: what is being written cannot be taken back.

    Args:
        backup: the run's backup folder, which holds the requirement files that an installer was started with.
        paths: what the run changes; a tool that makes an environment was started with its path.
        tell: told when there is something to wait for.

    Raises:
        Busy: one is still at work after PATIENCE_SECONDS.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    told = False
    while (found := next(_installers(backup, frozenset(paths)), None)) is not None:
        if time.monotonic() > deadline:
            raise Busy(
                f"an installer that the killed run started is still at work (process {found})",
                hint=f"wait until it has finished, or end it: kill {found}",
            )
        if not told:
            tell(f"waiting for process {found}, which the killed run started")
            told = True
        time.sleep(0.1)


def _installers(backup: str, paths: frozenset[str]) -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode("utf-8", "surrogateescape").split("\0")
        except OSError:
            continue
        makes = Path(words[0]).name == "uv" or "virtualenv" in words
        ours = any(word.startswith(f"{backup}/") for word in words) or (makes and not paths.isdisjoint(words))
        if ours and int(folder.name) != os.getpid():
            yield int(folder.name)
