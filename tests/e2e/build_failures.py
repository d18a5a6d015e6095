"""The ways in which a build by hand fails, provoked: each with the rule that explains it.

``python -m tests.e2e.build_failures FOLDER [NAME ...]`` provokes them and writes the telling part of each log to
tests/data/build_logs/NAME.log.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.by_hand import DOCUMENTED, PREPARING, Workshop, by_hand, excerpt, neutral, place_mkl

LOGS = Path(__file__).parents[1] / "data" / "build_logs"
CMAKE = "cmake==3.18.4.post1"
SWIG = "swig==3.0.12"
SETUP = ("setuptools==59.6.0", "wheel")
OLD = ("3.7", "numpy==1.16.6", *SETUP)
NEW = ("3.11", "numpy==1.23.5", "setuptools==65.5.1", "wheel")
QUIET = {"CFLAGS": "-w", "CXXFLAGS": "-w"}
UNTRACK = {name: f"{flags} -D_PyObject_GC_UNTRACK=PyObject_GC_UnTrack" for name, flags in QUIET.items()}
POLICY = "-DCMAKE_POLICY_VERSION_MINIMUM=3.5"
NO_TESTS = "-DWITH_TEST=OFF"
DIST = "import platform\nplatform.dist = lambda *_: ('', '', '')\n"

Provoke = Callable[[Workshop, Path], str]


@dataclass(frozen=True)
class Failure:
    """A way to fail.

    Attributes:
        name: of its log.
        code: of the rule that the log's first hit names.
        provoke: takes the workshop and an empty folder; what the commands print.
    """

    name: str
    code: str
    provoke: Provoke


def _tree(shop: Workshop, folder: Path, ref: str = "post3", *, mkl: Path | None = None, submodule: bool = True) -> Path:
    tree = shop.standin.clone(ref, folder / "ideep", with_mkldnn=submodule)
    if submodule and mkl is not None:
        place_mkl(tree, mkl)
    return tree


def _documented(tree: Path, cmake: str = NO_TESTS) -> str:
    return DOCUMENTED.format(tree=tree, cmake=cmake)


def no_submodule(shop: Workshop, folder: Path) -> str:
    tree = _tree(shop, folder, submodule=False)
    return by_hand(_documented(tree, ""), shop.python(*OLD), shop.tool(CMAKE), shop.tool(SWIG))


def new_cmake(shop: Workshop, folder: Path) -> str:
    tree = _tree(shop, folder, mkl=shop.mkl)
    return by_hand(_documented(tree), shop.python(*OLD), shop.tool("cmake==3.31.6"), shop.tool(SWIG), environ=QUIET)


def cmake_4(shop: Workshop, folder: Path) -> str:
    tree = _tree(shop, folder, mkl=shop.mkl)
    return by_hand(_documented(tree), shop.python(*OLD), shop.tool("cmake==4.0.3"), shop.tool(SWIG), environ=QUIET)


def cmake_4_told_otherwise(shop: Workshop, folder: Path) -> str:
    script = _documented(_tree(shop, folder, mkl=shop.mkl), f"{NO_TESTS} {POLICY}")
    return by_hand(script, shop.python(*OLD), shop.tool("cmake==4.0.3"), shop.tool(SWIG), environ=QUIET)


def no_cmake(shop: Workshop, folder: Path) -> str:
    tree = _tree(shop, folder, mkl=shop.mkl)
    bare = shop.only("no-cmake", "sh", "mkdir", "cc", "c++", "make", "as", "ld", "gcc", "g++", "git")
    return by_hand(_documented(tree), shop.python(*OLD), shop.tool(SWIG), system=bare)


def no_download(shop: Workshop, folder: Path) -> str:
    tree = _tree(shop, folder)
    return by_hand(_documented(tree), shop.python(*OLD), shop.tool(CMAKE), shop.tool(SWIG), environ=QUIET)


def no_download_at_all(shop: Workshop, folder: Path) -> str:
    tree = shop.standin.clone("v1.0.3", folder / "ideep")
    script = PREPARING.format(tree=tree)
    return by_hand(script, shop.python(*OLD), shop.tool(CMAKE), shop.tool(SWIG), environ=QUIET)


def no_network(_shop: Workshop, folder: Path) -> str:
    return by_hand(f"cd {folder}; git clone https://git.invalid/ideep.git; cd ideep && git submodule update --init")


def full_mkl(shop: Workshop, folder: Path) -> str:
    environ = {**QUIET, "MKLROOT": str(shop.full_mkl)}
    tree = _tree(shop, folder, mkl=shop.mkl)
    return by_hand(_documented(tree), shop.python(*OLD), shop.tool(CMAKE), shop.tool(SWIG), environ=environ)


def new_mkl(shop: Workshop, folder: Path) -> str:
    environ = {**QUIET, "MKLROOT": str(shop.new_mkl)}
    tree = _tree(shop, folder, mkl=shop.mkl)
    return by_hand(_documented(tree), shop.python(*OLD), shop.tool(CMAKE), shop.tool(SWIG), environ=environ)


def warnings(shop: Workshop, folder: Path) -> str:
    tree = _tree(shop, folder, mkl=shop.mkl)
    return by_hand(_documented(tree), shop.python(*OLD), shop.tool(CMAKE), shop.tool(SWIG))


def no_swig(shop: Workshop, folder: Path) -> str:
    bare = shop.only("no-swig", "sh", "mkdir", "cc", "c++", "make", "as", "ld", "gcc", "g++")
    tree = _tree(shop, folder, mkl=shop.mkl)
    return by_hand(_documented(tree), shop.python(*OLD), shop.tool(CMAKE), environ=QUIET, system=bare)


def swig_4(shop: Workshop, folder: Path) -> str:
    tree = _tree(shop, folder, mkl=shop.mkl)
    return by_hand(_documented(tree), shop.python(*OLD), shop.tool(CMAKE), shop.tool("swig==4.2.1"), environ=QUIET)


def no_numpy(shop: Workshop, folder: Path) -> str:
    tree = _tree(shop, folder, mkl=shop.mkl)
    return by_hand(_documented(tree), shop.python("3.7", *SETUP), shop.tool(CMAKE), shop.tool(SWIG), environ=QUIET)


def new_python(shop: Workshop, folder: Path) -> str:
    tree = _tree(shop, folder, mkl=shop.mkl)
    return by_hand(_documented(tree), shop.python(*NEW), shop.tool(CMAKE), shop.tool(SWIG), environ=QUIET)


def through_pip(shop: Workshop, folder: Path) -> str:
    """The same as pip shows it."""
    tree = _tree(shop, folder, mkl=shop.mkl)
    script = f"cd {tree}/python\npython -m pip --no-cache-dir install --no-build-isolation ."
    return by_hand(script, shop.python(*NEW, "pip==24.0"), shop.tool(CMAKE), shop.tool(SWIG), environ=QUIET)


def new_python_swig_3(shop: Workshop, folder: Path) -> str:
    (folder / "sitecustomize.py").write_text(DIST, "utf-8")
    environ = {**QUIET, "PYTHONPATH": str(folder)}
    tree = _tree(shop, folder, mkl=shop.mkl)
    return by_hand(_documented(tree), shop.python(*NEW), shop.tool(CMAKE), shop.tool(SWIG), environ=environ)


def no_setuptools(shop: Workshop, folder: Path) -> str:
    (folder / "sitecustomize.py").write_text(DIST, "utf-8")
    tree = _tree(shop, folder, mkl=shop.mkl)
    environ = {**QUIET, "PYTHONPATH": str(folder)}
    return by_hand(_documented(tree), shop.python("3.12"), shop.tool(CMAKE), shop.tool(SWIG), environ=environ)


def runpath(shop: Workshop, folder: Path) -> str:
    tree = _tree(shop, folder, mkl=shop.mkl)
    script = f"{_documented(tree)}\ncd {folder}\npython -c 'import ideep4py'"
    bins = (shop.python(*OLD, "six"), shop.tool(CMAKE), shop.tool(SWIG))
    log = by_hand(script, *bins, environ={**QUIET, "LDFLAGS": "-Wl,--enable-new-dtags"})
    return "\n".join(log.splitlines()[-12:]) + "\n"


def healthy(shop: Workshop, folder: Path) -> str:
    """With every cure by hand."""
    (folder / "sitecustomize.py").write_text(DIST, "utf-8")
    tree = _tree(shop, folder, mkl=shop.mkl)
    script = f"set -x\n{_documented(tree)}\ncd {folder}\npython -c 'import ideep4py; print(ideep4py.__version__)'"
    environ = {**UNTRACK, "PYTHONPATH": str(folder), "LDFLAGS": "-Wl,--disable-new-dtags"}
    return by_hand(script, shop.python(*NEW, "six"), shop.tool(CMAKE), shop.tool(SWIG), environ=environ)


def no_compiler(shop: Workshop, folder: Path) -> str:
    bare = shop.only("no-compiler", "sh", "mkdir", "make", "git")
    return by_hand(_documented(_tree(shop, folder)), shop.python(*OLD), shop.tool(CMAKE), shop.tool(SWIG), system=bare)


def no_make(shop: Workshop, folder: Path) -> str:
    bare = shop.only("no-make", "sh", "mkdir", "cc", "c++", "gcc", "g++", "as", "ld", "git")
    return by_hand(_documented(_tree(shop, folder)), shop.python(*OLD), shop.tool(CMAKE), shop.tool(SWIG), system=bare)


def no_git(shop: Workshop, folder: Path) -> str:
    bare = shop.only("no-git", "sh", "mkdir", "cc", "c++", "gcc", "g++", "as", "ld", "make")
    tree = shop.standin.clone("v1.0.3", folder / "ideep")
    script = PREPARING.format(tree=tree)
    return by_hand(script, shop.python(*OLD), shop.tool(CMAKE), shop.tool(SWIG), environ=QUIET, system=bare)


def no_headers(shop: Workshop, folder: Path) -> str:
    """As the distribution's Python without its package of headers: a program that would include them."""
    source = folder / "ideep4py_wrap.cpp"
    source.write_text("#include <string>\n#include <Python.h>\n", "utf-8")
    return by_hand(f"cd {folder}\ngcc -fPIC -O2 -c {source.name} -o ideep4py_wrap.o -std=c++11")


def wrong_tag(shop: Workshop, folder: Path) -> str:
    return by_hand(f"cd {folder}\ngit clone -q {shop.standin.url} ideep\ncd ideep\ngit checkout v2.0.0.post3")


def killed_compiler(shop: Workshop, folder: Path) -> str:
    """The kernel's part is played by a shell that kills the compiler of one file."""
    wrapper = folder / "bin" / "c++"
    wrapper.parent.mkdir()
    wrapper.write_text(KILLER, "utf-8")
    wrapper.chmod(0o755)
    tree = _tree(shop, folder, mkl=shop.mkl)
    bins = (wrapper.parent, shop.python(*OLD), shop.tool(CMAKE), shop.tool(SWIG))
    script = f"cd {tree}\nmkdir build\ncd build\ncmake {NO_TESTS} ..\nmake -j4"
    return by_hand(script, *bins, environ=QUIET)


KILLER = """#!/bin/sh
case "$*" in
    *memory.cpp*) ;;
    *) exec /usr/bin/c++ "$@" ;;
esac
/usr/bin/c++ "$@" &
compiler=$!
while kill -0 $compiler 2>/dev/null; do
    child=$(cat /proc/$compiler/task/$compiler/children 2>/dev/null)
    [ -n "$child" ] && kill -9 $child && break
done
wait $compiler
"""


def no_memory(_shop: Workshop, folder: Path) -> str:
    source = '#include <map>\n#include <string>\n#include <regex>\nint main() { return std::regex("a").flags(); }\n'
    (folder / "large.cpp").write_text(source, "utf-8")
    return by_hand(f"cd {folder}\nulimit -v 90000\nc++ -O2 -c large.cpp")


def full_disk(shop: Workshop, folder: Path) -> str:
    """Another file takes the rest of a small file system between cmake and make."""
    tree = _tree(shop, folder, mkl=shop.mkl)
    small = folder / "small"
    small.mkdir()
    fill = "head -c 9m /dev/zero > large 2> large.log"
    inner = f"mount -t tmpfs -o size=3m none {small} && cd {small} && cmake {NO_TESTS} {tree} && {fill}; make"
    return by_hand(f"unshare -rm sh -c '{inner}'", shop.tool(CMAKE), environ={**QUIET, "TMPDIR": str(small)})


def unknown_march(_shop: Workshop, folder: Path) -> str:
    return by_hand(f"cd {folder}\necho 'int main() {{}}' > a.cpp\nc++ -march=x86-64-v9 -O2 -c a.cpp")


def low_march(_shop: Workshop, folder: Path) -> str:
    source = "#include <immintrin.h>\n__m256 twice(__m256 a) { return _mm256_add_ps(a, a); }\n"
    (folder / "vectors.cpp").write_text(source, "utf-8")
    return by_hand(f"cd {folder}\nc++ -march=x86-64-v2 -Wall -Werror -O2 -c vectors.cpp")


def another_processor(_shop: Workshop, folder: Path) -> str:
    """Code for AVX-512 on a processor without it (emulated)."""
    source = (
        "int main(int n, char **) { volatile float v[64]; float f[64]; for (int i = 0; i < 64; ++i) f[i] = n * i;\n"
    )
    source += "for (int i = 0; i < 64; ++i) v[i] = f[i] * f[i]; return v[n] > 1e9; }\n"
    (folder / "a.cpp").write_text(source, "utf-8")
    build = "c++ -march=x86-64-v4 -mprefer-vector-width=512 -O3 -static a.cpp -o program"
    return by_hand(f"cd {folder}\n{build}\nqemu-x86_64 -cpu Haswell ./program\necho ended with $?")


def misaligned(_shop: Workshop, folder: Path) -> str:
    """What 1.0.3 does: new of something that wants 64 bytes of alignment, in C++11."""
    source = """#include <cstdio>
typedef float Vector __attribute__((vector_size(32)));
struct Block { Vector parts[8]; };
__attribute__((noinline)) void fill(Block *block, float value) {
    for (int number = 0; number < 8; ++number) block->parts[number] = Vector{} + value;
}
int main(int count, char **) {
    float sum = 0;
    for (int number = 0; number < 8; ++number) {
        Block *block = new Block;
        fill(block, count);
        sum += block->parts[number][0];
    }
    std::printf("%f\\n", sum);
}
"""
    (folder / "blocks.cpp").write_text(source, "utf-8")
    build = "c++ -std=c++11 -march=x86-64-v3 -O3 -w blocks.cpp -o blocks"
    return by_hand(f"cd {folder}\n{build}\n./blocks\necho ended with $?")


def talks_pin_on_amd(shop: Workshop, _folder: Path) -> str:
    """The real wheel of 1.0.3: MKL-DNN 0.12 knows Intel's processors alone."""
    python = shop.python("3.6", "numpy==1.13.0", "ideep4py==1.0.3")
    return by_hand(f"{python}/python -c 'import ideep4py'\necho ended with $?")


def refused_by_chainer(shop: Workshop, _folder: Path) -> str:
    """The real wheels."""
    python = shop.python("3.6", "numpy==1.13.0", "setuptools==59.6.0", "wheel", "ideep4py==1.0.4")
    shop.add(python, "chainer==7.8.1", "six", "filelock", "typing_extensions==4.1.1", "protobuf==3.19.6")
    return by_hand(f"{python}/python -c 'from chainer.backends import intel64; intel64.check_ideep_available()'")


FAILURES = (
    Failure("no-submodule", "IDP807", no_submodule),
    Failure("cmake-3.31", "IDP805", new_cmake),
    Failure("cmake-4", "IDP805", cmake_4),
    Failure("cmake-4-policy", "IDP805", cmake_4_told_otherwise),
    Failure("no-cmake", "IDP805", no_cmake),
    Failure("no-download", "IDP808", no_download),
    Failure("no-download-1.0.3", "IDP808", no_download_at_all),
    Failure("no-network", "IDP808", no_network),
    Failure("full-mkl", "IDP809", full_mkl),
    Failure("mkl-of-later-years", "IDP809", new_mkl),
    Failure("warnings", "IDP813", warnings),
    Failure("no-swig", "IDP806", no_swig),
    Failure("swig-4", "IDP806", swig_4),
    Failure("no-numpy", "IDP814", no_numpy),
    Failure("python-3.11", "IDP815", new_python),
    Failure("python-3.11-pip", "IDP815", through_pip),
    Failure("python-3.11-swig-3", "IDP816", new_python_swig_3),
    Failure("python-3.12", "IDP823", no_setuptools),
    Failure("runpath", "IDP817", runpath),
    Failure("alignment", "IDP818", misaligned),
    Failure("another-processor", "IDP812", another_processor),
    Failure("unknown-march", "IDP812", unknown_march),
    Failure("march-below-avx2", "IDP812", low_march),
    Failure("killed-compiler", "IDP811", killed_compiler),
    Failure("no-memory", "IDP811", no_memory),
    Failure("full-disk", "IDP810", full_disk),
    Failure("no-compiler", "IDP801", no_compiler),
    Failure("no-headers", "IDP802", no_headers),
    Failure("no-git", "IDP803", no_git),
    Failure("no-make", "IDP804", no_make),
    Failure("no-such-tag", "IDP819", wrong_tag),
    Failure("xbyak", "IDP819", talks_pin_on_amd),
    Failure("refused-by-chainer", "IDP819", refused_by_chainer),
)
"""Every failure of a build that is known, with the rule that its log's first hit names."""


def record(folder: Path, names: list[str]) -> None:
    """Provoke them and write the telling parts of their logs; of a healthy build the whole."""
    shop = Workshop(folder)
    for failure in FAILURES:
        if not names or failure.name in names:
            place = folder / failure.name
            place.mkdir()
            (LOGS / f"{failure.name}.log").write_text(excerpt(failure.provoke(shop, place), folder), "utf-8")
            print(failure.name, flush=True)
    if not names or "healthy" in names:
        place = folder / "healthy-build"
        place.mkdir()
        (LOGS / "healthy.log").write_text(neutral(healthy(shop, place), folder), "utf-8")


if __name__ == "__main__":
    LOGS.mkdir(exist_ok=True)
    record(Path(sys.argv[1]), sys.argv[2:])
