"""IDP620: memory grows with every step."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.model.words import counted
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.installed import new_environment_command
from ideepdoctor.rules.lasting import lasting, leaks, megabytes


class IDP620(Rule):
    """The memory of a process grows with every training step although its shapes do not change.

    What it checks
        ``certify`` repeats one training step (convolution, BatchNormalization, ReLU, pooling, linear, SGD) after a
        warm-up, collects garbage, and reads the resident memory. Growth counts where it goes on through all four
        quarters of the run: 8 kB or more with every step.

    Why it matters
        A training of a hundred thousand steps needs a gigabyte for each 10 kB, and is killed in its middle.

    How to fix
        Releases of Chainer that are proven with this ideep4py do not do it: compare with a new environment,
        ``ideepdoctor setup``. Where that one is flat, look at what was changed in this one: patched functions, hooks,
        and lists that keep ``loss`` instead of ``float(loss.array)``.

    References
        Memory that a cycle of references holds until the garbage collector comes is no leak and is not told here, such
        as Chainer 5.0.0's on Python 2.7: chainer/chainer #5621, #6105. Through iDeep's ReLU Chainer before 6 held two
        arrays instead of one for the time of a step: chainer/chainer #5866.
    """

    title = "Memory grows with every training step"
    severity = Severity.ERROR
    hazards = ("leak",)
    """What certify says that such a case shows."""
    ok = (
        Example("flat", lasting()),
        Example("just below a leak", lasting(fixed_growth_bytes=240 * 8192 - 1)),
        Example("not measured", lasting(fixed_growth_bytes=None, fixed_calls=0)),
    )
    bad = (
        Example("an activation is kept by each step", lasting(fixed_growth_bytes=240 * 65536)),
        Example("the least that counts", lasting(fixed_growth_bytes=240 * 8192)),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report steady growth."""
        seen = facts.lasting
        if seen is None or not leaks(seen):
            return
        grown, calls = seen.fixed_growth_bytes or 0, seen.fixed_calls
        yield self.finding(
            found=f"{counted(calls, 'training step')} with the same shapes took {megabytes(grown)} more and more",
            needed="memory that stays as it is after the first steps",
            consequence=f"a hundred thousand steps take {grown / calls * 1e5 / 1e9:.1f} GB, and the process is killed",
            next_step=new_environment_command(facts),
            evidence=(
                Evidence(
                    f"{grown / calls / 1000:.0f} kB with every step", None, "ideepdoctor certify --ops memory --fresh"
                ),
            ),
        )
