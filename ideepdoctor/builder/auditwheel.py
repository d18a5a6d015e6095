"""The platform that a wheel runs on, as auditwheel finds it. The tool is pinned and has an environment of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from importlib.resources import files

from ideepdoctor.errors import DoctorError
from ideepdoctor.model.plan import PackageSource
from ideepdoctor.system import System
from ideepdoctor.treatment.installers import tool_program

_SECONDS = 300.0
_ANY = PackageSource()

Tell = Callable[[str], None]


def platform_of(
    system: System, wheel: str, own: Collection[str], cache: str, tell: Tell, source: PackageSource = _ANY
) -> tuple[str, str]:
    """Find a wheel's platform.

    Args:
        system: starts uv and auditwheel.
        wheel: path of the file.
        own: names of the libraries in it, some of which auditwheel takes for missing: it does not know that what one
            library's RPATH finds is found for the libraries below it, too.
        cache: the doctor's cache folder.
        tell: told each line that uv prints.
        source: where auditwheel comes from.

    Returns:
        The platform of the tag (``manylinux_2_34_x86_64``, ``linux_x86_64``), empty where it could not be found; then
        why it is that, in a sentence, empty where nothing is to be said.
    """
    pins = (files("ideepdoctor") / "builder" / "auditwheel.txt").read_bytes()
    try:
        python = tool_program(system, cache, "auditwheel", pins, "the tool that finds a wheel's platform", tell, source)
    except DoctorError as error:
        return "", f"the tag is linux_x86_64: auditwheel cannot be had ({error.message.splitlines()[0]})"
    done = system.run([python, "-I", "-m", "auditwheel", "show", "--json", wheel], timeout_seconds=_SECONDS)
    try:
        told = json.loads(done.text())
        platform, outside = str(told["overall_tag"]), sorted(set(told["external_libs"]) - set(own))
    except (ValueError, KeyError, TypeError):
        last = (done.error_text().strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
        return "", f"the tag is linux_x86_64: auditwheel gave no answer ({last[:200]})"
    if platform.startswith("linux_") and outside:
        return platform, f"the tag is {platform}: it uses the system's {', '.join(outside)}, as no manylinux wheel may"
    return platform, ""
