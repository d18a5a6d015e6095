"""Before an installation without network: whether the wheelhouse has every file that it needs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.model.plan import PackageSource, Requirement
from ideepdoctor.wheelhouse.manifest import lacking
from ideepdoctor.wheelhouse.wanted import pins_set, stack_command


def refuse_incomplete(source: PackageSource, requirements: Sequence[Requirement]) -> None:
    """Raise CouldNotCheck, with the names of the files, where a source without network lacks some.

    Nothing is looked at where the network may be used, and of the caches alone only their owners know.

    Args:
        source: where the files come from.
        requirements: what is to be installed.
    """
    if not source.no_index or not source.find_links:
        return
    try:
        missing = lacking(source.find_links, requirements)
    except OSError as error:
        raise CouldNotCheck(
            f"the wheelhouse cannot be read: {error.strerror} ({error.filename})", hint="bring it here again"
        ) from error
    if missing:
        folder = source.find_links[0]
        raise CouldNotCheck(
            f"the wheelhouse {folder} does not hold what is needed: {'; '.join(missing)}",
            hint=f"where there is internet: {stack_command(requirements, shlex.quote(folder))}\n"
            "then bring the folder here; nothing was changed",
            context={"missing": "\n".join(missing)},
        )


def refuse_without_virtualenv(source: PackageSource, cache: str) -> None:
    """The same for the tool that makes environments of Python 2.7 and 3.5, which the cache may have already."""
    from ideepdoctor.treatment.installers import tool_folder, virtualenv_pins

    pins = virtualenv_pins()
    if not Path(tool_folder(cache, "virtualenv", pins), "complete").exists():
        refuse_incomplete(source, pins_set("", "", pins.decode("ascii")).requirements)
