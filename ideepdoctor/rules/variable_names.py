"""Names of environment variables that something reads, and names that were meant to be one of them."""

from __future__ import annotations

import difflib
import re

CHAINER_SWITCHES = (
    "CHAINER_CUDNN_FAST_BATCH_NORMALIZATION",
    "CHAINER_DEBUG",
    "CHAINER_KEEP_GRAPH_ON_REPORT",
    "CHAINER_LAZY_GRAD_SUM",
    "CHAINER_TYPE_CHECK",
)
"""Those that Chainer turns into a whole number as it is imported: ``CHAINER_DEBUG=true`` ends the import."""

_CHAINER = (
    *CHAINER_SWITCHES,
    "CHAINER_BUILD_CHAINERX",
    "CHAINER_CUDNN",
    "CHAINER_DATASET_ROOT",
    "CHAINER_DTYPE",
    "CHAINER_PYTHON_350_FORCE",
    "CHAINER_SEED",
    "CHAINER_TEST_GPU_LIMIT",
    "CHAINER_TEST_PAIRWISE_PARAMETERIZATION",
    "CHAINER_TEST_RANDOM_NONDETERMINISTIC",
    "CHAINER_USE_CUDNN",
    "CHAINER_USE_IDEEP",
    "CHAINER_WARN_VERSION_MISMATCH",
)
"""What the sources of Chainer 4.0.0 to 7.8.1 read."""

_OPENMP = (
    "OMP_AFFINITY_FORMAT",
    "OMP_ALLOCATOR",
    "OMP_CANCELLATION",
    "OMP_DEBUG",
    "OMP_DEFAULT_DEVICE",
    "OMP_DISPLAY_AFFINITY",
    "OMP_DISPLAY_ENV",
    "OMP_DYNAMIC",
    "OMP_MAX_ACTIVE_LEVELS",
    "OMP_MAX_TASK_PRIORITY",
    "OMP_NESTED",
    "OMP_NUM_TEAMS",
    "OMP_NUM_THREADS",
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "OMP_SCHEDULE",
    "OMP_STACKSIZE",
    "OMP_TARGET_OFFLOAD",
    "OMP_TEAMS_THREAD_LIMIT",
    "OMP_THREAD_LIMIT",
    "OMP_TOOL",
    "OMP_TOOL_LIBRARIES",
    "OMP_TOOL_VERBOSE_INIT",
    "OMP_WAIT_POLICY",
    "GOMP_CPU_AFFINITY",
    "GOMP_DEBUG",
    "GOMP_SPINCOUNT",
    "GOMP_STACKSIZE",
    "KMP_AFFINITY",
    "KMP_ALL_THREADS",
    "KMP_BLOCKTIME",
    "KMP_CPUINFO_FILE",
    "KMP_DEVICE_THREAD_LIMIT",
    "KMP_DUPLICATE_LIB_OK",
    "KMP_HW_SUBSET",
    "KMP_INIT_AT_FORK",
    "KMP_LIBRARY",
    "KMP_PLACE_THREADS",
    "KMP_SETTINGS",
    "KMP_STACKOFFSET",
    "KMP_STACKPAD",
    "KMP_STACKSIZE",
    "KMP_TEAMS_THREAD_LIMIT",
    "KMP_TOPOLOGY_METHOD",
    "KMP_VERSION",
    "KMP_WARNINGS",
)
"""What libgomp of GCC 12 and libiomp5 of 2017 and 2021 read, of Intel's own the ones that people set."""

_MKL = (
    "MKL_CBWR",
    "MKL_DEBUG_CPU_TYPE",
    "MKL_DISABLE_FAST_MM",
    "MKL_DOMAIN_NUM_THREADS",
    "MKL_DYNAMIC",
    "MKL_ENABLE_INSTRUCTIONS",
    "MKL_FAST_MEMORY_LIMIT",
    "MKL_INTERFACE_LAYER",
    "MKL_MPI_PPN",
    "MKL_NUM_STRIPES",
    "MKL_NUM_THREADS",
    "MKL_SERVICE_FORCE_INTEL",
    "MKL_THREADING_LAYER",
    "MKL_VERBOSE",
    "MKL_VERBOSE_OUTPUT_FILE",
    "MKLDNN_JIT_DUMP",
    "MKLDNN_VERBOSE",
    "OPENBLAS_BLOCK_FACTOR",
    "OPENBLAS_CORETYPE",
    "OPENBLAS_MAIN_FREE",
    "OPENBLAS_NUM_THREADS",
    "OPENBLAS_THREAD_TIMEOUT",
    "OPENBLAS_VERBOSE",
)

KNOWN = frozenset((*_CHAINER, *_OPENMP, *_MKL))
_FOR_DEVICES = re.compile(r"^OMP_(?P<name>\w+?)_(DEV(_\d+)?|ALL)$")
"""OpenMP 5.2 has each of its variables for devices, too."""
_NEAR = 0.86
"""Measured on names: CHAINER_IDEEP is as near as 0.867 to CHAINER_USE_IDEEP; CHAINER_USE_MKLDNN, which is no slip, as
0.857 to CHAINER_USE_CUDNN."""


def meant(name: str) -> str | None:
    """The variable that a name was meant to be; None where it is one itself, or is near to none of its family."""
    device = _FOR_DEVICES.match(name)
    if name in KNOWN or (device is not None and f"OMP_{device['name']}" in KNOWN):
        return None
    family = name.partition("_")[0]
    candidates = [known for known in sorted(KNOWN) if known.partition("_")[0] == family]
    near = difflib.get_close_matches(name, candidates, n=1, cutoff=_NEAR)
    return near[0] if near else None
