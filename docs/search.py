"""Search in Japanese without a dictionary: pairs of characters, in the pages as in what is asked for.

Sphinx's own way cuts a page into words by TinySegmenter, and does not cut at all what is typed: a phrase finds nothing.
Pairs of neighbouring characters need no words: a phrase is found where all of its pairs are.
"""

from __future__ import annotations

import re

from sphinx.search.ja import SearchJapanese

_JAPANESE = "\u3040-\u30ff\u3400-\u9fff々"
_RUN = re.compile(rf"[{_JAPANESE}]+|[^\W{_JAPANESE}]+")


class Pairs(SearchJapanese):
    """Words of letters and digits as they are; of Japanese characters each pair of neighbours."""

    js_splitter_code = """
var japanese = "\\u3040-\\u30ff\\u3400-\\u9fff々";
var runs = new RegExp(`[${japanese}]+|(?:(?![${japanese}])[\\\\p{Letter}\\\\p{Number}_])+`, "gu");
var splitQuery = (query) => (query.match(runs) || []).flatMap((run) =>
  new RegExp(`^[${japanese}].`, "u").test(run)
    ? Array.from({length: run.length - 1}, (_, place) => run.slice(place, place + 2))
    : [run]);
"""

    def __init__(self, options: dict[str, str]) -> None:
        self.options = options

    def split(self, input: str) -> list[str]:
        """The words and pairs of a text."""
        found: list[str] = []
        for run in _RUN.findall(input):
            if not re.match(f"[{_JAPANESE}]", run):
                found.append(run)
            else:
                found += [run[place : place + 2] for place in range(max(1, len(run) - 1))]
        return found

    def word_filter(self, stemmed_word: str) -> bool:
        """Every word is found but numbers, which are in every page."""
        return not stemmed_word.isdigit()
