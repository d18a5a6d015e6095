"""Settings of Sphinx, for each language; ``docs/build.py`` says which, and where the pages are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from docs.search import Pairs  # noqa: E402
from ideepdoctor import __version__  # noqa: E402

project = "ideepdoctor"
version = release = __version__
language = "en"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4
myst_enable_extensions: list[str] = []
highlight_language = "text"
nitpicky = True
smartquotes = False  # options begin with two hyphens
suppress_warnings: list[str] = []

html_theme = "furo"
html_title = "ideepdoctor"
html_static_path = [str(ROOT / "docs" / "_static")]
html_css_files = ["doctor.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_use_index = False
html_domain_indices = False
html_show_search_summary = False  # it fetches pages, which a browser refuses for file://
html_theme_options = {"top_of_page_buttons": []}

OTHER = {"en": ("ja", "日本語", "ja/"), "ja": ("en", "English", "../")}
"""For each language the other one, its name, and the way from the top of one to the top of the other."""


def _other_language(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """A link to the same page in the other language at the top of each page; to the first page where it has none."""
    if "body" not in context:
        return
    language, name, way = OTHER[app.config.language]
    there = page if page in app.config.other_pages else "index"
    up = "../" * page.count("/")
    link = f'<a href="{up}{way}{there}.html" lang="{language}" hreflang="{language}">{name}</a>'
    context["body"] = f'<p class="other-language">{link}</p>\n{context["body"]}'


_SIDEBARS: dict[tuple[object, ...], str] = {}


def _one_sidebar(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Pages of rules are in no table of contents, so all of a folder have one sidebar: made once, which saves
    a third of the time of a build.
    """
    toctree = context.get("toctree")
    if toctree is None or "orphan" not in app.env.metadata.get(page, {}):
        return

    def made(**options: Any) -> str:
        key = (page.rpartition("/")[0], *sorted(options.items()))
        if key not in _SIDEBARS:
            _SIDEBARS[key] = toctree(**options)
        return _SIDEBARS[key]

    context["toctree"] = made


def setup(app: Any) -> dict[str, bool]:
    """Add the search of Japanese and the link between the languages."""
    app.add_search_language(Pairs)
    app.add_config_value("other_pages", frozenset(), "html", [frozenset])
    app.connect("html-page-context", _other_language)
    app.connect("html-page-context", _one_sidebar, priority=100)  # before the theme asks for it
    return {"parallel_read_safe": True, "parallel_write_safe": True}
