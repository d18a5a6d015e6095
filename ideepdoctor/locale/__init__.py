"""Other languages: what a person reads is translated at the edge, after it was said in English.

The rules, commands and errors speak English; reports, files and everything that a machine reads stay English. What is
printed for a person goes through ``tr`` just before it is printed. A message is found in the catalogue by its text, or
by the template that its text was made from (see ``translate``), so the code that says it needs no mark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

LANGUAGES = ("en", "ja")
"""English, which needs no catalogue, and the languages that have one."""

_translate: list[Callable[[str], str]] = []
_language: list[str] = []


def use(language: str) -> None:
    """Print in this language from now on.

    Raises:
        ValueError: there is no catalogue of it.
    """
    if language not in LANGUAGES:
        raise ValueError(language)
    _translate.clear()
    _language[:] = [language]
    if language != "en":
        from ideepdoctor.locale.catalogue import load
        from ideepdoctor.locale.translate import Translator

        _translate.append(Translator(load(language)))


def tr(text: str) -> str:
    """The text in the language in use; the text itself where it is English or has no translation."""
    return _translate[0](text) if _translate else text


def language() -> str:
    """The language in use."""
    return _language[0] if _language else "en"


def translating() -> bool:
    """Whether what is printed is not English."""
    return bool(_translate)


def language_of(environ: Mapping[str, str], asked: str | None = None) -> str:
    """The language that a person wants.

    Args:
        environ: LC_ALL, LC_MESSAGES and LANG are looked at in this order, as gettext does.
        asked: by option or IDEEPDOCTOR_LANG; wins.

    Raises:
        ValueError: what was asked for is no language that there is.
    """
    if asked:
        short = asked.replace("-", "_").split("_")[0].split(".")[0].lower()
        if short in ("c", "posix"):
            return "en"
        if short not in LANGUAGES:
            raise ValueError(asked)
        return short
    set_to = next((environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), "")
    short = set_to.split("_")[0].split(".")[0].lower()
    return short if short in LANGUAGES else "en"
