"""Environments that ``setup`` made stay without any finding when real packages are added that do not concern iDeep."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.e2e.environments import doctor

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

MORE = {
    "2.7": ("requests==2.27.1", "pandas==0.24.2", "PyYAML==5.4.1"),
    "3.6": ("requests==2.27.1", "pandas==1.1.5", "scipy==1.5.4", "tqdm==4.64.1"),
    "3.7": ("requests==2.31.0", "pandas==1.3.5", "scipy==1.7.3", "scikit-learn==1.0.2", "matplotlib==3.5.3"),
}
"""What people have beside Chainer, in the last releases for that Python that take the NumPy which is there."""


def numpy_of(environment: Path) -> str:
    words = [str(environment / "bin" / "python"), "-c", "import numpy; print(numpy.__version__)"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("version", sorted(MORE))
def test_more_packages_change_nothing(broken_copy, version: str):
    environment = broken_copy(version)
    numpy = numpy_of(environment)
    python = str(environment / "bin" / "python")
    done = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"numpy=={numpy}", *MORE[version]],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert numpy_of(environment) == numpy
    for quick in ([], ["--quick"]):
        answer = doctor("diagnose", "--python", python, "--format", "json", *quick)
        assert answer.document["findings"] == [], answer.stdout[-2000:]
        assert (answer.document["unknown"], answer.code) == ([], 0)
