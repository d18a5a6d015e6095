"""An archive of source, read with mistrust: all that it would write is checked before the first file is written.

``tarfile`` and ``zipfile`` only read here, so their own filters for extraction have nothing to do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from ideepdoctor.builder.archive_members import BadArchive, Member, members_of
from ideepdoctor.system import System, TreeEntry

MOST_BYTES = 2 << 30
"""Unpacked; upstream's source with MKL-DNN has 60 MB."""
MOST_BYTES_OF_A_FILE = 256 << 20
MOST_MEMBERS = 100_000
_LONGEST_NAME, _LONGEST_PATH = 255, 2000
_LEFT_OUT = frozenset({"__MACOSX", "pax_global_header", ".DS_Store"})
"""What some programs put beside the files."""


def unpack(system: System, archive: str, folder: str) -> str:
    """Unpack a tar file (plain, gzip, bzip2, xz) or a zip file.

    Links that stay within it are kept; modes become 0644 or 0755; owners and times are not taken over.

    Args:
        system: writes and, where something is wrong, removes again.
        archive: its path.
        folder: does not exist yet, and is not left behind where this raises.

    Returns:
        The top of what was unpacked: the single folder in it, else ``folder``.

    Raises:
        BadArchive: it is no archive, is damaged or cut off, is too large, holds a device, or would write outside of
            ``folder``.
        OSError: ``folder`` cannot be written.
    """
    with members_of(archive) as stream:
        members = _checked(archive, stream)
        top = _top(members)
        try:
            system.make_folder(folder)
            system.write_tree(folder, _entries(members, folder))
        except BaseException:
            system.remove_tree(folder)
            raise
    return f"{folder}/{top}" if top else folder


def digest(archive: str) -> str:
    """SHA-256 of the file. Raises OSError."""
    with Path(archive).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _checked(archive: str, stream: Iterator[Member]) -> list[Member]:
    """The members, each checked as it comes (a header is looked at before the next one is read), then the links."""
    members: dict[PurePosixPath, Member] = {}
    total = 0
    for count, member in enumerate(stream, 1):
        path = member.path
        if count > MOST_MEMBERS:
            raise _refused(archive, f"has more than {MOST_MEMBERS} members")
        _check_path(archive, member)
        if path == PurePosixPath() or path.parts[0] in _LEFT_OUT:
            continue
        if path in members and not (member.is_folder and members[path].is_folder):
            raise _refused(archive, f"has {path} twice")
        size = member.size
        if member.same_as is not None:
            original = members.get(member.same_as)
            if original is None or not original.is_file:
                raise _refused(archive, f"has a hard link {path} to {member.same_as}, which is no file in it before")
            size = original.size
            member = Member(path, mode=original.mode, size=size, same_as=member.same_as)
        total += size
        if not 0 <= size <= MOST_BYTES_OF_A_FILE or total > MOST_BYTES:
            raise _refused(archive, f"unpacks to more than {MOST_BYTES >> 30} GB, or {path} is larger than a source is")
        members[path] = member
    if not members:
        raise _refused(archive, "holds nothing")
    for member in members.values():
        _check_place(archive, member, members)
    return list(members.values())


def _check_path(archive: str, member: Member) -> None:
    path = member.path
    if path.is_absolute() or ".." in path.parts:
        raise _refused(archive, f"would write outside of its folder: {path}")
    if "\0" in str(path) or len(str(path)) > _LONGEST_PATH or any(len(part) > _LONGEST_NAME for part in path.parts):
        raise _refused(archive, f"has a name that no file can have: {str(path)[:60]!r}...")
    if member.is_special:
        raise _refused(archive, f"holds a device or pipe: {path}")


def _check_place(archive: str, member: Member, members: dict[PurePosixPath, Member]) -> None:
    """Nothing lies under a file or link; no link leads out, or through another link (where ``..`` means elsewhere)."""
    path = member.path
    for parent in path.parents:
        above = members.get(parent)
        if above is not None and not above.is_folder:
            raise _refused(archive, f"would write {path} through {parent}, which is no folder")
    if member.link is None:
        return
    place = list(path.parent.parts)
    parts = PurePosixPath(member.link).parts
    if not member.link or parts[:1] == ("/",):
        raise _refused(archive, f"has a link out of its folder: {path} -> {member.link}")
    for number, part in enumerate(parts, 1):
        if part != "..":
            place.append(part)
        elif place:
            place.pop()
        else:
            raise _refused(archive, f"has a link out of its folder: {path} -> {member.link}")
        through = members.get(PurePosixPath(*place))
        if number < len(parts) and through is not None and through.link is not None:
            raise _refused(archive, f"has a link through another link: {path} -> {member.link}")


def _top(members: list[Member]) -> str:
    """The single folder that everything is in; empty: there is none."""
    first = {member.path.parts[0] for member in members}
    in_folders = all(len(member.path.parts) > 1 or member.is_folder for member in members)
    return first.pop() if len(first) == 1 and in_folders else ""


def _entries(members: list[Member], folder: str) -> Iterator[TreeEntry]:
    for member in members:
        name = str(member.path)
        if member.is_folder:
            yield TreeEntry(name)
        elif member.link is not None:
            yield TreeEntry(name, link=member.link)
        elif member.same_as is not None:
            yield TreeEntry(name, member.mode, Path(folder, member.same_as).read_bytes())
        else:
            yield TreeEntry(name, member.mode, member.data())


def _refused(archive: str, why: str) -> BadArchive:
    return BadArchive(
        f"{archive} {why}; nothing of it was unpacked",
        hint="get the archive again from upstream, or unpack it yourself, look at it, and give the folder to --source",
    )
