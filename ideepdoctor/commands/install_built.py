"""``install ideep4py==VERSION+doctor.LABEL --wheelhouse DIR``: a wheel that ``build`` made, where it can be right."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement as Asked
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from ideepdoctor.errors import CouldNotCheck, NotPossibleHere, UsageError
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.plan import PackageSource, Plan, Requirement
from ideepdoctor.rules.compat import RELEASES, Pair, lacking, pair, right_release


@dataclass(frozen=True, slots=True)
class Built:
    """A built wheel as its file says it: path, version, SHA-256, CPU flags it needs, and its Requires-Dist lines."""

    path: str
    version: str
    sha256: str
    cpu_flags: tuple[str, ...]
    requires: tuple[str, ...]


def built_plan(facts: Facts, version: str, source: PackageSource) -> Plan:
    """The plan that installs a built wheel of a wheelhouse into the target; without steps where it is there already.

    Args:
        facts: of the target.
        version: with its local part.
        source: holds the folder.

    Raises:
        UsageError: no folder was named.
        CouldNotCheck: the folder has no such wheel for this Python, or it is damaged.
        NotPossibleHere: it cannot be right in this environment.
    """
    from ideepdoctor.treatment.plan import packages_plan

    if not source.find_links:
        raise UsageError(
            f"ideep4py {version} is a build of your own: no index has it",
            hint="name the folder that build put it into: --wheelhouse DIR",
        )
    wheel = _find(facts, version, source.find_links)
    _refuse_if_wrong(facts, wheel)
    found = facts.package("ideep4py")
    if found is not None and found.version == version and not found.altered:
        return Plan(f"install ideep4py {version} into {facts.python.prefix}", ())
    again = ("ideep4py",) if found is not None and found.version == version else ()
    wanted = (Requirement("ideep4py", version, (wheel.sha256,)), *_numpy(facts, wheel))
    return packages_plan(facts, f"install ideep4py {version} into {facts.python.prefix}", wanted, again)


def _find(facts: Facts, version: str, folders: tuple[str, ...]) -> Built:
    """The wheel of this version for the target's ABI. Raises CouldNotCheck."""
    others: list[str] = []
    for folder in folders:
        for path in sorted(Path(folder).glob("ideep4py-*.whl")):
            try:
                _name, found, _build, tags = parse_wheel_filename(path.name)
            except InvalidWheelFilename:
                continue
            if str(found) == version and facts.python.abi in {tag.abi for tag in tags}:
                return read_wheel(path, version)
            others += [path.name] if found.local else []
    where = ", ".join(folders)
    raise CouldNotCheck(
        f"{where} holds no wheel of ideep4py {version} for {facts.python.abi}",
        hint=f"it holds {', '.join(others)}" if others else f"make one: ideepdoctor build -o {folders[0]}",
    )


def read_wheel(path: Path, version: str) -> Built:
    """What a wheel says of itself. Raises CouldNotCheck where it is damaged, or not the one of the manifest."""
    from ideepdoctor.treatment.snapshot import sha256_of
    from ideepdoctor.wheelhouse.manifest import read

    digest = sha256_of(str(path))
    manifest = read(str(path.parent))
    listed = None if manifest is None else manifest.files.get(path.name)
    if listed is not None and listed.sha256 != digest:
        raise CouldNotCheck(
            f"{path} is altered: it is not the file of the manifest",
            hint=f"bring it here again, or build it anew: ideepdoctor build -o {path.parent}",
        )
    info = f"ideep4py-{version}.dist-info"
    try:
        with zipfile.ZipFile(path) as archive:
            data: dict[str, Any] = json.loads(archive.read(f"{info}/ideepdoctor-build.json"))
            metadata = archive.read(f"{info}/METADATA").decode("utf-8")
        flags = tuple(str(flag) for flag in data["cpu_flags"])
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise CouldNotCheck(
            f"{path} is damaged, or no wheel that build made: {error}",
            hint=f"build it anew: ideepdoctor build -o {path.parent}",
        ) from error
    head = metadata.partition("\n\n")[0].splitlines()
    requires = tuple(line.partition(":")[2].strip() for line in head if line.startswith("Requires-Dist:"))
    return Built(str(path), version, digest, flags, requires)


def _refuse_if_wrong(facts: Facts, wheel: Built) -> None:
    """Raise NotPossibleHere where a build cannot be right in this environment."""
    public = str(Version(Version(wheel.version).public))
    release, chainer = RELEASES.get(public), facts.package("chainer")
    why, hint = "", ""
    if (facts.platform.system, facts.platform.machine) not in (("Linux", "x86_64"), ("Linux", "amd64")):
        why = "it was built for Linux x86_64"
    elif release is not None and release.intel_only and facts.cpu.vendor != "GenuineIntel":
        why = f"{public} dies at import on a CPU of {facts.cpu.vendor or 'unknown vendor'}, however it was built"
    elif missing := lacking(facts.cpu, wheel.cpu_flags):
        why = f"it was built for a CPU with {', '.join(missing)}, which this one does not have"
        hint = "build one that runs here: ideepdoctor build --march native, or --march x86-64-v3"
    elif chainer is not None and (verdict := pair(chainer.version, public)) is not Pair.RIGHT:
        words = {Pair.UNUSED: "does not use it", Pair.WRONG: "computes wrong gradients with it"}
        why = f"Chainer {chainer.version} {words.get(verdict, 'was never tried with it')}"
        hint = f"right for Chainer {chainer.version}: {right_release(chainer.version)}"
    if why:
        raise NotPossibleHere(f"ideep4py {wheel.version} cannot be right in {facts.python.prefix}: {why}", hint=hint)


def _numpy(facts: Facts, wheel: Built) -> tuple[Requirement, ...]:
    """The NumPy to be installed with it; none where the one that is there will do.

    Raises:
        NotPossibleHere: it will not do, and none that would is locked for this Python and Chainer.
    """
    from ideepdoctor.stacks.catalog import lock_for_build

    asked = [Asked(line) for line in wheel.requires]
    wanted = [item.specifier for item in asked if canonicalize_name(item.name) == "numpy"]
    found, chainer = facts.package("numpy"), facts.package("chainer")
    if found is not None and all(item.contains(found.version, prereleases=True) for item in wanted):
        return ()
    pin = None
    try:
        _stack, lock = lock_for_build(facts.python.abi, None if chainer is None else chainer.version)
        pin = lock.requirement("numpy")
    except (NotPossibleHere, UsageError):
        pass
    if pin is not None and all(item.contains(pin.version) for item in wanted):
        return (pin,)
    has = "no NumPy" if found is None else f"NumPy {found.version}"
    raise NotPossibleHere(
        f"ideep4py {wheel.version} asks for numpy{','.join(str(item) for item in wanted)}, and {facts.python.prefix} "
        f"has {has}",
        hint="install such a NumPy first",
    )
