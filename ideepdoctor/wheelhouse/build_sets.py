"""What ``build`` needs, as sets: the toolchain, MKL's headers and the wheel that lends its libraries."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from packaging.version import Version

from ideepdoctor.builder.mkl_files import pins, wheel_digest
from ideepdoctor.builder.pins import MINORS, program_pins, python_pins
from ideepdoctor.builder.recipe import RELEASES, release_for
from ideepdoctor.model.plan import Requirement
from ideepdoctor.stacks.catalog import Lock, Stack
from ideepdoctor.wheelhouse.wanted import FileSet, pins_set


def build_sets(chosen: Sequence[tuple[Stack, Lock]]) -> list[FileSet]:
    """What building ideep4py for these locks needs.

    Args:
        chosen: stacks with the lock of a Python.
    """
    minors = sorted({lock.python for _stack, lock in chosen}, key=Version)
    found = [FileSet("building: cmake and swig", "build-programs", program_pins(), every=True)]
    for minor in minors:
        for abi in [abi for abi, python in MINORS.items() if python == minor]:
            found.append(FileSet(f"building for {abi}", f"build-{abi}", python_pins(abi), every=True))
    releases = {release_for(stack.chainer).version for stack, _lock in chosen}
    for name in sorted(releases):
        release = RELEASES[name]
        header = pins()["headers"][release.mkl_include]
        lent = pins()["libraries"][release.wheel]
        found.append(
            FileSet(
                f"building: MKL for ideep4py {name}",
                f"build-mkl-{name}",
                (
                    Requirement(header["project"], release.mkl_include, (header["wheel"],)),
                    Requirement("ideep4py", release.wheel, (wheel_digest(release.wheel, lent["python"]),)),
                ),
                every=True,
            )
        )
    text = (files("ideepdoctor") / "builder" / "auditwheel.txt").read_text("utf-8")
    return [*found, pins_set("building: auditwheel", "build-auditwheel", text)]
