"""Checks of the doctor itself: its files, modules, libraries, and programs for other Pythons."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.fleet.merge_pages import Case
from ideepdoctor.model.findings import Finding
from ideepdoctor.model.own import Own
from ideepdoctor.selftest.base import SelfCheck


class IDP091(SelfCheck):
    """A file of the doctor is gone or holds something else than what was installed.

    What it checks
        Every file of the package against the digest in RECORD, the list that the installer wrote. A folder of sources
        has no such list, and nothing is compared.

    Why it matters
        The doctor judges and changes environments. With a file that was edited, cut short by a full disk or lost, its
        words and its changes cannot be trusted.

    How to fix
        Install it again: pip install --force-reinstall ideepdoctor. Whoever develops it installs it with --editable.

    References
        The Python packaging specification "Recording installed projects".
    """

    title = "A file of the doctor is missing or was altered"
    ok = (Case("every file is as it was installed"),)
    bad = (Case("a rule was deleted"), Case("a payload was edited"))

    def check(self, own: Own) -> Iterator[Finding]:
        """Name each file."""
        for name in own.missing:
            yield self.finding(
                found=f"{name} is missing",
                needed="every file that was installed",
                consequence="what needs it fails, and what the doctor says cannot be trusted",
                path=f"{own.folder.rpartition('/')[0]}/{name}",
            )
        for name in own.altered:
            yield self.finding(
                found=f"{name} was altered",
                needed="every file as it was installed",
                consequence="what the doctor says and does cannot be trusted",
                path=f"{own.folder.rpartition('/')[0]}/{name}",
            )


class IDP092(SelfCheck):
    """A module of the doctor cannot be imported.

    What it checks
        Every module of the package is imported, all but the programs that run in other Pythons.

    Why it matters
        Commands import what they need when they need it: a module that is broken shows itself in the middle of a run.

    How to fix
        Install the doctor again, with the libraries that it needs: pip install --force-reinstall ideepdoctor.

    References
        None.
    """

    title = "A module of the doctor cannot be imported"
    ok = (Case("all can be imported"),)
    bad = (Case("a module that another one needs was deleted"),)

    def check(self, own: Own) -> Iterator[Finding]:
        """Name each module."""
        for trouble in own.imports:
            yield self.finding(
                found=f"{trouble.what}: {trouble.why}",
                needed="every module can be imported",
                consequence="the commands that need it fail",
                path=trouble.path,
            )


class IDP093(SelfCheck):
    """A library that the doctor needs is missing or too old.

    What it checks
        The requirements of the installed distribution against the distributions that are there.

    Why it matters
        A library that another program has replaced or removed breaks the doctor in ways that nobody can foresee.

    How to fix
        Give the doctor an environment of its own (pipx or uv tool install ideepdoctor), or install what is missing.

    References
        None.
    """

    title = "A library that the doctor needs is missing or too old"
    ok = (Case("all are there"),)
    bad = (Case("jinja2 was uninstalled"),)

    def check(self, own: Own) -> Iterator[Finding]:
        """Name each library."""
        for name, needed, there in own.libraries:
            yield self.finding(
                found=f"{name} is missing" if there is None else f"{name} {there}",
                needed=f"{name} {needed}".strip(),
                consequence="the commands that need it fail",
                next_step=f'pip install "{name}{needed}"',
            )


class IDP094(SelfCheck):
    """A program that the doctor sends to other Pythons is no program for one of them.

    What it checks
        Every such program is compiled by one interpreter of each version of Python that is found here, 2.7 included.

    Why it matters
        What does not compile there cannot probe, test or measure there, and diagnose cannot answer.

    How to fix
        Install the doctor again: pip install --force-reinstall ideepdoctor. If it is still so, report it.

    References
        None.
    """

    title = "A program for other Pythons does not compile"
    ok = (Case("all compile in Python 2.7 and 3.7"),)
    bad = (Case("one was cut short"),)

    def check(self, own: Own) -> Iterator[Finding]:
        """Name each program and the Python."""
        for trouble in own.payload_errors:
            yield self.finding(
                found=f"{trouble.what}: {trouble.why}",
                needed="every program compiles in every Python that is here",
                consequence="environments with this Python cannot be examined",
                path=trouble.path,
            )
