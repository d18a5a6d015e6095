"""The probe for places where no doctor runs: one script that anyone can start, and what it tells, as facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ideepdoctor.errors import CouldNotCheck, UsageError
from ideepdoctor.facts.answer import Answer
from ideepdoctor.facts.collect import read_facts
from ideepdoctor.facts.libraries import read_native
from ideepdoctor.model.facts import Facts
from ideepdoctor.targets.target import Target, payload_source

BARE_SCHEMA = "ideepdoctor-probe"
BARE_SCHEMA_VERSION = "1"
REASON = "the bare probe ran in it"
_SENT = ("probe", "libraries")
_EMPTY = b"SOURCES = {}"


def bare_probe() -> bytes:
    """The text of one self-contained script, for Python 2.7, 3.5 and later: ``python probe.py > facts.json``.

    It reads nothing beside it, writes nothing but its answer, and runs over standard input (``python - < probe.py``)
    too; see payload/bare.py.
    """
    texts = b"".join(b'    "%s": %s,\n' % (name.encode("ascii"), _literal(payload_source(name))) for name in _SENT)
    head, found, tail = payload_source("bare").partition(_EMPTY)
    assert found, "payload/bare.py has a place for its sources"
    return head + b"SOURCES = {\n" + texts + b"}" + tail


def _literal(text: bytes) -> bytes:
    """The text as a literal of Python that people can read."""
    return b'"""' + text.replace(b"\\", b"\\\\").replace(b'"""', b'\\"\\"\\"') + b'"""'


def is_bare(told: Any) -> bool:
    """Whether these data are what the bare probe prints (of whatever version)."""
    return isinstance(told, dict) and told.get("schema") == BARE_SCHEMA


def read_bare(told: Mapping[str, Any]) -> Facts:
    """The facts in a document of the bare probe; the libraries are None where it could not look at them.

    Raises:
        UsageError: another schema or version, or something in it has another type than a probe gives.
    """
    hint = "make one with: ideepdoctor probe > probe.py, then python probe.py > facts.json"
    if not is_bare(told):
        raise UsageError(f'no answer of the bare probe: field schema must be "{BARE_SCHEMA}"', hint=hint)
    if told.get("schema_version") != BARE_SCHEMA_VERSION:
        raise UsageError(
            f'an answer of another bare probe: field schema_version must be "{BARE_SCHEMA_VERSION}"',
            hint=hint,
        )
    try:
        whole = Answer(told)
        python, emulator = whole.text("python"), whole.texts("emulator")
        facts = read_facts(whole.part("probe").values, Target(python, emulator=emulator, reason=REASON), quick=False)
        libraries = whole.maybe_part("libraries")
        native = None if libraries is None else read_native(libraries.values, emulated=bool(emulator))
        return replace(facts, native=native, collected_at=whole.text("collected_at"))
    except CouldNotCheck as error:
        raise UsageError(f"not what the bare probe prints: {error.message}", hint=hint) from None
