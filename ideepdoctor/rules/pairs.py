"""The rules about a pair of Chainer and ideep4py: one for each way in which a pair is not right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding
from ideepdoctor.model.plan import Step
from ideepdoctor.rules.base import Rule
from ideepdoctor.rules.compat import Pair, pair, right_release
from ideepdoctor.rules.installed import cure_command, ideep4py_fix, ideep4py_steps, metadata_evidence, package


class PairRule(Rule):
    """Finds the pairs of one verdict; the cure of all is the release that is right for the installed Chainer."""

    verdict: ClassVar[Pair]
    consequence: ClassVar[str]

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look the pair up."""
        chainer, ideep4py = package(facts, "chainer"), package(facts, "ideep4py")
        if chainer is None or ideep4py is None or facts.planned_ideep4py is not None:
            return
        if pair(chainer.version, ideep4py.version) is self.verdict:
            safety = ideep4py_fix(facts)
            yield self.finding(
                found=f"Chainer {chainer.version} with ideep4py {ideep4py.version}",
                needed=right_release(chainer.version),
                consequence=self.consequence,
                next_step=cure_command(facts, safety),
                evidence=(*metadata_evidence(facts, "chainer"), *metadata_evidence(facts, "ideep4py")),
                fix=safety,
            )

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Install the release that is right for the installed Chainer."""
        return ideep4py_steps(facts)
