"""What a payload is started with."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ideepdoctor.system import RealSystem
from ideepdoctor.targets.target import Target, run_payload
from tests.conftest import legacy_python
from tests.doubles import Call, FakeSystem


def asked(call: Call) -> dict[str, object]:
    return json.loads(base64.urlsafe_b64decode(call.argv[-1]))


def echo(call: Call) -> str:
    cookie = call.argv[-2]
    return f"{cookie}{json.dumps({'fine': True})}{cookie}"


def test_a_payload_starts_without_preloads_and_is_told_of_them():
    system = FakeSystem().on("/py", echo)
    environ = {"LD_PRELOAD": "/x/lib.so", "LD_AUDIT": "/x/audit.so", "LD_LIBRARY_PATH": "/x", "HOME": "/home/user"}
    run_payload(system, Target("/py"), "probe", {}, timeout_seconds=1, env=environ)
    [call] = system.calls
    assert call.env == {"LD_LIBRARY_PATH": "/x", "HOME": "/home/user"}
    assert asked(call)["loader_variables"] == {"LD_PRELOAD": "/x/lib.so", "LD_AUDIT": "/x/audit.so"}


def test_the_doctors_own_preloads_are_held_back_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LD_PRELOAD", "/x/lib.so")
    system = FakeSystem().on("/py", echo)
    run_payload(system, Target("/py"), "probe", {}, timeout_seconds=1)
    [call] = system.calls
    assert call.env is not None
    assert "LD_PRELOAD" not in call.env
    assert set(call.env) == set(os.environ) - {"LD_PRELOAD"}
    assert asked(call)["loader_variables"] == {"LD_PRELOAD": "/x/lib.so"}


def test_variables_of_this_machine_say_nothing_of_another_one():
    system = FakeSystem().on("ssh", echo)
    run_payload(system, Target("/py", ("ssh", "host")), "probe", {}, timeout_seconds=1, env={"LD_PRELOAD": "/x/lib.so"})
    [call] = system.calls
    assert call.env == {"LD_PRELOAD": "/x/lib.so"}
    assert "loader_variables" not in asked(call)


@pytest.mark.parametrize("version", ["2.7", "3.7", "3.11"])
def test_a_preload_that_kills_every_python_is_seen_and_not_suffered(version: str, tmp_path: Path):
    source, library = tmp_path / "broken.c", tmp_path / "broken.so"
    source.write_text("void nowhere(void); __attribute__((constructor)) void start(void) { nowhere(); }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    python = sys.executable if version == "3.11" else legacy_python(version)
    environ = {"PATH": os.defpath, "LD_PRELOAD": str(library), "LD_BIND_NOW": "1"}
    request = {"phase": "full", "timeout_seconds": 20}
    told = run_payload(RealSystem(), Target(python), "probe", request, timeout_seconds=90, env=environ)
    assert told["variables"]["inherited"]["LD_PRELOAD"] == str(library)
    numpy = told["imports"]["numpy"]
    assert numpy["ended"]["code"] == 127
    assert "undefined symbol: nowhere" in "".join(numpy["stderr"])
