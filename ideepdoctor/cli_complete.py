"""What the Tab key offers for values that are no fixed list: stacks, rules, recipes, runs, interpreters.

Each function takes what has been typed of the word and returns words with what they are. Nothing is started and nothing
is written; a completion that cannot be made is none, and never an error in the middle of a command line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

_CLASS = re.compile(r'^class (IDP\d{3})\(.*?^    title = "(.*?)"$', re.MULTILINE | re.DOTALL)
_OTHER_PAGES = ("merge_pages.py", "files.py", "works.py")
"""Files with several classes each."""

Offers = list[tuple[str, str]]
Completer = Callable[[str], Offers]


def _harmless(completer: Completer) -> Completer:
    """Offer nothing where something goes wrong."""

    @wraps(completer)
    def offered(incomplete: str) -> Offers:
        try:
            return completer(incomplete)
        except Exception:  # noqa: BLE001 - a person is typing: there is nobody to tell
            return []

    return offered


def _starting(offers: Iterable[tuple[str, str]], incomplete: str) -> Offers:
    return [(word, about) for word, about in dict(offers).items() if word.startswith(incomplete)]


@_harmless
def stacks(incomplete: str) -> Offers:
    """Names of the known-good stacks."""
    from ideepdoctor.stacks.catalog import all_stacks

    return _starting(((stack.name, f"Chainer {stack.chainer}") for stack in all_stacks()), incomplete)


@_harmless
def endings(incomplete: str) -> Offers:
    """Signals and the exit codes that shells make of them; and ``hang``."""
    from ideepdoctor.symptoms.endings import NUMBERS

    offers = [*((name, str(128 + number)) for number, name in NUMBERS.items()), ("hang", "it does not end")]
    return _starting([*offers, *((str(128 + number), name) for number, name in NUMBERS.items())], incomplete)


@_harmless
def codes(incomplete: str) -> Offers:
    """Codes of rules, in capitals or not as they are typed; read from their files, since to import all takes 0.1 s."""
    from importlib.resources import files

    found: Offers = []
    for folder in ("rules", "lint", "fleet", "selftest"):
        for item in (files("ideepdoctor") / folder).iterdir():
            if item.name.startswith("idp") or item.name in _OTHER_PAGES:
                found += _CLASS.findall(item.read_text("utf-8"))
    small = incomplete[:1].islower()
    return _starting(sorted((code.lower() if small else code, title) for code, title in found), incomplete)


@_harmless
def code_lists(incomplete: str) -> Offers:
    """Codes of rules, the last of a list with commas."""
    before, comma, last = incomplete.rpartition(",")
    return [(f"{before}{comma}{code}", title) for code, title in codes(last)]


@_harmless
def recipes(incomplete: str) -> Offers:
    """Names of the recipes."""
    from ideepdoctor.recipes import RECIPES

    return _starting(((recipe.name, recipe.title) for recipe in RECIPES), incomplete)


@_harmless
def runs(incomplete: str) -> Offers:
    """Names of the runs in the journal, the newest first."""
    from ideepdoctor.treatment import journal
    from ideepdoctor.treatment.state import state_folder

    return _starting(((entry.id, entry.title) for entry in journal.history(state_folder(os.environ))), incomplete)


@_harmless
def nets(incomplete: str) -> Offers:
    """Networks of bench and tune, the last of a list with commas."""
    from ideepdoctor.proof.bench_plan import NETS

    before, comma, last = incomplete.rpartition(",")
    return [(f"{before}{comma}{name}", about) for name, about in _starting(((net, "") for net in NETS), last)]


@_harmless
def levels(incomplete: str) -> Offers:
    """What ``cpu --why-not`` can be asked."""
    return _starting((("avx512", ""), ("avx2", ""), ("avx", "")), incomplete)


@_harmless
def pythons(incomplete: str) -> Offers:
    """The interpreters of this machine: versions, then paths; versions only of those that an earlier run has asked."""
    found = _installed()
    known = {version for _, version in found if version}
    minors = {".".join(version.split(".")[:2]): f"Python {version}" for version in sorted(known, key=_order)}
    if "/" not in incomplete:
        offers = _starting(minors.items(), incomplete)
        if offers and incomplete:
            return offers
    return [*_starting(minors.items(), incomplete), *_starting(_with_versions(found), incomplete)]


@_harmless
def versions(incomplete: str) -> Offers:
    """Versions of Python that a stack has."""
    from ideepdoctor.stacks.catalog import all_stacks

    found = {lock.python for stack in all_stacks() for lock in stack.locks}
    return _starting(((version, "") for version in sorted(found, key=_order)), incomplete)


def _order(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdecimal()]


def _with_versions(found: Iterable[tuple[str, str]]) -> Offers:
    return [(path, f"Python {version}" if version else "") for path, version in found]


def _installed() -> list[tuple[str, str]]:
    """Paths of the interpreters, and the version of each that the cache knows; nothing is started."""
    from ideepdoctor.system import Completed, RealSystem
    from ideepdoctor.targets.cache import Cache, fingerprint
    from ideepdoctor.targets.find import places
    from ideepdoctor.targets.target import payload_source

    class StartsNothing(RealSystem):
        def run(self, argv: Sequence[str], **how: Any) -> Completed:
            return Completed(tuple(argv), 127, b"", b"", 0.0, error="nothing is started for a completion")

    system = StartsNothing()
    cache = Cache(system, os.environ, payload_source("identify"))
    found = []
    for place in places(system, os.environ):
        remembered = cache.get(place.key, fingerprint(place.path, place.environment))
        if remembered is None:
            found.append((place.path, ""))
        elif remembered.identity is not None:
            found.append((place.path, remembered.identity.version))
    return found
