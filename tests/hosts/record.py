"""Record a machine: the facts of an environment as JSON, with nothing of the machine's owner in it.

    python tests/hosts/record.py PYTHON NAME [--healthy] [--raw] [--emulator WORDS] [--variable NAME=VALUE]...
                                 [--folder HERE=THERE]...

collects the full facts of PYTHON in the environment of a user who has set nothing, rewrites them and writes
tests/hosts/NAME.json. ``--healthy``: as in an environment made by the doctor, with its start-up file's
variables. ``--emulator``: under ``qemu-x86_64 -cpu Nehalem``. ``--variable``: one that the user has set; it is kept.
``--folder``: one more folder that is to be called something else. ``--raw``: writes tests/hosts/raw/NAME.json too, what
the probe told of the environment (not of the machine), for tests/hosts/build.py.

What is rewritten, and nothing else: folders of the environment, its base installation and the home become those of a
person called "user" who has pyenv or conda (an interpreter of the system stays where it is); the kernel's release, the
date, the durations, what is free of memory and disk, the sign of a container, pip's settings and the identities of
files become those of a plain desktop; the other interpreters are the base installation alone, and of the headers of
files those of ideep4py.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ideepdoctor.facts.collect import Scope, collect
from ideepdoctor.facts.outcomes import OF_INTEREST
from ideepdoctor.facts.redact import redact
from ideepdoctor.facts.serialize import facts_from_json, facts_to_json
from ideepdoctor.model.facts import Facts, Interpreter, Outcome, Variables
from ideepdoctor.model.native import ElfFile, Native
from ideepdoctor.system import RealSystem
from ideepdoctor.targets.target import Target, run_payload
from ideepdoctor.treatment.variables import recommended

HOME = "/home/user"
ENVIRONMENT = f"{HOME}/ideep"


def main() -> None:
    """Collect, rewrite, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python")
    parser.add_argument("name")
    parser.add_argument("--healthy", action="store_true")
    parser.add_argument("--raw", action="store_true")
    parser.add_argument("--emulator", default="")
    parser.add_argument("--variable", action="append", default=[])
    parser.add_argument("--folder", action="append", default=[])
    asked = parser.parse_args()
    environ = {"PATH": os.defpath, "HOME": str(Path.home()), "LANG": "C.UTF-8"}
    if asked.healthy:
        environ["CHAINER_USE_IDEEP"] = "auto"
    kept = dict(item.split("=", 1) for item in asked.variable)
    environ.update(kept)
    target = Target(asked.python, emulator=tuple(asked.emulator.split()))
    found = collect(RealSystem(), target, environ, Scope(interpreters=False), cwd="/")
    folders = {**neutral_folders(found), **dict(item.split("=", 1) for item in asked.folder)}
    facts = plain(found, asked.healthy, kept)
    text = rewritten(json.dumps(facts_to_json(facts), indent=1, sort_keys=True) + "\n", folders)
    facts_from_json(json.loads(text))
    here = Path(__file__).parent
    (here / f"{asked.name}.json").write_text(text, "utf-8")
    if asked.raw:
        request = {"phase": "full", "quick": False, "timeout_seconds": 180, "cwd": "/"}
        told = run_payload(RealSystem(), target, "probe", request, timeout_seconds=900, env=environ)
        text = json.dumps(plain_answer(told), indent=1, sort_keys=True) + "\n"
        (here / "raw" / f"{asked.name}.json").write_text(rewritten(text, folders), "utf-8")


def plain_answer(told: dict[str, Any]) -> dict[str, Any]:
    """What the probe told of the environment, with round durations.

    What it told of the machine is left out, and what is mapped that read_libraries does not look at.
    """
    left_out = ("machine", "cpuid", "host_cpuid", "loader_help", "variables")
    kept = {name: value for name, value in told.items() if name not in left_out}
    kept["pip_settings"] = []
    for child in kept["imports"].values():
        after = child["told"].get("after", {})
        after["maps"] = [path for path in after.get("maps", ()) if OF_INTEREST.match(path.rpartition("/")[2])]
        child["ended"]["seconds"] = 0.5
        for stage in child["told"].values():
            if isinstance(stage, dict) and "seconds" in stage:
                stage["seconds"] = 0.5
    return kept


def plain(facts: Facts, healthy: bool, kept: Mapping[str, str]) -> Facts:
    """Return the facts as a plain desktop would give them; ``kept``: variables that the user has set."""
    variables = Variables(dict(kept), dict(kept), ())
    if healthy:
        chosen = recommended(facts)
        names = tuple(variable.name for variable in chosen)
        effective = {variable.name: variable.value for variable in chosen}
        variables = Variables({}, {**effective, "IDEEPDOCTOR_SET": ",".join(names)}, names)
    python = facts.python
    libc = f"{facts.platform.libc} {facts.platform.libc_version}"
    path = f"{python.base_prefix}/bin/python{python.minor}"
    source = "pyenv" if "/.pyenv/" in path else "conda" if python.kind == "conda" else "PATH"
    base = Interpreter(path, path, python.version, python.implementation, python.abi, python.bits, libc, source)
    imports = {name: timeless(outcome) for name, outcome in (facts.imports or {}).items()}
    first_op = None if facts.first_op is None else timeless(facts.first_op)
    changed = replace(
        facts,
        collected_at="2026-01-01T00:00:00Z",
        platform=replace(facts.platform, kernel="6.1.0-37-amd64", container=None),
        limits=replace(
            facts.limits,
            memory_available_bytes=16 << 30,
            disk_free_bytes=64 << 30,
            processes_limit=None,
            address_space_bytes=None,
            stack_bytes=8 << 20,
            shared_memory_bytes=8 << 30,
        ),
        variables=variables,
        imports=imports,
        first_op=first_op,
        interpreters=(base,),
        native=None if facts.native is None else plain_native(facts.native),
        pip_settings=None if facts.pip_settings is None else (),
    )
    return redact(changed, home="", user="", host=socket.gethostname())


def plain_native(native: Native) -> Native:
    """Return the libraries with numbers in the place of devices and inodes, and round durations.

    Of the headers of files only those of ideep4py are kept: nothing else is looked at, and the C library's are long.
    """
    known: dict[str | None, str] = {}
    objects = {
        path: numbered(file, known) for path, file in sorted(native.objects.items()) if "/ideep4py/" in file.real_path
    }
    files = tuple(replace(item, file=numbered(item.file, known)) for item in native.files)
    started = native.started
    if started is not None:
        started = replace(
            started,
            imported=None if started.imported is None else timeless(started.imported),
            first_op=None if started.first_op is None else timeless(started.first_op),
        )
    return replace(native, objects=objects, files=files, started=started, entries=len(objects))


def numbered(file: ElfFile, known: dict[str | None, str]) -> ElfFile:
    """Return the file with the number that its identity was given."""
    return replace(file, identity=known.setdefault(file.identity, f"1:{len(known) + 1}"))


def timeless(outcome: Outcome) -> Outcome:
    """Return the outcome with a round duration, so that recording again changes nothing."""
    return replace(outcome, seconds=0.5)


def neutral_folders(facts: Facts) -> dict[str, str]:
    """The folders of this machine, and what they are to be called."""
    python = facts.python
    folders = {str(Path.home()): HOME}
    if python.base_prefix != "/usr":
        conda = f"{HOME}/miniconda3/envs/ideep"
        folders[python.base_prefix] = conda if python.kind == "conda" else f"{HOME}/.pyenv/versions/{python.version}"
    if python.prefix != python.base_prefix:
        folders[python.prefix] = ENVIRONMENT
    return folders


def rewritten(text: str, folders: Mapping[str, str]) -> str:
    """Return the JSON text with the folders of this machine replaced."""
    for folder in sorted(folders, key=len, reverse=True):
        text = text.replace(folder, folders[folder])
    return text


if __name__ == "__main__":
    main()
