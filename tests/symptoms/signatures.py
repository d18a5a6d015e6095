"""The texts that people report, with the code that must be named first: see signatures.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("signatures.toml")


@dataclass(frozen=True, slots=True)
class Signature:
    """One of them.

    Attributes:
        entry: of the catalogue of reports.
        text: a line or several.
        code: of the rule that is named first.
    """

    entry: str
    text: str
    code: str

    @property
    def of_a_build(self) -> bool:
        """Whether it is a finding about a build."""
        return self.code.startswith("IDP8") and self.code != "IDP819"


SIGNATURES = tuple(Signature(**one) for one in tomllib.loads(FILE.read_text("utf-8"))["signature"])
