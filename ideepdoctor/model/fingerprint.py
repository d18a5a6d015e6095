"""What makes two findings of two runs the same finding. Pure."""

from __future__ import annotations

import hashlib
import re

from ideepdoctor.model.project import Project

_MEASURED = re.compile(r"0x[0-9a-f]+|\d+(?:[.:]\d+)*(?:e[-+]?\d+)?", re.IGNORECASE)


def fingerprint(code: str, path: str | None, text: str, project: Project | None = None) -> str:
    """64 hexadecimal digits: of the rule, the file that it is about, and the text without its numbers.

    Numbers are what is measured (an error, a share, an address): the same fault gives others in every run. Files of
    the project count by their path in it: another checkout has the same findings.
    """
    stable = _MEASURED.sub("#", text if project is None else project.same_anywhere(text))
    file = path if path is None or project is None else project.within(path) or path
    return hashlib.sha256("\0".join((code, file or "", stable)).encode("utf-8", "replace")).hexdigest()


def numbered(digest: str, number: int) -> str:
    """The fingerprint of the second, third... of equal problems, which their order tells apart."""
    return digest if number == 1 else hashlib.sha256(f"{digest} {number}".encode()).hexdigest()
