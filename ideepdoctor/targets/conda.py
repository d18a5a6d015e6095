"""``conda:NAME``: an environment of conda on this machine, by its name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ideepdoctor.errors import UsageError
from ideepdoctor.system import System
from ideepdoctor.targets.address import Address
from ideepdoctor.targets.sources import conda_prefixes, program_on_path, python_of

_TOOLS = ("conda", "mamba", "micromamba")
_LIST_SECONDS = 30.0


def conda_python(system: System, environ: Mapping[str, str], address: Address) -> str:
    """The interpreter of the environment: by the known folders of conda, else by what ``conda env list`` says.

    Args:
        system: starts conda.
        environ: for PATH, HOME, CONDA_EXE, CONDA_ENVS_PATH.
        address: its name is that of the environment, ``base``, or its folder.

    Raises:
        UsageError: there is no such environment (those that there are, are named), or it has no Python.
    """
    known = list(dict.fromkeys(map(str, conda_prefixes(environ))))
    found = _named(address.name, known)
    if not found:
        known = list(dict.fromkeys([*known, *_listed(system, environ)]))
        found = _named(address.name, known)
    if not found:
        there = [prefix for prefix in known if (Path(prefix) / "conda-meta").is_dir()]
        listing = "\n".join(["environments found:", *(f"  {prefix}" for prefix in there)])
        raise UsageError(
            f"{address.text}: there is no environment {address.name} of conda here",
            hint=listing if there else "no conda was found here; name the interpreter: --python PATH",
        )
    python = python_of(found[0])
    if python is None:
        raise UsageError(
            f"{address.text}: {found[0]} has no Python", hint=f"conda install -p {found[0]} python=3.7, or name another"
        )
    return python


def _named(name: str, prefixes: list[str]) -> list[str]:
    """Those that the name means, the one that is surely an environment of conda first."""
    if name.startswith("/"):
        found = [name] if Path(name).is_dir() else []
    else:
        found = [
            prefix
            for prefix in prefixes
            if (Path(prefix).name == name and Path(prefix).parent.name == "envs")
            or (name == "base" and (Path(prefix) / "condabin").is_dir())
        ]
        found = found or [prefix for prefix in prefixes if Path(prefix).name == name]
    return [prefix for prefix in found if Path(prefix).is_dir()]


def _listed(system: System, environ: Mapping[str, str]) -> list[str]:
    """The folders that conda itself lists; none where it is not there or does not answer."""
    programs = [environ.get("CONDA_EXE"), *(program_on_path(environ, tool) for tool in _TOOLS)]
    for program in filter(None, programs):
        done = system.run([program, "env", "list", "--json"], timeout_seconds=_LIST_SECONDS, env=environ)
        try:
            told = json.loads(done.text()) if done.ok else {}
        except ValueError:
            continue
        folders = told.get("envs") if isinstance(told, dict) else None
        if isinstance(folders, list) and folders:
            return [folder for folder in folders if isinstance(folder, str)]
    return []
