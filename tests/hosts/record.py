"""Record a machine: the facts of an environment as JSON, with nothing of the machine's owner in it.

    python tests/hosts/record.py PYTHON NAME [--healthy]

collects the full facts of PYTHON in the environment of a user who has set nothing, rewrites them and writes
tests/hosts/NAME.json. ``--healthy``: as in an environment made by the doctor, with its start-up file's
variables.

What is rewritten, and nothing else: folders of the environment, its base installation and the home become those of a
person called "user" who has pyenv; the kernel's release, the date, the durations, what is free of memory and disk
the sign of a container and the identities of files become those of a plain desktop; the other interpreters are the
base installation alone, and of the headers of files those of ideep4py.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
from dataclasses import replace
from pathlib import Path

from ideepdoctor.facts.collect import Scope, collect
from ideepdoctor.facts.redact import redact
from ideepdoctor.facts.serialize import facts_from_json, facts_to_json
from ideepdoctor.model.facts import Facts, Interpreter, Outcome, Variables
from ideepdoctor.model.native import ElfFile, Native
from ideepdoctor.system import RealSystem
from ideepdoctor.targets.target import Target
from ideepdoctor.treatment.variables import recommended

HOME = "/home/user"
ENVIRONMENT = f"{HOME}/ideep"


def main() -> None:
    """Collect, rewrite, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python")
    parser.add_argument("name")
    parser.add_argument("--healthy", action="store_true")
    asked = parser.parse_args()
    environ = {"PATH": os.defpath, "HOME": str(Path.home()), "LANG": "C.UTF-8"}
    if asked.healthy:
        environ["CHAINER_USE_IDEEP"] = "auto"
    found = collect(RealSystem(), Target(asked.python), environ, Scope(interpreters=False), cwd="/")
    facts = plain(found, asked.healthy)
    text = json.dumps(facts_to_json(facts), indent=1, sort_keys=True) + "\n"
    (Path(__file__).parent / f"{asked.name}.json").write_text(rewritten(text, found), "utf-8")


def plain(facts: Facts, healthy: bool) -> Facts:
    """Return the facts as a plain desktop would give them."""
    variables = Variables({}, {}, ())
    if healthy:
        chosen = recommended(facts)
        names = tuple(variable.name for variable in chosen)
        effective = {variable.name: variable.value for variable in chosen}
        variables = Variables({}, {**effective, "IDEEPDOCTOR_SET": ",".join(names)}, names)
    python = facts.python
    libc = f"{facts.platform.libc} {facts.platform.libc_version}"
    path = f"{python.base_prefix}/bin/python{python.minor}"
    base = Interpreter(path, path, python.version, python.implementation, python.abi, python.bits, libc, "pyenv")
    imports = {name: timeless(outcome) for name, outcome in (facts.imports or {}).items()}
    first_op = None if facts.first_op is None else timeless(facts.first_op)
    changed = replace(
        facts,
        collected_at="2026-01-01T00:00:00Z",
        platform=replace(facts.platform, kernel="6.1.0-37-amd64", container=None),
        limits=replace(facts.limits, memory_available_bytes=16 << 30, disk_free_bytes=64 << 30),
        variables=variables,
        imports=imports,
        first_op=first_op,
        interpreters=(base,),
        native=None if facts.native is None else plain_native(facts.native),
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


def rewritten(text: str, facts: Facts) -> str:
    """Return the JSON text with the folders of this machine replaced; check that it still holds facts."""
    python = facts.python
    version = python.version
    folders = {python.base_prefix: f"{HOME}/.pyenv/versions/{version}", str(Path.home()): HOME}
    if python.prefix != python.base_prefix:
        folders[python.prefix] = ENVIRONMENT
    for folder in sorted(folders, key=len, reverse=True):
        text = text.replace(folder, folders[folder])
    facts_from_json(json.loads(text))
    return text


if __name__ == "__main__":
    main()
