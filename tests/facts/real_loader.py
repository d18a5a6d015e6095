"""The dynamic loader of this machine, for comparison with the model of it: small libraries, a program, what it maps."""

from __future__ import annotations

import functools
import os
import re
import shutil
import stat
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection
from elftools.elf.segments import InterpSegment

from ideepdoctor.facts.loader import World, predict
from ideepdoctor.model.native import ElfFile, Loaded

INTERPRETER = "/lib64/ld-linux-x86-64.so.2"
DF_1_NODEFLIB = 0x800
WEAK = 2

PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
static void tell(const char *what) {
    printf("%s\n", what);
    for (struct link_map *one = _r_debug.r_map; one; one = one->l_next) printf("map %s\n", one->l_name);
}
int main(int count, char **words) {
    char line[8192];
    tell("started");
    for (int i = 1; i < count; i++) tell(dlopen(words[i], RTLD_NOW) ? "ok" : dlerror());
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) printf("at %s", line);
    return 0;
}
"""
"""Opens its arguments one by one; tells the loader's list of objects before, between and after, and what is mapped."""

LAUNCHER = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words) {
    int end = 4;
    while (end < count && strcmp(words[end], "--")) end++;
    words[end] = 0;
    if (geteuid() && unshare(CLONE_NEWUSER)) return 126;
    if (chroot(words[1]) || chdir(words[2])) return 126;
    if (!geteuid() && setuid(65534)) return 126;
    char *program = words[3];
    words[end] = program;
    char *environment[64] = {0};
    for (int i = 4; i < end; i++) environment[i - 4] = words[i];
    execve(program, words + end, environment);
    return 127;
}
"""
"""``launch ROOT FOLDER PROGRAM [VARIABLE=VALUE]... -- [ARGUMENT]...`` runs a program with another root, not as root, so
that a file without read permission cannot be read. It returns 126 where the system does not allow it."""


def shared_object(
    *,
    soname: str | None = None,
    needed: Sequence[str] = (),
    rpath: str | None = None,
    runpath: str | None = None,
    nodeflib: bool = False,
) -> bytes:
    """A library without any symbol that the loader can map: headers, one segment, tags. Made in microseconds."""
    strings = bytearray(b"\0")

    def text(value: str) -> int:
        strings.extend(value.encode() + b"\0")
        return len(strings) - len(value.encode()) - 1

    tags = [(1, text(name)) for name in needed]
    tags += [(tag, text(value)) for tag, value in ((14, soname), (15, rpath), (29, runpath)) if value is not None]
    tags += [(0x6FFFFFFB, DF_1_NODEFLIB)] if nodeflib else []
    headers = 64 + 3 * 56
    symbols = headers + len(strings) + -len(strings) % 8
    dynamic = symbols + 24
    tags += [(5, headers), (10, len(strings)), (6, symbols), (11, 24), (0, 0)]
    size = dynamic + 16 * len(tags)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    ehdr = struct.pack("<16sHHIQQQIHHHHHH", ident, 3, 62, 1, 0, 64, 0, 0, 64, 56, 3, 64, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 6, 0, 0, 0, size, size, 0x1000)
    dyn = struct.pack("<IIQQQQQQ", 2, 6, dynamic, dynamic, dynamic, 16 * len(tags), 16 * len(tags), 8)
    stack = struct.pack("<IIQQQQQQ", 0x6474E551, 6, 0, 0, 0, 0, 0, 16)
    body = bytes(strings).ljust(symbols - headers, b"\0") + bytes(24)
    return ehdr + load + dyn + stack + body + b"".join(struct.pack("<qQ", *tag) for tag in tags)


def patched(content: bytes, *, bits: int = 64, big_endian: bool = False, machine: int = 62) -> bytes:
    """The same file for another sort of machine, as far as a loader looks."""
    changed = bytearray(content)
    changed[4], changed[5] = bits // 32, 1 + big_endian
    changed[18:20] = struct.pack("<H", machine)
    return bytes(changed)


@functools.cache
def _build_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="ideepdoctor-loader-")


@functools.cache
def compiled(source: str, *options: str) -> bytes:
    """What gcc makes of a C source; each variant is compiled once."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc on this machine")
    folder = Path(_build_folder().name)
    (folder / "one.c").write_text(source)
    subprocess.run(["gcc", "-O0", "-o", "one", "one.c", *options], cwd=folder, check=True)
    return (folder / "one").read_bytes()


@functools.cache
def program(needed: tuple[str, ...] = (), *options: str) -> bytes:
    """The program, linked so that it needs these names whether it uses them or not."""
    return compiled(PROGRAM, "-Wl,--no-as-needed", *_stubs(needed), *options)


def _stubs(names: Sequence[str]) -> list[str]:
    """Libraries of these names to link with, so that the names become needs."""
    folder = Path(_build_folder().name) / "stubs"
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_bytes(compiled("", "-shared", "-nostdlib", f"-Wl,-soname,{name}"))
    return [str(folder / name) for name in names]


def read_elf(path: str) -> ElfFile | None:
    """Read a file as the payload does, with pyelftools; None: there is no such file."""
    real_path = os.path.realpath(path)
    try:
        status = Path(path).stat()
        if not status.st_mode & 0o444:
            return ElfFile(path, real_path, problem="no permission")
        if stat.S_ISDIR(status.st_mode):
            return ElfFile(path, real_path, problem="folder")
        content = Path(path).read_bytes()
    except OSError as error:
        if not Path(path).is_symlink():
            return None
        return ElfFile(path, real_path, problem="broken link" if isinstance(error, FileNotFoundError) else "link loop")
    known = _headers(content)
    identity = f"{status.st_dev}:{status.st_ino}"
    return ElfFile(path, real_path, size_bytes=len(content), identity=identity, **known)


@functools.lru_cache(maxsize=4096)
def _headers(content: bytes) -> dict[str, object]:
    if not content:
        return {"problem": "empty"}
    if content[:4] != b"\x7fELF":
        return {"problem": "not ELF"}
    if len(content) < 64:
        return {"problem": "truncated"}
    kind = {"bits": 32 * content[4], "little_endian": content[5] == 1}
    if kind != {"bits": 64, "little_endian": True}:
        return {**kind, "machine": int.from_bytes(content[18:20], "little")}
    with tempfile.TemporaryFile() as stream:
        stream.write(content)
        elf = ELFFile(stream)
        return {**kind, "machine": int.from_bytes(content[18:20], "little"), **_tags(elf), **_versions(elf)}


def _tags(elf: ELFFile) -> dict[str, object]:
    told: dict[str, object] = {}
    needed = []
    for segment in elf.iter_segments():
        if isinstance(segment, InterpSegment):
            told["interpreter"] = segment.get_interp_name()
        if isinstance(segment, DynamicSegment):
            for tag in segment.iter_tags():
                match tag.entry.d_tag:
                    case "DT_NEEDED":
                        needed.append(tag.needed)
                    case "DT_SONAME" | "DT_RPATH" | "DT_RUNPATH" as name:
                        told[name[3:].lower()] = getattr(tag, name[3:].lower())
                    case "DT_FLAGS_1":
                        told["no_default_folders"] = bool(tag.entry.d_val & DF_1_NODEFLIB)
    return {**told, "needed": tuple(needed)}


def _versions(elf: ELFFile) -> dict[str, object]:
    """Symbol versions; weak ones are left out, for a loader only warns of them."""
    needed: dict[str, tuple[str, ...]] = {}
    defined: list[str] = []
    for section in elf.iter_sections():
        if isinstance(section, GNUVerNeedSection):
            for library, parts in section.iter_versions():
                needed[library.name] = tuple(part.name for part in parts if not part.entry.vna_flags & WEAK)
        elif isinstance(section, GNUVerDefSection):
            defined += [next(iter(parts)).name for _, parts in section.iter_versions()]
    return {"versions_needed": needed, "versions_defined": tuple(defined)}


class Disk(Mapping[str, ElfFile]):
    """Every file below a root, read when it is asked for; what was read is what it lists."""

    def __init__(self, root: str = "") -> None:
        self.root = root
        self.seen: dict[str, ElfFile | None] = {}

    def __getitem__(self, path: str) -> ElfFile:
        if path not in self.seen:
            self.seen[path] = self._read(path)
        found = self.seen[path]
        if found is None:
            raise KeyError(path)
        return found

    def _read(self, path: str) -> ElfFile | None:
        file = read_elf(self.root + path)
        return file and replace(file, path=path, real_path=file.real_path.removeprefix(self.root))

    def __iter__(self) -> Iterator[str]:
        return (path for path, file in self.seen.items() if file is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True)
class Told:
    """What a program told of its loader.

    Attributes:
        started: whether it started.
        errors: of its start if that failed, then of each dlopen; None: it worked.
        chains: names of the loader's objects after the start and after each dlopen, without the program and the vDSO.
        ignored: preloads that the loader warned of.
        mapped: real paths of the files in /proc/self/maps at the end.
    """

    started: bool
    errors: tuple[str | None, ...]
    chains: tuple[tuple[str, ...], ...]
    ignored: tuple[str, ...]
    mapped: tuple[str, ...]


def run(words: Sequence[str], env: Mapping[str, str], cwd: str | None = None) -> Told:
    """Start the program (or the launcher with it) and read what it tells."""
    ended = subprocess.run(words, env=dict(env), cwd=cwd, capture_output=True, text=True, timeout=60)
    if ended.returncode == 126:
        pytest.skip("this system lets nobody change the root folder")
    ignored = re.findall(r"object '(.*?)' from \S+ cannot be preloaded", ended.stderr)
    if not ended.stdout:
        lines = [line for line in ended.stderr.splitlines() if not line.startswith("ERROR: ld.so: object")]
        return Told(False, (lines[0] if lines else str(ended.returncode),), (), tuple(ignored), ())
    assert ended.returncode == 0, ended
    errors: list[str | None] = []
    chains: list[list[str]] = []
    mapped: dict[str, None] = {}
    for line in ended.stdout.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "map":
            chains[-1].append(rest)
        elif kind == "at":
            mapped.update({path: None for path in rest.split()[5:6] if path.startswith("/")})
        else:
            errors += [] if line == "started" else [None if line == "ok" else line]
            chains.append([])
    return Told(True, tuple(errors), tuple(tuple(chain[2:]) for chain in chains), tuple(ignored), tuple(mapped))


class Sandbox:
    """A root folder of its own for one program: what the loader can see is what a test puts there."""

    def __init__(self, program_content: bytes, path: str = "/bin/program") -> None:
        self.root = tempfile.mkdtemp(prefix="ideepdoctor-root-")
        Path(self.root).chmod(0o755)
        self.program = path
        for folder in ("etc", "proc/self", "w"):
            (Path(self.root) / folder).mkdir(parents=True)
        self.put(path, program_content)
        # The loader asks this link for the folder of the program.
        (Path(self.root) / "proc/self/exe").symlink_to(path)
        for source in (INTERPRETER, dict(system_cache())["libc.so.6"]):
            self.put(source, Path(source).read_bytes())

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.root)

    def _place(self, path: str) -> Path:
        place = Path(self.root + path)
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def put(self, path: str, content: bytes, mode: int = 0o755) -> None:
        place = self._place(path)
        place.write_bytes(content)
        place.chmod(mode)

    def folder(self, path: str) -> None:
        self._place(path).mkdir(parents=True, exist_ok=True)

    def link(self, path: str, target: str) -> None:
        """A relative link where the target starts with a slash, so that it leads to the same place from outside."""
        place = self._place(path)
        place.symlink_to(os.path.relpath(self.root + target, place.parent) if target.startswith("/") else target)

    def remove(self, path: str) -> None:
        """Take a file away, or an empty folder; behind a link, what it leads to."""
        place = Path(os.path.realpath(self.root + path))
        if place.is_dir():
            place.rmdir()
        else:
            place.unlink()

    def make_cache(self, *folders: str) -> None:
        """Let ldconfig write /etc/ld.so.cache from these folders and the default ones; it makes no links."""
        self.put("/etc/ld.so.conf", "".join(f"{folder}\n" for folder in folders).encode())
        subprocess.run(["/sbin/ldconfig", "-X", "-r", self.root], check=True, capture_output=True)

    def world(self, **values: object) -> World:
        preloads = Path(self.root) / "etc/ld.so.preload"
        return World(
            **{  # type: ignore[arg-type]
                "files": Disk(self.root),
                "executable": self.program,
                "preload_file": preloads.read_text() if preloads.exists() else None,
                "cache": cache_of(self.root),
                "default_folders": default_folders(),
                "hwcaps": hwcaps(),
                "lib": lib(),
                "platform": platform(),
                "cwd": "/w",
                **values,
            }
        )

    def run(self, world: World, opened: Sequence[str]) -> Told:
        launcher = Path(_build_folder().name) / "launcher"
        if not launcher.exists():
            launcher.write_bytes(compiled(LAUNCHER))
            launcher.chmod(0o755)
        variables = {"LD_LIBRARY_PATH": world.library_path, "LD_PRELOAD": world.preload}
        environ = [f"{name}={value}" for name, value in variables.items() if value is not None]
        return run([str(launcher), self.root, "/w", self.program, *environ, "--", *opened], {})


def this_machine(program_path: str, env: Mapping[str, str]) -> World:
    """All that the loader of this machine can see when it starts a program so."""
    preloads = Path("/etc/ld.so.preload")
    return World(
        files=Disk(),
        executable=os.path.realpath(program_path),
        library_path=env.get("LD_LIBRARY_PATH"),
        preload=env.get("LD_PRELOAD"),
        preload_file=preloads.read_text() if preloads.exists() else None,
        cache=system_cache(),
        default_folders=default_folders(),
        hwcaps=hwcaps(),
        lib=lib(),
        platform=platform(),
    )


def cache_of(root: str) -> tuple[tuple[str, str], ...]:
    """Names and paths of the x86-64 entries of a cache, in its order."""
    if not Path(f"{root}/etc/ld.so.cache").exists():
        return ()
    text = subprocess.run(["/sbin/ldconfig", "-r", root or "/", "-p"], capture_output=True, text=True).stdout
    return tuple(re.findall(r"^\t(\S+) \(libc6,x86-64.*\) => (.*)$", text, re.MULTILINE))


@functools.cache
def system_cache() -> tuple[tuple[str, str], ...]:
    """That of this machine."""
    return cache_of("")


@functools.cache
def _searched() -> tuple[list[str], list[str]]:
    """What this loader searches for a file that is nowhere: below LD_LIBRARY_PATH=/nowhere, and by default."""
    env = {"LD_DEBUG": "libs", "LD_LIBRARY_PATH": "/nowhere", "LD_PRELOAD": "libnowhere.so"}
    text = subprocess.run(["/bin/true"], env=env, capture_output=True, text=True).stderr
    lists = re.findall(r"search path=(\S+)", text)
    return lists[0].split(":"), lists[1].split(":")


def hwcaps() -> tuple[str, ...]:
    """The subfolders that this loader searches first."""
    return tuple(path.removeprefix("/nowhere/") for path in _searched()[0] if path != "/nowhere")


def default_folders() -> tuple[str, ...]:
    """The folders built into this loader."""
    return tuple(path for path in _searched()[1] if not path.endswith(tuple(f"/{name}" for name in hwcaps())))


@functools.cache
def platform() -> str:
    """What $PLATFORM stands for."""
    text = subprocess.run([INTERPRETER, "--list-diagnostics"], capture_output=True, text=True).stdout
    (found,) = re.findall(r'^dl_platform="(.*)"', text, re.MULTILINE)
    return str(found)


def lib() -> str:
    """What $LIB stands for: the end of the first default folder."""
    return default_folders()[0].lstrip("/")


MESSAGES = {
    "not found": "cannot open shared object file|wrong ELF class",
    "empty": "file too short",
    "truncated": "file too short",
    "not ELF": "invalid ELF header",
    "folder": "cannot read file data: (Is a directory|Error 21)",
    "not little-endian": "ELF file data encoding not little-endian",
}
"""What a loader says for the problems of the model."""


def differences(world: World, opened: Sequence[str], told: Told) -> list[str]:
    """Where the model and what a program told differ: objects, their order, failures, their messages, warnings."""
    found: list[str] = []
    chain: list[str] = []
    before: tuple[Loaded, ...] = ()
    for place in range(len(opened) + 1):
        now = predict(world, opened[:place])
        entries, before = now[len(before) :], now
        stopped = [entry for entry in entries if entry.problem is not None]
        if place == 0:
            ignored = tuple(entry.name for entry in entries if entry.path is None and entry.problem is None)
            found += [] if ignored == told.ignored else [f"ignored: {ignored} {told.ignored}"]
            if not told.started:
                return found + _messages(world, stopped, told.errors[0])
        if place or stopped:
            found += _messages(world, stopped, told.errors[place - 1] if place else None)
        if not stopped:
            chain += [
                entry.path or "" for entry in entries if entry.path is not None and entry.step != "already loaded"
            ]
        real = [world.absolute(name) for name in told.chains[place] if "ld-linux" not in name]
        found += [] if real == chain else [f"after {place}: {chain} {real}"]
    return found


def _messages(world: World, stopped: Sequence[Loaded], error: str | None) -> list[str]:
    if not stopped or error is None:
        return [] if not stopped and error is None else [f"failure: {stopped} {error}"]
    entry, problem = stopped[-1], stopped[-1].problem or ""
    # At the start: ``PROGRAM: error while loading shared libraries: FILE: MESSAGE``, or ``PROGRAM: FILE: MESSAGE``.
    text = error.removeprefix(f"{world.executable}: ").removeprefix("error while loading shared libraries: ")
    named, _, message = text.partition(": ")
    fine = re.match(MESSAGES.get(problem, re.escape(problem.partition(" in ")[0])), message)
    # A missing file is named as it was asked for, with $ORIGIN put in.
    asked = re.sub("^.*[$]ORIGIN", "", entry.name)
    fine = fine and (named.endswith(asked) if problem == "not found" else world.absolute(named) == entry.path)
    return [] if fine else [f"message: {entry} {error}"]


def gcc_library(needed: Sequence[str] = (), *options: str, soname: str | None = None) -> bytes:
    """A library by gcc that needs these names."""
    named = [] if soname is None else [f"-Wl,-soname,{soname}"]
    return compiled("", "-shared", "-nostdlib", "-Wl,--no-as-needed", *_stubs(needed), *named, *options)


@functools.cache
def versioned_library(*versions: str) -> bytes:
    """libv.so by gcc with a function ``f_VERSION`` for each of V1 and V2, and with these symbol versions.

    It needs a version of libc.so.6: of a library without any table of versions glibc says "inconsistency" and aborts.
    """
    folder = Path(_build_folder().name)
    script = folder / f"{'-'.join(versions)}.map"
    script.write_text("\n".join(f"{version} {{ f_{version}; }};" for version in versions))
    options = [f"-Wl,--version-script,{script}"] if versions else []
    source = "int getpid(void); int f_V1(void) { return getpid(); } int f_V2(void) { return 2; }"
    return compiled(source, "-shared", "-fPIC", "-Wl,-soname,libv.so", *options)


@functools.cache
def user_of_version(version: str, *options: str) -> bytes:
    """A library by gcc that uses the function of a version of libv.so."""
    library = Path(_build_folder().name) / "libv-full.so"
    library.write_bytes(versioned_library("V1", "V2"))
    weak = "__attribute__((weak))" if "weak" in options else ""
    source = f"{weak} int f_{version}(void); int (*user)(void) = f_{version};"
    words = [option for option in options if option != "weak"]
    return compiled(source, "-shared", "-nostdlib", "-fPIC", str(library), *words)
