"""Time the search for shared libraries: the environment alone, and the disk against ``find``; and how both grow.

    .venv/bin/python tests/benchmarks/libraries_cost.py [--python INTERPRETER] [--entries 10000 100000] [--rounds 5]

Makes folders with so many files (20 to a folder, one in 50 named like an extension module, 40 named libmkldnn.so.0),
takes turns between the commands, and removes them. Prints medians with their range: wall time, processor time (which
other work on the machine disturbs less), and the largest memory of one process.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ideepdoctor.targets.target import payload_source

Run = tuple[float, float, float, bytes]
"""Wall seconds, processor seconds with those of children, MiB (0: not known), what it printed."""

TELL_MEMORY = b"""
import re
os.write(2, re.search(b"VmHWM: *[0-9]+", open("/proc/self/status", "rb").read().replace(b"\\t", b" ")).group(0))
"""


def run(argv: list[str], stdin: bytes = b"") -> Run:
    """One run of a command."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        started = time.monotonic()
        process = subprocess.Popen(argv, stdin=given, stdout=out, stderr=err)
        _, _, used = os.wait4(process.pid, 0)
        wall = time.monotonic() - started
        process.returncode = 0
        out.seek(0)
        err.seek(0)
        told = re.search(rb"VmHWM: *([0-9]+)", err.read())
        memory = int(told.group(1)) / 1024 if told else 0.0
        return wall, used.ru_utime + used.ru_stime, memory, out.read()


def payload(python: str, **request: object) -> Run:
    """One run of the payload."""
    cookie = secrets.token_hex(16)
    asked = base64.urlsafe_b64encode(json.dumps({"timeout_seconds": 600, **request}).encode()).decode()
    return run([python, "-B", "-E", "-s", "-", cookie, asked], payload_source("libraries") + TELL_MEMORY)


def make_files(folder: Path, count: int) -> None:
    """Make a tree of about this many entries."""
    folders = count // 21
    for number in range(folders):
        inner = folder / f"package{number // 400}" / f"part{number // 20}" / f"sub{number}"
        inner.mkdir(parents=True)
        for other in range(20):
            name = (
                f"module{other}.cpython-37m-x86_64-linux-gnu.so" if (number * 20 + other) % 50 == 0 else f"m{other}.py"
            )
            (inner / name).touch()
        if number % max(1, folders // 40) == 0:
            (inner / "libmkldnn.so.0").write_bytes(b"\x7fELF")


def environment(python: str, folder: Path, count: int) -> str:
    """A virtual environment with this many files, half of them listed in the RECORDs of a hundred distributions."""
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    make_files(packages, count)
    listed = [path.relative_to(packages).as_posix() for path in packages.glob("package*/**/*") if path.is_file()][::2]
    for number in range(100):
        info = packages / f"made{number}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: made{number}\nVersion: 1.0\n")
        (info / "RECORD").write_text("".join(f"{path},sha256={'x' * 43},100\n" for path in listed[number::100]))
    return str(folder / "bin" / "python")


def line(name: str, runs: list[Run]) -> str:
    """A row of the table."""
    cells = []
    for values in ([one[0] for one in runs], [one[1] for one in runs]):
        cells.append(f"{statistics.median(values):7.3f} ({min(values):.3f} to {max(values):.3f})")
    memory = max(one[2] for one in runs)
    return f"{name:<38} {cells[0]:<28} {cells[1]:<28} {f'{memory:6.1f}' if memory else ''}"


def compare(commands: dict[str, object], rounds: int) -> None:
    """Run the commands in turns and print a row for each; the first turn warms the caches and does not count."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            one = command()  # type: ignore[operator]
            if turn:
                runs[name].append(one)
    for name, kept in runs.items():
        print(line(name, kept), flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--entries", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--disk", action="store_true", help="compare on / of this machine too")
    options = parser.parse_args()
    print(f"{'':<38} {'wall seconds':<28} {'processor seconds':<28} {'MiB':>6}")
    with tempfile.TemporaryDirectory() as folder:
        python = environment(options.python, Path(folder) / "env", 25_000)
        bare = [python, "-B", "-E", "-s", "-c", "pass"]
        compare({"python -c pass": lambda: run(bare), "environment of 25,000": lambda: payload(python)}, options.rounds)
    for count in options.entries:
        with tempfile.TemporaryDirectory() as folder:
            make_files(Path(folder), count)
            find = ["find", folder, "-xdev", "-name", "libmkldnn*"]
            deep = {"deep": True, "roots": [folder]}
            commands = {f"find, {count:,}": lambda find=find: run(find)}
            commands["payload without deep"] = lambda: payload(options.python)
            commands[f"payload with deep, {count:,}"] = lambda deep=deep: payload(options.python, **deep)
            compare(commands, options.rounds)
    if options.disk:
        find = ["find", "/", "-xdev", "-name", "libmkldnn*"]
        disk = {"find /": lambda: run(find), "payload with deep /": lambda: payload(options.python, deep=True)}
        compare(disk, options.rounds)


if __name__ == "__main__":
    main()
