"""What the doctor has seen of itself, for ``self-test``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that did not work: what, why, and the file that it is about."""

    what: str
    why: str
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Own:
    """The doctor's own installation.

    Attributes:
        folder: of the package.
        listed: files that the installer's list names; 0: there is no such list (a folder of sources).
        missing, altered: files of the list that are gone, or hold something else; paths from the folder above.
        modules: how many were imported.
        imports: modules that cannot be imported.
        libraries: requirements of the package that are not met: name, what is needed, what is there.
        payloads: how many programs for other Pythons there are.
        compiled_by: versions of Python that compiled them all, or tried.
        payload_errors: programs that one of them does not compile.
        examples: how many examples of rules and checks were tried; None: the recorded machines are not here.
        example_errors: examples that do not give what they must.
        data_errors: data of the package that cannot be read.
        folders: the doctor's own folders that cannot be written, and a lock that does not lock.
        pythons: versions of the interpreters that were found.
        uv: version of uv; None: see uv_error.
        uv_error: why it does not work.
        seconds: what the whole took.
    """

    folder: str
    listed: int
    missing: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()
    modules: int = 0
    imports: tuple[Trouble, ...] = ()
    libraries: tuple[tuple[str, str, str | None], ...] = ()
    payloads: int = 0
    compiled_by: tuple[str, ...] = ()
    payload_errors: tuple[Trouble, ...] = ()
    examples: int | None = None
    example_errors: tuple[Trouble, ...] = ()
    data_errors: tuple[Trouble, ...] = ()
    folders: tuple[Trouble, ...] = ()
    pythons: tuple[str, ...] = ()
    uv: str | None = None
    uv_error: str = ""
    seconds: float = 0.0
