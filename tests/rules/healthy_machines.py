"""Random machines on which nothing is wrong: recorded environments on other processors, among harmless things."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.rules.hosts import HEALTHY, QUICK, recorded

AVX2 = ["avx", "avx2", "fma", "pni", "sse2", "sse4_1", "sse4_2", "ssse3"]
AVX512 = [*AVX2, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"]


def cpu(vendor: str, model: str, flags: list[str], **more: Any) -> dict[str, Any]:
    """A real processor whose CPUID agrees with /proc/cpuinfo."""
    saved = 0xE7 if "avx512f" in flags else 0x7
    changes = {"vendor": vendor, "cpuid_vendor": vendor, "model_name": model, "cpuinfo_flags": flags}
    return {"cpu": {**changes, "cpuid_flags": flags, "xcr0": saved, "emulated": False, "hypervisor": None, **more}}


INTEL = [
    ("Intel(R) Core(TM) i7-4770 CPU @ 3.40GHz", AVX2),
    ("Intel(R) Core(TM) i7-8700K CPU @ 3.70GHz", AVX2),
    ("Intel(R) Core(TM) i9-9900K CPU @ 3.60GHz", AVX2),
    ("Intel(R) Core(TM) i5-1135G7 @ 2.40GHz", AVX512),
    ("12th Gen Intel(R) Core(TM) i7-12700K", AVX2),
    ("Intel(R) Xeon(R) CPU E5-2699 v4 @ 2.20GHz", AVX2),
    ("Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", AVX512),
    ("Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz", AVX512),
    ("Intel(R) Xeon(R) D-2183IT CPU @ 2.20GHz", AVX512),
    ("Intel(R) Xeon(R) E-2288G CPU @ 3.70GHz", AVX2),
]
AMD = [
    ("AMD EPYC 7742 64-Core Processor", AVX2),
    ("AMD EPYC 9654 96-Core Processor", AVX512),
    ("AMD EPYC 4584PX 16-Core Processor", AVX512),
    ("AMD Ryzen 9 5950X 16-Core Processor", AVX2),
    ("AMD Ryzen 9 7950X 16-Core Processor", AVX512),
    ("AMD Ryzen 7 7730U with Radeon Graphics", AVX2),
    ("AMD Ryzen 7 7840HS w/ Radeon 780M Graphics", AVX512),
]
PROCESSORS = [("GenuineIntel", *row) for row in INTEL] + [("AuthenticAMD", *row) for row in AMD]
NEEDED = {"chainer", "ideep4py", "numpy", "protobuf", "setuptools", "six", "filelock", "typing", "typing-extensions"}

processors = st.sampled_from(PROCESSORS)
names = st.from_regex(r"[a-z][a-z0-9]{1,12}(-[a-z0-9]{1,8})?", fullmatch=True).filter(lambda name: name not in NEEDED)
versions = st.from_regex(r"[0-9]{1,4}\.[0-9]{1,3}(\.[0-9]{1,3})?(rc[0-9]|\.post[0-9]|\+[a-z]{2,5})?", fullmatch=True)
folders = st.from_regex(r"(/[A-Za-z0-9_. -]{1,12}){1,5}", fullmatch=True)
harmless = st.fixed_dictionaries(
    {},
    optional={
        "LD_LIBRARY_PATH": folders,
        "CHAINER_USE_IDEEP": st.sampled_from(["always", "auto", "never", ""]),
        "CHAINER_DTYPE": st.sampled_from(["float32", ""]),
        "CHAINER_WARN_VERSION_MISMATCH": st.sampled_from(["0", "1"]),
        "CHAINER_SEED": st.integers(0, 99).map(str),
        "KMP_AFFINITY": st.just("disabled"),
        "KMP_BLOCKTIME": st.sampled_from(["1", "200"]),
        "MKL_NUM_THREADS": st.sampled_from(["1", "2"]),
        "MKLDNN_VERBOSE": st.sampled_from(["0", "1", "2"]),
        "OMP_PROC_BIND": st.sampled_from(["false", "FALSE", ""]),
        "OMP_DYNAMIC": st.sampled_from(["false", "FALSE", ""]),
        "OPENBLAS_NUM_THREADS": st.sampled_from(["1", "4"]),
        "MALLOC_ARENA_MAX": st.just("2"),
        "PYTHONHASHSEED": st.just("0"),
    },
)


GIBIBYTE = 1 << 30
room = st.fixed_dictionaries(
    {},
    optional={
        "processes_limit": st.one_of(st.none(), st.integers(32768, 4 << 20)),
        "address_space_bytes": st.none(),
        "stack_bytes": st.one_of(st.none(), st.integers(8 << 20, GIBIBYTE)),
        "shared_memory_bytes": st.one_of(st.none(), st.integers(2 * GIBIBYTE, 512 * GIBIBYTE)),
        "executable_memory": st.sampled_from([None, True]),
        "prefix_noexec": st.sampled_from([None, False]),
        "memory_limit_bytes": st.one_of(st.none(), st.integers(32 * GIBIBYTE, 512 * GIBIBYTE)),
        "cgroup_version": st.sampled_from([None, 1, 2]),
    },
)
"""What the system sets, generously."""
_COMPANY = "https://pypi.company.example/simple"
pip_settings = st.one_of(
    st.none(),
    st.lists(
        st.sampled_from(
            [
                ("index-url", _COMPANY, "/etc/pip.conf", "global"),
                ("index-url", _COMPANY, "/home/user/.config/pip/pip.conf", "install"),
                ("timeout", "60", "PIP_TIMEOUT", "global"),
                ("cache-dir", "/var/cache/pip", "/etc/pip.conf", "global"),
                ("disable-pip-version-check", "1", "PIP_DISABLE_PIP_VERSION_CHECK", "global"),
                ("proxy", "http://proxy.company.example:3128", "/etc/pip.conf", "global"),
                ("cert", "/etc/ssl/certs/company.pem", "/etc/pip.conf", "global"),
                ("format", "columns", "/home/user/.config/pip/pip.conf", "list"),
                ("only-binary", "scipy,pandas", "/home/user/.config/pip/pip.conf", "install"),
                ("no-index", "true", "/home/user/.config/pip/pip.conf", "download"),
            ]
        ).map(lambda row: dict(zip(("name", "value", "source", "command"), row, strict=True))),
        max_size=4,
    ),
)
"""What companies and people set, and what does not concern Chainer and ideep4py."""
lasting = st.sampled_from(
    [
        None,
        {"fixed_calls": 200, "fixed_growth_bytes": 0, "varying_shapes": 100, "varying_growth_bytes": 0},
        {"fixed_calls": 200, "fixed_growth_bytes": 4096, "varying_shapes": 100, "numpy_growth_bytes": 65536},
    ]
)
"""Memory that stays where it is."""
KINDS = [
    ("openblas", "OpenBLAS 0.3.21", "libopenblasp-r0.so"),
    ("mkl", "MKL 2019.0", "libmkl_rt.so"),
    ("gomp", "GNU OpenMP", "libgomp-a34b3233.so.1.0.0"),
]


def another_library(number: int, kind: str, name: str, file: str) -> dict[str, Any]:
    """A library of a kind that does no harm, in a folder of a package that nothing here imports."""
    path = f"/home/user/ideep/lib/package{number}.libs/{file}"
    place = {"path": path, "real_path": path, "identity": f"9:{number}", "bits": 64, "machine": 62, "soname": file}
    where = {"owner": f"package{number} 1.0", "places": ["site-packages"], "own": False}
    return {"file": {**place, "executable_stack": False}, "kind": kind, "name": name, **where}


libraries = st.lists(st.sampled_from(KINDS), max_size=3).map(
    lambda rows: [another_library(number, *row) for number, row in enumerate(rows)]
)
BLAS = ("libopenblasp-r0-2d23e62b.3.17.so", "libmkl_rt.so", "libblis.so.3", "libcblas.so.3", "libflexiblas.so.3")


def other_blas(host: str, file: str) -> dict[str, Any]:
    """The same NumPy on another library for linear algebra."""
    native = recorded(host)["native"]
    path = f"/home/user/ideep/lib/{file}"
    mapped = [item for item in native["started"]["with_numpy"] if "blas" not in item.rpartition("/")[2]]
    return {"native": {"started": {"with_numpy": sorted([*mapped, path]), "numpy_blas": [file.split(".")[0][3:]]}}}


def more_packages(host: str, rows: list[tuple[str, str, str | None]]) -> dict[str, Any]:
    """Packages that nothing here needs, by several installers, and a twin of each; the recorded ones by one of them."""
    location = "/home/user/ideep/lib/site-packages"
    found = [
        {"name": name, "version": version, "location": location, "requires": [], "installer": installer}
        for name, version, installer in rows
    ]
    known = {row["name"] for row in recorded(host)["packages"]}
    fresh = [row for row in found if row["name"] not in known]
    return {
        "packages": sorted([*recorded(host)["packages"], *fresh], key=lambda row: str(row["name"])),
        "duplicates": [{**row, "version": "0.1", "location": "/usr/lib/python3/dist-packages"} for row in fresh],
    }


@st.composite
def machines(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]]]:
    """A recorded environment on another machine, in another folder, among other packages and variables."""
    host = draw(st.sampled_from(HEALTHY))
    vendor, model, flags = draw(processors)
    cores, doubled = draw(st.integers(1, 128)), draw(st.sampled_from([1, 2]))
    cpus = cores * doubled
    counts = {"physical_cores": cores, "logical_cpus": cpus, "sockets": draw(st.sampled_from([1, 2]))}
    mkl = {"MKL_DEBUG_CPU_TYPE": "7" if set(AVX512) <= set(flags) else "5"}
    chosen = {"CHAINER_USE_IDEEP": "auto", **(mkl if vendor == "AuthenticAMD" else {})}
    told = {name: value for name, value in draw(harmless).items() if value or name not in chosen}
    threads = draw(st.one_of(st.none(), st.integers(1, cpus)))
    if threads is not None:
        told["OMP_NUM_THREADS"] = draw(st.sampled_from([f"{threads}", f"{threads},1", f" {threads} "]))
    quota = draw(st.one_of(st.none(), st.floats(cpus, 4 * cpus)))
    location = draw(folders)
    places = {"executable": f"{location}/bin/python", "prefix": location, "purelib": f"{location}/site-packages"}
    prefix = {
        "variables": {
            "inherited": told,
            "effective": {**chosen, **told},
            "set_by_doctor": sorted(set(chosen) - set(told)),
        },
        "limits": {"affinity_cpus": list(range(cpus)), "quota_cpus": quota, **draw(room)},
        "python": {**places, "kind": draw(st.sampled_from(["venv", "conda", "pyenv", "uv", "other"]))},
        "platform": {"libc_version": draw(st.sampled_from(["2.14", "2.17", "2.31", "2.41"]))},
    }
    installed = [
        (name, draw(versions), draw(st.sampled_from([None, "pip", "uv", "conda"])))
        for name in draw(st.lists(names, max_size=6, unique=True))
    ]
    around = {
        "pip_settings": draw(pip_settings),
        "lasting": draw(lasting),
        "native": {"files": [*recorded(host)["native"]["files"], *draw(libraries)]},
    }
    blas = draw(st.sampled_from([None, *BLAS]))
    layers = [
        cpu(vendor, model, flags, **counts),
        prefix,
        more_packages(host, installed),
        around,
        {} if blas is None else other_blas(host, blas),
        draw(st.sampled_from([{}, QUICK])),
    ]
    return host, layers
