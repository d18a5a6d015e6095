"""Completion in shells: the scripts that ``completion`` prints, and the answers that they ask for.

A script calls the doctor with ``_IDEEPDOCTOR_COMPLETE=SHELL`` and the line up to the cursor in ``_IDEEPDOCTOR_LINE``.
The answer is a line for each offer: the word, a tab, what it is. No offer: the shell completes names of files.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from typer.completion import shell_completion  # type: ignore[attr-defined]

from ideepdoctor.cli_common import COMPLETING

_LINE = "_IDEEPDOCTOR_LINE"


class Shell(StrEnum):
    """Shells that there is a script for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


SCRIPTS: Mapping[Shell, str] = {
    Shell.BASH: r"""# Completion of ideepdoctor for bash
_ideepdoctor_completion() {
    local IFS=$'\n' line=${COMP_LINE:0:COMP_POINT} word begun
    COMPREPLY=($(_IDEEPDOCTOR_COMPLETE=bash _IDEEPDOCTOR_LINE=$line "$1" 2>/dev/null | cut -f 1))
    word=${line##*[[:space:]]}
    begun=${word%"${word##*:}"}
    if [[ $begun == *: && $COMP_WORDBREAKS == *:* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"$begun"}")
    fi
}
complete -o default -F _ideepdoctor_completion ideepdoctor
""",
    Shell.ZSH: r"""#compdef ideepdoctor
# Completion of ideepdoctor for zsh
_ideepdoctor_completion() {
    local line
    local -a offers
    for line in "${(@f)$(_IDEEPDOCTOR_COMPLETE=zsh _IDEEPDOCTOR_LINE="${words[1,$CURRENT]}" "$words[1]" 2>/dev/null)}"
    do
        [[ -n $line ]] && offers+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    if (( $#offers )); then
        [[ $PREFIX == -*=* ]] && compset -P '*='
        _describe -V ideepdoctor offers
    else
        _files
    fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _ideepdoctor_completion "$@"
else
    compdef _ideepdoctor_completion ideepdoctor
fi
""",
    Shell.FISH: r"""# Completion of ideepdoctor for fish
function __ideepdoctor_complete
    set -lx _IDEEPDOCTOR_COMPLETE fish
    set -lx _IDEEPDOCTOR_LINE (commandline -cp)
    set -l offers (ideepdoctor 2>/dev/null)
    if count $offers >/dev/null
        printf '%s\n' $offers
    else
        __fish_complete_path (commandline -ct)
    end
end
complete --command ideepdoctor --no-files --keep-order --arguments '(__ideepdoctor_complete)'
""",
}


class _Line(shell_completion.ShellComplete):
    """Completes the last word of a line."""

    name = "line"
    source_template = ""

    def __init__(self, command: Any, line: str, shell: str) -> None:
        super().__init__(command, {}, "ideepdoctor", COMPLETING)
        self._line = line
        words = shell_completion.split_arg_string(line)[1:]
        self._last = words.pop() if words and not line[-1:].isspace() else ""
        self._words = words
        # fish replaces the whole word, the others what comes after the sign.
        name, sign, _ = self._last.partition("=")
        self._kept = f"{name}{sign}" if shell == Shell.FISH and sign and name.startswith("-") else ""

    def source_vars(self) -> dict[str, Any]:
        """Nothing: the scripts are ``SCRIPTS``."""
        return {}

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that is being typed, and that one."""
        return self._words, self._last

    def format_completion(self, item: Any) -> str:
        """A line for an offer."""
        about = " ".join((item.help or "").split())
        return f"{self._kept}{item.value}\t{about}"


def words_of(environ: Mapping[str, str]) -> list[str]:
    """The words of the line that is being typed, without the first."""
    return list(shell_completion.split_arg_string(environ.get(_LINE, "")))[1:]


def answer(command: Any, environ: Mapping[str, str]) -> str:
    """The offers for the line that is being typed, a line each; empty: none.

    Args:
        command: the whole application.
        environ: holds the line.
    """
    told = _Line(command, environ.get(_LINE, ""), environ.get(COMPLETING, "")).complete()
    return f"{told}\n" if told else ""
