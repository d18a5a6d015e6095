"""Archives of source: good ones unpack; hostile, damaged and oversized ones give one error and leave nothing."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
import warnings
import zipfile
from pathlib import Path

import pytest

from ideepdoctor.builder import archive as archives
from ideepdoctor.builder.archive import unpack
from ideepdoctor.builder.archive_members import BadArchive
from ideepdoctor.errors import Exit
from ideepdoctor.system import RealSystem

KINDS = ("tar", "tar.gz", "tar.bz2", "tar.xz", "zip")
File = tuple[str, bytes]


def tar_entry(name: str, data: bytes = b"", **changes: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for attribute, value in changes.items():
        setattr(info, attribute, value)
    return info, data


def make_tar(path: Path, *entries: tuple[tarfile.TarInfo, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as packed:  # type: ignore[call-overload]
        for info, data in entries:
            packed.addfile(info, io.BytesIO(data))
    return path


def make_zip(path: Path, *files: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as packed:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, data in files:
            packed.writestr(name, data)
    return path


def zip_link(name: str, target: str) -> tuple[zipfile.ZipInfo, bytes]:
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info, target.encode()


def make(kind: str, path: Path, *files: File) -> Path:
    if kind == "zip":
        return make_zip(path, *files)
    return make_tar(path, *(tar_entry(*file) for file in files), mode=f"w:{kind.removeprefix('tar').lstrip('.')}")


def refusal(tmp_path: Path, archive: Path) -> BadArchive:
    """The error, after a look that nothing was written anywhere."""
    inner = tmp_path / "deep" / "er"
    inner.mkdir(parents=True)
    before = {path for path in tmp_path.rglob("*") if path != archive}
    with pytest.raises(BadArchive) as caught:
        unpack(RealSystem(), str(archive), str(inner / "new"))
    assert {path for path in tmp_path.rglob("*") if path != archive} == before
    assert caught.value.exit_code == Exit.USAGE
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_with_a_top_folder(tmp_path: Path, kind: str):
    archive = make(kind, tmp_path / "a", ("ideep-1/python/setup.py", b"x"), ("ideep-1/README", b"y" * 3_000_000))
    top = unpack(RealSystem(), str(archive), str(tmp_path / "new"))
    assert top == str(tmp_path / "new/ideep-1")
    assert Path(top, "python/setup.py").read_bytes() == b"x"
    assert Path(top, "README").read_bytes() == b"y" * 3_000_000


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_without_a_top_folder(tmp_path: Path, kind: str):
    archive = make(kind, tmp_path / "a", ("./python/setup.py", b"x"), ("./README", b"y"))
    assert unpack(RealSystem(), str(archive), str(tmp_path / "new")) == str(tmp_path / "new")
    assert (tmp_path / "new/python/setup.py").read_bytes() == b"x"


def test_a_single_file_is_no_top_folder(tmp_path: Path):
    archive = make("tar.gz", tmp_path / "a", ("README", b"y"))
    assert unpack(RealSystem(), str(archive), str(tmp_path / "new")) == str(tmp_path / "new")


def test_what_programs_add_beside_the_top_folder_is_left_out(tmp_path: Path):
    archive = make("zip", tmp_path / "a", ("ideep/python/setup.py", b"x"), ("__MACOSX/ideep/._setup.py", b"z"))
    assert unpack(RealSystem(), str(archive), str(tmp_path / "new")) == str(tmp_path / "new/ideep")
    assert not (tmp_path / "new/__MACOSX").exists()


def test_modes_are_kept_as_far_as_they_matter(tmp_path: Path):
    run, secret = tar_entry("t/run", b"#!", mode=0o4777), tar_entry("t/secret", b"s", mode=0o600)
    top = Path(unpack(RealSystem(), str(make_tar(tmp_path / "a", run, secret)), str(tmp_path / "new")))
    assert (top / "run").stat().st_mode & 0o7777 == 0o755
    assert (top / "secret").stat().st_mode & 0o7777 == 0o644
    info = zipfile.ZipInfo("t/run")
    info.external_attr = 0o100755 << 16
    top = Path(unpack(RealSystem(), str(make_zip(tmp_path / "z", (info, b"#!"))), str(tmp_path / "new2")))
    assert os.access(top / "run", os.X_OK)


def test_links_within_the_archive(tmp_path: Path):
    archive = make_tar(
        tmp_path / "a",
        tar_entry("t/a/file", b"data"),
        tar_entry("t/b/soft", type=tarfile.SYMTYPE, linkname="../a/file"),
        tar_entry("t/b/folder", type=tarfile.SYMTYPE, linkname="../a"),
        tar_entry("t/b/hard", type=tarfile.LNKTYPE, linkname="t/a/file"),
    )
    top = Path(unpack(RealSystem(), str(archive), str(tmp_path / "new")))
    assert [(top / "b" / name).read_bytes() for name in ("soft", "folder/file", "hard")] == [b"data"] * 3
    archive = make_zip(tmp_path / "z", ("t/file", b"data"), zip_link("t/soft", "file"))
    top = Path(unpack(RealSystem(), str(archive), str(tmp_path / "new2")))
    assert (top / "soft").is_symlink()
    assert (top / "soft").read_bytes() == b"data"


OUT = ("../evil", "t/../../evil", "/tmp/evil", "t/../x")


@pytest.mark.parametrize("name", OUT)
@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_a_path_that_leads_out(tmp_path: Path, kind: str, name: str):
    archive = make(kind, tmp_path / "a", ("t/first", b"x"), (name, b"evil"))
    assert "outside of its folder" in refusal(tmp_path, archive).message


@pytest.mark.parametrize(
    ("name", "target"),
    [("t/l", "/etc"), ("t/l", "../../x"), ("l", ".."), ("t/a/l", "../../../x"), ("t/l", ""), ("t/l", "a/../../../x")],
)
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_a_link_that_leads_out(tmp_path: Path, kind: str, name: str, target: str):
    if kind == "zip":
        archive = make_zip(tmp_path / "a", ("t/first", b"x"), zip_link(name, target))
    else:
        link = tar_entry(name, type=tarfile.SYMTYPE, linkname=target)
        archive = make_tar(tmp_path / "a", tar_entry("t/first", b"x"), link)
    assert "link out of its folder" in refusal(tmp_path, archive).message


def test_a_link_through_a_link(tmp_path: Path):
    archive = make_tar(
        tmp_path / "a",
        tar_entry("t/a/b/c/top", type=tarfile.SYMTYPE, linkname="../../../.."),
        tar_entry("t/out", type=tarfile.SYMTYPE, linkname="a/b/c/top/../etc"),
    )
    assert "through another link" in refusal(tmp_path, archive).message


def test_a_file_through_a_link(tmp_path: Path):
    archive = make_tar(
        tmp_path / "a",
        tar_entry("t/l", type=tarfile.SYMTYPE, linkname="."),
        tar_entry("t/l/evil", b"x"),
    )
    assert "through t/l" in refusal(tmp_path, archive).message


def test_a_file_that_replaces_a_link(tmp_path: Path):
    archive = make_tar(
        tmp_path / "a",
        tar_entry("t/l", type=tarfile.SYMTYPE, linkname="first"),
        tar_entry("t/l", b"x"),
    )
    assert "t/l twice" in refusal(tmp_path, archive).message


@pytest.mark.parametrize("target", ["/etc/passwd", "../x", "t/later", "t/soft", "nowhere"])
def test_a_hard_link_to_anything_but_a_file_before_it(tmp_path: Path, target: str):
    archive = make_tar(
        tmp_path / "a",
        tar_entry("t/soft", type=tarfile.SYMTYPE, linkname="later"),
        tar_entry("t/hard", type=tarfile.LNKTYPE, linkname=target),
        tar_entry("t/later", b"x"),
    )
    assert "hard link" in refusal(tmp_path, archive).message


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_a_device(tmp_path: Path, kind: bytes):
    archive = make_tar(tmp_path / "a", tar_entry("t/null", type=kind, devmajor=1, devminor=3))
    assert "device or pipe" in refusal(tmp_path, archive).message


def test_a_device_in_a_zip(tmp_path: Path):
    info = zipfile.ZipInfo("t/pipe")
    info.external_attr = (stat.S_IFIFO | 0o600) << 16
    assert "device or pipe" in refusal(tmp_path, make_zip(tmp_path / "a", (info, b""))).message


def test_a_tar_that_unpacks_to_too_much(tmp_path: Path):
    info, _ = tar_entry("t/zeros")
    info.size = archives.MOST_BYTES + 1
    path = tmp_path / "a"
    with gzip.open(path, "wb") as stream:  # the header alone is enough
        stream.write(info.tobuf())
    assert "unpacks to more than 2 GB" in refusal(tmp_path, path).message


def test_a_bomb_of_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archives, "MOST_BYTES", 2_000_000)
    archive = make("zip", tmp_path / "a", *((f"t/{number}", bytes(900_000)) for number in range(3)))
    assert "unpacks to more than" in refusal(tmp_path, archive).message


def test_a_bomb_of_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archives, "MOST_BYTES", 2_000_000)
    links = (tar_entry(f"t/{number}", type=tarfile.LNKTYPE, linkname="t/big") for number in range(3))
    archive = make_tar(tmp_path / "a", tar_entry("t/big", bytes(900_000)), *links)
    assert "unpacks to more than" in refusal(tmp_path, archive).message


def test_too_many_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archives, "MOST_MEMBERS", 5)
    archive = make("tar.gz", tmp_path / "a", *((f"t/{number}", b"") for number in range(6)))
    assert "more than 5 members" in refusal(tmp_path, archive).message


def test_a_long_name_that_would_fill_the_memory(tmp_path: Path):
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 1 << 40
    path = tmp_path / "a"
    with gzip.open(path, "wb") as stream:
        stream.write(info.tobuf(tarfile.GNU_FORMAT))
    assert "damaged" in refusal(tmp_path, path).message


def test_a_name_that_no_file_can_have(tmp_path: Path):
    archive = make("tar.gz", tmp_path / "a", ("t/" + "x" * 300, b""))
    assert "name that no file can have" in refusal(tmp_path, archive).message


@pytest.mark.parametrize(
    ("kind", "kept"),
    [(kind, kept) for kind in KINDS for kept in (0.3, 0.7, 0.89 if kind == "tar" else 0.999)],  # a tar ends in zeros
)
def test_an_archive_that_is_cut_off(tmp_path: Path, kind: str, kept: float):
    files = ((f"t/{number}", os.urandom(4096)) for number in range(20))
    archive = make(kind, tmp_path / "a", *files)
    data = archive.read_bytes()
    archive.write_bytes(data[: int(len(data) * kept)])
    assert "damaged or cut off" in refusal(tmp_path, archive).message


def test_a_tar_that_is_cut_off_between_two_members(tmp_path: Path):
    archive = make("tar", tmp_path / "a", *((f"t/{number}", bytes([number]) * 512) for number in range(4)))
    archive.write_bytes(archive.read_bytes()[: 2 * 1024])
    assert "its end is missing" in refusal(tmp_path, archive).message


@pytest.mark.parametrize("kind", ["tar.gz", "tar.bz2", "tar.xz", "zip"])
def test_an_archive_with_a_flipped_byte(tmp_path: Path, kind: str):
    archive = make(kind, tmp_path / "a", ("t/x", os.urandom(50_000)))
    data = bytearray(archive.read_bytes())
    data[len(data) // 2] ^= 0xFF
    archive.write_bytes(data)
    assert "damaged or cut off" in refusal(tmp_path, archive).message


@pytest.mark.parametrize("data", [b"", b"hello\n", b"\0" * 100, b"<html>not found</html>" * 100, os.urandom(3000)])
def test_a_file_that_is_no_archive(tmp_path: Path, data: bytes):
    (tmp_path / "a").write_bytes(data)
    error = refusal(tmp_path, tmp_path / "a")
    assert "is no archive that can be read" in error.message
    assert ".tar.gz" in error.hint


def test_an_archive_that_holds_nothing(tmp_path: Path):
    assert "holds nothing" in refusal(tmp_path, make_tar(tmp_path / "a")).message


def test_an_encrypted_zip(tmp_path: Path):
    archive = make("zip", tmp_path / "a", ("t/x", b"secret"))
    data = bytearray(archive.read_bytes())
    data[6] |= 1  # the flag in the local header
    data[data.index(b"PK\x01\x02") + 8] |= 1  # and in the directory
    archive.write_bytes(data)
    assert "encrypted" in refusal(tmp_path, archive).message


def test_an_archive_that_cannot_be_read(tmp_path: Path):
    with pytest.raises(BadArchive, match="cannot read"):
        unpack(RealSystem(), str(tmp_path / "none.zip"), str(tmp_path / "new"))


def test_a_full_disk_leaves_nothing(tmp_path: Path):
    class FullDisk(RealSystem):
        def write_tree(self, folder: str, entries: object) -> None:
            (Path(folder) / "half").write_bytes(b"half")
            raise OSError(28, "No space left on device")

    archive = make("tar.gz", tmp_path / "a", ("t/x", b"x"))
    with pytest.raises(OSError, match="No space left"):
        unpack(FullDisk(), str(archive), str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()
