"""bench --peer source for real: an ideep4py that says that it was built here, and a wheel of such a one."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ideepdoctor.errors import UsageError
from ideepdoctor.proof.peers import find_peer
from ideepdoctor.system import RealSystem
from tests.e2e.environments import Answer, doctor

pytestmark = pytest.mark.e2e

Made = Callable[..., tuple[Path, Answer]]
VERSION = "2.0.0.post3+doctor.v3"
TOLD = {
    "march": "x86-64-v3",
    "cpu_flags": ["avx2"],
    "mkl": "wheel",
    "commit": "8800808",
    "mkldnn_commit": "c0095ec",
    "numpy": "1.16.0",
    "verified": False,
    "extra": {},
}


def test_an_environment_with_a_built_ideep4py_is_the_peer(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package of the environment beside metadata of a build: a copy of 300 MB would say the same."""
    environment, _ = made("3.7")
    python = str(environment / "bin" / "python")
    with pytest.raises(UsageError, match="was not built by ideepdoctor"):
        find_peer(RealSystem(), os.environ, "source", python)
    [package] = environment.glob("lib/python3.7/site-packages/ideep4py")
    (tmp_path / "ideep4py").symlink_to(package)
    info = tmp_path / f"ideep4py-{VERSION}.dist-info"
    info.mkdir()
    (info / "ideepdoctor-build.json").write_text(json.dumps(TOLD))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    target, label = find_peer(RealSystem(), os.environ, "source", python)
    assert label == "Chainer 7.8.1 + iDeep 2.0.0.post3 (built here, v3)"
    assert target.python == python


def repacked(environment: Path, folder: Path) -> Path:
    """The installed ideep4py as a wheel that a build here would have made."""
    [packages] = environment.glob("lib/python3.7/site-packages")
    info = f"ideep4py-{VERSION}.dist-info"
    texts = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: ideep4py\nVersion: {VERSION}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp37-cp37m-linux_x86_64\n",
        f"{info}/ideepdoctor-build.json": json.dumps(TOLD),
    }
    files = {str(path.relative_to(packages)): path for path in sorted((packages / "ideep4py").rglob("*.*"))}
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    path = folder / f"ideep4py-{VERSION}-cp37-cp37m-linux_x86_64.whl"
    folder.mkdir()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as whole:
        for name, data in [*((name, file.read_bytes()) for name, file in files.items() if file.suffix != ".pyc")] + [
            (name, text.encode()) for name, text in texts.items()
        ]:
            whole.writestr(name, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            rows.writerow([name, f"sha256={digest}", len(data)])
        rows.writerow([f"{info}/RECORD", "", ""])
        whole.writestr(f"{info}/RECORD", record.getvalue())
    return path


@pytest.mark.slow
def test_a_built_wheel_is_measured_beside_what_is_installed(made: Made, tmp_path: Path) -> None:
    environment, _ = made("3.7")
    repacked(environment, tmp_path / "wheelhouse")
    words = ["bench", "--python", str(environment), "--peer", "source", "--engine", "ideep", "--net", "conv"]
    words += ["--batch", "1", "--blocks", "3", "--seconds", "0.1", "--no-details", "--format", "json"]
    environ = {"IDEEPDOCTOR_CACHE_DIR": str(tmp_path / "cache"), "IDEEPDOCTOR_STATE_DIR": str(tmp_path / "state")}
    answer = doctor(*words, cwd=tmp_path, environ=environ)
    assert answer.code in (0, 1), answer.stderr
    bench = answer.document["bench"]
    engines = {engine["id"]: engine for engine in bench["engines"]}
    assert engines["source"]["label"] == "Chainer 7.8.1 + iDeep 2.0.0.post3 (built here, v3)"
    assert engines["source"]["kind"] == "ideep"
    rows = {row["engine"]: row for row in bench["results"]}
    assert rows["source"]["status"] == rows["ideep"]["status"] == "measured"
