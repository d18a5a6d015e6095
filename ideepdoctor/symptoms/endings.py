"""Signals and exit codes: what shells, Python, kernels, systemd, containers and schedulers say of an ending. Pure data.

The words of shells are those of glibc and bash in the languages that their catalogues have.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ideepdoctor.symptoms import causes as by
from ideepdoctor.symptoms.base import Cause

HANG = "HANG"
"""No signal: it does not end."""
NOT_STARTED = "NOT-STARTED"
"""No signal: the shell's 126 and 127."""
_SHELL_CHARACTERS = 400
"""A shell's line about a signal is no longer: it ends with the command."""


@dataclass(frozen=True, slots=True)
class Ending:
    """A way to end.

    Attributes:
        causes: the likeliest first, for somebody who has the signal and nothing else.
        silent: for somebody who has read everything that the process wrote, and it said nothing.
    """

    causes: tuple[Cause, ...]
    silent: Cause


ENDINGS = {
    "SIGILL": Ending((by.ILLEGAL, by.BUILT_ELSEWHERE, by.REGISTERS), by.ILLEGAL),
    "SIGABRT": Ending((by.STRANGER, by.CONCAT, by.SECOND_OPENMP, by.XBYAK, by.THREADS_REFUSED), by.DIED),
    "SIGBUS": Ending((by.SHORT_FILE, by.SHARED_MEMORY), by.SHORT_FILE),
    "SIGFPE": Ending((by.DIVIDED,), by.DIVIDED),
    "SIGSEGV": Ending((by.SYMBOLS, by.PICKLED_2, by.SMALL_STACK, by.REGISTERS, by.UNALIGNED), by.SYMBOLS),
    "SIGKILL": Ending((by.KILLED, by.NO_MEMORY), by.KILLED),
    "SIGTERM": Ending((by.STOPPED, by.THREAD_VARIABLES), by.STOPPED),
    HANG: Ending((by.FORKED, by.THREAD_VARIABLES), by.STOPPED),
    NOT_STARTED: Ending((by.NOT_STARTED, by.NOEXEC), by.NOT_STARTED),
}
"""By the name of the signal."""
NUMBERS = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}
"""Of Linux on x86-64."""
_CODES = {124: HANG, 126: NOT_STARTED, 127: NOT_STARTED, **{128 + number: name for number, name in NUMBERS.items()}}
"""What a shell makes of a signal; 124 is timeout's own."""

_WORDS = {
    "SIGILL": "Illegal instruction|illegal hardware instruction|illegal instruction",
    "SIGSEGV": "Segmentation fault|segmentation fault",
    "SIGABRT": "Aborted|abort|aborted|Abort trap",
    "SIGBUS": "Bus error|bus error|BUS error",
    "SIGFPE": "Floating point exception|floating point exception",
    "SIGKILL": "Killed|killed",
    "SIGTERM": "Terminated|terminated",
}
_WORDS_OF_OTHERS = {
    "SIGILL": "Ungültiger Maschinenbefehl|Ungültige Anweisung.|Instruction non permise|Instruction incorrecte|"
    "不正な指定|Instrucción ilegal|非法指令|Istruzione non consentita|Instrução ilegal|Недопустимая инструкция|"
    "명령어가 잘못됨|Błędna instrukcja",
    "SIGSEGV": "Speicherzugriffsfehler|Adressierungsfehler|Erreur de segmentation|セグメンテーションフォルト|"
    "Violación de segmento|段错误|Errore di segmentazione|Falha de segmentação|Ошибка сегментирования|"
    "세그멘테이션 오류|Naruszenie ochrony pamięci",
    "SIGABRT": "Abgebrochen|Abandon|中止|Abortado|已放弃|Annullato|Аварийный останов|중지됨|Przerwane",
    "SIGBUS": "Bus-Zugriffsfehler|Bus-Fehler|Erreur du bus|Erreur de bus|バスエラー|Error del bus|总线错误|"
    "Errore di bus|Erro no barramento|Ошибка шины|버스 오류|Błąd szyny",
    "SIGFPE": "Gleitkomma-Ausnahme|Gleitkommafehler|Exception en point flottant|Exception en virgule flottante|"
    "浮動小数点例外|Excepción de coma flotante|浮点数例外|浮点异常|Eccezione in virgola mobile|"
    "Exceção de ponto flutuante|부동 소수점 예외",
    "SIGKILL": "Getötet|Processus arrêté|Tué|強制終了|Matado|已杀死|Ucciso|Morto|Убито|죽었음|Unicestwiony",
}
_ALL = {
    word: name for table in (_WORDS, _WORDS_OF_OTHERS) for name, words in table.items() for word in words.split("|")
}
_ASCII = {word: name for word, name in _ALL.items() if word.isascii()}
_SHELL = re.compile(
    r"^(?:[^:(]{1,60}: ){0,6}(?:line \d+: +)?(?:\[\d+\][+-]? +)?(?:\d+ +)?([^\s\d(:][^(:]{2,40}?)"
    r"(?:: \d{1,2})?(?: *\([^)]{1,40}\).*| {2,}.*)?$"
)
"""``bash: line 3: 4242 Killed     python a.py``, ``zsh: killed``, ``Fatal Python error: Aborted``, ``Killed: 9``."""
_NAMED = re.compile(r"\bSIG(ILL|ABRT|BUS|FPE|SEGV|KILL)\b|\bstatus=\d+/(ILL|ABRT|BUS|FPE|SEGV|KILL|TERM)\b")
_CODE = re.compile(
    r"\b(?:exit(?:ed)?\b[a-z _-]{0,30}|exit_?code|return(?:ed)?[ _-]?code|rc|ended with)"
    r"[ :='\"]{1,8}(-?\d{1,3})\b(?![.:]\d)",
    re.IGNORECASE,
)
_SIGNAL = re.compile(
    r"(?:\bby|\bwith|received|uncaught target|caught|\bgot) signal:? (\d{1,2})\b|^ *Signal: (\d{1,2}) \([A-Z]+\)",
    re.IGNORECASE,
)
_LISTED = re.compile(r"\bSIG[A-Z]+ +(?:present|missing|none|truncated|inaccessible|journal|error)\b")
"""A row of coredumpctl: of every program."""
_OURS = r"(?:python|ideep|mkldnn|mklml|iomp5|jupyter|ipykernel)"
_KERNEL = (
    ("invalid opcode", "SIGILL", re.compile(rf"trap invalid opcode ip|invalid opcode: 0000.*{_OURS}")),
    ("segfault at", "SIGSEGV", re.compile(r"\[\d+\]: segfault at ")),
    ("general protection", "SIGSEGV", re.compile(r"\] general protection(?: fault)?,? ip")),
    ("trap divide error", "SIGFPE", re.compile(r"trap divide error ip")),
)
"""Lines of the kernel's log count where they are about Python or a library of ideep4py: others crash, too."""
_ABOUT_US = re.compile(_OURS, re.IGNORECASE)


def ending_of(line: str) -> str | None:
    """The signal that a cleaned line tells of; None: it tells of none."""
    return _by_words(line) or _by_kernel(line) or _by_numbers(line)


def ending_of_code(text: str) -> str | None:
    """The ending that a person names: 132, -4, 4, SIGILL, ill, "Illegal instruction", hang; None: not known."""
    asked = text.strip()
    if re.fullmatch(r"[+-]?\d{1,10}", asked):
        number = int(asked)
        return _CODES.get(number) or NUMBERS.get(abs(number))
    upper = asked.upper().removeprefix("SIG")
    if f"SIG{upper}" in ENDINGS:
        return f"SIG{upper}"
    if re.match(r"(?:hang|hung|stuck|freez|froze|timeout|timed out)", asked, re.IGNORECASE):
        return HANG
    return ending_of(asked)


def _by_words(line: str) -> str | None:
    words = _ASCII if line.isascii() else _ALL
    if len(line) > _SHELL_CHARACTERS or not any(word in line for word in words):
        return None
    found = _SHELL.match(line)
    return None if found is None else words.get(found[1].strip())


def _by_kernel(line: str) -> str | None:
    return next(
        (name for mark, name, like in _KERNEL if mark in line and like.search(line) and _ABOUT_US.search(line)), None
    )


def _by_numbers(line: str) -> str | None:
    if ("SIG" in line or "status=" in line) and (found := _NAMED.search(line)):
        if _LISTED.search(line) and not _ABOUT_US.search(line):
            return None
        return f"SIG{found[1] or found[2]}"
    lower = line.lower()
    if any(word in lower for word in ("exit", "rc", "ended with", "code")) and (found := _CODE.search(line)):
        number = int(found[1])
        return _CODES.get(number) or (NUMBERS.get(-number) if number < 0 else None)
    if "signal" in lower and (found := _SIGNAL.search(line)):
        return NUMBERS.get(int(found[1] or found[2]))
    return None
