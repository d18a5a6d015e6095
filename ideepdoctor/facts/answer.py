"""The border: typed access to the JSON object that the probe answers with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ideepdoctor.errors import CouldNotCheck

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    """An object of the probe's answer; every getter raises CouldNotCheck where the value has another type.

    Written by hand and not with pydantic, whose import alone costs as much time as the whole quick probe.

    Attributes:
        values: the object.
        where: how it is reached, for the error text.
    """

    values: Mapping[str, Any]
    where: str = "answer"

    def _get(self, key: str, kind: type[T]) -> T | None:
        value = self.values.get(key)
        if value is None:
            return None
        if kind is float and type(value) is int:
            value = float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise CouldNotCheck(
                f"the probe gave {type(value).__name__} for {self.where}.{key}, {kind.__name__} was expected",
                hint="something in the target answers in the probe's place; run the command again with -v",
            )
        return value

    def _need(self, key: str, kind: type[T]) -> T:
        value = self._get(key, kind)
        if value is None:
            raise CouldNotCheck(f"the probe gave no {self.where}.{key}")
        return value

    def text(self, key: str) -> str:
        """A text that must be there."""
        return self._need(key, str)

    def maybe_text(self, key: str) -> str | None:
        """A text or None."""
        return self._get(key, str)

    def integer(self, key: str) -> int:
        """A whole number that must be there."""
        return self._need(key, int)

    def maybe_integer(self, key: str) -> int | None:
        """A whole number or None."""
        return self._get(key, int)

    def number(self, key: str) -> float:
        """A number, 0 where there is none."""
        return self._get(key, float) or 0.0

    def maybe_flag(self, key: str) -> bool | None:
        """True, False or None."""
        return self._get(key, bool)

    def flag(self, key: str) -> bool:
        """True, or False where there is none."""
        return self._get(key, bool) or False

    def part(self, key: str) -> Answer:
        """An object that must be there."""
        return Answer(self._need(key, dict), f"{self.where}.{key}")

    def maybe_part(self, key: str) -> Answer | None:
        """An object or None."""
        value = self._get(key, dict)
        return None if value is None else Answer(value, f"{self.where}.{key}")

    def parts(self, key: str) -> tuple[Answer, ...]:
        """A list of objects, empty where there is none."""
        found = self._get(key, list) or []
        return tuple(Answer(_checked(item, dict, f"{self.where}.{key}"), f"{self.where}.{key}") for item in found)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, empty where there is none."""
        found = self._get(key, list) or []
        return tuple(_checked(item, str, f"{self.where}.{key}") for item in found)

    def maybe_texts(self, key: str) -> tuple[str, ...] | None:
        """A list of texts or None."""
        return None if self._get(key, list) is None else self.texts(key)

    def rows(self, key: str, length: int) -> tuple[Sequence[Any], ...]:
        """A list of lists of this length, empty where there is none."""
        found = self._get(key, list) or []
        rows = tuple(_checked(item, list, f"{self.where}.{key}") for item in found)
        if any(len(row) != length for row in rows):
            raise CouldNotCheck(f"the probe gave rows of another length than {length} for {self.where}.{key}")
        return rows

    def text_by_name(self, key: str) -> dict[str, str] | None:
        """An object whose values are texts, or None."""
        value = self._get(key, dict)
        if value is None:
            return None
        return {str(name): _checked(item, str, f"{self.where}.{key}.{name}") for name, item in value.items()}


def _checked(value: Any, kind: type[T], where: str) -> T:
    """Return the value if it has the type; raise CouldNotCheck otherwise."""
    if not isinstance(value, kind):
        raise CouldNotCheck(f"the probe gave {type(value).__name__} in {where}, {kind.__name__} was expected")
    return value
