"""IDP622: a forked child hangs or dies."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.lasting import child, lasting


class IDP622(Rule):
    """A child that is forked after iDeep has computed hangs or dies.

    What it checks
        ``certify`` computes with iDeep and NumPy, then forks: by os.fork(), as multiprocessing does it, and while
        another thread computes. The child computes the same, within a time limit.

    Why it matters
        A fork copies one thread and the locks of all. With the runtimes of a clean install this goes well; another
        OpenMP runtime or BLAS in the process (libgomp, MKL, OpenBLAS), or a library that is preloaded, may wait in the
        child for threads that are not there. MultiprocessIterator and every pool of workers then stand still without a
        word.

    How to fix
        Start workers afresh instead of forking them: ``multiprocessing.set_start_method('spawn')``, or
        ``'forkserver'``, at the beginning of the program. Python 2.7 cannot: start the workers there before iDeep
        computes for the first time. OMP_NUM_THREADS=1 in the workers and, with Intel's OpenMP runtime,
        ``KMP_INIT_AT_FORK=false`` helped others. Never fork while another thread computes with NumPy: with OpenBLAS
        the child hangs without iDeep, too.

    References
        apache/mxnet #12710 and #14979, OpenMathLib/OpenBLAS #240, numpy/numpy #11734, pytorch/pytorch #17199.
    """

    title = "A forked child hangs or dies"
    severity = Severity.ERROR
    hazards = ("fork",)
    """What certify says that such a case shows."""
    ok = (
        Example("it computes", lasting(child(ok=True))),
        Example("not tried", lasting(None)),
    )
    bad = (
        Example(
            "it hangs",
            lasting(child(ok=False, timed_out=True, error_text="a child of os.fork() was not done after 15 s")),
        ),
        Example(
            "it dies",
            lasting(child(ok=False, signal="SIGSEGV", error_text="a child of os.fork() was ended by SIGSEGV")),
        ),
        Example(
            "Python 2.7",
            lasting(child(ok=False, timed_out=True, error_text="a child of os.fork() was not done after 15 s")),
            host="py27-healthy",
        ),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the child that did not end well."""
        ended = None if facts.lasting is None else facts.lasting.fork
        if ended is None or ended.ok:
            return
        old = facts.python.version.startswith("2.")
        yield self.finding(
            found=ended.error_text or "a child that was forked after iDeep had computed did not end well",
            needed="a child that computes, and ends",
            consequence="MultiprocessIterator and pools of workers that are started after the first step stand still"
            if ended.timed_out
            else "workers that are started after the first step are lost",
            next_step="start the workers before iDeep computes for the first time"
            if old
            else "multiprocessing.set_start_method('spawn') at the beginning of the program",
            evidence=(Evidence("forked after a convolution", None, "ideepdoctor certify --ops fork --fresh"),),
        )
