"""IDP812: a -march that does not fit."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.build import BuildFacts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.building import BuildRule, Cure, logged, planned
from ideepdoctor.rules.compat import lacking

_NEW = {"march": {"asked": "sapphirerapids", "label": "sapphirerapids", "flags": ["avx2", "avx512_fp16"]}}


class IDP812(BuildRule):
    """-march decides which processors a wheel runs on, and whether the source compiles at all.

    What it checks
        That the compiler knows the -march, that it is x86-64-v3 (AVX2) at least, and that this machine runs what it
        makes unless the wheel is not to be tried here; in a log, the compiler's words and SIGILL.

    Why it matters
        The source says ``-march=native``: a wheel that was built on one machine ends with SIGILL on another, at the
        first function that uses what that one lacks. Below AVX2 it does not compile.

    How to fix
        ``ideepdoctor build --march x86-64-v3`` makes a wheel for every processor with AVX2; its name says so. GCC
        before 11 does not know the levels: ``--march haswell`` is nearly the same.

    References
        x86-64 psABI, micro-architecture levels; documentation of GCC: x86 options.

        Reports: chainer PR 4933, pytorch PR 13303 (an assembler that is too old).
    """

    title = "The -march does not fit the compiler, the source or the machine"
    severity = Severity.ERROR
    ok = (
        Example("native", planned()),
        Example("it was not tried", planned(march=None)),
        Example("for another machine", planned(**_NEW, request={"march": "sapphirerapids", "verify": False})),
    )
    bad = (
        Example("not known", planned(march=None, march_error="c++ knows no -march=x86-64-v9")),
        Example("for another machine, and tried here", planned(**_NEW, request={"march": "sapphirerapids"})),
        Example("in a log", logged("IDP812", "cc1plus: error: bad value ('x86-64-v3') for '-march=' switch")),
        Example("SIGILL", logged("IDP812", "Illegal instruction (core dumped)")),
    )

    def before(self, build: BuildFacts, facts: Facts) -> Iterator[Finding]:
        """Not usable, or not here."""
        if build.march_error:
            yield self.finding(
                found=build.march_error,
                needed="a -march that this compiler knows, x86-64-v3 or above",
                consequence="the source cannot be compiled so",
                next_step="--march native, --march x86-64-v3 or (GCC before 11) --march haswell",
            )
        if build.march is None or build.request is None or not build.request.verify:
            return
        if missing := lacking(facts.cpu, build.march.flags):
            yield self.finding(
                found=f"-march={build.march.asked}: this processor lacks {', '.join(missing)}",
                needed="code that this machine runs, for the wheel is proved here",
                consequence="the proof would end with SIGILL",
                next_step="--march native or x86-64-v3; --no-verify for a wheel that is for other machines alone",
            )

    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """The compiler, or the machine."""
        if "llegal" in line or "SIGILL" in line or "signal 4" in line:
            return Cure(
                "code for this processor",
                "something was built for a processor that has more than this one: -march=native on another machine",
                "build on the weakest machine, or with -march=x86-64-v3 and MKL-DNN with -DARCH_OPT_FLAGS=",
                "has --march x86-64-v3 for that",
                own="ideepdoctor build --march x86-64-v3",
            )
        return Cure(
            "a -march that the compiler knows, with AVX2",
            "the compiler does not know this -march, or it is below x86-64-v3, for which the source does not compile",
            "use -march=haswell (GCC before 11) or -march=x86-64-v3",
            "asks the compiler before it starts (--march)",
            own="--march haswell",
        )
