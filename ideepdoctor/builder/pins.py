"""The pinned toolchain as data: ``toolchain.toml``."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib.resources import files

from ideepdoctor.errors import NotPossibleHere
from ideepdoctor.model.plan import Requirement

MINORS = {
    "cp27mu": "2.7",
    "cp27m": "2.7",
    "cp35m": "3.5",
    "cp36m": "3.6",
    "cp37m": "3.7",
    "cp38": "3.8",
    "cp39": "3.9",
    "cp310": "3.10",
    "cp311": "3.11",
    "cp312": "3.12",
    "cp313": "3.13",
}
"""The interpreters that ideep4py can be built for, by ABI."""


@lru_cache(maxsize=1)
def _data() -> dict[str, dict[str, dict[str, list[str]]]]:
    text = (files("ideepdoctor") / "builder" / "toolchain.toml").read_text("utf-8")
    return tomllib.loads(text)


def _requirements(table: dict[str, list[str]]) -> tuple[Requirement, ...]:
    return tuple(Requirement(name, version, tuple(digests)) for name, (version, *digests) in sorted(table.items()))


def program_pins() -> tuple[Requirement, ...]:
    """cmake and swig, by hash."""
    table: dict[str, list[str]] = _data()["programs"]  # type: ignore[assignment]
    return _requirements(table)


def python_pins(abi: str) -> tuple[Requirement, ...]:
    """numpy, setuptools and wheel for an interpreter, by hash.

    Raises:
        NotPossibleHere: ideep4py cannot be built for it.
    """
    table = _data()["python"].get(abi)
    if table is None:
        pythons = ", ".join(dict.fromkeys(MINORS.values()))
        raise NotPossibleHere(
            f"ideep4py cannot be built for the ABI {abi}", hint=f"--python: CPython of one of {pythons}"
        )
    return _requirements(table)


def version_of(pins: tuple[Requirement, ...], name: str) -> str:
    """The pinned version of a distribution."""
    return next(item.version for item in pins if item.name == name)
