"""What ``-v`` and ``-vv`` say on standard error: commands; how long what took, what was read, versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any


class Details:
    """A listener that writes lines.

    Args:
        write: takes a line without its end.
        level: 1: the commands that are started; 2: also how they ended, and at the end what took how long.
    """

    def __init__(self, write: Callable[[str], None], level: int) -> None:
        self._write, self._level = write, level
        self._stages: list[tuple[str, float]] = []
        self._rules: dict[str, float] = {}

    def __call__(self, level: str, event: str, data: Mapping[str, Any]) -> None:
        """Write what has happened, or keep it for the end."""
        if event == "process-start":
            self._write(f"+ {_command(data['argv'])}")
        elif self._level < 2:
            return
        elif event == "process-end":
            self._write(f"- {data['seconds']:.3f} s, {_ending(data)}: {_command(data['argv'])[:120]}")
        elif event == "stage":
            self._stages.append((data["name"], data["seconds"]))
        elif event == "rule":
            self._rules[data["name"]] = self._rules.get(data["name"], 0.0) + data["seconds"]

    def close(self, read: Iterable[str], about: Mapping[str, Any]) -> None:
        """Write what is said at the end.

        Args:
            read: paths of files and folders that the doctor itself has read.
            about: see ``about.about``.
        """
        if self._level < 2:
            return
        for name, seconds in self._stages:
            self._write(f"time   {seconds * 1e3:10.2f} ms  {name}")
        for name, seconds in sorted(self._rules.items(), key=lambda item: -item[1]):
            self._write(f"rule   {seconds * 1e3:10.3f} ms  {name}")
        for path in read:
            self._write(f"read   {path}")
        for line in versions(about):
            self._write(line)


def versions(about: Mapping[str, Any]) -> list[str]:
    """Python, machine, folder and libraries of the doctor, a line each."""
    return [
        f"python  {about['python']}, {about['executable']}",
        f"machine {about['platform']}",
        f"folder  {about['folder']}",
        *(f"library {name} {version or 'is missing'}" for name, version in sorted(about["libraries"].items())),
    ]


def _command(argv: Iterable[str]) -> str:
    """A command line in one line."""
    first, _, more = " ".join(argv).partition("\n")
    return f"{first} ..." if more else first


def _ending(data: Mapping[str, Any]) -> str:
    if data.get("timed_out"):
        return "time limit reached"
    code = data["exit_code"]
    if code is None:
        return f"not run: {data.get('error', '')}"
    return f"exit code {code}" if code >= 0 else f"signal {-code}"
