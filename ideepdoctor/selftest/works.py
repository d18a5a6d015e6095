"""Checks of the doctor itself: its rules, data, folders and tools."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.fleet.merge_pages import Case
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.model.own import Own
from ideepdoctor.rules.base import Unknown
from ideepdoctor.selftest.base import SelfCheck


class IDP095(SelfCheck):
    """A rule does not hold on its own examples.

    What it checks
        Every rule is applied to its examples: recorded machines with a fault laid over them, and without. The bad ones
        must give its finding, the good ones must not. The checks of source are applied to their programs.

    Why it matters
        A rule that does not see its own fault, or sees one where none is, judges environments wrongly.

    How to fix
        Install the doctor again: pip install --force-reinstall ideepdoctor. If it is still so, report it.

    References
        None.
    """

    title = "A rule does not hold on its own examples"
    ok = (Case("all examples hold"),)
    bad = (Case("a table that a rule reads was edited"),)

    def check(self, own: Own) -> Iterator[Finding]:
        """Name each rule and example."""
        if own.examples is None:
            raise Unknown("the recorded machines that the examples are laid over are not here")
        for trouble in own.example_errors:
            yield self.finding(
                found=f"{trouble.what}: {trouble.why}",
                needed="the rule's finding on its bad examples, and none on its good ones",
                consequence="what this rule says of environments cannot be trusted",
            )


class IDP096(SelfCheck):
    """Data of the package cannot be read.

    What it checks
        The stacks and peers are read, the schema of the report is a JSON Schema and fits an empty report, the pages are
        templates, and the catalogues of other languages can be read.

    Why it matters
        Without them nothing can be installed, and reports cannot be written.

    How to fix
        Install the doctor again: pip install --force-reinstall ideepdoctor.

    References
        None.
    """

    title = "Data of the doctor cannot be read"
    ok = (Case("all can be read"),)
    bad = (Case("the file of a stack was cut short"),)

    def check(self, own: Own) -> Iterator[Finding]:
        """Name each file."""
        for trouble in own.data_errors:
            yield self.finding(
                found=f"{trouble.what}: {trouble.why}",
                needed="data that can be read",
                consequence="what rests on it fails",
                path=trouble.path,
            )


class IDP097(SelfCheck):
    """The doctor's own folders cannot be used.

    What it checks
        A file is written into the folder of the journal and into that of the cache, and removed; and the lock that
        keeps two doctors apart keeps a second one out.

    Why it matters
        Without a journal nothing can be changed and taken back; without the lock two doctors change one environment.

    How to fix
        Make the folders writable, or name others with IDEEPDOCTOR_STATE_DIR and IDEEPDOCTOR_CACHE_DIR. Some network
        file systems have no locks: put the folders on a local disk.

    References
        None.
    """

    title = "The doctor's own folders cannot be used"
    ok = (Case("both can be written and the lock locks"),)
    bad = (Case("the home folder is read-only"),)

    def check(self, own: Own) -> Iterator[Finding]:
        """Name each folder."""
        for trouble in own.folders:
            yield self.finding(
                found=f"{trouble.what}: {trouble.why}",
                needed="a folder that can be written, on a file system with locks",
                consequence="nothing can be changed, and nothing taken back",
                next_step="set IDEEPDOCTOR_STATE_DIR and IDEEPDOCTOR_CACHE_DIR to folders that you can write",
                path=trouble.path,
            )


class IDP098(SelfCheck):
    """uv, which installs for the doctor, is missing or does not run.

    What it checks
        The uv that came with the doctor is started and says its version.

    Why it matters
        Environments are made and packages installed with it, except for Python 2.7 and 3.5.

    How to fix
        pip install uv, in the environment of the doctor.

    References
        None.
    """

    title = "uv does not run"
    ok = (Case("it says its version"),)
    bad = (Case("it was uninstalled"),)

    def check(self, own: Own) -> Iterator[Finding]:
        """Say why not."""
        if own.uv is None:
            yield self.finding(
                found=own.uv_error,
                needed="uv in the doctor's own environment",
                consequence="nothing can be installed into Python 3.6 and later",
                next_step="pip install --force-reinstall uv",
            )


class IDP099(SelfCheck):
    """No Python that can hold iDeep was found on this machine.

    What it checks
        The interpreters on PATH, of pyenv, conda and uv, and of virtual environments: whether one of them is a Python
        2.7, 3.5, 3.6 or 3.7, for which wheels of ideep4py exist.

    Why it matters
        It is no fault of the doctor, which judges saved facts and remote targets without one; setup needs one here.

    How to fix
        ideepdoctor setup says which ways there are to get one.

    References
        None.
    """

    title = "No Python for iDeep was found here"
    severity = Severity.INFO
    ok = (Case("Python 3.7 is there"),)
    bad = (Case("only Python 3.11 is there"),)

    def check(self, own: Own) -> Iterator[Finding]:
        """Look at the versions."""
        minors = {".".join(version.split(".")[:2]) for version in own.pythons}
        if minors.isdisjoint({"2.7", "3.5", "3.6", "3.7"}):
            yield self.finding(
                found=f"found: {', '.join(sorted(own.pythons)) or 'none'}",
                needed="Python 2.7, 3.5, 3.6 or 3.7",
                consequence="setup has nothing to make an environment with",
                next_step="ideepdoctor setup --dry-run",
            )
