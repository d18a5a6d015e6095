"""The ideep4py wheels of a wheelhouse: which are of an index, which were built, and which of these runs here."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from ideepdoctor.commands.install_built import Built, read_wheel
from ideepdoctor.errors import NotPossibleHere
from ideepdoctor.model.facts import Cpu
from ideepdoctor.rules.compat import is_built, lacking, released
from ideepdoctor.stacks.catalog import same_version


def built_abis(folders: Sequence[str]) -> tuple[str, ...]:
    """ABI tags that the folders hold an ideep4py of ``build`` for."""
    return tuple(dict.fromkeys(abi for _, version, abis in _wheels(folders) if is_built(version) for abi in abis))


def index_abis(folders: Sequence[str]) -> tuple[str, ...]:
    """ABI tags that the folders hold an ideep4py of an index for."""
    return tuple(dict.fromkeys(abi for _, version, abis in _wheels(folders) if not is_built(version) for abi in abis))


def fitting_wheel(folders: Sequence[str], abi: str, release: str, cpu: Cpu) -> Built | None:
    """The built wheel that is best for an interpreter and a processor.

    Args:
        folders: wheelhouses.
        abi: of the interpreter.
        release: of ideep4py that it must be a build of.
        cpu: that it will run on. Where its flags are not known they are not judged.

    Returns:
        Of several the one that makes most of the processor; None: there is none of this release for this ABI.

    Raises:
        NotPossibleHere: there are, and each was compiled for a processor that has more than this one.
        CouldNotCheck: a wheel is damaged, or was altered.
    """
    found = [
        read_wheel(path, version)
        for path, version, abis in _wheels(folders)
        if abi in abis and is_built(version) and same_version(released(version), release)
    ]
    usable = [wheel for wheel in found if not lacking(cpu, wheel.cpu_flags)]
    if found and not usable:
        missing = lacking(cpu, found[0].cpu_flags) or ()
        where = shlex.quote(str(Path(found[0].path).parent))
        raise NotPossibleHere(
            f"{Path(found[0].path).name} was built for a processor with {', '.join(missing)}, which this one lacks: it "
            "would die of SIGILL",
            hint=f"build one that runs here: ideepdoctor build --march x86-64-v3 -o {where}",
        )
    return max(usable, key=lambda wheel: len(wheel.cpu_flags), default=None)


def _wheels(folders: Sequence[str]) -> Iterator[tuple[Path, str, frozenset[str]]]:
    """Path, version and ABI tags of each ideep4py."""
    for folder in folders:
        for path in sorted(Path(folder).glob("ideep4py-*.whl")):
            try:
                _name, version, _build, tags = parse_wheel_filename(path.name)
            except InvalidWheelFilename:
                continue
            yield path, str(version), frozenset(tag.abi for tag in tags)
