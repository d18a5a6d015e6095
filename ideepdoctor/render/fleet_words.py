"""Words for a fleet that every format has in common. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ideepdoctor.model.words import counted

STATE_WORDS = {
    "failed": "failed to answer",
    "unreachable": "unreachable",
    "timeout": "timed out",
    "findings": "with findings",
    "unknown": "not everything decided",
    "healthy": "healthy",
}
"""Of a host; only the last is healthy."""
SEVERITY_WORDS = {
    "failed": "because",
    "error": "error",
    "warning": "warning",
    "unknown": "unknown",
    "info": "note",
}


def state_counts(hosts: Mapping[str, int]) -> str:
    """``177 healthy, 20 with findings, 2 unreachable``: those that there are, healthy first."""
    parts = [f"{hosts[state]} {words}" for state, words in reversed(STATE_WORDS.items()) if hosts[state]]
    return ", ".join(parts) or "none"


def twins_words(twins: Mapping[str, Any]) -> str:
    """How many hosts could be compared with others of their kind."""
    kinds = [item for item in twins["classes"] if item["count"] > 2]
    compared = sum(item["count"] for item in kinds)
    alone = f"; {counted(twins['alone'], 'host')} with fewer than 2 twins" if twins["alone"] else ""
    without = f"; {counted(twins['without_facts'], 'host')} without facts" if twins["without_facts"] else ""
    return f"{counted(compared, 'host')} of {counted(len(kinds), 'kind')} compared{alone}{without}"


def kind_words(item: Mapping[str, Any]) -> str:
    """Machine and versions of a class of twins, one line."""
    machine = item["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in (item["versions"] or {}).items())
    shown = f"{machine['processor']}, {machine['CPUs']} CPUs"
    return f"{shown}; {versions}" if versions else shown


def difference_lines(item: Mapping[str, Any], details: bool) -> list[str]:
    """What some hosts have and their twins have not, a line each; the twins' kind with details."""
    lines = []
    for row in item["differs"]:
        found = row["difference"] or row["found"]
        if row["difference"]:
            lines.append(f"{row['what']}: {found}, unlike {row['having']} of {row['known']} twins")
        else:
            lines.append(f"{row['what']}: {found}; {row['having']} of {row['known']} twins have {row['usual']}")
    return [*lines, f"twins: {kind_words(item)}"] if details else lines


def found_words(cause: Mapping[str, Any]) -> str:
    """What was found; where hosts say it in their own words (paths, numbers), those of one of them."""
    return f"on {cause['example']}: {cause['found']}" if cause["variants"] > 1 else str(cause["found"])


def slow_lines(item: Mapping[str, Any]) -> list[str]:
    """How slow a host is, beside what its twins do, and what else it differs in, a line each."""
    value, share = f"{item['value']:.3g} {item['unit']}", f"{100 * item['share']:.0f} %"
    lines = [
        f"{value}, {share} of the median {item['median']:.3g} of {item['twins']} twins",
        f"{item['what']}; slow is what is below {item['limit']:.3g}",
    ]
    return [*lines, f"it differs in: {', '.join(item['differs_in'])}"] if item["differs_in"] else lines
