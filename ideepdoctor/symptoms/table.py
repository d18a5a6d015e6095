"""By which texts each cause is known. Pure data.

Every line is compared after ``rules.signatures.cleaned``; of a line the first symptom that fits counts, so what says
more stands before what says less. ``endings.py`` has signals and exit codes, which come after all of these.
"""

from __future__ import annotations

import re

from ideepdoctor.symptoms import causes as by
from ideepdoctor.symptoms import installing as pip
from ideepdoctor.symptoms.base import Cause, Strength, Symptom


def _is(mark: str, *causes: Cause, like: str | None = None) -> Symptom:
    return Symptom(mark, causes, Strength.SPECIFIC, None if like is None else re.compile(like))


def _may(mark: str, *causes: Cause, like: str | None = None) -> Symptom:
    return Symptom(mark, causes, Strength.GENERAL, None if like is None else re.compile(like))


def _warns(mark: str, *causes: Cause, like: str | None = None) -> Symptom:
    return Symptom(mark, causes, Strength.WARNING, None if like is None else re.compile(like))


_OURS = r"lib(?:mkldnn|mklml_intel|iomp5)\.so"
_SHARED = "/dev/shm"  # noqa: S108 - it is looked for in logs
_PYTHON = r"\b(?:i?python|pypy|jupyter|ipykernel|gunicorn|uwsgi|celery|ray|train|pt_main)"

INSTALLING = (
    _is(
        "ideep4py==",
        pip.NO_SUCH_PIN,
        like=r"(?:No matching distribution found for|satisfies the requirement) ideep4py==",
    ),
    _is("No matching distribution found for ideep4py", pip.NO_WHEEL, pip.INDEX),
    _is("satisfies the requirement ideep4py", pip.NO_WHEEL, pip.INDEX),
    _may("(from versions: none)", pip.INDEX, like=r"satisfies the requirement (?:chainer|numpy|six|setuptools)\b"),
    _is("but the running Python is", pip.INDEX, like=r" requires Python '.*' but the running Python is"),
    _may("/simple/", pip.INDEX, like=r"Retrying \(|Max retries exceeded|HTTP error 40\d|404 Client Error"),
    _is("externally-managed-environment", pip.MANAGED),
    _is("is not a supported wheel on this platform", by.OTHER_TAG),
    _may("Getting requirements to build wheel did not run", pip.NOT_BUILT),
    _is("but you'll have", by.UNMET, like=r" has requirement .*, but you'll have .* which is incompatible"),
    _is("which is incompatible", by.UNMET, like=r" requires (?:chainer|numpy|ideep4py)\b.*, but you have "),
    _is("Could NOT find IDEEP", pip.ANOTHER_IDEEP),
    _is("LNK2019", by.NOT_HERE, like=r"unresolved external symbol _?cblas_"),
    _is("'forward_list' file not found", by.NOT_HERE),
    _is('"_cblas_', by.NOT_HERE, like=r'"_cblas_\w+", referenced from'),
    _is("xmmintrin.h", by.NOT_HERE, like=r"\bxmmintrin\.h ?: "),
    _is("cpuid.h", by.NOT_HERE, like=r"\bcpuid\.h ?: "),
    _warns("Accelerate has been detected as a NumPy backend", by.NOT_HERE),
    _warns("is not a symbolic link", by.LOADER_CACHE, like=rf"{_OURS}\S* is not a symbolic link"),
)
"""What nothing that runs can say."""
LOADING = (
    _is("can't protect", by.NO_EXECUTABLE_MEMORY, like=r"^\s*(?:what\(\): +)?can't protect$"),
    _is("can't alloc", by.NO_MEMORY, like=r"^\s*(?:what\(\): +)?can't alloc$"),
    _may("Xbyak::Error", by.XBYAK, by.NO_EXECUTABLE_MEMORY, by.NO_MEMORY),
    _is("mkldnn::error", by.STRANGER, by.CONCAT, by.OLD_CHAINER),
    _is("OMP: Error #15", by.SECOND_OPENMP),
    _is("OMP: Error #34", by.THREADS_REFUSED, by.SMALL_STACK),
    _is("OMP: Error #16", by.THREAD_VARIABLES),
    _is("OMP: Warning #96", by.THREAD_VARIABLES),
    _is("MKL_THREADING_LAYER=INTEL", by.THREADING_LAYER),
    _is("LLVM OpenMP", by.TWO_OPENMPS),
    _is("MKL FATAL ERROR", by.TWO_MKLS),
    _is("MKL ERROR: ", by.TWO_MKLS, like=r"MKL ERROR: .*(?:undefined symbol|cannot open)"),
    _is("undefined symbol: mkl_", by.TWO_MKLS),
    _is("Failed creation convert_to_int", by.TWO_MKLS),
    _is("libmkl_", by.TWO_MKLS, like=r"\blibmkl_\w+\.so[.\d]*: "),
    _is("_mklinit", by.TWO_NUMPYS),
    _is("Not a valid numpy version string", by.NEW_CUPY),
    _warns("may not be compatible with this version of Chainer", by.NEW_CUPY, like=r"\bCuPy \("),
    _warns("may not be compatible with this version of Chainer", by.REFUSED, like=r"\biDeep \("),
    _is("Multiple installations of CuPy", by.TWO_CUPYS),
    _is("code is too big", by.TOO_BIG),
    _is("file too short", by.TRUNCATED),
    _is("invalid ELF header", by.DAMAGED),
    _is("cannot enable executable stack", by.EXECUTABLE_STACK),
    _may("static TLS block", by.STATIC_TLS),
    _is(
        "failed to map segment",
        by.NO_EXECUTABLE_MEMORY,
        by.NOEXEC,
        like=r"failed to map segment.*Permission.*exec(?:mem|stack)",
    ),
    _is("failed to map segment", by.NO_MEMORY, by.NOEXEC, like=r"(?:^|Error: )[^/\s]+\.so\S*: failed to map segment"),
    _is("failed to map segment", by.NOEXEC, by.NO_EXECUTABLE_MEMORY),
    _is("GLIBCXX_", by.OLD_STDCXX, like=r"GLIBCXX_[\d.]+|GLIBCXX_"),
    _is("CXXABI_", by.OLD_STDCXX),
    _is("GLIBC_", by.OLD_GLIBC, like=r"GLIBC_\d"),
    _is("libpython", by.LIBPYTHON, by.NOT_FOUND, like=r"libpython[\d.]+\w*\.so[.\d]*: "),
    _is("libglog", by.BROKEN_RELEASE, by.NOT_FOUND, like=r"libglog\.so\S*: "),
    _is("PyUnicodeUCS", by.ABI),
    _is("PyInit__ideep4py", by.OTHER_TAG),
    _is("cblas_gemm_s8u8s32_pack", by.PRELOADED),
    _is("undefined symbol: mkldnn_post_ops_destroy", by.RUNPATH, by.STRANGER),
    _may("undefined symbol: mkldnn_", by.STRANGER, by.RUNPATH, by.NEIGHBOUR),
    _is("libiomp5.so", by.RUNPATH, by.NOT_FOUND, like=r"Error: libiomp5\.so: "),
    _is("libm", by.NOT_FOUND, by.RUNPATH, like=r"Error: libm(?:kldnn|klml_intel)\.so[.\d]*: "),
    _is("Unknown MKLDNN format", by.OTHER_PACKAGE),
    _may("munmap_chunk(): invalid pointer", by.SYMBOLS, by.STRANGER),
    _may("undefined symbol", by.OTHER_VERSION),
    _may("cannot open shared object file", by.MISSING_ELSEWHERE, by.NOT_FOUND),
)
PACKAGES = (
    _is("numpy.core.multiarray", by.NUMPY_ABI),
    _is("numpy.core._multiarray_umath", by.NUMPY_ABI),
    _is("compiled against API version", by.NUMPY_ABI),
    _is("compiled against ABI version", by.NUMPY_ABI),
    _is("cannot import name intVector", by.NUMPY_ABI),
    _is("np.sctypes", by.NUMPY_2, like=r"np\.sctypes. was removed"),
    _is("No module named", by.CHAINER_IMPORT, like=r"No module named '?(?:distutils\.msvccompiler|numpy\.distutils)\b"),
    _may("No module named", by.CHAINER_IMPORT, pip.PKG_RESOURCES, like=r"No module named '?pkg_resources\b"),
    _is("No module named", by.NO_IDEEP4PY, like=r"No module named '?ideep4py'?$"),
    _is("No module named", by.NO_CHAINER, like=r"No module named '?chainer'?$"),
    _is(
        "has no attribute",
        by.ALIASES,
        like=r"module '?numpy'? has no attribute '(?:float|int|bool|object|str|complex)'",
    ),
    _is("Descriptors cannot", by.PROTOBUF, like=r"Descriptors cannot (?:not )?be created directly"),
    _is("duplicate file name caffe.proto", by.PROTOBUF),
    _is("invalid use_ideep configuration", by.USE_IDEEP),
    _is("CHAINER_DTYPE", by.CHAINER_DTYPE, like=r"incorrect dtype name in CHAINER_DTYPE"),
    _may("invalid literal for int() with base 10", by.CHAINER_NUMBER, like=r"base 10: '(?i:true|false|on|off|yes|no)'"),
    _is("Unsupported iDeep version", by.REFUSED),
    _may("iDeep is not available", by.UNAVAILABLE),
)
WORKING = (
    _is("mdarray_sum", by.FIXED_NORM, like=r"in method 'mdarray_sum', argument \d"),
    _is("pickle", by.PICKLED, like=r"(?:can't|cannot) pickle '?(?:ideep4py\.|_ideep4py\.)?mdarray\b"),
    _is("** or pow()", by.POWERS, like=r"for \*\* or pow\(\)(?:$|: .*mdarray)"),
    _is("libgomp: Thread creation failed", by.THREADS_REFUSED),
    _is("blas_thread_init: pthread_create", by.THREADS_REFUSED),
    _may("can't start new thread", by.THREADS_REFUSED),
    _is("Can't open SHM", by.SHARED_MEMORY),
    _is("insufficient shared memory", by.SHARED_MEMORY),
    _is("unable to open shared memory", by.SHARED_MEMORY),
    _may("No space left on device", by.SHARED_MEMORY, like=rf"{_SHARED}|\bshm|[Ss]em(?:aphore|Lock)|\[Errno 28\]"),
    _warns("OMP: Warning #190", by.FORKED),
    _may("MemoryError", by.NO_MEMORY, like=r"^(?:numpy\.core\._exceptions\._?(?:Array)?)?MemoryError\b"),
    _may("std::bad_alloc", by.NO_MEMORY),
    _may("Out of memory", by.NO_MEMORY, like=r"what\(\): +Out of memory"),
    _may("PyCapsule_Import", by.THREADS_REFUSED, by.NUMPY_ABI, like=r'could not import module "datetime"'),
    _may("Cannot allocate memory", by.NO_MEMORY, by.THREADS_REFUSED),
    _is("execmem", by.NO_EXECUTABLE_MEMORY, like=rf"\bavc: +denied +\{{ exec(?:mem|mod|heap) \}}.*{_PYTHON}"),
    _is("execstack", by.EXECUTABLE_STACK, like=rf"\bavc: +denied +\{{ execstack \}}.*{_PYTHON}"),
    _is("Out of memory: Kill", by.KILLED, like=rf"Out of memory: Kill(?:ed)? process \d+ \({_PYTHON}"),
    _is("out of memory: Kill", by.KILLED, like=rf"out of memory: Kill(?:ed)? process \d+ \({_PYTHON}"),
    _is("oom-kill:", by.KILLED, like=rf"oom-kill:.*\btask={_PYTHON}"),
    _is("oom_reaper", by.KILLED, like=rf"oom_reaper: reaped process \d+ \({_PYTHON}"),
    _is("OOM", by.KILLED, like=r"\bOOMKilled\b|killed by the OOM killer"),
    _is("oom-kill", by.KILLED, like=r"Detected \d+ oom[-_]kill event|result 'oom-kill'"),
)
RUNNING: tuple[Symptom, ...] = (*LOADING, *PACKAGES, *WORKING)
"""What a process can say of itself."""

CLUES: tuple[tuple[str, tuple[Cause, ...]], ...] = (
    ("concat.py", (by.CONCAT,)),
    ("split_axis.py", (by.CONCAT,)),
    ("import torch", (by.STRANGER, by.SYMBOLS)),
    ("mxnet", (by.STRANGER, by.OTHER_PACKAGE)),
    ("LD_PRELOAD", (by.STRANGER, by.PRELOADED, by.SYMBOLS)),
    ("ideep4py/lib/", (by.NOT_FOUND, by.SHORT_FILE, by.TRUNCATED)),
    ("libmkldnn", (by.STRANGER, by.SYMBOLS, by.ILLEGAL)),
    ("libmklml", (by.SHORT_FILE, by.TRUNCATED)),
    ("_ideep4py", (by.ILLEGAL, by.SYMBOLS)),
    ("march=native", (by.BUILT_ELSEWHERE,)),
    ("libiomp5", (by.SECOND_OPENMP,)),
    ("pickle", (by.PICKLED_2,)),
    ("multiprocess_iterator", (by.SHARED_MEMORY,)),
    (_SHARED, (by.SHARED_MEMORY,)),
    ("multiprocessing", (by.FORKED,)),
    ("WSL", (by.REGISTERS,)),
    ("microsoft-standard", (by.REGISTERS,)),
    ("STACKSIZE", (by.SMALL_STACK,)),
    ("chainer/backends/cuda.py", (by.NEW_CUPY,)),
    ("chainer/__init__.py", (by.CHAINER_NUMBER,)),
    ("_environment_check.py", (by.CHAINER_IMPORT,)),
    ("Getting requirements to build wheel", (pip.PKG_RESOURCES,)),
    ("_runtime_info.py", (by.CHAINER_IMPORT,)),
    ("to_intel64", (by.OLD_CHAINER, by.PICKLED)),
)
"""A text that makes causes likelier where a symptom of them is near; alone it is nothing."""


def first_of(text: str, table: tuple[Symptom, ...] = RUNNING) -> Symptom | None:
    """The first symptom in the table that one of the lines of a text has."""
    lines = text.splitlines()
    return next((one for one in table if one.mark in text and any(map(one.fits, lines))), None)
