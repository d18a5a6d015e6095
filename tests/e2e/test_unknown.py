"""Trouble that no rule knows, made for real: exactly IDP320, with what a report needs, and nothing private in it."""

from __future__ import annotations

import base64
import hashlib
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.environments import Answer, doctor, site_packages

pytestmark = pytest.mark.e2e

SOURCE = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile int zero;
void segv(void) { *(volatile int *)8 = 1; }
void fpe(void) { zero = 7 / zero; }
void gave_up(void) { fputs("strange: nobody has seen this\\n", stderr); abort(); }
void bus(void) { raise(SIGBUS); }
void sys(void) { raise(SIGSYS); }
void kill_it(void) { kill(getpid(), SIGKILL); }
void leave(void) { _exit(3); }
void hang(void) { for (;;) pause(); }
"""
WAYS = {
    "segv": signal.SIGSEGV,
    "fpe": signal.SIGFPE,
    "gave_up": signal.SIGABRT,
    "bus": signal.SIGBUS,
    "sys": signal.SIGSYS,
    "kill_it": signal.SIGKILL,
}


def spoil(env: Path, way: str, *, at_operation: bool = False) -> None:
    """Have ideep4py call a function of a C library at its import, or at its relu."""
    package = site_packages(env) / "ideep4py"
    (package / "odd.c").write_text(SOURCE)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(package / "libodd.so"), str(package / "odd.c")], check=True)
    lines = [
        "import ctypes as _c, os as _o",
        "def _odd(*given):",
        f"    _c.CDLL(_o.path.join(_o.path.dirname(__file__), 'libodd.so')).{way}()",
        "relu = type('relu', (object,), {'Forward': staticmethod(_odd)})" if at_operation else "_odd()",
    ]
    path = package / "__init__.py"
    path.write_text(path.read_text() + "\n" + "\n".join(lines) + "\n")
    # It is as its wheel brought it, as far as anybody can tell: otherwise IDP309 has the cause.
    (record,) = site_packages(env).glob("ideep4py-*.dist-info/RECORD")
    digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).decode().rstrip("=")
    row = f"ideep4py/__init__.py,sha256={digest},{path.stat().st_size}"
    record.write_text(re.sub(r"(?m)^ideep4py/__init__\.py,.*$", row, record.read_text()))


def diagnose(env: Path, *options: str, **variables: str) -> Answer:
    return doctor("diagnose", "--python", str(env), "--format", "json", *options, environ=variables)


def the_finding(answer: Answer) -> dict[str, Any]:
    """The one error."""
    assert answer.codes("error") == ["IDP320"], answer.stdout
    (finding,) = [item for item in answer.document["findings"] if item["code"] == "IDP320"]
    return finding


def reproduced(finding: dict[str, Any], timeout_seconds: float = 60) -> int:
    """The exit status of the command in the evidence, run by a shell; negative for a signal."""
    command = next(item["command"] for item in finding["evidence"] if item["command"])
    words = ["sh", "-c", f"exec {command}"]
    return subprocess.run(words, capture_output=True, timeout=timeout_seconds, check=False).returncode


def judge(env: Path, way: str, act: str, *options: str, stack: bool, **variables: str) -> dict[str, Any]:
    """What is said of a death: how it ended, where, what was loaded; and it dies so again."""
    finding = the_finding(diagnose(env, *options, **variables))
    number = WAYS[way]
    assert finding["found"] == f"{act}: the process ended with {number.name}"
    texts = [item["text"] for item in finding["evidence"]]
    assert any(text.startswith("versions: Python") and "ideep4py 2.0.0" in text for text in texts), texts
    if stack:
        assert re.match(
            r"stack: ideep4py/__init__\.py:\d+ in _odd$", next(t for t in texts if t.startswith("stack"))
        ), texts
        assert "loaded: libodd.so" in texts and "loaded: libmkldnn.so.0" in texts, texts
    assert reproduced(finding) == -number
    return finding


def test_an_import_that_is_killed_on_3_7_and_nothing_private_is_in_the_report(broken_copy, tmp_path):
    env = broken_copy("3.7").rename(tmp_path / "tok3n-zanzibar")
    spoil(env, "segv")
    who = {"USER": "quokkaperson", "LOGNAME": "quokkaperson", "HOSTNAME": "wombathost", "HOME": str(tmp_path)}
    report, facts = tmp_path / "report.md", tmp_path / "facts.json"
    judge(env, "segv", "import ideep4py", "--save-facts", str(facts), stack=True, **who)
    words = ("--python", str(env), "--yes")
    assert doctor("report", *words, "--share", str(report), environ=who).code == 0
    assert "IDP320" in report.read_text() and "SIGSEGV" in report.read_text()
    for secret in ("zanzibar", "quokkaperson", "wombathost", str(tmp_path)):
        assert secret not in report.read_text(), secret
    for secret in ("quokkaperson", "wombathost", str(tmp_path)):
        assert secret not in facts.read_text(), secret


def test_an_operation_that_divides_by_zero_on_3_7(broken_copy):
    env = broken_copy("3.7")  # of the environment of the test above; the slow tests have Python 2.7, too
    spoil(env, "fpe", at_operation=True)
    judge(env, "fpe", "the first operation", stack=True)


@pytest.mark.slow
@pytest.mark.parametrize("at_operation", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("version", ["2.7", "3.7"])
def test_every_signal(broken_copy, version, way, at_operation):
    env = broken_copy(version)
    spoil(env, way, at_operation=at_operation)
    act = "the first operation" if at_operation else "import ideep4py"
    finding = judge(env, way, act, stack=way != "kill_it")
    if way == "gave_up":
        assert "standard error: strange: nobody has seen this" in [item["text"] for item in finding["evidence"]]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.7", "3.7"])
def test_a_library_that_ends_the_process(broken_copy, version):
    env = broken_copy(version)
    spoil(env, "leave")
    finding = the_finding(diagnose(env))
    assert finding["found"] == "import ideep4py: the process ended with exit code 3"
    assert reproduced(finding) == 3


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.7", "3.7"])
def test_a_library_that_hangs(broken_copy, version):
    env = broken_copy(version)
    spoil(env, "hang")
    finding = the_finding(diagnose(env))
    assert finding["found"].startswith("import ideep4py: no end within ")
    assert "in _odd" in " ".join(item["text"] for item in finding["evidence"])
    with pytest.raises(subprocess.TimeoutExpired):
        reproduced(finding, 5)
