"""Known signatures in the logs of builds: in every dress that a line may come in, and none where nothing failed."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Iterator

import pytest

from ideepdoctor.rules.signatures import HITS_PER_CODE, SHOWN_CHARACTERS, find, read
from tests.e2e.build_failures import FAILURES, LOGS, Failure

LINES = {
    "IDP801": (
        "No CMAKE_CXX_COMPILER could be found.",
        "-- The CXX compiler identification is unknown",
        "unable to execute 'g++': No such file or directory",
        "unable to execute x86_64-linux-gnu-gcc: No such file or directory",
        "error: command 'gcc' failed: No such file or directory",
        "/bin/sh: 1: g++: not found",
        "bash: c++: command not found",
        "make: cc: No such file or directory",
        "gcc: fatal error: cannot execute ‘cc1plus’: execvp: No such file or directory",
        "gcc: error trying to exec 'cc1plus': execvp: No such file or directory",
        'g++: error: unrecognized command line option "-std=c++11"',
        "ideep.hpp:3:10: fatal error: omp.h: No such file or directory",
    ),
    "IDP802": (
        "ideep4py/py/ideep4py_wrap.cpp:173:10: fatal error: Python.h: No such file or directory",
        "ideep4py_wrap.cpp:173:10: schwerwiegender Fehler: Python.h: Datei oder Verzeichnis nicht gefunden",
        "ideep4py_wrap.cpp:173:20: erreur fatale : Python.h : Aucun fichier ou dossier de ce type",
        "ideep4py_wrap.cpp:173:10: 致命错误：Python.h：没有那个文件或目录",
    ),
    "IDP803": (
        "sh: git: command not found",
        "FileNotFoundError: [Errno 2] No such file or directory: 'git'",
        "setup.sh: line 4: git: command not found",
        "fatal: detected dubious ownership in repository at '/src/ideep'",
    ),
    "IDP804": (
        'CMake Error: CMake was unable to find a build program corresponding to "Unix Makefiles".',
        "/bin/sh: 1: make: not found",
    ),
    "IDP805": (
        "CMake Error: Unknown argument --build",
        "  Policy CMP0048 may not be set to OLD behavior because this version of CMake",
        "  Compatibility with CMake < 3.5 has been removed from CMake.",
        "  CMake 2.8.12 or higher is required.  You are running version 2.8.11",
        "sh: 1: cmake: not found",
        "zsh: command not found: cmake",
    ),
    "IDP806": (
        "unable to execute 'swig': No such file or directory",
        "error: command 'swig' failed with exit status 1",
        "error: command '/usr/bin/swig4.0' failed with exit code 1",
        "error: command 'swig' failed: No such file or directory",
        "ideep4py/py/ideep4py_wrap.cpp:4310:8: error: redefinition of ‘struct swig_type_info’",
        "ideep4py_wrap.cpp:4310:8: Fehler: Neudefinition von »struct swig_type_info«",
    ),
    "IDP807": (
        "  does not contain a CMakeLists.txt file.",
        'add_subdirectory given source "mkl-dnn" which is not an existing directory.',
    ),
    "IDP808": (
        "curl: (6) Could not resolve host: github.com",
        "curl: (22) The requested URL returned error: 407",
        "fatal: unable to access 'https://example.org/x.git/': Could not resolve host: example.org",
        "ssh: Could not resolve hostname example.org: Temporary failure in name resolution",
        "wget: unable to resolve host address: Name or service not known",
        "gzip: stdin: not in gzip format",
        "No Intel mklml pkg.",
        "/bin/sh: 1: ./prepare_mkl.sh: Permission denied",
        "Failed to establish a new connection: [Errno -2] Name or service not known",
        "mkl.hpp:7:10: fatal error: mkl_vsl.h: No such file or directory",
        "/usr/bin/ld: cannot find -lmklml_intel: No such file or directory",
    ),
    "IDP809": (
        "  file INSTALL cannot find",
        '  file INSTALL cannot find "/opt/intel/mkl/include/../lib/libmklml_intel.so".',
        "gemm.cpp:88:9: error: ‘cblas_sgemm_alloc’ was not declared in this scope",
        "gemm.cpp:(.text+0x1f): undefined reference to `cblas_sgemm_alloc'",
        "ImportError: /x/libmkldnn.so.0: undefined symbol: cblas_sgemm_alloc",
    ),
    "IDP810": (
        "/tmp/ccQx1Wq7.s: Fatal error: can't write 4096 bytes to section .text: No space left on device",
        "OSError: [Errno 122] Disk quota exceeded",
    ),
    "IDP811": (
        "c++: fatal error: Killed signal terminated program cc1plus",
        "g++: internal compiler error: Killed (program cc1plus)",
        "g++: interner Compiler-Fehler: Getötet (program cc1plus)",
        "virtual memory exhausted: Cannot allocate memory",
        "Killed",
        "./prepare.sh: line 3:  4711 Killed                  make -j",
        "make: *** [Makefile:84: all] Killed",
        "collect2: fatal error: ld terminated with signal 9 [Killed]",
        "cc1plus: out of memory allocating 65536 bytes after a total of 1 bytes",
        "[1234.5] Out of memory: Killed process 812 (cc1plus) total-vm:900000kB",
    ),
    "IDP812": (
        "cc1plus: error: bad value (‘x86-64-v3’) for ‘-march=’ switch",
        "g++: error: unrecognized argument in option '-march=x86-64-v3'",
        "error: unknown target CPU 'x86-64-v9'",
        "immintrin.h:55:1: error: inlining failed in call to ‘always_inline’ ‘f’: target specific option mismatch",
        "Illegal instruction (core dumped)",
        "op.hpp:9:8: error: AVX vector return without AVX enabled changes the ABI [-Werror=psabi]",
    ),
    "IDP813": (
        "a.cpp:1:2: error: array subscript ‘f[0]’ is partly outside array bounds of ‘x’ [-Werror=array-bounds]",
        "a.cpp:1:2: Fehler: Zuweisung von »x« [-Werror=class-memaccess]",
        "cc1plus: all warnings being treated as errors",
    ),
    "IDP814": ("ModuleNotFoundError: No module named 'numpy'", "ImportError: No module named numpy"),
    "IDP815": (
        "ImportError: cannot import name 'dist' from 'platform' (/usr/lib/python3.8/platform.py)",
        "ImportError: cannot import name 'dist'",
        "AttributeError: module 'platform' has no attribute 'linux_distribution'",
    ),
    "IDP816": (
        "wrap.cpp:2:3: error: ‘_PyObject_GC_UNTRACK’ was not declared in this scope",
        "wrap.cpp:2:3: Fehler: »_PyObject_GC_UNTRACK« wurde in diesem Gültigkeitsbereich nicht deklariert",
    ),
    "IDP817": ("ImportError: libiomp5.so: cannot open shared object file: No such file or directory",),
    "IDP818": ("Segmentation fault (core dumped)",),
    "IDP819": (
        "terminate called after throwing an instance of 'Xbyak::Error'",
        "RuntimeError: Unsupported iDeep version (1)",
        "AttributeError: module 'ideep4py' has no attribute '__version__'",
        "error: pathspec 'v9.9' did not match any file(s) known to git",
        "fatal: Remote branch v9.9 not found in upstream origin",
    ),
    "IDP822": (
        "mdarray.h:4:10: fatal error: mkldnn.hpp: No such file or directory",
        "/usr/bin/ld: cannot find -lmkldnn",
    ),
    "IDP823": (
        "ModuleNotFoundError: No module named 'setuptools'",
        "ModuleNotFoundError: No module named 'distutils'",
    ),
}
SAMPLES = [(code, line) for code, lines in LINES.items() for line in lines]
DRESSES = {
    "plain": "{}",
    "CRLF": "{}\r\n",
    "pip": "      {}\n",
    "pip's box": "  │   {}\n",
    "GitHub": "2026-11-30T12:34:56.1234567Z {}\n",
    "Azure": "2026-11-30T12:34:56.1234567Z ##[error]{}\n",
    "GitLab": "2026-11-30T12:34:56.123456Z 01E {}\n",
    "Jenkins": "[2026-11-30T12:34:56.123Z] {}\n",
    "time alone": "[12:34:56] {}\n",
    "docker": "#9 12.34 {}\n",
    "coloured": "\x1b[0m\x1b[01;31m\x1b[K{}\x1b[m\x1b[K\n",
    "a link": "\x1b]8;;https://example.org\x07{}\x1b]8;;\x07\n",
    "junk before": "\0\0{}\0\n",
}


@pytest.mark.parametrize(("code", "line"), SAMPLES)
def test_each_line_is_known_in_every_dress(code: str, line: str):
    for name, dress in DRESSES.items():
        hits = find(["-- Configuring", dress.format(line), "make: *** [Makefile:1: all] Error 2"])
        assert [(hit.code, hit.line_number) for hit in hits] == [(code, 2)], name


def test_what_follows_from_another_error_comes_last_and_not_beside_its_own_code():
    log = ["/usr/bin/ld: cannot find -lmkldnn", "cc1plus: all warnings being treated as errors"]
    assert [hit.code for hit in find(log)] == ["IDP822", "IDP813"]
    log += ["a.cpp:1:2: error: x [-Werror=array-bounds]"]
    assert [(hit.code, hit.line_number) for hit in find(log)] == [("IDP813", 3), ("IDP822", 1)]


def test_causes_stand_in_the_order_of_the_log_at_most_three_of_a_code():
    log = [*["curl: (6) Could not resolve host: x"] * 5, "CMake Error: Unknown argument --build", "Killed"]
    hits = find(log)
    assert [hit.code for hit in hits] == [*["IDP808"] * HITS_PER_CODE, "IDP805", "IDP811"]
    assert [hit.line_number for hit in hits] == [1, 2, 3, 6, 7]


@pytest.mark.parametrize(
    "line",
    [
        "c++ -Wall -Werror -std=c++11 -D_PyObject_GC_UNTRACK=PyObject_GC_UnTrack -c a.cc -o a.o",
        "gcc '-D_PyObject_GC_UNTRACK=PyObject_GC_UnTrack' -Wno-error=array-bounds -c a.c",
        "a.cpp:1:2: warning: ‘struct swig_type_info’ has a member that is never used [-Wunused]",
        "a.cpp:1:2: warning: array subscript is partly outside array bounds [-Warray-bounds]",
        "-- Check for working CXX compiler: /usr/bin/c++ - works",
        "-- Looking for Python.h - found",
        "ModuleNotFoundError: No module named 'numpy.distutils.msvc'",
        "cp -r cmake does/not/exist",
        "checking for killed processes... none",
        "copying build/lib/libiomp5.so -> build/lib.linux-x86_64/ideep4py/lib",
        "swig -c++ -builtin -modern -modernargs -o wrap.cpp ideep4py.i",
        "-- Could NOT find Doxygen (missing: DOXYGEN_EXECUTABLE)",
        "git version 2.39.5",
        "make[2]: Nothing to be done for 'all'.",
        "Downloaded and unpacked mklml to external/",
        "curl: (23) Failed writing body",
        "-- Looking for pthread_create in pthreads - not found",
        "Copying git: notes/not found.txt",
    ],
)
def test_what_a_healthy_build_may_say_is_no_signature(line: str):
    assert find([line]) == ()


def test_a_long_line_is_cut_and_shows_its_signature():
    (hit,) = find(["x" * 600 + " curl: (6) Could not resolve host: a " + "y" * 600])
    assert len(hit.line) <= SHOWN_CHARACTERS
    assert "curl: (6)" in hit.line
    (hit,) = find(["12 % done\r" * 5000 + "\rcurl: (7) Failed to connect to a port 1"])
    assert hit.code == "IDP808"


def test_a_huge_log_and_binary_junk_need_no_memory():
    def junk() -> Iterator[str]:
        for number in range(5000):
            yield f"[ 37%] Building CXX object src/a{number}.o error\n"
        yield "\0\x01\ufffd" * 300_000
        yield "virtual memory exhausted: Cannot allocate memory\n"

    tracemalloc.start()
    reading = read(junk())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [(hit.code, hit.line_number) for hit in reading.hits] == [("IDP811", 5002)]
    assert reading.line_count == 5002
    assert peak < 20_000_000


def test_where_nothing_is_known_the_last_lines_that_look_like_errors_are_kept():
    log = ["g++ -Werror -c error.cpp", "x.cpp:1: error: something new", "0 errors", "done", ""]
    reading = read(log)
    assert reading.hits == ()
    assert reading.telling == ((2, "x.cpp:1: error: something new"),)
    assert read(["a", "b\n"]).telling == ((1, "a"), (2, "b"))
    assert read([]).telling == ()


def logs() -> dict[str, list[str]]:
    """Logs of real builds that failed (and one that did not), by name: see tests/e2e/build_failures.py."""
    return {path.stem: path.read_text("utf-8").splitlines() for path in sorted(LOGS.glob("*.log"))}


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
def test_the_log_of_a_real_failure_names_its_cause_first(failure: Failure):
    lines = logs()[failure.name]
    hits = find(lines)
    assert hits[0].code == failure.code
    for hit in hits:
        assert hit.line in lines[hit.line_number - 1]


def test_the_log_of_a_healthy_build_names_nothing():
    assert find(logs()["healthy"]) == ()


def test_every_failure_has_a_log_and_every_code_a_real_one():
    assert {failure.name for failure in FAILURES} | {"healthy"} == set(logs())
    seen = {hit.code for lines in logs().values() for hit in find(lines)}
    assert seen == set(LINES)


@pytest.mark.parametrize("dress", DRESSES.values(), ids=DRESSES.keys())
def test_a_whole_log_says_the_same_in_every_dress(dress: str):
    for name, lines in logs().items():
        dressed = [dress.format(line) for line in lines]
        assert [(hit.code, hit.line_number) for hit in find(dressed)] == [
            (hit.code, hit.line_number) for hit in find(lines)
        ], name


def test_lines_of_many_jobs_among_each_other_change_nothing():
    for lines in logs().values():
        jobs = [line for row in lines for line in (row, "[ 37%] Building CXX object src/other.cpp.o")]
        assert [hit.code for hit in find(jobs)] == [hit.code for hit in find(lines)]


def test_no_log_tells_of_the_machine_that_wrote_it():
    for name, lines in logs().items():
        text = "\n".join(lines)
        assert not re.search(r"/root\b|/tmp/|/work/|pytest-", text), name
