"""How shells, Python, kernels, systemd, containers and schedulers tell of an ending; and what is near decides."""

from __future__ import annotations

import pytest

from ideepdoctor.cli_complete import endings
from ideepdoctor.symptoms.endings import ENDINGS, HANG, NUMBERS, ending_of
from ideepdoctor.symptoms.search import NEAR_LINES, search

LINES = {
    "SIGILL": (
        "Illegal instruction",
        "zsh: illegal hardware instruction (core dumped)  python train.py",
        "run.sh: line 3:  4242 Illegal instruction     (core dumped) python train.py",
        "Fatal Python error: Illegal instruction",
        "qemu: uncaught target signal 4 (Illegal instruction) - core dumped",
        "srun: error: node7: task 0: Illegal instruction (core dumped)",
        "subprocess.CalledProcessError: Command 'python' died with <Signals.SIGILL: 4>.",
        "train.service: Main process exited, code=dumped, status=4/ILL",
        "Signal: 4 (ILL)",
        "Tue 2026-12-01 10:00:00 UTC 812 1000 1000 SIGILL present /usr/bin/python3.7",
        "[1.2] traps: python3.7[812] trap invalid opcode ip:7f sp:7f error:0 in _ideep4py.so[7f+6d000]",
        "python[812] trap invalid opcode ip:7f sp:7f error:0",
        "Program received signal SIGILL, Illegal instruction.",
        "Ungültiger Maschinenbefehl (Speicherabzug geschrieben)",
        "Instruction non permise (core dumped)",
        "bash: 行 1: 12345 非法指令               (核心已转储) python train.py",
        "Command terminated by signal 4",
        "container train exited with code 132",
    ),
    "SIGSEGV": (
        "[1.2] python[99]: segfault at 0 ip 00007f sp 00007f error 4 in libmkldnn.so.0.14.0[7f+1000]",
        "[1.2] traps: python[99] general protection fault ip:7f sp:7f error:0 in libmkldnn.so.0[7f+1000]",
        "Speicherzugriffsfehler (Speicherabzug geschrieben)",
        "Erreur de segmentation",
        "[1]+  Segmentation fault      python train.py",
        "Process finished with exit code 139 (interrupted by signal 11: SIGSEGV)",
    ),
    "SIGKILL": (
        "Killed",
        "zsh: killed     python train.py",
        "Killed: 9",
        "    Exit Code:    137",
        "強制終了",
        "exitcode -9",
    ),
    "SIGABRT": ("Aborted", "Abort trap: 6", "zsh: abort (core dumped)  python train.py", "returned exit code 134"),
    "SIGBUS": ("Bus error", "Fatal Python error: Bus error", "バスエラー"),
    "SIGFPE": ("Floating point exception (core dumped)", "[1] traps: python[9] trap divide error ip:7f sp:7f error:0"),
    "SIGTERM": ("Terminated", "x.service: Main process exited, code=killed, status=15/TERM"),
    HANG: ("command exited with status 124",),
}


@pytest.mark.parametrize(("name", "line"), [(name, line) for name, lines in LINES.items() for line in lines])
def test_an_ending_is_told_by(name: str, line: str):
    assert ending_of(line.strip()) == name
    causes = search([line, "done"]).causes
    assert causes and causes[0].cause == ENDINGS[name].causes[0]


@pytest.mark.parametrize(
    "line",
    [
        "Tue 2026-12-01 10:00:00 UTC 812 1000 1000 SIGSEGV present /usr/bin/gnome-shell",
        "chrome[812]: segfault at 0 ip 00007f sp 00007f error 4 in libc-2.31.so[7f+1b0000]",
        "exited with code 1",
        "signal 4 of 12",
        "Killed the monster",
        "x" * 500 + " Killed",
    ],
)
def test_what_tells_of_none(line: str):
    assert ending_of(line) is None


def test_a_clue_counts_where_it_is_near_and_not_beyond():
    abort = "terminate called after throwing an instance of 'mkldnn::error'"
    clue = '  File "/e/chainer/functions/array/concat.py", line 78'
    for between, code in ((NEAR_LINES - 1, "IDP605"), (NEAR_LINES, "IDP402")):
        for first, last in ((clue, abort), (abort, clue)):
            found = search([first, *["loss 0.1"] * between, last])
            assert found.causes[0].cause.code == code, (between, first)


def test_a_signal_far_from_any_text_keeps_its_causes():
    text, far = "ModuleNotFoundError: No module named 'ideep4py'", ["loss 0.1"] * (NEAR_LINES + 1)
    assert [one.cause.code for one in search([text, "Killed"]).causes] == ["IDP301"]
    assert [one.cause.code for one in search([text, *far, "Killed"]).causes] == ["IDP301", "IDP621", "IDP707"]


def test_a_warning_comes_after_a_text_and_before_a_signal():
    warning = "OMP: Warning #190: Forking a process while a parallel region is active is potentially unsafe."
    assert [one.cause.code for one in search([warning, "Killed"]).causes][:2] == ["IDP622", "IDP621"]
    assert search([warning, "RuntimeError: code is too big"]).causes[0].cause.code == "IDP607"


def test_endings_are_offered():
    assert ("SIGILL", "132") in endings("SIGI")
    assert {word for word, _ in endings("13")} >= {"132", "134", "135", "136", "137", "139"}
    assert len(endings("")) == 2 * len(NUMBERS) + 1
