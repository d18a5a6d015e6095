"""The words of the made pages themselves, in each language: what rules and commands say has its own catalogues."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

from ideepdoctor.locale.catalogue import load
from ideepdoctor.locale.translate import Translator

HERE = Path(__file__).parents[1]


class Words:
    """What a page says in a language.

    Args:
        language: ``en`` or ``ja``.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self.own: dict[str, str] = tomllib.loads((HERE / f"words.{language}.toml").read_text("utf-8"))
        self._translator = None if language == "en" else Translator(load(language))

    @property
    def translate(self) -> Callable[[str], str] | None:
        """Of what the package says; None: it is English already."""
        return self._translator

    def said(self, text: str) -> str:
        """A text of the package."""
        return self._translator(text) if self._translator else text

    def __call__(self, text: str) -> str:
        """A text of the pages themselves.

        Raises:
            KeyError: it has no translation.
        """
        return self.own.get(text, text) if self.language == "en" else self.own[text]
