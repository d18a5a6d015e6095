"""How a child died, and what that means: exception texts and signals of imports and operations."""

from __future__ import annotations

from typing import Any

from ideepdoctor.model.facts import Outcome
from ideepdoctor.symptoms.base import Cause, Strength
from ideepdoctor.symptoms.endings import ENDINGS, ending_of
from ideepdoctor.symptoms.table import RUNNING, first_of

_UNKNOWN = Cause(("IDP320",), "the cause is not known", "report it with: ideepdoctor diagnose --save-facts FILE")
_HANGS = Cause(
    ("IDP320",),
    "it hangs",
    "look for a lock or a network folder; report it with ideepdoctor diagnose --save-facts FILE",
)
CAUSES = tuple(
    dict.fromkeys(
        [*(symptom.causes[0] for symptom in RUNNING), *(ending.silent for ending in ENDINGS.values()), _UNKNOWN, _HANGS]
    )
)
"""What ``classify`` may find."""


def classify(result: Outcome) -> Cause:
    """Find the cause of a bad ending: by what the process said, else by its signal alone."""
    if result.timed_out:
        return _HANGS
    text = _said(result)
    symptom = first_of(text)
    if symptom is not None:
        return symptom.causes[0]
    name = result.signal or next((found for line in text.splitlines() if (found := ending_of(line))), None)
    return ENDINGS[name].silent if name in ENDINGS else _UNKNOWN


def explained(result: Outcome) -> bool:
    """Whether the cause of a bad ending is known, by what was said; a signal alone tells it for SIGILL only.

    What is not explained is IDP320's.
    """
    if result.timed_out:
        return False
    symptom = first_of(_said(result))
    if symptom is not None and symptom.strength is not Strength.WARNING:
        return symptom.causes[0].code != "IDP320"
    return classify(result) == ENDINGS["SIGILL"].silent


def _said(result: Outcome) -> str:
    """The text of the exception and the end of standard error."""
    return "\n".join(part for part in (result.error_text, result.stderr_tail) if part)


def how_it_ended(result: Outcome) -> str:
    """The ending in a few words: the signal, the exception with its text, the exit code, or that it hung."""
    if result.timed_out:
        return f"no end within {result.seconds:.0f} s"
    if result.signal:
        return f"the process ended with {result.signal}"
    if result.error_type:
        lines = (result.error_text or "").strip().splitlines() or [""]
        return f"{result.error_type}: {lines[0]}"
    return f"the process ended with exit code {result.exit_code}"


def last_line(result: Outcome) -> str:
    """The last line of standard error, or how it ended."""
    lines = [line for line in result.stderr_tail.strip().splitlines() if line.strip()]
    return lines[-1] if lines else how_it_ended(result)


def failed(kind: str, text: str) -> dict[str, Any]:
    """An outcome for an example: an exception."""
    return {"ok": False, "error_type": kind, "error_text": text}


def killed(signal: str, stderr: str = "") -> dict[str, Any]:
    """An outcome for an example: a signal."""
    return {"ok": False, "signal": signal, "stderr_tail": stderr}
