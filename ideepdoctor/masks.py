"""What must not stand in a log: passwords in URLs, values of variables and options that are named like secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

HIDDEN = "***"

_NAME = (
    r"(?:[\w.-]*[_.-])?(?:tokens?|secrets?|passw(?:or)?d|passphrase|passwd|credentials?|authorization|signature|sig"
    r"|(?:[\w]*(?:api|access|private|secret|signing|encryption)[_-]?)key|key)(?:[_.-][\w.-]*)?"
)
_SECRET_NAME = re.compile(rf"(?i)-{{0,2}}{_NAME}")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_CREDENTIALS = re.compile(r"(?i)\b([a-z][a-z0-9+.-]{0,20}://)[^/\s'\"]*@")
_USER_AND_PASSWORD = re.compile(r"(?i)\b[a-z][a-z0-9+.-]*://([^/\s'\"@:]*)(?::([^/\s'\"@]*))?@")
_ASSIGNED = re.compile(
    r"""(?<![\w.-])(-{0,2}[A-Za-z_][\w.-]*)(["']?\s*=\s*|["']\s*:\s*(?=["']))("[^"]*"|'[^']*'|[^\s&;,"'`]+)"""
)
_HEADER = re.compile(r"(?i)\b((?:proxy-)?authorization:\s*(?:\w+\s+)?|x-[\w-]{0,40}(?:token|key):\s*)[^\s'\"]+")
_LONGEST_NAME = 100
_WORTH_HIDING = 4
"""Characters: a shorter value (``1``, ``yes``) would take half of every line with it."""
_TOKEN = 16
"""Characters: a user name without a password that is longer is a token itself."""
_SWITCHES = frozenset({"true", "false", "none", "null", "auto", "never", "always"})


def is_secret(name: str) -> bool:
    """Whether a variable, option or key of this name holds a secret."""
    return len(name) <= _LONGEST_NAME and _SECRET_NAME.fullmatch(_CAMEL.sub("_", name)) is not None


class Mask:
    """Hides secrets in texts.

    Args:
        environ: variables; the values of those that are named like secrets, and passwords in URLs of any of them, are
            hidden wherever they turn up.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        found = {value for name, value in environ.items() if is_secret(name)}
        for value in environ.values():
            for user, password in _USER_AND_PASSWORD.findall(value):
                found.add(password or (user if len(user) >= _TOKEN else ""))
        kept = {value for value in found if len(value) >= _WORTH_HIDING and value.lower() not in _SWITCHES}
        self._values = sorted(kept, key=len, reverse=True)

    def text(self, text: str) -> str:
        """The text without secrets."""
        text = _HEADER.sub(rf"\g<1>{HIDDEN}", _CREDENTIALS.sub(rf"\g<1>{HIDDEN}@", text))
        text = _ASSIGNED.sub(_assigned, text)
        for value in self._values:
            text = text.replace(value, HIDDEN)
        return text

    def words(self, words: Sequence[str]) -> list[str]:
        """A command line without secrets: also the word after an option that is named like one."""
        shown = []
        for before, word in zip(["", *words], words, strict=False):
            secret = before.startswith("-") and "=" not in before and is_secret(before) and not word.startswith("-")
            shown.append(HIDDEN if secret else self.text(word))
        return shown

    def value(self, value: Any, name: str = "") -> Any:
        """A JSON value without secrets; ``name`` is its key."""
        if isinstance(value, str):
            return HIDDEN if value and name and is_secret(name) else self.text(value)
        if isinstance(value, Mapping):
            return {str(key): self.value(item, str(key)) for key, item in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, bytes):
            if all(isinstance(item, str) for item in value):
                return self.words(value)
            return [self.value(item, name) for item in value]
        return value


def _assigned(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}{HIDDEN}" if is_secret(found[1]) else found[0]
