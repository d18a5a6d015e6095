"""What a check of source is: a document, a pure look at one program, and examples that are its tests and its docs."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ideepdoctor.lint.module import Module
from ideepdoctor.model.findings import FixSafety, Severity


@dataclass(frozen=True, slots=True)
class Sample:
    """A source text.

    Attributes:
        name: what it shows, a few words.
        source: a program, or the part of one that matters.
        file: the name that it would have.
    """

    name: str
    source: str
    file: str = "program.py"


@dataclass(frozen=True, slots=True)
class Note:
    """What a check says of one place.

    Attributes:
        node: where.
        found: what stands there.
        consequence: what happens because of it.
        next_step: what to write instead.
        severity: None: the check's own.
    """

    node: ast.AST
    found: str
    consequence: str
    next_step: str
    severity: Severity | None = None


class Check(ABC):
    """One check. Subclasses are named by their code (``IDP9`` and two digits) and live in a file each.

    The docstring is what ``ideepdoctor explain CODE`` prints and has the headings of a rule: What it checks, Why it
    matters, How to fix, References.
    """

    title: ClassVar[str]
    """Fixed text, no full stop: the kind of fault."""
    severity: ClassVar[Severity]
    needed: ClassVar[str]
    """What must stand there instead, for all its findings."""
    fix: ClassVar[FixSafety] = FixSafety.MANUAL
    requires: ClassVar[tuple[str, ...]] = ()
    ok: ClassVar[tuple[Sample, ...]] = ()
    bad: ClassVar[tuple[Sample, ...]] = ()

    @classmethod
    def code(cls) -> str:
        """The check's code, which is the class's name."""
        return cls.__name__

    @abstractmethod
    def check(self, module: Module) -> Iterator[Note]:
        """Yield a note for each place that has the fault."""
