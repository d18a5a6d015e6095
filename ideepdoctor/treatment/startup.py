"""The two files that make variables hold in an environment however its Python is started. Pure text."""

from __future__ import annotations

from collections.abc import Sequence

from ideepdoctor.model.plan import WriteFile
from ideepdoctor.targets.target import payload_source
from ideepdoctor.treatment.variables import Variable

MODULE = "_ideepdoctor_startup"
PTH = "ideepdoctor.pth"
PTH_LINE = f"import sys; exec('try:\\n import {MODULE}\\nexcept Exception:\\n pass')\n"
"""One line, because site runs lines; guarded, because a .pth that outlives its module must not print at each start."""

_PLACE = "DEFAULTS = ()\n"


def startup_files(variables: Sequence[Variable], platlib_or_purelib: str) -> tuple[WriteFile, ...]:
    """The files for an environment: the module first, then the ``.pth`` line that imports it.

    Args:
        variables: what to set where the user has not.
        platlib_or_purelib: the environment's site-packages folder, an absolute path.

    Raises:
        ValueError: a name or value that no start-up file can hold (not ASCII, or no variable name).
    """
    folder = platlib_or_purelib.rstrip("/")
    names = ", ".join(variable.name for variable in variables)
    return (
        WriteFile(f"{folder}/{MODULE}.py", module_text(variables), f"sets {names} where you have not"),
        WriteFile(f"{folder}/{PTH}", PTH_LINE, "loads it whenever this environment's Python starts"),
    )


def module_text(variables: Sequence[Variable]) -> str:
    """The module's source with the variables in it. Raises ValueError, see startup_files."""
    source = payload_source("startup").decode("ascii")
    if source.count(_PLACE) != 1:
        raise ValueError("payload/startup.py has no single place for the variables")
    lines = []
    for variable in variables:
        if not (variable.name.isidentifier() and variable.name.isascii() and variable.value.isascii()):
            raise ValueError(f"no start-up file can set {variable.name}={variable.value}")
        lines.append(f"    ({variable.name!r}, {variable.value!r}, {variable.only_on!r}),\n")
    return source.replace(_PLACE, "DEFAULTS = (\n" + "".join(lines) + ")\n" if lines else _PLACE)
