"""IDP803: git is missing."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.build import BuildFacts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.building import BuildRule, Cure, logged, planned
from ideepdoctor.rules.distro import GIT, install

LEAST = (2, 17)
"""The first with partial clones: a few digits of a hash find the commit. ``builder.git`` asks for the same."""
_OTHERWISE = "or bring the source: --source FOLDER_OR_ARCHIVE"


class IDP803(BuildRule):
    """Upstream's source, and MKL-DNN's at its pinned commit, come by git.

    What it checks
        ``git --version`` where something must be fetched; in a log, a shell's or Python's word that there is no git.

    Why it matters
        The archive of a tag that the server offers for download is no way round: it lacks MKL-DNN, which is a
        submodule.

    How to fix
        Install git, or bring a complete folder or archive: ``ideepdoctor build --source FOLDER_OR_ARCHIVE``.

    References
        Documentation of git: git-submodule.
    """

    title = "git is missing, too old, or refuses the folder"
    severity = Severity.ERROR
    ok = (Example("it is there", planned()), Example("a folder needs none", planned(git=None)))
    bad = (
        Example("none", planned(git="")),
        Example("that of CentOS 7", planned(git="1.8.3.1")),
        Example("in a log", logged("IDP803", "sh: git: command not found")),
        Example("a mounted folder", logged("IDP803", "fatal: detected dubious ownership in repository at '/src'")),
    )

    def before(self, build: BuildFacts, facts: Facts) -> Iterator[Finding]:
        """None, or one that cannot fetch what is wanted."""
        if build.git is None or _numbers(build.git) >= LEAST:
            return
        yield self.finding(
            found=f"git {build.git}" if build.git else "no git on PATH",
            needed="git 2.17 or later",
            consequence="the source cannot be fetched",
            next_step=f"{install(facts.platform.os_name, GIT)}; {_OTHERWISE}",
        )

    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """Missing, or it does not trust the folder."""
        if "dubious ownership" in line:
            return Cure(
                "a folder that belongs to whoever builds",
                "git does nothing in a folder of somebody else's (a container that mounts it)",
                "git config --global --add safe.directory FOLDER, for ideep and for mkl-dnn",
                "takes the files of such a folder as they are (--source FOLDER)",
            )
        step = f"{install(facts.platform.os_name, GIT)}; {_OTHERWISE}"
        return Cure("git", "the source of iDeep or of MKL-DNN was not fetched", step)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
