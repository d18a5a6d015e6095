"""The catalogues: gettext's .po files, read as they are."""

from __future__ import annotations

from importlib.resources import files


def load(language: str) -> dict[str, str]:
    """Messages and their translations, of all catalogues of a language; those without a translation are left out."""
    import polib

    found: dict[str, str] = {}
    folder = files("ideepdoctor") / "locale" / language
    for path in sorted(folder.iterdir(), key=lambda each: each.name):
        if path.name.endswith(".po"):
            for entry in polib.pofile(path.read_text("utf-8")):
                if entry.msgstr:
                    found.setdefault(entry.msgid, entry.msgstr)
    return found
