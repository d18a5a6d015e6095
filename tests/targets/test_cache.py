"""The cache: what was asked once is not asked again, and no state of the file can do harm."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from ideepdoctor.model.facts import Interpreter
from ideepdoctor.targets import cache
from ideepdoctor.targets.cache import Cache, Identity, cache_folder, fingerprint
from ideepdoctor.targets.find import find_interpreters
from tests.doubles import CountingSystem, FakeSystem
from tests.targets.trees import Machine, identity


class Disk(FakeSystem):
    """A FakeSystem whose writes reach the disk, so that the next run can read them."""

    def make_folder(self, path: str) -> None:
        super().make_folder(path)
        Path(path).mkdir(parents=True, exist_ok=True)

    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        super().write_file(path, data, mode)
        Path(path).write_bytes(data)


@pytest.fixture
def disk(machine: Machine) -> Machine:
    machine.system = Disk()
    return machine


def run(machine: Machine) -> tuple[tuple[Interpreter, ...], int]:
    """What was found, and how many programs it took."""
    before = len(machine.system.commands())
    return find_interpreters(machine.system, machine.environ), len(machine.system.commands()) - before


def file_of(machine: Machine) -> Path:
    (path,) = (machine.root / "c").iterdir()
    return path


def test_hit_then_miss_after_a_change(disk: Machine) -> None:
    python = disk.python("bin/python3.7")
    disk.python("bin/python3.6", "3.6.15")
    first, started = run(disk)
    assert started == 2
    assert run(disk) == (first, 0)
    os.utime(python, ns=(1, 1))
    assert run(disk) == (first, 1)
    python.write_text("\x7fELF and more")
    os.utime(python, ns=(1, 1))
    assert run(disk) == (first, 1)
    assert run(disk) == (first, 0)


def test_an_environment_made_anew_is_asked_again(disk: Machine) -> None:
    base = disk.python("opt/bin/python3.7")
    disk.virtual("env", base)
    disk.environ["VIRTUAL_ENV"] = str(disk.root / "env")
    assert [run(disk)[1], run(disk)[1]] == [1, 0]
    os.utime(disk.root / "env/pyvenv.cfg", ns=(1, 1))
    assert run(disk)[1] == 1


def test_another_payload_starts_afresh(disk: Machine) -> None:
    python = str(disk.python("bin/python3.7"))
    seen = fingerprint(python, None)
    who = Identity.from_data(identity(python))
    one = Cache(disk.system, disk.environ, b"one")
    one.put(python, seen, who, lasting=True)
    one.save()
    again, other = (Cache(disk.system, disk.environ, payload).get(python, seen) for payload in (b"one", b"other"))
    assert again is not None and again.identity == who
    assert other is None


def test_failures_and_scripts_are_asked_again_after_a_while(disk: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.python("bin/python3.7")
    disk.file("bin/python3.6")
    script = disk.python("bin/python3.5", "3.5.10")
    script.write_text("#!/bin/sh\n")
    first, started = run(disk)
    assert started == 3 and run(disk) == (first, 0)
    later = time.time() + cache.UNSURE_SECONDS + 1
    monkeypatch.setattr(time, "time", lambda: later)
    assert run(disk) == (first, 2)
    monkeypatch.setattr(time, "time", lambda: 0.0)  # a clock that was set back
    assert run(disk) == (first, 2)


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"format": 1, "payload": "x", "interpreters": {}}',
        "entries",
        "entry",
        "fingerprint",
        "identity",
        "until",
        "incomplete",
        "types",
    ],
)
def test_a_damaged_cache_is_as_good_as_none(disk: Machine, damage: bytes | str) -> None:
    disk.python("bin/python3.7")
    good, _ = run(disk)
    path = file_of(disk)
    data = json.loads(path.read_bytes())
    ((key, entry),) = data["interpreters"].items()
    if isinstance(damage, bytes):
        path.write_bytes(damage)
    else:
        if damage == "entries":
            data["interpreters"] = [key]
        elif damage == "entry":
            data["interpreters"][key] = 7
        elif damage == "incomplete":
            del entry["identity"]["abi"]
        elif damage == "types":
            entry["identity"]["bits"] = "64"
        else:
            entry[damage] = "nonsense" if damage != "identity" else None
        path.write_text(json.dumps(data))
    assert run(disk) == (good, 1)
    assert run(disk) == (good, 0)


def test_a_cache_that_cannot_be_written_is_no_trouble(machine: Machine) -> None:
    machine.python("bin/python3.7")
    machine.system.fail_writes = OSError(28, "No space left on device")
    assert [each.abi for each in run(machine)[0]] == ["cp37m"]
    machine.file("c", "a file in the place of the folder")
    machine.system.fail_writes = None
    real = CountingSystem()
    assert find_interpreters(real, machine.environ) == () and real.written == []


def test_entries_of_what_is_gone_are_dropped_at_the_next_write(disk: Machine) -> None:
    disk.python("bin/python3.7")
    gone = disk.python("bin/python3.6", "3.6.15")
    run(disk)
    gone.unlink()
    disk.python("bin/python3.5", "3.5.10")
    run(disk)
    assert sorted(Path(key).name for key in json.loads(file_of(disk).read_bytes())["interpreters"]) == [
        "python3.5",
        "python3.7",
    ]


def test_where_the_cache_lies(tmp_path: Path) -> None:
    assert cache_folder({"IDEEPDOCTOR_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b"}) == "/a"
    assert cache_folder({"XDG_CACHE_HOME": "/b"}) == "/b/ideepdoctor"
    assert Path(cache_folder({"XDG_CACHE_HOME": "not/absolute"})).name == "ideepdoctor"


def test_identity_of_strange_answers() -> None:
    good = identity("/p/bin/python", libc=None)
    assert Identity.from_data(good) == Identity(**good)
    strange: object
    for strange in (None, [], "x", {}, {**good, "bits": "64"}, {**good, "libc": 2}, {**good, "version": None}):
        assert Identity.from_data(strange) is None
