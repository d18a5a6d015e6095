"""The run that the README shows is the run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.fleet_reports import write_example

README = Path(__file__).parents[2] / "README.md"


def test_the_readme_shows_what_is_printed(tmp_path):
    write_example(tmp_path / "reports")
    env = {name: value for name, value in os.environ.items() if not name.startswith("IDEEPDOCTOR_")}
    done = subprocess.run(
        [sys.executable, "-m", "ideepdoctor", "fleet", "merge", "reports"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**env, "COLUMNS": "80", "NO_COLOR": "1", "LANG": "C.UTF-8"},
        timeout=60,
    )
    found = re.search(r"<!-- fleet -->\n\n(.*?)\n<!-- end -->", README.read_text("utf-8"), re.DOTALL)
    assert found is not None
    shown = [line.removeprefix("    ") for line in found[1].splitlines()]
    assert shown == ["$ ideepdoctor fleet merge reports", *(line.rstrip() for line in done.stdout.splitlines())]
    assert done.returncode == 1
