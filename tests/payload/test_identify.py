"""The identify payload, in every legacy interpreter and where the C library does not tell its name."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.system import RealSystem
from ideepdoctor.targets.cache import Identity
from ideepdoctor.targets.target import Target, payload_source, run_payload


@pytest.mark.parametrize(("version", "abi"), [("2.7", r"cp27mu?"), ("3.6", "cp36m"), ("3.7", "cp37m")])
def test_legacy_interpreters(
    legacy: Callable[[str], str], version: str, abi: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')")
    monkeypatch.chdir(tmp_path)
    python = legacy(version)
    answer = run_payload(RealSystem(), Target(python), "identify", {}, timeout_seconds=30)
    who = Identity.from_data(answer)
    assert who is not None and set(answer) == set(Identity.__slots__)
    assert who.version.startswith(f"{version}.") and re.fullmatch(abi, who.abi)
    assert who.implementation == "CPython" and not who.is_virtual
    assert os.path.realpath(who.executable) == os.path.realpath(python)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["json.py"]


@pytest.fixture
def payload() -> dict[str, Any]:
    """The payload's functions, in this process."""
    source = payload_source("identify").decode("ascii")
    assert source.endswith("\n\nmain()\n")
    names: dict[str, Any] = {}
    exec(source.removesuffix("main()\n"), names)
    return names


def no_name(_name: str) -> str:
    raise ValueError("unrecognized configuration name")


def test_musl_by_its_loader_and_by_its_build(payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "confstr", no_name)
    maps = "7f00-7f01 r--p 00000000 00:01 1 /lib/ld-musl-x86_64.so.1\n"
    payload["open"] = lambda _path: io.StringIO(maps)
    assert payload["libc"]() == "musl"
    payload["open"] = lambda _path: io.StringIO("")
    monkeypatch.setattr(payload["sysconfig"], "get_config_var", lambda _name: "x86_64-pc-linux-musl")
    assert payload["libc"]() == "musl"


def test_glibc_by_asking_the_library(payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        expected = os.confstr("CS_GNU_LIBC_VERSION")
    except ValueError:
        pytest.skip("no glibc here")
    assert payload["libc"]() == expected
    monkeypatch.setattr(os, "confstr", no_name)
    assert payload["libc"]() == expected


def test_abi_tags(payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    class Fake:
        def __init__(self, version: tuple[int, int], flags: str = "", wide: bool = True) -> None:
            self.version_info = (*version, 0, "candidate", 2)
            self.abiflags = flags
            self.maxunicode = 0x10FFFF if wide else 0xFFFF

    def abi(*arguments: Any, name: str = "CPython", **options: Any) -> str:
        payload["sys"] = Fake(*arguments, **options)
        return str(payload["abi"](name))

    assert abi((3, 7), "m") == "cp37m" and abi((3, 13), "t") == "cp313t" and abi((3, 8)) == "cp38"
    assert abi((3, 10), name="PyPy") == "pp310"
    monkeypatch.setattr(payload["sysconfig"], "get_config_var", lambda name: {"WITH_PYMALLOC": 1}.get(name))
    assert abi((2, 7), wide=True) == "cp27mu" and abi((2, 7), wide=False) == "cp27m"
    monkeypatch.setattr(payload["sysconfig"], "get_config_var", lambda _name: 0)
    assert abi((2, 7), wide=True) == "cp27u"
    assert payload["version"]() == "2.7.0rc2"
