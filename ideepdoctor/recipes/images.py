"""Which container images the recipes start from. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ideepdoctor.errors import UsageError
from ideepdoctor.recipes.base import Settings
from ideepdoctor.treatment.variables import AVX512_OF_MKL

DOCTOR_PYTHON = "3.11"
"""The doctor's own Python, in images of every release of Debian below."""

_DEBIAN = {"2.7": "buster", "3.6": "bullseye"}
"""The newest release of Debian that the official image of an old Python exists for; of the others: bookworm."""


def image_variables(settings: Settings) -> Mapping[str, Any]:
    """Images, and how the doctor's requirement gets into them.

    Returns:
        ``debian``, ``image`` (small) and ``full_image`` (with compiler, git and headers) of the Python that Chainer
        runs on, ``doctor_image`` (with git where the requirement needs it), ``copied`` and ``copied_to`` (a file or
        folder of the build context, and its place in the image; else None), ``installed`` (what pip is told),
        ``avx512`` (the flags that MKL's code for AVX-512 needs).

    Raises:
        UsageError: the requirement is a file or folder that no build context has.
    """
    debian = _DEBIAN.get(settings.python, "bookworm")
    copied, place = settings.local, None
    if copied is not None:
        parts = [part for part in copied.split("/") if part not in ("", ".")]
        if copied.startswith(("/", "~")) or ".." in parts or not parts:
            raise UsageError(
                f"a container's build takes files from its own folder alone, and {copied} is not in it",
                hint="--requirement with a path that is relative to that folder",
            )
        copied, place = "/".join(parts), f"/src/{parts[-1]}"
    small = "" if settings.requirement.startswith("git+") or " @ git+" in settings.requirement else "-slim"
    return {
        "debian": debian,
        "image": f"python:{settings.python}-slim-{debian}",
        "full_image": f"python:{settings.python}-{debian}",
        "doctor_image": f"python:{DOCTOR_PYTHON}{small}-{debian}",
        "copied": copied,
        "copied_to": place,
        "installed": settings.requirement if place is None else place + settings.extras,
        "avx512": sorted(AVX512_OF_MKL),
    }
