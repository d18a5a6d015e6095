"""The manual page: complete, the same as the one that is shipped, and right for those who read its language."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ideepdoctor.cli import app
from ideepdoctor.cli_manual import commands, common_options
from ideepdoctor.errors import Exit
from ideepdoctor.model.manual import ManualCommand, ManualEntry
from ideepdoctor.render.man import EXITS, render

ROOT = Path(__file__).parents[1]
SHIPPED = ROOT / "man" / "ideepdoctor.1"


@pytest.fixture(scope="module")
def page() -> str:
    return render(commands(app), common_options(app))


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"there is no {program}")


def shown(page: str, tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "ideepdoctor.1"
    path.write_text(page)
    env = {**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8", "MANROFFOPT": "", "PAGER": "cat"}
    return subprocess.run([*words, str(path)], capture_output=True, text=True, env=env, timeout=60)


def test_the_shipped_page_is_the_one_that_is_made(page: str) -> None:
    assert SHIPPED.read_text("utf-8") == page, "refresh it: ideepdoctor man -o man/ideepdoctor.1"


def test_it_has_every_command_and_every_option(page: str) -> None:
    sections = {name: text for name, _, text in (part.partition("\n") for part in page.split("\n.SS ")[1:])}
    listed = commands(app)
    assert {"setup", "man", "bench compare", "run"} <= set(sections)
    assert len(sections) == len(listed)
    for command in listed:
        text = sections[command.name.replace("-", r"\-")]
        for entry in (*command.arguments, *command.options):
            assert f"\\fB{entry.names.split(',')[0].split(' ')[0]}".replace("-", r"\-") in text, (command.name, entry)
            assert entry.variable in text
    for entry in common_options(app):
        assert entry.variable in page.split(".SH COMMANDS")[0]


def test_it_has_every_exit_code(page: str) -> None:
    assert list(EXITS) == list(Exit)
    told = re.findall(r"\.TP\n\\fB(\d+)\\fP", page.partition(".SH EXIT STATUS")[2].partition(".SH ENVIRONMENT")[0])
    assert [int(code) for code in told] == [int(code) for code in Exit]


def test_what_a_formatter_would_take_for_its_own_language_is_shown_as_it_is() -> None:
    odd = "'tis .ideep \\fB a-b `x` ~/.x"
    page = render([ManualCommand("x", "", odd, (), (ManualEntry("-x", odd, "A_B"),))], ())
    assert r"\(aqtis .ideep \efB a\-b \(gax\(ga \(ti/.x" in page
    assert not re.search(r"^'", page, re.MULTILINE)
    requests = {line.split()[0] for line in page.splitlines() if line.startswith(".")}
    assert requests <= {".TH", ".nh", ".ad", ".SH", ".SS", ".PP", ".TP", ".B", ".BR", ".br", ".RS", ".RE", ".nf", ".fi"}


@needs("mandoc")
def test_mandoc_has_nothing_to_say(page: str, tmp_path: Path) -> None:
    done = shown(page, tmp_path, "mandoc", "-Tlint", "-Wstyle")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs("groff")
def test_groff_has_nothing_to_say(page: str, tmp_path: Path) -> None:
    done = shown(page, tmp_path, "groff", "-ww", "-man", "-Tutf8")
    assert (done.returncode, done.stderr) == (0, "")


@needs("man")
def test_man_shows_it_in_80_columns(page: str, tmp_path: Path) -> None:
    done = shown(page, tmp_path, "man", "--warnings", "-l")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert max(len(line) for line in lines) <= 80
    assert "       --log-file FILE" in lines
    assert "           ideepdoctor run -- train.py --epochs 10" in lines


@needs("lexgrog")
def test_whatis_can_index_it(page: str, tmp_path: Path) -> None:
    done = shown(page, tmp_path, "lexgrog")
    assert "ideepdoctor - installer and environment doctor for Chainer" in done.stdout
