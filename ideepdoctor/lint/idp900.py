"""IDP900: a source that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.lint.base import Check, Note, Sample
from ideepdoctor.lint.module import Module
from ideepdoctor.model.findings import Severity


class IDP900(Check):
    """A file, or a cell of a notebook, could not be read as Python: nothing is said about it.

    What it checks
        Whether the text is Python 3 or Python 2, in the encoding that its cookie names (PEP 263), UTF-8 without one.

    Why it matters
        A file that was not looked at is not a file without faults. The exit code is 2 where nothing could be read, and
        3 where some of it could not and the rest has no finding that counts.

    How to fix
        Correct the line that is named; or leave the file out.

    References
        PEP 263 (encoding of source files).
    """

    title = "Source that could not be read"
    severity = Severity.WARNING
    needed = "Python source"
    ok = (
        Sample("Python 3", "print('x')\n"),
        Sample("Python 2", "print 'x'\n"),
    )
    bad = (
        Sample("a parenthesis is missing", "print('x'\n"),
        Sample("another language", "int main() { return 0; }\n"),
    )

    def check(self, module: Module) -> Iterator[Note]:
        """Find nothing: what cannot be read does not come here."""
        yield from ()
