"""Exports are evaluated by the shells that they are for; a shell that is not here is skipped."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ideepdoctor.errors import UsageError
from ideepdoctor.treatment.exports import FORMATS, render
from ideepdoctor.treatment.variables import AVX512_OF_MKL, Variable

NASTY = "a b  'c' \"d\" $HOME `id` \\ \\n {e} } ! !! # ; & é"
PLAIN = Variable("CHAINER_USE_IDEEP", "auto", "why")
SHOW = f"{sys.executable} -c 'import os, json; print(json.dumps(dict(os.environ)))'"
# How each shell evaluates the output of a command, with and without regard to its line breaks.
SHELLS = {
    "dash": ("sh", ['eval "$(cat {file})"; {show}', "eval $(cat {file}); {show}", ". {file}; {show}"]),
    "bash": ("sh", ['set -eu; eval "$(cat {file})"; {show}', "eval $(cat {file}); {show}", ". {file}; {show}"]),
    "zsh": ("sh", ['setopt errexit nounset; eval "$(cat {file})"; {show}', ". {file}; {show}"]),
    "fish": ("fish", ["cat {file} | source; {show}", "eval (cat {file}); {show}"]),
    "tcsh": ("csh", ["source {file}; {show}", "eval `cat {file}`; {show}"]),
}
CASES = [(shell, fmt, script) for shell, (fmt, scripts) in SHELLS.items() for script in scripts]
ONE_LINERS = [case for case in CASES if "cat" not in case[2] or '"$(' in case[2] or "source" in case[2]]


def evaluate(shell: str, script: str, text: str, folder: Path, **env: str) -> dict[str, str]:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} here")
    file = folder / "exports"
    file.write_text(text)
    words = {"zsh": ["-f"], "tcsh": ["-f"], "fish": ["--no-config"]}.get(shell, [])
    done = subprocess.run(
        [program, *words, "-c", script.format(file=file, show=SHOW)],
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8", **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


@pytest.mark.parametrize(("shell", "fmt", "script"), CASES)
def test_a_variable_is_set_and_a_users_value_is_kept(shell, fmt, script, tmp_path):
    text = render([PLAIN, Variable("OTHER", "2", "why")], fmt)
    assert evaluate(shell, script, text, tmp_path).items() >= {"CHAINER_USE_IDEEP": "auto", "OTHER": "2"}.items()
    mine = evaluate(shell, script, text, tmp_path, CHAINER_USE_IDEEP="never")
    assert mine.items() >= {"CHAINER_USE_IDEEP": "never", "OTHER": "2"}.items()


@pytest.mark.parametrize(("shell", "fmt", "script"), ONE_LINERS)
def test_values_come_through_unharmed(shell, fmt, script, tmp_path):
    assert evaluate(shell, script, render([Variable("X", NASTY, "why")], fmt), tmp_path)["X"] == NASTY


@pytest.mark.parametrize(("shell", "fmt", "script"), CASES)
def test_conditions_are_checked_where_the_shell_runs(shell, fmt, script, tmp_path):
    info = Path("/proc/cpuinfo").read_text().split()
    is_amd = "AuthenticAMD" in info and "avx2" in info
    cpus = len(os.sched_getaffinity(0))
    text = render(
        [
            Variable("ON_AMD", "7", "why", "amd-avx512"),
            Variable("ON_AMD", "5", "why", "amd-avx2"),
            Variable("BOTH", "1", "why", f"cpus={cpus}&amd-avx2"),
            Variable("NEITHER", "1", "why", f"cpus={cpus + 1}&amd-avx2"),
            Variable("LATER", "1", "why", "a condition of a later release"),
            Variable("STRANGER", "1", "why", "cpu=ven0009fam0001mod0001"),
            Variable("HERE", "1", "why", f"cpus={cpus}"),
            Variable("ELSEWHERE", "1", "why", f"cpus={cpus + 1}"),
        ],
        fmt,
    )
    found = evaluate(shell, script, text, tmp_path)
    assert ("BOTH" in found, "HERE" in found) == (is_amd, True)
    assert not found.keys() & {"ELSEWHERE", "NEITHER", "LATER", "STRANGER"}
    assert found.get("ON_AMD") == (("7" if set(info) >= AVX512_OF_MKL else "5") if is_amd else None)
    if "ON_AMD" in found:
        other = text.replace("AuthenticAMD", "NoSuchVendor")
        assert "ON_AMD" not in evaluate(shell, script, other, tmp_path)


def test_docker_quotes_and_leaves_what_depends_on_the_machine_as_a_comment():
    text = render([PLAIN, Variable("X", 'a "$b"', "why"), Variable("Y", "5", "why", "amd-avx2&cpus=4")], "docker")
    assert text.splitlines() == [
        "ENV CHAINER_USE_IDEEP=auto",
        'ENV X="a \\"\\$b\\""',
        "# only where the container runs on AMD with AVX2 and 4 CPUs: ENV Y=5",
    ]


def test_github_takes_values_as_they_are():
    assert render([PLAIN, Variable("X", NASTY, "why")], "github") == f"CHAINER_USE_IDEEP=auto\nX={NASTY}\n"


def test_json_holds_everything():
    assert json.loads(render([PLAIN], "json")) == [
        {"name": "CHAINER_USE_IDEEP", "value": "auto", "why": "why", "only_on": ""}
    ]


@pytest.mark.parametrize("fmt", FORMATS)
def test_what_cannot_be_written_is_refused(fmt):
    for bad in (Variable("X", "a\nb", "why"), Variable("A B", "1", "why"), Variable("X;rm", "1", "why")):
        with pytest.raises(UsageError):
            render([bad], fmt)


def test_an_unknown_format_names_the_known_ones():
    with pytest.raises(UsageError) as caught:
        render([PLAIN], "powershell")
    assert all(fmt in caught.value.hint for fmt in FORMATS)
