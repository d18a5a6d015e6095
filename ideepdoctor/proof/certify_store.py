"""The file in which certify keeps its results, so that a run that was stopped goes on."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.proof.certify_data import Result, result_from
from ideepdoctor.system import System

FOLDER = "certify"


class Store:
    """Results of one target in one state, a line for each batch; a line that was torn by a kill is passed over.

    Args:
        system: writes the file.
        folder: the state folder.
        identity: what the results hold for: target, versions, processor, guard, catalogue. Another one, another file.
    """

    def __init__(self, system: System, folder: str, identity: Mapping[str, Any]) -> None:
        self._system = system
        self._identity = json.loads(json.dumps(identity, sort_keys=True))
        digest = hashlib.sha256(json.dumps(self._identity, sort_keys=True).encode("utf-8")).hexdigest()
        self.path = str(Path(folder) / FOLDER / f"{digest[:24]}.jsonl")

    def load(self) -> dict[tuple[str, str], Result]:
        """Results by key and setting; the last one counts."""
        try:
            lines = Path(self.path).read_text("utf-8", "replace").splitlines()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise CouldNotCheck(f"cannot read {self.path}: {error.strerror or error}") from error
        found: dict[tuple[str, str], Result] = {}
        for line in lines:
            with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
                row = json.loads(line)
                for item in row.get("results", ()):
                    result = result_from(item, str(row["setting"]))
                    found[result.key, result.setting] = result
        return found

    def add(self, setting: str, results: Iterable[Result]) -> None:
        """Keep the results of a batch. Raises CouldNotCheck where the folder cannot be written."""
        rows = [{name: value for name, value in asdict(item).items() if name != "setting"} for item in results]
        try:
            if not Path(self.path).exists():
                self._system.make_folder(str(Path(self.path).parent))
                self._append({"identity": self._identity})
            self._append({"setting": setting, "results": rows})
        except OSError as error:
            raise CouldNotCheck(
                f"cannot write to {self.path}: {error.strerror or error}",
                hint="set IDEEPDOCTOR_STATE_DIR to a folder that you can write",
            ) from error

    def forget(self) -> None:
        """Remove what was kept."""
        self._system.remove_file(self.path)

    def _append(self, row: Mapping[str, Any]) -> None:
        # A kill may have torn the last line; an empty line keeps the next one whole.
        self._system.append_line(self.path, "\n" + json.dumps(row, sort_keys=True))
