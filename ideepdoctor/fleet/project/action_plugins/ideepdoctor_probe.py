"""An action of Ansible's: give a script to a command of the host over standard input, keep what it prints in a file.

Arguments: ``command`` (started there by a shell), ``script`` (a file here), ``folder`` (here, for the answer). Nothing
is copied to the host, and the result that travels through Ansible is small: ``answer`` (the file), ``rc``, ``stderr``.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import psutil
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

_WORDS = frozenset({"command", "script", "folder"})


class ActionModule(ActionBase):
    """Run it."""

    TRANSFERS_FILES = False
    _VALID_ARGS = _WORDS

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """See ``ActionBase.run``."""
        result = super().run(tmp, task_vars)
        given = self._task.args
        if missing := _WORDS - set(given):
            raise AnsibleActionFail(f"arguments are missing: {', '.join(sorted(missing))}")
        script = Path(given["script"]).read_bytes()
        try:
            done = self._given(given["command"], script)
        except BaseException:
            # The time limit of the task: whoever waits for the host shall not go on doing so.
            for child in psutil.Process().children(recursive=True):
                child.kill()
            raise
        host = str((task_vars or {}).get("inventory_hostname"))
        answer = Path(given["folder"], f"{hashlib.sha256(host.encode()).hexdigest()}.answer")
        answer.write_text(done.get("stdout", ""), "utf-8", "surrogateescape")
        result.update(answer=str(answer), rc=done["rc"], stderr=done.get("stderr", "")[-2000:], changed=False)
        return result

    def _given(self, command: str, script: bytes) -> dict[str, Any]:
        """Start the command and give it the script."""
        try:
            return self._low_level_execute_command(command, in_data=script)
        except AnsibleConnectionFailure as error:
            if "could not be sent" in str(error):
                # ssh was ending while the script was written to it: without a script Ansible tells what ssh said.
                self._low_level_execute_command("true", sudoable=False)
            raise
