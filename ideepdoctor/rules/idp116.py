"""IDP116: the environment lies where no code may be mapped."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule

_NOEXEC = {"limits": {"prefix_noexec": True}}


class IDP116(Rule):
    """The file system of the environment is mounted with noexec.

    What it checks
        The mount flags of the file systems that hold the environment and its packages (``statvfs``).

    Why it matters
        The interpreter is often a link to one that lies elsewhere and starts; its extension modules do not: every
        import of NumPy or ideep4py ends with ``failed to map segment from shared object``. Chainer swallows that of
        ideep4py and goes on without it.

    How to fix
        Make the environment on another file system, or remount this one: ``mount -o remount,exec FOLDER``.

    References
        Measured with a tmpfs mounted with noexec. mount(8); numpy #14148 and #15102.
    """

    title = "The environment's file system refuses to run code"
    severity = Severity.ERROR
    requires = ("IDP101",)
    ok = (
        Example("an ordinary file system"),
        Example("not known", {"limits": {"prefix_noexec": None}}),
    )
    bad = (
        Example("noexec", {**_NOEXEC, "imports": None, "first_op": None, "mode": "quick"}),
        Example("noexec, before the installation", {**_NOEXEC, "planned_ideep4py": "2.0.0.post3"}, "py36-healthy"),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look at the flag; an ideep4py that could be imported knows better."""
        imported = (facts.imports or {}).get("ideep4py")
        if facts.limits.prefix_noexec and not (imported is not None and imported.ok and not facts.planned_ideep4py):
            prefix = facts.python.prefix
            yield self.finding(
                found=f"{prefix} lies on a file system that is mounted with noexec",
                needed="a file system that allows to map code",
                consequence="no extension module can be imported: failed to map segment from shared object",
                next_step="ideepdoctor setup --env FOLDER, with a folder on another file system",
                evidence=(Evidence("mount option noexec", prefix, f"findmnt -no TARGET,OPTIONS -T {prefix}"),),
            )
