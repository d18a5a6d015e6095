"""IDP117: no shared memory for processes that work together."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule

TOO_SMALL_BYTES = 16 * 1024
"""Two iterators of Chainer with two processes each work with 16 KiB, none with 4 KiB (a page for each semaphore)."""


def _shared(size: int | None) -> dict[str, dict[str, int | None]]:
    return {"limits": {"shared_memory_bytes": size}}


class IDP117(Rule):
    """There is no /dev/shm, or it has no room for a semaphore.

    What it checks
        The size of the file system at /dev/shm.

    Why it matters
        ``multiprocessing`` keeps its semaphores there, so ``MultiprocessIterator``, ``MultiprocessParallelUpdater`` and
        every ``Pool`` or ``Lock`` end with ``OSError: [Errno 2] No such file or directory`` or ``[Errno 28] No space
        left on device``. A small one is no fault: the examples of a batch do not have to fit. Python 2.7 and 3.6 put
        them into a temporary file, and 3.7 goes to one where /dev/shm has too little room. So docker's 64 MB are enough
        for Chainer, however large the batch.

    How to fix
        A container: leave out ``--ipc=none``, or add ``--shm-size=64m``. Elsewhere:
        ``mount -t tmpfs tmpfs /dev/shm``. Without it: ``MultithreadIterator`` or ``SerialIterator``.

    References
        Measured on 2.7, 3.6 and 3.7: no /dev/shm, and sizes from 4 KiB to 64 MiB with batches of 80 MB; three iterators
        at the same time in 64 MiB.
    """

    title = "No shared memory for multiprocessing"
    severity = Severity.WARNING
    requires = ("IDP101",)
    ok = (
        Example("plenty"),
        Example("docker's default", {**_shared(64 << 20), "platform": {"container": "docker"}}),
        Example("just enough", _shared(TOO_SMALL_BYTES)),
        Example("not known", _shared(None)),
    )
    bad = (
        Example("none", {**_shared(0), "platform": {"container": "docker"}}),
        Example("a page", _shared(4096)),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Compare the size with what semaphores need."""
        size = facts.limits.shared_memory_bytes
        if size is None or size >= TOO_SMALL_BYTES:
            return
        where = facts.platform.container
        yield self.finding(
            found="there is no /dev/shm" if size == 0 else f"the file system of /dev/shm has {size} bytes",
            needed="a /dev/shm of 16 KiB and more",
            consequence="MultiprocessIterator and all that needs a lock between processes fails with OSError",
            next_step="start the container with --shm-size=64m and without --ipc=none"
            if where
            else "mount -t tmpfs tmpfs /dev/shm",
            evidence=(Evidence("size of the file system", None, "df -k /dev/shm"),),
        )
