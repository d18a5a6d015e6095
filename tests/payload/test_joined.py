"""What is true of every payload as it is sent, parts included."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ideepdoctor.targets.target import payload_source
from tests.conftest import legacy_python
from tests.payload.joined import PAYLOADS, load

IMPORT_OF_A_PART = re.compile(rf"^\s*(?:from|import) (?:{'|'.join(PAYLOADS)})\b", re.MULTILINE)


def defined(source: bytes) -> list[str]:
    """Functions, classes and constants of a module, as often as they are defined."""
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.append(node.name)
        elif isinstance(node, ast.Assign):
            found += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return found


@pytest.mark.parametrize("name", PAYLOADS)
def test_it_is_ascii_and_names_no_part_any_more(name: str) -> None:
    source = payload_source(name)
    assert source.isascii()
    assert IMPORT_OF_A_PART.search(source.decode("ascii")) is None


@pytest.fixture
def written(tmp_path: Path) -> list[str]:
    """Paths of all payloads, joined."""
    for name in PAYLOADS:
        (tmp_path / f"{name}.py").write_bytes(payload_source(name))
    return sorted(str(path) for path in tmp_path.iterdir())


def test_their_syntax_is_valid_from_2_7_on(written: list[str]) -> None:
    vermin = shutil.which("vermin", path=str(Path(sys.executable).parent))
    if vermin is None:
        pytest.skip("vermin is not installed")
    words = [vermin, "--violations", "-t=2.7-", "-t=3.5-", *written]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7", "3.8", "3.13"])
def test_every_one_compiles(version: str, written: list[str]) -> None:
    code = "import sys\nfor path in sys.argv[1:]:\n    compile(open(path).read(), path, 'exec')\n"
    words = [legacy_python(version), "-B", "-c", code, *written]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", PAYLOADS)
def test_no_part_hides_a_name_of_another(name: str) -> None:
    names = [name for name in defined(payload_source(name)) if not name.startswith("_")]
    assert sorted(names) == sorted(set(names))


def test_parts_are_joined_once() -> None:
    source = payload_source("smoke")
    names = defined(source)
    assert names.count("Lab") == names.count("cases") == 1
    assert source.index(b"class Lab") < source.index(b"def cases")
    loaded = load("smoke")
    # The child gets the whole program: the code object of the joined text, not that of a part.
    assert {"Lab", "cases"} <= set(loaded["PROGRAM"].co_names)


def test_a_part_of_a_part_comes_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "payload").mkdir()
    texts = {
        "a": '"""A."""\nimport sys\n\nfrom b import (  # noqa\n    one,\n)\nfrom c import three\nfrom os import path\n',
        "b": "from c import three  # noqa: E402\none = two = three\n",
        "c": "three = 3\n    from b import inside_a_line\n",
    }
    for name, text in texts.items():
        (tmp_path / "payload" / f"{name}.py").write_text(text)
    monkeypatch.setattr("ideepdoctor.targets.target.files", lambda _package: tmp_path)
    joined = payload_source("a").decode("ascii")
    assert joined == (
        '"""A."""\nimport sys\n\nthree = 3\n    from b import inside_a_line\none = two = three\nfrom os import path\n'
    )
