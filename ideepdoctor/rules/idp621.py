"""IDP621: memory grows with every new input shape."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.model.words import counted
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.lasting import grows_with_shapes, lasting, megabytes


class IDP621(Rule):
    """iDeep keeps what it prepared for an input shape, so memory grows with every new one.

    What it checks
        ``certify`` runs a convolution and a ReLU, forward and backward, over 200 input shapes, once with iDeep and
        once with NumPy, each in a process of its own, and compares how much their resident memory grew.

    Why it matters
        ideep4py keeps a primitive and its buffers for each shape and never lets go of them. Of 300 shapes of images
        a process went from 59 to 399 MB, with NumPy from 58 to 75; after 3,000 it had not come to rest. Images or
        sentences in their own sizes run a long training out of memory. Where shapes repeat, nothing grows.

    How to fix
        Pad inputs to a few sizes (buckets), or resize them to one. Where neither can be, let workers end after some
        thousand shapes and start new ones, or compute the layers of changing shapes with NumPy
        (``with chainer.using_config('use_ideep', 'never'):``).

    References
        oneDNN #489, pytorch/pytorch #27971, intel/ideep #24: the same in other programs with MKL-DNN.
    """

    title = "Memory grows with every new input shape"
    severity = Severity.INFO
    ok = (
        Example("little more than NumPy", lasting()),
        Example("just below", lasting(varying_growth_bytes=200 * 16384 - 1, numpy_growth_bytes=0)),
        Example("NumPy grows as well", lasting(varying_growth_bytes=9000000, numpy_growth_bytes=8000000)),
        Example("not measured", lasting(varying_growth_bytes=None, varying_shapes=0)),
    )
    bad = (
        Example("as on any machine", lasting(varying_growth_bytes=66588672)),
        Example("the least", lasting(varying_growth_bytes=200 * 16384, numpy_growth_bytes=0)),
        Example("NumPy was not measured", lasting(varying_growth_bytes=66588672, numpy_growth_bytes=None)),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report growth beyond NumPy's."""
        seen = facts.lasting
        if seen is None or not grows_with_shapes(seen):
            return
        grown, beside = seen.varying_growth_bytes or 0, seen.numpy_growth_bytes
        other = "" if beside is None else f" (NumPy: {megabytes(beside)})"
        yield self.finding(
            found=f"{counted(seen.varying_shapes, 'new input shape')} took {megabytes(grown)} of memory{other}",
            needed="few input shapes: each is paid for once",
            consequence="where every batch has a shape of its own, memory grows without end; where shapes repeat, it "
            "does not",
            next_step="pad or resize inputs to a few sizes",
            evidence=(
                Evidence(
                    f"{grown / seen.varying_shapes / 1000:.0f} kB for each shape",
                    None,
                    "ideepdoctor certify --ops memory --fresh",
                ),
            ),
        )
