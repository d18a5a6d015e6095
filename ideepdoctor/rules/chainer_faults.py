"""Known faults of Chainer's own side of iDeep, by release. Data and pure functions.

Every border was found by reading the installed sources of the releases on both sides, and by running the case with
each of them (Chainer 4 with ideep4py 1.0.4 on Python 3.6, Chainer 5 to 7 with 2.0.0.post3 on Python 3.6), but where
``measured`` says no.
"""

from __future__ import annotations

from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from ideepdoctor.rules.compat import released


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of some releases.

    Attributes:
        what: happens, as a clause.
        wrong: whether results are wrong, or the process ends; else it is an exception, slower, or takes more memory.
        chainer: ranges of releases, from the first that has it to the first that has it no more.
        reference: where it was reported or repaired.
        python2: whether it is one of Python 2 alone.
        ideep4py: range of releases of ideep4py that it needs; None: any.
        measured: whether it was seen here; else it is told as reported.
    """

    what: str
    wrong: bool
    chainer: tuple[tuple[str, str], ...]
    reference: str
    python2: bool = False
    ideep4py: tuple[str, str] | None = None
    measured: bool = True


_FIRST = "4.0.0b4"
"""The first release with an iDeep backend."""

FAULTS = (
    Fault(
        "to_intel64() of a parameter of 3 dimensions ends the process",
        True,
        ((_FIRST, "4.0.0"),),
        "chainer #4572, PR 4577",
    ),
    Fault(
        "load_npz after to_intel64() leaves the weights as they were and says nothing",
        True,
        ((_FIRST, "4.5.0"), ("5.0.0a1", "5.0.0rc1")),
        "chainer PR 5373 and 5377",
    ),
    Fault(
        "Adam with amsgrad forgets the largest second moment after to_intel64()",
        True,
        (("6.0.0", "6.2.0"), ("7.0.0a1", "7.0.0b2")),
        "chainer PR 7661 and 7689",
    ),
    Fault(
        "each backward pass leaves memory that Python 2 does not free by itself",
        True,
        (("5.0.0b4", "5.3.0"), ("6.0.0a1", "6.0.0b3")),
        "chainer #5621, PR 6105 and 6125",
        python2=True,
        measured=False,
    ),
    Fault(
        "to_intel64() of a link with persistent values raises AttributeError",
        False,
        ((_FIRST, "4.0.0rc1"),),
        "chainer PR 4382",
    ),
    Fault(
        "backward of split_axis raises AttributeError where an output is not used",
        False,
        ((_FIRST, "6.3.0"), ("7.0.0a1", "7.0.0b3")),
        "chainer PR 7836 and 7931",
    ),
    Fault(
        "initializers.Identity raises TypeError after to_intel64()",
        False,
        ((_FIRST, "6.2.0"), ("7.0.0a1", "7.0.0b2")),
        "chainer PR 7548 and 7685",
    ),
    Fault(
        "Adam with amsgrad raises TypeError after to_intel64()",
        False,
        (("6.0.0b1", "6.0.0"),),
        "chainer PR 7661",
    ),
    Fault(
        "a link that has its own to_intel64() calls it without end (RecursionError)",
        False,
        (("6.0.0rc1", "6.0.0"),),
        "chainer #6825",
    ),
    Fault(
        "batch_normalization raises where gamma is not float32 and x is",
        False,
        (("6.0.0rc1", "7.0.0rc1"),),
        "chainer PR 8175, 8216 and 8266",
    ),
    Fault(
        "relu keeps its input besides its output until backward: more memory",
        False,
        ((_FIRST, "6.0.0b2"),),
        "chainer #5866, PR 5871",
    ),
    Fault(
        "depthwise convolution takes 10 times as long or more",
        False,
        (("5.0.0b3", "5.0.0"),),
        "chainer #5403",
    ),
    Fault(
        "backward of convolutions was reported to take 10 to 40 % longer",
        False,
        (("5.0.0b2", "5.0.0b4"),),
        "chainer #5055, PR 5063",
        measured=False,
    ),
    Fault(
        "products of NumPy in the same process were reported to take 20 to 100 times as long",
        False,
        ((_FIRST, "5.0.0b3"),),
        "chainer #5082",
        ideep4py=("1", "2.0.0a0"),
        measured=False,
    ),
)


def faults_of(chainer: str, ideep4py: str, *, python2: bool) -> tuple[Fault, ...]:
    """The known faults of a Chainer with an ideep4py, those first that give wrong results; none of what is no version.

    Args:
        chainer: version of Chainer.
        ideep4py: version of ideep4py; a build of ours counts as its release.
        python2: whether the interpreter is a Python 2.
    """
    try:
        version, with_ideep4py = Version(chainer), Version(released(ideep4py))
    except InvalidVersion:
        return ()
    return tuple(
        fault
        for fault in FAULTS
        if any(Version(first) <= version < Version(end) for first, end in fault.chainer)
        and (python2 or not fault.python2)
        and (fault.ideep4py is None or Version(fault.ideep4py[0]) <= with_ideep4py < Version(fault.ideep4py[1]))
    )
