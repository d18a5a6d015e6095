"""An older Python brought here by a tool that this machine has: conda and its relatives, or pyenv."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.model.plan import CreateEnv
from ideepdoctor.system import System, is_executable_file
from ideepdoctor.treatment.installers import MINUTES, Tell, failure

SECONDS = 60 * MINUTES
"""pyenv compiles: minutes on a fast machine."""

_UNREACHED = re.compile(
    r"(?i)could not resolve host|curl: \((5|6|7|28|35|56)\)|wget: unable to resolve|CondaHTTPError|HTTP 000"
)
"""What curl and wget, which pyenv uses, and conda say where there is no network."""


def get_python(system: System, step: CreateEnv, tell: Tell) -> None:
    """Bring the interpreter of ``step.release`` into ``step.path``, with the program ``step.python``.

    Args:
        system: starts the tool.
        step: with a release.
        tell: told each line that the tool prints.

    Raises:
        CouldNotCheck: the network is needed and not there; or the tool says that it is done and no Python is there.
        ApplyFailed: the tool failed otherwise.
    """
    what = f"getting Python {step.release} with {step.tool}"
    done = system.run(_argv(step), timeout_seconds=SECONDS, env=_environment(step), on_output=tell)
    if not done.ok:
        line = next((text for text in done.text().splitlines() if _UNREACHED.search(text)), None)
        if line is not None:
            raise CouldNotCheck(
                f"{what}: the network is needed and not there\n{line.strip()[:300]}",
                hint=f"check the network and the proxy of {step.tool}; or without one: ideepdoctor setup --build",
                context={"command": " ".join(done.argv), "output": done.text()[-4000:]},
            )
        raise failure(done, what)
    if not is_executable_file(Path(step.path) / "bin" / "python"):
        raise CouldNotCheck(
            f"{what}: it ended well, and {step.path}/bin/python is not there",
            hint=f"see what it does: {' '.join(_argv(step))}",
            context={"command": " ".join(done.argv), "output": done.text()[-4000:]},
        )


def forget_python(system: System, step: CreateEnv, tell: Tell) -> None:
    """After the folder was removed: let pyenv take away the commands that led there."""
    if step.tool == "pyenv" and os.access(step.python, os.X_OK):
        system.run([step.python, "rehash"], timeout_seconds=MINUTES, on_output=tell)


def _argv(step: CreateEnv) -> Sequence[str]:
    if step.tool == "pyenv":
        return [step.python, "install", step.release]
    channel = ["-c", "conda-forge"] if step.tool == "micromamba" else []  # it has no channel of its own
    return [step.python, "create", "--yes", "--prefix", step.path, *channel, f"python={step.release}"]


def _environment(step: CreateEnv) -> dict[str, str]:
    """The user's own; what a Python that is active says of itself does not hold for the new one."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "PYTHONPATH")}
    return {**kept, "PYENV_ROOT": str(Path(step.path).parent.parent)} if step.tool == "pyenv" else kept
