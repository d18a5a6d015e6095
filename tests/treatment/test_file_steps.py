"""Files renamed and lines made comments: what is refused, what stays, and what undo gives back."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ideepdoctor.errors import ApplyFailed, NeedsAttention, UsageError
from ideepdoctor.model.plan import DisableLine, EditBlock, Plan, RenameFile, Step, WriteFile
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.apply import apply_plan, resume
from ideepdoctor.treatment.journal import runs
from ideepdoctor.treatment.progress import Quiet
from ideepdoctor.treatment.snapshot import manifest
from ideepdoctor.treatment.undo import undo

LONG_AGO = 1_000_000_000
SUFFIX = ".disabled-by-ideepdoctor"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def put(path: Path, data: bytes | str, mode: int = 0o644) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    path.chmod(mode)
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def apply(state: str, *steps: Step, system: RealSystem | None = None) -> str:
    return apply_plan(system or RealSystem(), Plan("x", steps), state, Quiet())


def take_back(state: str, *, force: bool = False) -> None:
    undo(RealSystem(), state, None, force=force, sink=Quiet())


class TestRename:
    def test_renamed_and_back_with_its_inode_mode_and_time(self, home, state):
        path = put(home / "libmkldnn.so", "library", 0o755)
        before, number = manifest(str(home)), path.stat().st_ino
        apply(state, RenameFile(str(path), "shadows ideep4py's own"))
        assert [item.name for item in home.iterdir()] == [f"libmkldnn.so{SUFFIX}"]
        take_back(state)
        assert manifest(str(home)) == before
        assert path.stat().st_ino == number

    @pytest.mark.parametrize("target", ["real.so", "nowhere"])
    def test_a_link_is_renamed_and_not_its_target(self, home, state, target):
        put(home / "real.so", "library")
        (home / "link.so").symlink_to(target)
        before = manifest(str(home))
        apply(state, RenameFile(str(home / "link.so"), "why", ".off"))
        assert manifest(str(home)) == {
            ("link.so.off" if name == "link.so" else name): item for name, item in before.items()
        }
        take_back(state)
        assert manifest(str(home)) == before

    def test_a_folder_that_is_a_link_may_point_elsewhere_later(self, home, state):
        (home / "lib").mkdir()
        put(home / "lib" / "a.so", "library")
        (home / "lib64").symlink_to("lib")
        apply(state, RenameFile(str(home / "lib64" / "a.so"), "why"))
        (home / "lib64").unlink()
        take_back(state)
        assert (home / "lib" / "a.so").read_text() == "library"

    @pytest.mark.parametrize(
        ("prepare", "words"),
        [
            (lambda path: path.unlink(), "not there any more"),
            (lambda path: (path.unlink(), path.mkdir()), "is a folder"),
            (lambda path: put(path.with_name(path.name + SUFFIX), "taken"), "exists already"),
            (lambda path: path.with_name(path.name + SUFFIX).symlink_to("nowhere"), "exists already"),
        ],
    )
    def test_refused_before_anything_is_done(self, home, state, prepare, words):
        prepare(put(home / "a.so", "library"))
        before = manifest(str(home))
        with pytest.raises(UsageError, match=words):
            apply(state, WriteFile(str(home / "note"), "x", "first"), RenameFile(str(home / "a.so"), "why"))
        assert manifest(str(home)) == before
        assert runs(state) == ()

    def test_what_takes_the_new_name_meanwhile_is_not_overwritten(self, home, state):
        put(home / "a.so", "library")
        taken = WriteFile(str(home / f"a.so{SUFFIX}"), "mine", "comes first in this plan")
        with pytest.raises(UsageError, match="exists already"):
            apply(state, taken, RenameFile(str(home / "a.so"), "why"))
        assert [item.name for item in home.iterdir()] == ["a.so"]

    @pytest.mark.parametrize("make", [lambda path: put(path, "newer"), lambda path: path.mkdir()])
    def test_undo_refuses_where_something_is_there_again(self, home, state, make):
        path = put(home / "a.so", "library")
        before = manifest(str(home))
        apply(state, RenameFile(str(path), "why"))
        make(path)
        with pytest.raises(NeedsAttention) as caught:
            take_back(state)
        assert f"{path} is there again" in caught.value.hint
        assert (home / f"a.so{SUFFIX}").exists()
        take_back(state, force=True)
        assert manifest(str(home)) == before

    def test_undo_says_what_is_gone(self, home, state):
        path = put(home / "a.so", "library")
        apply(state, RenameFile(str(path), "why"))
        (home / f"a.so{SUFFIX}").unlink()
        with pytest.raises(NeedsAttention) as caught:
            take_back(state)
        assert "cannot be put back" in caught.value.hint
        take_back(state, force=True)
        assert list(home.iterdir()) == []

    def test_a_resume_removes_nothing_that_somebody_put_at_the_new_name(self, home, state, monkeypatch):
        """Killed after the intent and before the renaming; then the new name is taken."""
        path = put(home / "a.so", "library")

        class Dead(RealSystem):
            def rename(self, source: str, destination: str) -> None:
                raise SystemExit

        monkeypatch.setattr("ideepdoctor.treatment.apply._take_back", lambda *_: None)
        with pytest.raises(SystemExit):
            apply(state, RenameFile(str(path), "why"), system=Dead())
        monkeypatch.undo()
        put(home / f"a.so{SUFFIX}", "mine")
        with pytest.raises(UsageError, match="exists already"):
            resume(RealSystem(), state, None, Quiet())
        assert {item.name: item.read_text() for item in home.iterdir()} == {"a.so": "library", f"a.so{SUFFIX}": "mine"}

    def test_a_failing_renaming_is_a_failed_step(self, home, state):
        class Busy(RealSystem):
            def rename(self, source: str, destination: str) -> None:
                raise OSError(errno.EBUSY, "Device or resource busy", source)

        path = put(home / "a.so", "library")
        before = manifest(str(home))
        with pytest.raises(ApplyFailed, match="Device or resource busy"):
            apply(state, WriteFile(str(home / "n"), "x", "first"), RenameFile(str(path), "why"), system=Busy())
        assert manifest(str(home)) == before


RC = "alias a=b\nexport LD_PRELOAD=/x/lib.so\n\nexport LD_LIBRARY_PATH=/y\nalias c=d"


class TestDisableLine:
    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_one_line_and_nothing_else(self, home, state, end):
        text = RC.replace("\n", end).encode() + b" \xff\xfe\x0c \xe2\x80\xa8"
        path = put(home / "rc", text, 0o600)
        before = manifest(str(home))
        apply(state, DisableLine(str(path), 2, "export LD_PRELOAD=/x/lib.so", "why"))
        old = b"export LD_PRELOAD"
        assert path.read_bytes() == text.replace(old, b"# disabled by ideepdoctor: " + old)
        assert path.stat().st_mode & 0o777 == 0o600
        take_back(state)
        assert manifest(str(home)) == before

    def test_a_last_line_without_an_end(self, home, state):
        path = put(home / "ld.so.preload", "/x/lib.so")
        apply(state, DisableLine(str(path), 1, "/x/lib.so", "why"))
        assert path.read_bytes() == b"# disabled by ideepdoctor: /x/lib.so"

    def test_bytes_that_are_no_text(self, home, state):
        path = put(home / "rc", b"export LD_PRELOAD=/\xff.so\n")
        apply(state, DisableLine(str(path), 1, "export LD_PRELOAD=/\udcff.so", "why"))
        assert path.read_bytes() == b"# disabled by ideepdoctor: export LD_PRELOAD=/\xff.so\n"

    def test_links_are_followed_and_stay(self, home, state):
        put(home / "dotfiles", RC)
        (home / ".bashrc").symlink_to("dotfiles")
        before = manifest(str(home))
        apply(state, DisableLine(str(home / ".bashrc"), 4, "export LD_LIBRARY_PATH=/y", "why"))
        assert (home / ".bashrc").is_symlink()
        assert "\n# disabled by ideepdoctor: export LD_LIBRARY_PATH=/y\n" in (home / "dotfiles").read_text()
        take_back(state)
        assert manifest(str(home)) == before

    @pytest.mark.parametrize(
        ("text", "at"),
        [
            ("x=1\nx=2\n", 1),
            ("y=0\nx=2\nx=1\n", 3),
            ("x=1\nx=1\nz=3\nx=1\n", 2),
            ("y=0\nx=1\r\nx=1 \nx=12\n", 2),
        ],
    )
    def test_the_line_at_its_number_else_the_only_equal_one(self, home, state, text, at):
        path = put(home / "rc", text)
        number = 2 if text.startswith("x=1\nx=1") else 1
        apply(state, DisableLine(str(path), number, "x=1", "why"))
        changed = [index for index, line in enumerate(path.read_text().split("\n"), 1) if line.startswith("# disabled")]
        assert changed == [at]

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "nowhere in the file"),
            ("x=12\n y=0\n", "nowhere in the file"),
            ("# disabled by ideepdoctor: x=1\n", "nowhere in the file"),
            ("y=0\nx=1\nx=1\n", "2 others are equal"),
            ("x=1\\\ny\n", "nowhere"),
        ],
    )
    def test_a_line_that_is_not_there_is_refused(self, home, state, text, words):
        path = put(home / "rc", text)
        before = manifest(str(home))
        with pytest.raises(UsageError, match=words) as caught:
            apply(state, WriteFile(str(home / "n"), "x", "first"), DisableLine(str(path), 1, "x=1", "why"))
        assert "x=1" in caught.value.message
        assert manifest(str(home)) == before
        assert runs(state) == ()

    @pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()])
    def test_a_file_that_is_gone_is_refused(self, home, state, make):
        make(home / "rc")
        with pytest.raises(UsageError, match=r"is not there any more|is a folder"):
            apply(state, DisableLine(str(home / "rc"), 1, "x=1", "why"))

    @pytest.mark.parametrize(
        ("text", "number", "words"),
        [
            ("export A=1 \\\n  B=2\n", 1, "longer line"),
            ("export A=1 \\\n  B=2\n", 2, "longer line"),
            ("if true; then\n  x=1\nfi\n", 1, "longer command"),
            ("cat > x <<'EOF'\nx=1\n", 1, None),
            ("x='\nb\n'\n", 1, "longer command"),
        ],
    )
    @pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
    def test_a_part_of_something_larger_is_refused(self, home, state, text, number, words):
        path = put(home / "rc", text)
        step = DisableLine(str(path), number, text.split("\n")[number - 1], "why")
        if words is None:
            apply(state, step)
            return
        with pytest.raises(UsageError, match=words) as caught:
            apply(state, step)
        assert f"line {number} of {path} by hand" in caught.value.hint
        assert path.read_text() == text

    def test_two_backslashes_join_nothing(self, home, state):
        path = put(home / "rc", "x=\\\\\ny=1\n")
        apply(state, DisableLine(str(path), 2, "y=1", "why"))
        assert path.read_text() == "x=\\\\\n# disabled by ideepdoctor: y=1\n"

    def test_json_has_no_comments(self, home, state):
        path = put(home / "state.json", '"a": 1\n')
        with pytest.raises(UsageError, match="no comments"):
            apply(state, DisableLine(str(path), 1, '"a": 1', "why"))

    @pytest.mark.parametrize(
        ("shell", "text"),
        [
            ("bash", "if [ -d /x ]; then\n    export A=1\nfi\n"),
            ("bash", "f() {\n\texport A=1\n}\nf\n"),
            ("fish", "if test -d /x\n    set -gx A 1\nend\n"),
            ("zsh", "for x in *(N); do\nexport A=1\ndone\nif [[ -n $x ]] { print }\n"),
        ],
    )
    def test_a_shell_can_still_read_a_block_whose_only_line_is_gone(self, home, state, shell, text):
        if shutil.which(shell) is None:
            pytest.skip(f"no {shell}")
        path = put(home / "rc", text)
        number = 2
        line = text.split("\n")[1]
        apply(state, DisableLine(str(path), number, line, "why"))
        assert f"# disabled by ideepdoctor: {line}\n" in path.read_text()
        done = subprocess.run([shell, str(path)], capture_output=True, text=True, cwd=home)
        assert (done.returncode, done.stderr) == (0, "")

    def test_two_lines_of_a_block_one_after_the_other(self, home, state):
        path = put(home / "rc", "if true; then\n  x=1\n  y=1\nfi\n")
        before = manifest(str(home))
        apply(state, DisableLine(str(path), 3, "  y=1", "why"), DisableLine(str(path), 2, "  x=1", "why"))
        subprocess.run(["bash", "-n", str(path)], check=True)
        assert path.read_text().count("# disabled by ideepdoctor:") == 2
        take_back(state)
        assert manifest(str(home)) == before

    def test_no_shell_runs_anything(self, home, state, monkeypatch):
        put(home / "env", f"touch {home}/ran\n")
        monkeypatch.setenv("BASH_ENV", str(home / "env"))
        monkeypatch.setenv("ZDOTDIR", str(home))
        path = put(home / "rc", f"touch {home}/ran; echo $(touch {home}/ran)\nx=1\n")
        apply(state, DisableLine(str(path), 2, "x=1", "why"))
        assert not (home / "ran").exists()


def several(home: Path) -> tuple[Step, ...]:
    path = str(home / "rc")
    return (
        DisableLine(path, 2, "export LD_PRELOAD=/x/lib.so", "one"),
        DisableLine(path, 4, "export LD_LIBRARY_PATH=/y", "two"),
        EditBlock(path, "export B=2", "three"),
    )


class TestSeveralStepsOnOneFile:
    def test_all_hold_and_all_come_back(self, home, state):
        path = put(home / "rc", RC)
        before = manifest(str(home))
        apply(state, *several(home))
        assert path.read_text().count("# disabled by ideepdoctor") == 2
        assert "export B=2" in path.read_text()
        take_back(state)
        assert manifest(str(home)) == before

    def test_a_change_after_the_last_is_seen_and_shown_once(self, home, state):
        path = put(home / "rc", RC)
        apply(state, *several(home))
        path.write_text(path.read_text() + "mine\n")
        with pytest.raises(NeedsAttention, match=r"^1 file changed since") as caught:
            take_back(state)
        assert caught.value.hint.count("-mine") == 1
        take_back(state, force=True)
        assert path.read_text() == RC

    @pytest.mark.parametrize("at", [0, 1])
    def test_a_change_between_two_of_them_is_seen(self, home, state, at):
        path = put(home / "rc", RC)
        done = 0

        class Meanwhile(RealSystem):
            def append_line(self, where: str, line: str) -> None:
                nonlocal done
                super().append_line(where, line)
                if '"done"' in line:
                    done += 1
                    if done == at + 1:
                        path.write_text(path.read_text() + "\nmine\n")

        apply(state, *several(home), system=Meanwhile())
        with pytest.raises(NeedsAttention, match=r"^1 file changed since"):
            take_back(state)
        assert "mine" in path.read_text()
