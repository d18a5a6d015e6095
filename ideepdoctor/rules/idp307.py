"""IDP307: protobuf too new for the Caffe bridge."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, FixSafety, Severity
from ideepdoctor.model.plan import Step
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.compat import is_older
from ideepdoctor.rules.installed import (
    fix_command,
    metadata_evidence,
    new_environment_command,
    outcome,
    package,
    python_command,
    stack_fix,
    stack_steps,
)

_FAILED = {"ok": False, "error_type": "TypeError", "error_text": "Descriptors cannot not be created directly."}
_GONE = {"ok": False, "error_type": "ImportError", "error_text": "No module named 'google'"}


class IDP307(Rule):
    """protobuf 4 and later break ``chainer.links.caffe`` and ``chainer.exporters``.

    What it checks
        Whether ``import chainer.links.caffe`` fails, where protobuf is 4 or later.

    Why it matters
        ``TypeError: Descriptors cannot not be created directly``. Chainer itself works; only programs that read or
        write Caffe models are concerned. On Python 3.7 pip's own choice of protobuf is such a version.

    How to fix
        protobuf 3.20.3 or older: ``ideepdoctor fix`` installs the one of the known-good stack, by hash.

    References
        sony/nnabla-ext-cuda PR 405; ethereon/caffe-tensorflow #10 and #153.

        Reports: neulab/prompt2model #220.
    """

    title = "protobuf is too new for Chainer's Caffe bridge"
    severity = Severity.WARNING
    requires = ("IDP204", "IDP306")
    fix = FixSafety.SAFE
    ok = (
        Example("3.20.3"),
        Example("none: nobody uses it", {"packages": {"protobuf": None}, "imports": {"chainer.links.caffe": _GONE}}),
    )
    bad = (
        Example("4.24.4", {"packages": {"protobuf": "4.24.4"}, "imports": {"chainer.links.caffe": _FAILED}}),
        Example("4.21.0", {"packages": {"protobuf": "4.21.0"}, "imports": {"chainer.links.caffe": _FAILED}}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look at the version and at the import of the bridge."""
        protobuf, chainer = package(facts, "protobuf"), package(facts, "chainer")
        result = outcome(facts, "chainer.links.caffe")
        if protobuf is None or chainer is None or is_older(protobuf.version, "4"):
            return
        if result is not None and not result.ok and "escriptors cannot" in (result.error_text or ""):
            safety = stack_fix(facts)
            pip = python_command(facts, "-m pip install 'protobuf<3.21'")
            by_hand = pip if facts.python.externally_managed is None else new_environment_command(facts)
            yield self.finding(
                found=f"protobuf {protobuf.version}",
                needed="protobuf 3.20.3 or older",
                consequence="import chainer.links.caffe fails; everything else of Chainer works",
                next_step=fix_command(facts) if safety is FixSafety.SAFE else by_hand,
                evidence=metadata_evidence(facts, "protobuf"),
                fix=safety,
            )

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Install the protobuf of the nearest stack."""
        return stack_steps(facts, ["protobuf"])
