"""Many files of hosts into one picture: each is read once, and nothing of it is kept in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ideepdoctor.fleet.merge_features import Features, features_of
from ideepdoctor.fleet.merge_files import File, host_of, read_file
from ideepdoctor.fleet.merge_result import picture
from ideepdoctor.fleet.merge_store import Store, opened_store
from ideepdoctor.fleet.read import HostReport, Unreadable, parse_host

_EVERY = 100
"""Files between two words of progress."""


def merged(files: Iterable[File], told: Callable[[str], None]) -> Mapping[str, Any] | None:
    """What the files come to, JSON-ready: the key ``fleet`` of the envelope (see report.schema.json).

    Every file is counted as a host, or named as the older one of a host, or named as skipped and why. The order of
    the files does not matter.

    Args:
        files: each real file is read once.
        told: gets a line of progress now and then.

    Returns:
        None: there was no file.

    Raises:
        UsageError: a list of files cannot be read.
        CouldNotCheck: there is no room for a temporary file.
    """
    with opened_store() as store:
        number = 0
        for file in files:
            if not store.is_new(file.real):
                continue
            number += 1
            _take(store, file)
            if number % _EVERY == 0:
                told(f"read {number} files")
        if number == 0:
            return None
        store.settle()
        told(f"comparing {number} files")
        return picture(store)


def _take(store: Store, file: File) -> None:
    if file.problem:
        store.skip(file.shown, file.problem)
        return
    try:
        data, written = read_file(file.path)
        report = parse_host(data, written, host_of(file.path))
    except Unreadable as error:
        store.skip(file.shown, str(error))
        return
    store.add(report, file.shown, _features(report))


def _features(report: HostReport) -> Features | None:
    return None if report.facts is None else features_of(report.facts, report.smoke, report.name)
