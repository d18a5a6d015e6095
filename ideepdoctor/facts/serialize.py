"""Facts as JSON and back: a versioned envelope, so that a file of today can be read by a doctor of tomorrow."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from ideepdoctor.errors import UsageError
from ideepdoctor.model.facts import FACTS_SCHEMA, FACTS_SCHEMA_VERSION, Facts

Kind = TypeVar("Kind")
_HINT = "make one with: ideepdoctor diagnose --save-facts FILE"


def facts_to_json(facts: Facts) -> dict[str, Any]:
    """Return the facts as JSON-ready data: the fields of Facts under a ``schema`` and a ``schema_version``."""
    return {"schema": FACTS_SCHEMA, "schema_version": FACTS_SCHEMA_VERSION, **plain(asdict(facts))}


def facts_from_json(data: Any) -> Facts:
    """Return the facts that the data hold; fields that this version does not know are ignored.

    Raises:
        UsageError: no facts, another major version, or a field that is missing or has another type.
    """
    if not isinstance(data, dict) or data.get("schema") != FACTS_SCHEMA:
        found = data.get("schema") if isinstance(data, dict) else type(data).__name__
        raise UsageError(f'no facts: field schema must be "{FACTS_SCHEMA}", found {json.dumps(found)}', hint=_HINT)
    version = data.get("schema_version")
    if not isinstance(version, str) or not re.fullmatch(rf"{FACTS_SCHEMA_VERSION}(\.[0-9]+)*", version):
        raise UsageError(
            f"facts of another version: field schema_version must be "
            f'"{FACTS_SCHEMA_VERSION}", found {json.dumps(version)}',
            hint="collect the facts again with this doctor, or use the doctor that wrote the file",
        )
    return validated(Facts, json.dumps(data), "facts", _HINT)


def validated(kind: type[Kind], text: str, what: str, hint: str) -> Kind:
    """A dataclass of the JSON text of its fields; fields that it does not know are ignored.

    Args:
        kind: the dataclass.
        text: JSON.
        what: it is called in the error.
        hint: of the error.

    Raises:
        UsageError: a field that is missing or has another type.
    """
    # Here and not above: pydantic costs 0.1 s to import and only files need it.
    from pydantic import ValidationError

    wanted: Any = kind
    try:
        found: Kind = _adapter(wanted).validate_json(text, strict=True)
        return found
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"not {what} as this doctor knows them: field {field}: {first['msg']}",
            hint=hint,
            context={"problems": str(error.error_count())},
        ) from None


@cache
def _adapter(kind: Any) -> Any:
    """Made once: it takes 15 ms."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def load_facts(path: str) -> Facts:
    """Read facts: as ``facts_to_json`` gives them, in an envelope's ``facts``, or what the bare probe printed.

    Args:
        path: ``-`` is standard input.

    Raises:
        UsageError: it cannot be read, is no JSON, or holds no facts (see above).
    """
    name = "standard input" if path == "-" else path
    try:
        data = json.loads(_bytes_of(path).decode("utf-8-sig"))
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}", hint=_HINT) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is no JSON file: {error}", hint=_HINT) from None
    try:
        return _facts_in(data)
    except UsageError as error:
        raise UsageError(f"{name}: {error.message}", hint=error.hint, context=error.context) from None


def _bytes_of(path: str) -> bytes:
    if path != "-":
        return Path(path).read_bytes()
    if sys.stdin is None:
        raise UsageError("standard input is closed: there are no facts to read", hint=_HINT)
    return sys.stdin.buffer.read()


def _facts_in(data: Any) -> Facts:
    from ideepdoctor.targets.bare import is_bare, read_bare

    if is_bare(data):
        return read_bare(data)
    held = data.get("facts") if isinstance(data, dict) and data.get("schema") != FACTS_SCHEMA else None
    return facts_from_json(held if isinstance(held, dict) else data)


def plain(value: Any) -> Any:
    """Return the value with tuples as lists, as JSON has them."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
