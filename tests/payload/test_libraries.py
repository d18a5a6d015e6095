"""The ELF reader of the payload: against pyelftools on real files, and on every kind of file that is no library."""

from __future__ import annotations

import itertools
import os
import socket
import struct
import subprocess
import sys
import sysconfig
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection
from elftools.elf.sections import NoteSection, SymbolTableSection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.e2e.strangers import Folder, fetched_strangers  # noqa: F401
from tests.payload.elf import joined_file, make_library, payload_module

libraries = payload_module()
MIXED = """
    int omp_get_max_threads(void) { return 1; }
    int mkldnn_memory_set_data_handle(void) { return 0; }
    extern int cblas_sgemm(void);
    int other(void) { return cblas_sgemm(); }
"""


def read(path: Path | str) -> dict[str, Any]:
    """What the payload says of a file, which it must say quickly."""
    started = time.monotonic()
    found = libraries.read_elf(str(path))
    assert time.monotonic() - started < 2
    assert found is not None
    return found


# --- files that are no libraries ---------------------------------------------------------------------------------


def test_nothing_is_there(tmp_path: Path) -> None:
    assert libraries.read_elf(str(tmp_path / "libmkldnn.so")) is None
    (tmp_path / "file").write_text("")
    assert libraries.read_elf(str(tmp_path / "file" / "libmkldnn.so")) is None


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "empty"),
        (b"\x7f", "truncated"),
        (b"\x7fELF", "truncated"),
        (b"\x7fELF\x02\x01\x01" + bytes(30), "truncated"),
        (b"\x7fELF\x07\x01\x01" + bytes(60), "damaged"),
        (b"INPUT(libmkldnn.so.0)\n", "not ELF"),
        (b"!<arch>\n", "not ELF"),
        (b"version https://git-lfs.github.com/spec/v1\n", "not ELF"),
    ],
)
def test_no_library(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "libmkldnn.so"
    path.write_bytes(content)
    found = read(path)
    assert found["problem"] == problem
    assert found["size_bytes"] == len(content)


def test_a_folder(tmp_path: Path) -> None:
    assert read(tmp_path)["problem"] == "folder"


def test_a_broken_link(tmp_path: Path) -> None:
    (tmp_path / "libmkldnn.so").symlink_to("libmkldnn.so.0")
    found = read(tmp_path / "libmkldnn.so")
    assert found["problem"] == "broken link"
    assert found["real_path"] == str(tmp_path / "libmkldnn.so.0")


def test_a_link_loop(tmp_path: Path) -> None:
    (tmp_path / "a.so").symlink_to("b.so")
    (tmp_path / "b.so").symlink_to("a.so")
    assert read(tmp_path / "a.so")["problem"] == "link loop"


def test_what_is_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.so")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket.so"))
        assert read(tmp_path / "socket.so")["problem"] == "not a regular file"
    assert read(tmp_path / "pipe.so")["problem"] == "not a regular file"
    assert read("/dev/zero")["problem"] == "not a regular file"


def test_no_permission(tmp_path: Path) -> None:
    """Root may read everything, so another user asks."""
    path = tmp_path / "libmkldnn.so"
    path.write_bytes(b"\x7fELF")
    path.chmod(0)
    source = textwrap.dedent(f"""
        import os, sys
        source = open({str(joined_file(tmp_path))!r}).read()
        os.chdir({str(tmp_path)!r})
        space = {{"__name__": "payload"}}
        exec(compile(source, "libraries.py", "exec"), space)
        if os.getuid() == 0:
            os.setgid(65534), os.setuid(65534)
        print(space["read_elf"]("libmkldnn.so")["problem"])
    """)
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert done.stdout.strip() == "no permission", done.stderr


def test_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    (tmp_path / "long.so").symlink_to("x" * 1000)
    assert read(tmp_path / "long.so")["problem"] == "unreadable: File name too long"


def test_two_gigabytes_of_nothing(tmp_path: Path) -> None:
    path = tmp_path / "libmkldnn.so"
    with path.open("wb") as stream:
        stream.truncate(2 << 30)
    assert read(path)["problem"] == "not ELF"
    library = make_library(tmp_path / "real.so", MIXED)
    with library.open("r+b") as stream:
        stream.truncate(2 << 30)
    found = read(library)
    assert (found["problem"], found["exports"]) == (None, ["mkldnn_memory_set_data_handle", "omp_get_max_threads"])


def test_an_object_file_and_a_program(tmp_path: Path) -> None:
    library = make_library(tmp_path / "a.so", MIXED)
    data = bytearray(library.read_bytes())
    data[16] = 1  # ET_REL
    library.write_bytes(data)
    assert read(library)["problem"] == "not a shared library"
    program = read(Path(sys.executable).resolve())
    assert program["problem"] is None
    assert program["interpreter"].startswith("/lib")


# --- numbers that lie --------------------------------------------------------------------------------------------


def tag_places(path: Path) -> dict[int, int]:
    """Where in a 64-bit file the value of each dynamic tag stands."""
    with path.open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".dynamic")
        start = section["sh_offset"]
        return {tag.entry.d_tag_raw: start + 16 * number + 8 for number, tag in raw_tags(section)}


def raw_tags(section: Any) -> Iterator[tuple[int, Any]]:
    """The tags with the numbers that they have in the file."""
    data = section.data()
    for number in range(len(data) // 16):
        tag = section.get_tag(number)
        tag.entry.d_tag_raw = struct.unpack_from("<Q", data, number * 16)[0]
        yield number, tag


TAGS = {
    "strtab": 5,
    "symtab": 6,
    "strsz": 10,
    "soname": 14,
    "gnu_hash": 0x6FFFFEF5,
    "verneed": 0x6FFFFFFE,
    "verneednum": 0x6FFFFFFF,
}


@pytest.mark.parametrize("value", [0, 1, 0x1000, 0xFFFFFFFF, 1 << 40, (1 << 64) - 1])
@pytest.mark.parametrize("name", TAGS)
def test_a_tag_that_points_anywhere(tmp_path: Path, name: str, value: int) -> None:
    path = versioned(tmp_path)
    place = tag_places(path)[TAGS[name]]
    data = bytearray(path.read_bytes())
    data[place : place + 8] = struct.pack("<Q", value)
    path.write_bytes(data)
    assert read(path)["problem"] in (None, "damaged", "truncated")


@pytest.mark.parametrize("tag", [5, 6, 10, 0x6FFFFEF5, 0x6FFFFFFE, 0x6FFFFFF0, 0x6FFFFFFF])
def test_a_tag_that_is_missing(tmp_path: Path, tag: int) -> None:
    path = versioned(tmp_path)
    place = tag_places(path)[tag]
    data = bytearray(path.read_bytes())
    data[place - 8 : place] = struct.pack("<Q", 0x70000000)
    path.write_bytes(data)
    found = read(path)
    if tag == 5:
        assert (found["exports"], found.get("needed")) == ([], None)
    else:
        assert found["needed"] == ["libinner.so"]


def versioned(folder: Path) -> Path:
    """A library that defines versions and needs those of another."""
    script = folder / "map"
    script.write_text("DNNL_1.0 { global: mkldnn_version; local: *; };\nDNNL_2.0 { global: dnnl_version; } DNNL_1.0;\n")
    source = "int mkldnn_version(void) { return 1; } int dnnl_version(void) { return 2; }"
    inner = make_library(folder / "libinner.so", source, f"-Wl,--version-script={script}", soname="libinner.so")
    outer = "extern int mkldnn_version(void); extern int dnnl_version(void);"
    outer += "int cblas_sgemm(void) { return mkldnn_version() + dnnl_version(); }"
    return make_library(folder / "libouter.so", outer, needs=[inner], soname="libouter.so.1")


def test_versions(tmp_path: Path) -> None:
    found = read(versioned(tmp_path))
    assert {name: sorted(one) for name, one in found["versions_needed"].items()} == {
        "libinner.so": ["DNNL_1.0", "DNNL_2.0"]
    }
    inner = read(tmp_path / "libinner.so")
    assert inner["versions_defined"] == ["DNNL_1.0", "DNNL_2.0"]
    assert inner["exports"] == ["mkldnn_version", "dnnl_version"]


def test_a_version_that_is_needed_weakly_stops_no_loader(tmp_path: Path) -> None:
    path = versioned(tmp_path)
    first, second = read(path)["versions_needed"]["libinner.so"]
    with path.open("rb") as stream:
        start = ELFFile(stream).get_section_by_name(".gnu.version_r")["sh_offset"]
    data = bytearray(path.read_bytes())
    data[start + 16 + 4] |= 2  # VER_FLG_WEAK of the first entry
    path.write_bytes(data)
    assert read(path)["versions_needed"] == {"libinner.so": [second]}
    assert first != second


def test_a_version_chain_that_bites_its_tail(tmp_path: Path) -> None:
    path = versioned(tmp_path)
    with path.open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".gnu.version_r")
        start = section["sh_offset"]
    data = bytearray(path.read_bytes())
    counted = tag_places(path)[TAGS["verneednum"]]
    data[counted : counted + 8] = struct.pack("<Q", 1 << 40)
    data[start + 2 : start + 4] = b"\xff\xff"  # as many entries as there can be
    data[start + 12 : start + 16] = struct.pack("<I", 16)
    data[start + 16 + 12 : start + 16 + 16] = struct.pack("<I", 16)
    path.write_bytes(data)
    read(path)


def test_a_hash_chain_without_end(tmp_path: Path) -> None:
    path = make_library(tmp_path / "a.so", MIXED, "-Wl,--hash-style=sysv")
    with path.open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".hash")
        start, size = section["sh_offset"], section["sh_size"]
    data = bytearray(path.read_bytes())
    buckets, chains = struct.unpack_from("<II", data, start)
    assert size == 8 + 4 * (buckets + chains)
    data[start + 8 : start + size] = struct.pack("<I", 1) * (buckets + chains)
    path.write_bytes(data)
    assert len(read(path)["exports"]) <= 1


def test_every_length(tmp_path: Path) -> None:
    """A download that broke off, wherever it did, is not taken for a library."""
    whole = versioned(tmp_path)
    data = whole.read_bytes()
    path = tmp_path / "part.so"
    with whole.open("rb") as stream:
        end = max(one["p_offset"] + one["p_filesz"] for one in ELFFile(stream).iter_segments() if one["p_filesz"])
    for length in [*range(1, 200), *range(200, end, 97), end - 1]:
        path.write_bytes(data[:length])
        assert read(path)["problem"] in ("truncated", "not ELF"), length
    path.write_bytes(data[:end])
    assert read(path)["problem"] is None


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a real small library."""
    return versioned(tmp_path_factory.mktemp("small")).read_bytes()


CHANGES = st.lists(
    st.tuples(st.integers(0, 1 << 16), st.binary(min_size=1, max_size=8)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=CHANGES, head=CHANGES, length=st.none() | st.integers(0, 20000))
def test_a_library_with_changed_bytes(
    small: bytes, tmp_path: Path, changes: list[Any], head: list[Any], length: int | None
) -> None:
    """Whatever the bytes are, the answer is a plain one and comes at once."""
    data = bytearray(small)
    for place, new in itertools.chain(changes, ((place % 1024, new) for place, new in head)):
        place %= len(data)
        data[place : place + len(new)] = new[: len(data) - place]
    path = tmp_path / "changed.so"
    path.write_bytes(data[:length])
    found = read(path)
    assert found["problem"] in (None, "empty", "truncated", "damaged", "not ELF", "not a shared library")
    assert not libraries.contains_engine(str(path))


# --- symbols -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["gnu", "sysv", "both"])
@pytest.mark.parametrize("bits", [64, 32])
def test_symbols_by_each_kind_of_hash_table(tmp_path: Path, style: str, bits: int) -> None:
    crowd = "".join(f"int filler_{number}(void) {{ return {number}; }}\n" for number in range(3000))
    options = [f"-Wl,--hash-style={style}"]
    try:
        path = make_library(tmp_path / "a.so", crowd + MIXED, *options, *(["-m32"] if bits == 32 else []))
    except AssertionError:
        if bits == 64:
            raise
        pytest.skip("the compiler makes no 32-bit libraries")
    found = read(path)
    assert found["exports"] == ["mkldnn_memory_set_data_handle", "omp_get_max_threads"]  # cblas_sgemm is only needed
    assert found["bits"] == bits


def test_a_symbol_that_is_hidden_is_not_exported(tmp_path: Path) -> None:
    source = (
        '__attribute__((visibility("hidden"))) int mkldnn_version(void) { return 1; } int other(void) { return 1; }'
    )
    assert read(make_library(tmp_path / "a.so", source))["exports"] == []


VERSION = """
    typedef struct { int major, minor, patch; const char *hash; } version_t;
    const version_t *%s(void) { static version_t version = {0, 19, 7, "abc"}; return &version; }
"""


@pytest.mark.parametrize("options", [("-O0",), ("-O2",), ("-O2", "-fcf-protection"), ("-O2", "-fstack-protector-all")])
@pytest.mark.parametrize("name", ["mkldnn_version", "dnnl_version"])
def test_the_version_is_read_without_loading(tmp_path: Path, name: str, options: tuple[str, ...]) -> None:
    path = make_library(tmp_path / "libmkldnn.so.0", VERSION % name, *options, "-lc")
    assert read(path)["version"] == "0.19.7"


def test_a_function_of_that_name_that_does_something_else(tmp_path: Path) -> None:
    path = make_library(tmp_path / "a.so", "int mkldnn_version(void) { return 5; }")
    found = read(path)
    assert (found["version"], found["exports"], found["problem"]) == (None, ["mkldnn_version"], None)


@pytest.mark.parametrize(
    ("symbol", "soname", "text", "version"),
    [
        ("__kmpc_fork_call", "libiomp5.so", "@(#) Intel(R) OMP version: 5.0.20170525", "5.0.20170525"),
        ("__kmpc_fork_call", "libomp.so", "@(#) LLVM OMP version: 5.0.20140926", "5.0.20140926"),
        ("__kmpc_fork_call", "libomp.so", "no version here", None),
        ("cblas_sgemm", "libopenblasp-r0-39a31c03.2.18.so", "OpenBLAS is... OpenBLAS 0.2.18 NO_AFFINITY", "0.2.18"),
        ("cblas_sgemm", "libother.so", "OpenBLAS 0.2.18", None),
        ("other", "libiomp5.so", "@(#) Intel(R) OMP version: 5.0.20170525", None),
    ],
)
def test_the_version_is_a_string(tmp_path: Path, symbol: str, soname: str, text: str, version: str | None) -> None:
    source = f'const char text[] = "{text}"; const char rest[3000000] = {{1}}; int {symbol}(void) {{ return 0; }}'
    assert read(make_library(tmp_path / "a.so", source, soname=soname))["version"] == version


def test_a_version_across_the_border_of_two_reads(tmp_path: Path) -> None:
    """What is searched is read in pieces from the end; a text that lies on a border is found all the same."""
    source = "const char rest[3000000] = {1}; int __kmpc_fork_call(void) { return 0; }"
    library = make_library(tmp_path / "a.so", source)
    data = library.read_bytes()
    with library.open("rb") as stream:
        constant = max(
            (one for one in ELFFile(stream).iter_segments("PT_LOAD") if not one["p_flags"] & 2),
            key=lambda one: one["p_filesz"],
        )
        border = constant["p_offset"] + constant["p_filesz"] - (1 << 20)
    words = b"@(#) Intel(R) OMP version: 5.0.20170525\0"
    for before in range(len(words) + 1):
        library.write_bytes(data[: border - before] + words + data[border - before + len(words) :])
        assert read(library)["version"] == "5.0.20170525", before


def test_what_decides_the_search(tmp_path: Path) -> None:
    plain = ("-Wl,-rpath,$ORIGIN/lib:/x",)
    found = read(make_library(tmp_path / "a.so", MIXED, *plain, "-Wl,--disable-new-dtags", "-Wl,-z,nodefaultlib"))
    assert (found["rpath"], found.get("runpath")) == ("$ORIGIN/lib:/x", None)
    assert found["no_default_folders"] is True
    found = read(make_library(tmp_path / "b.so", MIXED, *plain, "-Wl,--enable-new-dtags"))
    assert (found.get("rpath"), found["runpath"]) == (None, "$ORIGIN/lib:/x")
    assert found["no_default_folders"] is False
    assert found["executable_stack"] is False
    assert read(make_library(tmp_path / "c.so", MIXED, "-Wl,-z,execstack"))["executable_stack"] is True


def test_another_byte_order(tmp_path: Path) -> None:
    """A big-endian 32-bit library (PowerPC), written by hand: names alone, no symbols."""
    names = b"\0libmkldnn.so.0\0libc.so.6\0"
    start = 52 + 32 * 2
    tags = [(14, 1), (1, 16), (5, start), (10, len(names)), (0, 0)]
    dynamic = start + len(names)
    end = dynamic + 8 * len(tags)
    header = b"\x7fELF\x01\x02\x01" + bytes(9)
    header += struct.pack(">HHIIIIIHHHHHH", 3, 20, 1, 0, 52, 0, 0, 52, 32, 2, 0, 0, 0)
    header += struct.pack(">IIIIIIII", 1, 0, 0, 0, end, end, 5, 4096)
    header += struct.pack(">IIIIIIII", 2, dynamic, dynamic, 0, 8 * len(tags), 8 * len(tags), 6, 4)
    path = tmp_path / "libmkldnn.so.0"
    path.write_bytes(header + names + b"".join(struct.pack(">II", *one) for one in tags))
    found = read(path)
    assert found["problem"] is None
    assert (found["bits"], found["little_endian"], found["machine"]) == (32, False, 20)
    assert (found["soname"], found["needed"]) == ("libmkldnn.so.0", ["libc.so.6"])


# --- real libraries, against pyelftools --------------------------------------------------------------------------


def real_libraries() -> list[Path]:
    """Libraries of this interpreter and of the system, at most 150, spread over both."""
    folders = [Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_config_var("LIBDIR") or "/usr/lib")]
    folders += [Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib64"), Path("/usr/lib")]
    seen: dict[Path, None] = {}
    for folder in folders:
        paths = itertools.islice((one for one in sorted(folder.glob("**/*.so*")) if one.is_file()), 400)
        seen.update(dict.fromkeys(one.resolve() for one in paths))
    every = list(seen)
    return every[:: max(1, len(every) // 150)][:150]


def pyelftools_says(path: Path) -> dict[str, Any]:
    """The same facts by another reader, which walks all symbols."""
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        said: dict[str, Any] = {"needed": [], "exports": [], "versions_needed": {}, "versions_defined": []}
        for segment in elf.iter_segments("PT_DYNAMIC"):
            for tag in segment.iter_tags():
                kind = tag.entry.d_tag
                if kind == "DT_NEEDED":
                    said["needed"].append(tag.needed)
                elif kind in ("DT_SONAME", "DT_RPATH", "DT_RUNPATH"):
                    said[kind[3:].lower()] = getattr(tag, kind[3:].lower())
        for section in elf.iter_sections():
            if isinstance(section, SymbolTableSection) and section.name == ".dynsym":
                defined = {one.name for one in section.iter_symbols() if one["st_shndx"] != "SHN_UNDEF"}
                said["exports"] = [name for name in libraries.SYMBOLS if name in defined]
            elif isinstance(section, GNUVerNeedSection):
                for need, versions in section.iter_versions():
                    wanted = [one.name for one in versions if not one["vna_flags"] & 2]
                    if wanted:
                        said["versions_needed"][need.name] = wanted
            elif isinstance(section, GNUVerDefSection):
                for version, names in section.iter_versions():
                    if not version["vd_flags"] & 1:
                        said["versions_defined"].append(next(iter(names)).name)
            elif isinstance(section, NoteSection) and section.name == ".note.gnu.build-id":
                said["build_id"] = next(iter(section.iter_notes()))["n_desc"]
        return said


def test_real_libraries_against_another_reader() -> None:
    wrong, checked = [], 0
    for path in real_libraries():
        if path.read_bytes()[:4] != b"\x7fELF":
            assert read(path)["problem"] is not None
            continue
        checked += 1
        found, said = read(path), pyelftools_says(path)
        names = ("needed", "soname", "rpath", "runpath", "exports", "versions_needed", "versions_defined", "build_id")
        wrong += [(path, name, found.get(name), said.get(name)) for name in names if found.get(name) != said.get(name)]
        if found["problem"]:
            wrong.append((path, "problem", found["problem"], None))
    assert not wrong
    assert checked > 20


# --- the libraries of real wheels --------------------------------------------------------------------------------

REAL = {
    "0.12": ("libmkldnn.so.0", "libmkldnn.so.0", None, "mkldnn"),
    "0.14": ("libmkldnn.so.0", "libmkldnn.so.0", None, "mkldnn"),
    "0.19": ("libmkldnn.so.0", "libmkldnn.so.0", "0.19.0", "mkldnn"),
    "0.20.2": ("libmkldnn.so", "libmkldnn.so", "0.20.2", "mkldnn"),
    "0.21": ("libmkldnn.so.0", "libmkldnn.so.0", "0.21.0", "mkldnn"),
    "DNNL 1.3": ("libmkldnn.so.0", "libdnnl.so.1", "1.3.0", "dnnl"),
    "oneDNN 2.4": ("libmkldnn.so", "libdnnl.so.2", "2.4.0", "dnnl"),
}
"""File name, SONAME, version, and how its symbols begin."""


@pytest.mark.e2e
@pytest.mark.parametrize("version", REAL)
def test_the_libraries_of_wheels(version: str, strangers: Folder) -> None:
    name, soname, told, begin = REAL[version]
    found = read(strangers(version) / name)
    assert (found["problem"], found["soname"], found["version"]) == (None, soname, told)
    assert f"{begin}_memory_set_data_handle" in found["exports"]
    assert all(one.startswith(begin) for one in found["exports"])


@pytest.mark.e2e
def test_intels_libraries_of_a_wheel(strangers: Folder) -> None:
    folder = strangers("0.14")
    omp = read(folder / "libiomp5.so")
    assert (omp["version"], omp["soname"]) == ("5.0.20170525", "libiomp5.so")
    assert omp["exports"] == list(libraries.OPENMP)
    mkl = read(folder / "libmklml_intel.so")
    assert (mkl["version"], mkl.get("soname"), mkl["exports"]) == (
        None,
        None,
        ["cblas_sgemm", "MKL_Get_Version_String"],
    )
