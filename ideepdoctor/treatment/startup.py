"""The files that make variables, an order of imports and the guard hold however a Python is started. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ideepdoctor.model.plan import WriteFile
from ideepdoctor.targets.target import payload_source
from ideepdoctor.treatment.variables import Variable, for_any_machine

MODULE = "_ideepdoctor_startup"
GUARD_MODULE = "_ideepdoctor_guard"
PTH = "ideepdoctor.pth"
PTH_LINE = f"import sys; exec('try:\\n import {MODULE}\\nexcept Exception:\\n pass')\n"
"""One line, because site runs lines; guarded, because a .pth that outlives its module must not print at each start."""

_VARIABLES = "DEFAULTS = ()\n"
_FIRST = "FIRST = ()\n"
_GUARD = "GUARD = None\n"


def startup_files(
    variables: Sequence[Variable], platlib_or_purelib: str, first: Sequence[str] = (), guard: bool | None = None
) -> tuple[WriteFile, ...]:
    """The files for an environment: the guard, the start-up module, then the ``.pth`` line that imports that.

    Args:
        variables: what to set where the user has not.
        platlib_or_purelib: the environment's site-packages folder, an absolute path.
        first: modules whose first import is to import ideep4py before it (``order.packages_first``).
        guard: True: the import of Chainer loads the guard, which is written too; False: it is disabled, and stays so;
            None: the environment has no use for it.

    Raises:
        ValueError: a name or value that no start-up file can hold (not ASCII, or no variable name).
    """
    folder = platlib_or_purelib.rstrip("/")
    does = (
        [f"sets {', '.join(dict.fromkeys(variable.name for variable in variables))} where you have not"]
        if variables
        else []
    )
    does += [f"imports ideep4py before {', '.join(first)}"] if first else []
    does += {True: ["loads the guard with Chainer"], False: ["leaves the guard out"], None: []}[guard]
    written = (
        WriteFile(
            f"{folder}/{GUARD_MODULE}.py",
            guard_text(),
            "corrects what Chainer with this ideep4py is known to compute wrong",
        ),
    )
    return (
        *(written if guard else ()),
        WriteFile(f"{folder}/{MODULE}.py", module_text(variables, first, guard), "; ".join(does) or "sets nothing"),
        WriteFile(f"{folder}/{PTH}", PTH_LINE, "loads it whenever this environment's Python starts"),
    )


def guard_text() -> str:
    """The guard's source, as it is written into environments."""
    return payload_source("guard").decode("ascii")


def module_text(variables: Sequence[Variable], first: Sequence[str] = (), guard: bool | None = None) -> str:
    """The module's source with the variables, the order and the guard in it. Raises ValueError, see startup_files."""
    lines = []
    for variable in for_any_machine(variables):
        if not (_is_name(variable.name) and variable.value.isascii()):
            raise ValueError(f"no start-up file can set {variable.name}={variable.value}")
        lines.append(f"    ({variable.name!r}, {variable.value!r}, {variable.only_on!r}),\n")
    if not all(_is_name(name) for name in first):
        raise ValueError(f"no start-up file can order {', '.join(first)}")
    source = payload_source("startup").decode("ascii")
    source = _filled(source, _VARIABLES, "DEFAULTS = (\n" + "".join(lines) + ")\n" if lines else _VARIABLES)
    source = _filled(source, _FIRST, f"FIRST = {tuple(first)!r}\n")
    return _filled(source, _GUARD, f"GUARD = {guard!r}\n")


def _is_name(text: str) -> bool:
    return text.isidentifier() and text.isascii()


def _filled(source: str, place: str, text: str) -> str:
    """The source with a text in the one place for it."""
    if source.count(place) != 1:
        raise ValueError(f"payload/startup.py has no single place {place.strip()!r}")
    return source.replace(place, text)
