"""What a project has decided about findings: ``ideepdoctor.toml`` or ``[tool.ideepdoctor]``, and a baseline."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from ideepdoctor.errors import UsageError
from ideepdoctor.lint.registry import LINT_CHECKS
from ideepdoctor.model.accept import Accepted, Baseline, Ignore
from ideepdoctor.model.project import Project
from ideepdoctor.model.report import REPORT_SCHEMA, REPORT_SCHEMA_VERSION
from ideepdoctor.rules import RULES

OWN, SHARED = "ideepdoctor.toml", "pyproject.toml"
_EXAMPLE = '[[ignore]]\ncode = "IDP701"\nreason = "why we live with it"'
_DIGEST = re.compile(r"[0-9a-f]{64}")


def accepted(cwd: str, environ: Mapping[str, str], baseline: str | None) -> Accepted:
    """Everything that was accepted for commands that are run in a folder.

    The settings are those of the first ``ideepdoctor.toml``, or ``pyproject.toml`` with a table ``tool.ideepdoctor``,
    in the folder or above it, up to the top of its repository; ``IDEEPDOCTOR_SETTINGS`` names another file, or none
    where it is empty.

    Args:
        cwd: the folder.
        environ: the doctor's environment variables.
        baseline: file of ``--baseline``, relative to ``cwd``; None: that of the settings.

    Raises:
        UsageError: a file that cannot be read, a key that is not known, an ignore without a reason or of no rule.
    """
    named = environ.get("IDEEPDOCTOR_SETTINGS")
    found = _search(Path(cwd)) if named is None else _named(Path(cwd), named)
    told = Accepted(project=project_of(cwd, environ))
    folder = Path(cwd)
    if found is not None:
        path, table = found
        told = replace(told, ignores=_ignores(table, path), origin=str(path))
        known = table.get("baseline")
        if known is not None and not isinstance(known, str):
            raise UsageError(f"{path}: baseline is no path", hint='baseline = "ideepdoctor-baseline.json"')
        if baseline is None and known:
            baseline, folder = known, path.parent
        _refuse_unknown(table, ("ignore", "baseline"), str(path))
    return told if baseline is None else replace(told, baseline=baseline_of(folder / Path(baseline).expanduser()))


def _search(folder: Path) -> tuple[Path, Mapping[str, Any]] | None:
    for place in (folder, *folder.parents):
        own = place / OWN
        if own.is_file():
            return own, _read(own)
        shared = place / SHARED
        if shared.is_file():
            table = _read(shared).get("tool", {}).get("ideepdoctor")
            if isinstance(table, dict):
                return shared, table
        if (place / ".git").exists():
            return None
    return None


def _named(folder: Path, name: str) -> tuple[Path, Mapping[str, Any]] | None:
    if not name:
        return None
    path = folder / Path(name).expanduser()
    data = _read(path)
    if path.name != SHARED:
        return path, data
    table = data.get("tool", {}).get("ideepdoctor")
    return path, table if isinstance(table, dict) else {}


def _read(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the settings {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is no TOML: {error}", hint="mend it, or IDEEPDOCTOR_SETTINGS= to use none") from error


def _ignores(table: Mapping[str, Any], path: Path) -> tuple[Ignore, ...]:
    listed = table.get("ignore", [])
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        raise UsageError(f"{path}: ignore is a list of tables", hint=_EXAMPLE)
    return tuple(_ignore(item, f"{path}: ignore {number}") for number, item in enumerate(listed, 1))


def _ignore(item: Mapping[str, Any], where: str) -> Ignore:
    _refuse_unknown(item, ("code", "reason", "path", "until"), where)
    code, reason, path, until = (item.get(name) for name in ("code", "reason", "path", "until"))
    if isinstance(code, str) and code.upper() in {check.code() for check in LINT_CHECKS}:
        raise UsageError(f"{where}: {code} is about programs", hint=f"in the program itself: # noqa: {code.upper()}")
    if not isinstance(code, str) or code.upper() not in {rule.code() for rule in RULES}:
        raise UsageError(f"{where}: no rule has the code {code}", hint="all codes: ideepdoctor explain")
    if not isinstance(reason, str) or not reason.strip():
        raise UsageError(f"{where}: {code} is ignored without a reason", hint=_EXAMPLE)
    if path is not None and not isinstance(path, str):
        raise UsageError(f"{where}: path is no pattern", hint='path = "/opt/old/*"')
    if until is not None and type(until) is not date:
        raise UsageError(f"{where}: until is no date", hint="until = 2027-03-31")
    return Ignore(code.upper(), " ".join(reason.split()), path, until)


def _refuse_unknown(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise UsageError(f"{where}: unknown key {', '.join(unknown)}", hint=f"known: {', '.join(known)}")


def baseline_of(path: Path) -> Baseline:
    """The findings of a report that was written with ``--format json``. Raises UsageError: it is none."""
    hint = "make one: ideepdoctor diagnose --format json --fail-on never -o FILE"
    try:
        data = json.loads(path.expanduser().read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the baseline {path}: {error.strerror}", hint=hint) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the baseline {path} is damaged, or no JSON file: {error}", hint=hint) from error
    if not isinstance(data, dict) or data.get("schema") != REPORT_SCHEMA:
        raise UsageError(f"the baseline {path} is no report of ideepdoctor", hint=hint)
    version = data.get("schema_version", REPORT_SCHEMA_VERSION)
    if not isinstance(version, str) or version.partition(".")[0] != REPORT_SCHEMA_VERSION:
        raise UsageError(f"the baseline {path} is of another kind of doctor: schema_version {version}", hint=hint)
    if data.get("error"):
        raise UsageError(f"the baseline {path} is the report of a run that failed: it found nothing", hint=hint)
    listed = [data.get(name) or [] for name in ("findings", "unknown", "suppressed")]
    if not all(isinstance(part, list) and all(isinstance(item, dict) for item in part) for part in listed):
        raise UsageError(f"the baseline {path} is damaged: its findings are no list of findings", hint=hint)
    digests = [str(item.get("fingerprint")) for part in listed for item in part]
    if not all(_DIGEST.fullmatch(digest) for digest in digests):
        raise UsageError(f"the baseline {path} has findings without fingerprints: an older doctor wrote it", hint=hint)
    tool, target = _table(data, "tool"), _table(data, "target")
    return Baseline(
        str(path),
        frozenset(digests),
        command=str(tool.get("command") or ""),
        made_by=str(tool.get("version") or ""),
        made_for=str(target.get("python") or ""),
    )


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = data.get(name)
    return found if isinstance(found, dict) else {}


def project_of(cwd: str, environ: Mapping[str, str]) -> Project:
    """Where paths begin: the top of the repository around the folder, or the checkout that a CI service names."""
    here = Path(cwd)
    top = next((str(place) for place in (here, *here.parents) if (place / ".git").exists()), "")
    named = (environ.get(name, "") for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"))
    given = next((str(Path(one)) for one in named if one and here.is_relative_to(one)), "")
    return Project(cwd, (given or top) if (given or top) != "/" else "")
