"""builder/inspect.py: every fault of a wheel by its name; and the reader of symbols, against pyelftools."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from ideepdoctor.builder.inspect import API, check
from ideepdoctor.builder.wheel_metadata import archive
from ideepdoctor.treatment.elfpaths import NotElf, symbols_of
from tests.builder.elves import OLD_TAGS, engine, extension, functions, library, needs_compiler, staging
from tests.builder.packed import packed

NAME = "ideep4py-2.0.0.post3+doctor.v3-cp37-cp37m-linux_x86_64.whl"
INFO = "ideep4py-2.0.0.post3+doctor.v3.dist-info"
EXTENSION = "ideep4py/_ideep4py.cpython-37m-x86_64-linux-gnu.so"
Contents = dict[str, bytes]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    """The files of a wheel that nothing is wrong with, RECORD aside."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler on this machine")
    folder = tmp_path_factory.mktemp("good")
    staging(folder / "staging")
    wheel = packed(folder / "staging", folder)
    with zipfile.ZipFile(wheel.path) as whole:
        return {name: whole.read(name) for name in whole.namelist() if not name.endswith("/RECORD")}


@pytest.fixture
def problems(good: Contents, tmp_path: Path) -> Callable[..., str]:
    """``problems({name: bytes or None})``: what is found in the good wheel with these files changed (None: taken away),
    in one line."""

    def look(changes: dict[str, bytes | None] | None = None, name: str = NAME, **options: str) -> str:
        contents = {key: data for key, data in {**good, **(changes or {})}.items() if data is not None}
        path = tmp_path / name
        path.write_bytes(archive({key: (lambda data=data: data) for key, data in contents.items()}, version_of(name)))
        return "; ".join(check(str(path), **options))

    return look


def version_of(name: str) -> str:
    return name.split("-")[1]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return staging(tmp_path / "staging")


def test_nothing_is_wrong_with_a_good_wheel(problems: Callable[..., str]):
    assert problems() == ""
    assert problems(chainer="7.8.1") == ""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ideep4py.zip", "no wheel for one Python"),
        ("ideep4py-2.0.0-py2.py3-none-any.whl", "no wheel for one Python"),
        ("ideep4py-2.0.0-cp36-cp37m-linux_x86_64.whl", "cp37m is not one of cp36"),
        ("ideep4py-2.0.0-pp310-pypy310_pp73-linux_x86_64.whl", "no ABI of CPython"),
        ("numpy-2.0.0-cp37-cp37m-linux_x86_64.whl", "a wheel of numpy"),
        ("ideep4py-x-cp37-cp37m-linux_x86_64.whl", "no wheel for one Python"),
    ],
)
def test_what_is_no_wheel_of_ideep4py(tmp_path: Path, name: str, said: str):
    (tmp_path / name).write_bytes(b"PK")
    [problem] = check(str(tmp_path / name))
    assert said in problem


def test_a_file_that_cannot_be_read(tmp_path: Path):
    [problem] = check(str(tmp_path / NAME))
    assert "cannot be read: No such file" in problem


@needs_compiler
@pytest.mark.parametrize("place", [0.0, 0.3, 0.6])
def test_a_damaged_zip(good: Contents, tmp_path: Path, place: float):
    data = bytearray(archive({key: (lambda data=data: data) for key, data in good.items()}, version_of(NAME)))
    start = int(len(data) * place) + 100
    data[start : start + 200] = bytes(200)
    (tmp_path / NAME).write_bytes(data)
    [problem] = check(str(tmp_path / NAME))
    assert "damaged zip" in problem
    (tmp_path / NAME).write_bytes(data[: len(data) // 2])
    assert "damaged zip" in check(str(tmp_path / NAME))[0]


def rewritten(path: Path, changes: dict[str, bytes]) -> str:
    """Put other bytes into a wheel and leave its RECORD as it is."""
    with zipfile.ZipFile(path) as whole:
        contents = {name: whole.read(name) for name in whole.namelist()}
    with zipfile.ZipFile(path, "w") as whole:
        for name, data in {**contents, **changes}.items():
            whole.writestr(name, data)
    return "; ".join(check(str(path)))


@needs_compiler
def test_record_must_agree(problems: Callable[..., str], tmp_path: Path):
    problems()
    path = tmp_path / NAME
    assert rewritten(path, {"ideep4py/_version.py": b'__version__ = "2.0.0.post3"'}) == (
        "RECORD disagrees with ideep4py/_version.py"
    )
    assert "RECORD does not list ideep4py/more.py" in rewritten(path, {"ideep4py/more.py": b""})
    problems()
    record = zipfile.ZipFile(path).read(f"{INFO}/RECORD").decode()
    listed = (record + "ideep4py/gone.py,,\n").encode()
    assert rewritten(path, {f"{INFO}/RECORD": listed}) == "RECORD lists ideep4py/gone.py, which is not there"
    assert rewritten(path, {f"{INFO}/RECORD": b"\xff"}).startswith("RECORD cannot be read")


def test_metadata_must_agree(problems: Callable[..., str], good: Contents):
    assert problems({f"{INFO}/WHEEL": None}) == f"{INFO}/WHEEL is missing"
    other = good[f"{INFO}/METADATA"].replace(b"2.0.0.post3+doctor.v3\n", b"2.0.0\n")
    assert "METADATA says ideep4py 2.0.0, the file's name" in problems({f"{INFO}/METADATA": other})
    tag = good[f"{INFO}/WHEEL"].replace(b"cp37-cp37m", b"cp36-cp36m")
    assert "WHEEL has the tag cp36-cp36m-linux_x86_64" in problems({f"{INFO}/WHEEL": tag})


def test_a_name_that_leads_outside(problems: Callable[..., str]):
    assert "../evil.py would be written outside" in problems({"../evil.py": b""})
    assert "/etc/evil would be written outside" in problems({"/etc/evil": b""})


def test_an_extension_for_another_python(problems: Callable[..., str], good: Contents):
    other = "ideep4py/_ideep4py.cpython-36m-x86_64-linux-gnu.so"
    assert "_ideep4py.cpython-36m-x86_64-linux-gnu.so is not for cp37m" in problems(
        {EXTENSION: None, other: good[EXTENSION]}
    )
    assert "there is more than one extension" in problems({other: good[EXTENSION]})
    assert f"there is no extension {EXTENSION}" in problems({EXTENSION: None})
    assert "ideep4py/__init__.py is missing" in problems({"ideep4py/__init__.py": None})


def test_an_extension_of_another_major_version(problems: Callable[..., str], package: Path):
    made = extension(package, start="init_ideep4py")
    assert (
        problems({EXTENSION: made.read_bytes()})
        == f"{made.name} cannot be imported by Python 3.7: it has no PyInit__ideep4py"
    )


def test_widths_of_characters_on_python_2(problems: Callable[..., str], package: Path, good: Contents):
    for abi, asks, right in (("cp27mu", 4, True), ("cp27mu", 2, False), ("cp27m", 2, True), ("cp27m", 4, False)):
        uses = ("mkldnn_primitive_create", f"PyUnicodeUCS{asks}_AsUTF8String")
        made = extension(package, "_ideep4py.so", start="init_ideep4py", uses=uses).read_bytes()
        wheel = good[f"{INFO}/WHEEL"].replace(b"cp37-cp37m", f"cp27-{abi}".encode())
        changes = {EXTENSION: None, "ideep4py/_ideep4py.so": made, f"{INFO}/WHEEL": wheel}
        found = problems(changes, NAME.replace("cp37-cp37m", f"cp27-{abi}"))
        assert found == ("" if right else f"_ideep4py.so is not for {abi}: its characters have {asks} bytes")


def test_runpath_is_refused(problems: Callable[..., str], package: Path):
    made = extension(package, flags=("-Wl,-rpath,$ORIGIN/lib", "-Wl,--enable-new-dtags"))
    assert "has a RUNPATH ($ORIGIN/lib): libiomp5.so would not be found" in problems({EXTENSION: made.read_bytes()})


def test_a_runpath_in_lib_hides_the_extensions_rpath(problems: Callable[..., str], package: Path):
    place = "ideep4py/lib/libiomp5.so"
    for folder, right in (("/usr/lib", False), ("$ORIGIN", True)):
        made = library(
            package / "x.so",
            functions(["omp"]),
            "-Wl,-soname,libiomp5.so",
            f"-Wl,-rpath,{folder}",
            "-Wl,--enable-new-dtags",
        )
        assert ("libiomp5.so has a RUNPATH" in problems({place: made.read_bytes()})) is not right


def test_another_rpath_is_refused(problems: Callable[..., str], package: Path):
    made = extension(package, flags=("-Wl,-rpath,/build/lib", OLD_TAGS))
    assert "has no RPATH $ORIGIN/lib: /build/lib" in problems({EXTENSION: made.read_bytes()})


def test_a_library_that_is_missing(problems: Callable[..., str], package: Path):
    lib = "ideep4py/lib"
    assert problems({f"{lib}/libiomp5.so": None}) == (
        "libmklml_intel.so needs libiomp5.so, which is neither in lib/ nor one that systems have"
    )
    found = problems({f"{lib}/libmkldnn.so.0": None})
    assert "needs libmkldnn.so.0, which is neither in lib/" in found and "which is MKL-DNN, is missing" in found
    library(package / "lib" / "libglog.so", functions(["log"]), "-Wl,-soname,libglog.so.0")
    made = engine(package / "lib", needed=("mklml_intel", "glog"))
    assert "libmkldnn.so.0 needs libglog.so.0" in problems({f"{lib}/libmkldnn.so.0": made.read_bytes()})


@pytest.mark.parametrize(
    ("name", "right"), [("libpython3.7m.so.1.0", True), ("libpython3.7m.so", True), ("libpython3.6m.so.1.0", False)]
)
def test_the_interpreters_own_library_is_there(problems: Callable[..., str], package: Path, name: str, right: bool):
    library(package / "lib" / "libpy.so", functions(["Py_Own"]), f"-Wl,-soname,{name}")
    made = extension(package, flags=("-Wl,-rpath,$ORIGIN/lib", OLD_TAGS, "-lpy"))
    assert (problems({EXTENSION: made.read_bytes()}) == "") is right


def test_a_wheel_that_computes_nothing_is_named_so(problems: Callable[..., str], package: Path):
    stub = engine(package / "lib", ["standin_pages"]).read_bytes()
    found = problems({"ideep4py/lib/libmkldnn.so.0": stub})
    assert "computes nothing: libmkldnn.so.0 exports none of MKL-DNN's functions" in found
    assert "needs mkldnn_primitive_create, which no library of the wheel has" in found
    idle = extension(package, uses=("vslNewStream",)).read_bytes()
    assert problems({EXTENSION: idle}) == (
        "computes nothing: _ideep4py.cpython-37m-x86_64-linux-gnu.so uses none of MKL-DNN's functions"
    )


def test_an_engine_that_lacks_a_part(problems: Callable[..., str], package: Path):
    made = engine(package / "lib", [name for name in API if "pooling" not in name])
    assert problems({"ideep4py/lib/libmkldnn.so.0": made.read_bytes()}) == (
        "libmkldnn.so.0 does not export mkldnn_pooling_forward_desc_init"
    )


def test_a_function_of_mkl_that_nobody_has(problems: Callable[..., str], package: Path):
    made = extension(package, uses=("mkldnn_primitive_create", "vsPowx", "viRngBernoulli"))
    assert "needs viRngBernoulli, vsPowx, which no library of the wheel has" in problems({EXTENSION: made.read_bytes()})


def test_an_extension_that_lacks_what_chainer_uses(problems: Callable[..., str], package: Path):
    made = extension(package, offers=("mdarray", "intVector", "relu"))
    found = problems({EXTENSION: made.read_bytes()})
    assert found.startswith("the extension lacks what Chainer uses: mdarrayVector, batchNormalization, concat,")
    assert "relu" not in found


@pytest.mark.parametrize("data", [b"", b"no library", b"\x7fELF\x02\x01" + bytes(100)])
def test_what_is_no_library(problems: Callable[..., str], data: bytes):
    assert "libiomp5.so is no shared library" in problems({"ideep4py/lib/libiomp5.so": data})


@pytest.mark.parametrize(
    ("text", "chainer", "said"),
    [
        ("", None, "has no __version__: Chainer 5 and later reject it (Unsupported iDeep version (1))"),
        ("", "7.8.1", "Chainer 7.8.1 rejects it (Unsupported iDeep version (1))"),
        ("", "4.5.0", ""),
        ('__version__ = "2.0.0.post3"', "7.8.1", ""),
        ('__version__ = "2.0.0.post3"', "4.5.0", "Chainer 4.5.0 computes wrong gradients with ideep4py 2.0.0.post3"),
        ('__version__ = "1.0.4"', "7.8.1", "__version__ is 1.0.4: Chainer 7.8.1 rejects it"),
        ('__version__ = "2.1.0"', None, "__version__ is 2.1.0, the wheel's version 2.0.0.post3"),
        ("from ideep4py._version import __version__", "7.8.1", ""),
        ("from ideep4py import nothing\n__version__ = nothing.__version__", None, ""),
        ("__version__ = made()", "7.8.1", ""),
        ("__version__ =", "7.8.1", "has no __version__"),
    ],
)
def test_the_version_that_chainer_asks_for(problems: Callable[..., str], text: str, chainer: str | None, said: str):
    found = problems({"ideep4py/__init__.py": text.encode()}, chainer=chainer)
    assert said in found if said else found == ""


@needs_compiler
def test_symbols_are_those_that_pyelftools_reads(tmp_path: Path, package: Path):
    paths = [path for path in package.rglob("*.so*") if not path.is_symlink()]
    old = library(tmp_path / "old.so", functions(["one", "two"]), "-Wl,--hash-style=sysv")
    none = library(tmp_path / "none.so", "int gone(void); static int f(void) { return gone(); } int (*p)(void) = f;")
    real = subprocess.run(["cc", "-print-file-name=libgcc_s.so.1"], capture_output=True, text=True).stdout.strip()
    for path in [*paths, old, none, *([Path(real)] if Path(real).is_file() else [])]:
        found = symbols_of(path.read_bytes())
        defined, undefined = set(), set()
        with path.open("rb") as stream:
            for symbol in ELFFile(stream).get_section_by_name(".dynsym").iter_symbols():
                outside = symbol["st_shndx"] == "SHN_UNDEF"
                binding = symbol["st_info"]["bind"]
                if not outside and binding in ("STB_GLOBAL", "STB_WEAK", "STB_LOOS"):
                    defined.add(symbol.name)
                elif outside and binding == "STB_GLOBAL":
                    undefined.add(symbol.name)
        assert (found.defined, found.undefined) == (defined, undefined), path
        assert found.unversioned <= found.undefined
    assert {"one", "two"} <= symbols_of(old.read_bytes()).defined
    assert "gone" in symbols_of(none.read_bytes()).unversioned


@needs_compiler
def test_symbols_of_damaged_libraries_are_refused(package: Path):
    data = (package / "lib" / "libiomp5.so").read_bytes()
    with pytest.raises(NotElf):
        symbols_of(b"MZ" + data)
    for size in range(64, len(data), 97):
        try:
            symbols_of(data[:size])
        except NotElf:
            continue
