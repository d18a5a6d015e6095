"""The start-up file runs in real environments of every Python found here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from ideepdoctor.treatment.startup import MODULE, PTH, PTH_LINE, module_text, startup_files
from ideepdoctor.treatment.variables import AVX512_OF_MKL, Variable, recommended
from tests.conftest import legacy_python
from tests.treatment.sample import AMD, facts

VERSIONS = ("2.7", "3.5", "3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
MUST_HAVE = ("2.7", "3.6", "3.7")
CPUS = len(os.sched_getaffinity(0))
CHOSEN = (
    Variable("CHAINER_USE_IDEEP", "auto", "why"),
    Variable("MKL_DEBUG_CPU_TYPE", "7", "why", "amd-avx512"),
    Variable("MKL_DEBUG_CPU_TYPE", "5", "why", "amd-avx2"),
    Variable("OMP_NUM_THREADS", "1", "why", f"cpus={CPUS}"),
    Variable("ELSEWHERE", "1", "why", f"cpus={CPUS + 1}"),
    Variable("ON_LESS", "1", "why", f"cpus={CPUS - 1}"),
    Variable("STRANGE", "1", "why", "a condition of a later release"),
)
SHOW = "import os, json; print(json.dumps(dict(os.environ)))"


def mkl_type() -> str | None:
    info = set(Path("/proc/cpuinfo").read_text().split())
    if not {"AuthenticAMD", "avx2"} <= info:
        return None
    return "7" if info >= AVX512_OF_MKL else "5"


def expected() -> dict[str, str]:
    here = {"CHAINER_USE_IDEEP": "auto", "OMP_NUM_THREADS": "1"}
    return here | ({"MKL_DEBUG_CPU_TYPE": mkl_type()} if mkl_type() else {})


class Environment:
    """A Python with a site-packages folder of the test's own."""

    def __init__(self, version: str, folder: Path) -> None:
        base = legacy_python(version)
        self.folder = folder
        if version == "2.7":
            # No venv in its standard library: the same processing of .pth files, asked for.
            self.site = folder / "site-packages"
            self.site.mkdir()
            self.words, self.prologue = [base], f"import site; site.addsitedir({str(self.site)!r}); "
        else:
            subprocess.run([base, "-m", "venv", "--without-pip", str(folder / "env")], check=True)
            (self.site,) = (folder / "env" / "lib").glob("python*/site-packages")
            self.words, self.prologue = [str(folder / "env" / "bin" / "python")], ""

    def install(self, variables: Sequence[Variable], first: Sequence[str] = ()) -> None:
        for step in startup_files(variables, str(self.site), first):
            Path(step.path).write_text(step.content)

    def run(self, *options: str, stdin: bool = False, code: str = SHOW, **env: str) -> dict[str, str]:
        whole = self.prologue + code
        done = subprocess.run(
            [*self.words, *options, *(["-"] if stdin else ["-c", whole])],
            input=whole if stdin else "",
            env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **env},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        answer = json.loads(done.stdout)
        assert isinstance(answer, dict)
        return {
            name: value
            for name, value in answer.items()
            if name in {item.name for item in CHOSEN} | {"IDEEPDOCTOR_SET"}
        }


Kind = TypeVar("Kind", bound=Environment)


def made_or_skipped(kind: Callable[[str, Path], Kind], version: str, folder: Path) -> Kind:
    """An environment of this version; a test of one that nobody must have is skipped where it is not there."""
    try:
        return kind(version, folder)
    except pytest.fail.Exception:
        if version in MUST_HAVE:
            raise
        pytest.skip(f"no CPython {version} on this machine")


@pytest.fixture(params=VERSIONS)
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> Environment:
    return made_or_skipped(Environment, request.param, tmp_path)


def marked(answer: dict[str, str]) -> set[str]:
    return set(answer.pop("IDEEPDOCTOR_SET", "").split(",")) - {""}


def test_variables_hold_however_python_is_started(environment):
    environment.install(CHOSEN)
    for options in ((), ("-E",), ("-s",), ("-B", "-O"), *([] if environment.prologue else [("-I",)])):
        for stdin in (False, True):
            answer = environment.run(*options, stdin=stdin)
            assert marked(answer) == set(expected()), options
            assert answer == expected(), options


def test_a_users_value_is_kept_even_an_empty_one(environment):
    environment.install(CHOSEN)
    answer = environment.run(CHAINER_USE_IDEEP="never", OMP_NUM_THREADS="", MKL_DEBUG_CPU_TYPE="4")
    assert answer == {"CHAINER_USE_IDEEP": "never", "OMP_NUM_THREADS": "", "MKL_DEBUG_CPU_TYPE": "4"}


def test_a_child_inherits_values_and_marks(environment):
    environment.install(CHOSEN)
    first = environment.run()
    assert environment.run(**first) == first


def test_a_value_that_the_program_changed_is_no_longer_ours(environment):
    environment.install(CHOSEN)
    first = environment.run()
    answer = environment.run(**{**first, "CHAINER_USE_IDEEP": "never"})
    assert answer["CHAINER_USE_IDEEP"] == "never"
    assert marked(answer) == set(expected()) - {"CHAINER_USE_IDEEP"}


def test_our_value_from_a_machine_on_which_it_was_right_is_taken_back_where_it_is_not(environment):
    environment.install(CHOSEN)
    answer = environment.run(ELSEWHERE="1", IDEEPDOCTOR_SET="ELSEWHERE,NOT_THERE")
    assert "ELSEWHERE" not in answer
    assert marked(answer) == set(expected())
    # The user's own is not.
    assert environment.run(ELSEWHERE="1")["ELSEWHERE"] == "1"


def test_marks_of_another_environments_file_are_kept(environment):
    environment.install(CHOSEN[:1])
    answer = environment.run(OMP_NUM_THREADS="3", IDEEPDOCTOR_SET="OMP_NUM_THREADS")
    assert marked(answer) == {"CHAINER_USE_IDEEP", "OMP_NUM_THREADS"}


def test_the_thread_count_is_not_set_for_fewer_cpus(environment):
    if CPUS < 2:
        pytest.skip("one CPU")
    environment.install(CHOSEN)
    environment.words = ["taskset", "-c", str(min(os.sched_getaffinity(0))), *environment.words]
    assert "OMP_NUM_THREADS" not in environment.run()


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda module: module.unlink(), id="missing"),
        pytest.param(lambda module: module.write_text("def"), id="no Python"),
        pytest.param(lambda module: module.write_text("import os\nos.environ['A'] = 1"), id="raises"),
        pytest.param(lambda module: module.write_bytes(b"\x00\xff"), id="not text"),
        pytest.param(
            lambda module: module.write_text(module.read_text().replace("def _cpus():", "def _cpus():\n    1 // 0")),
            id="fails",
        ),
    ],
)
def test_a_damaged_file_stops_no_program_and_prints_nothing(environment, damage):
    environment.install(CHOSEN)
    damage(environment.site / f"{MODULE}.py")
    environment.run()


def test_what_was_set_is_marked_even_where_a_later_one_fails(environment):
    environment.install(CHOSEN)
    module = environment.site / f"{MODULE}.py"
    module.write_text(module.read_text().replace("def _cpus():", "def _cpus():\n    1 // 0"))
    answer = environment.run()
    assert marked(answer) == set(answer) == set(expected()) - {"OMP_NUM_THREADS"}


def test_native_code_sees_the_variables(environment):
    environment.install(CHOSEN)
    code = (
        "import ctypes, json; c = ctypes.CDLL(None); c.getenv.restype = ctypes.c_char_p; "
        "print(json.dumps({'CHAINER_USE_IDEEP': c.getenv(b'CHAINER_USE_IDEEP').decode('ascii')}))"
    )
    assert environment.run(code=code) == {"CHAINER_USE_IDEEP": "auto"}


ALIAS = b"cpu:type:x86,ven%sfam0019mod0011:feature:,0000,0123,%s01A0\n"
INFO = b"processor : 0\nvendor_id : %s\nflags : fpu avx %s sse\n"
NUMBERS = b"0125,0130,0131,013C,013E,013F,"
FLAGS = b"avx2 avx512f avx512dq avx512cd avx512bw avx512vl"


def amd_here(alias: bytes, info: bytes, exe: str = "/usr/bin/python3") -> str:
    """The widest of the conditions about AMD that hold on such a machine."""
    scope: dict[str, Any] = {}
    exec(module_text(()), scope)
    scope["_head"] = {"/sys/devices/system/cpu/modalias": alias, "/proc/cpuinfo": info}.get
    scope["os"] = SimpleNamespace(readlink=lambda path: exe, getpid=os.getpid)
    return next((name for name in ("amd-avx512", "amd-avx2") if scope["_holds"](name)), "")


@pytest.mark.parametrize(
    ("alias", "info", "right"),
    [
        (ALIAS % (b"0002", b"0125,"), b"", "amd-avx2"),
        (ALIAS % (b"0002", NUMBERS), b"", "amd-avx512"),
        (ALIAS % (b"0002", NUMBERS.replace(b"013C,", b"")), b"", "amd-avx2"),
        (ALIAS % (b"0000", NUMBERS), b"", ""),  # vendor 0 is Intel
        (ALIAS % (b"0002", b""), b"", ""),
        (ALIAS % (b"0002", b""), INFO % (b"AuthenticAMD", FLAGS), ""),  # sysfs is asked first
        (b"cpu:type:x86,ven0002fam0019mod0011:feature:,0000,0125\n", b"", "amd-avx2"),
        (b"", INFO % (b"AuthenticAMD", b"avx2"), "amd-avx2"),
        (b"", INFO % (b"AuthenticAMD", FLAGS), "amd-avx512"),
        (b"", INFO % (b"AuthenticAMD", FLAGS.replace(b"avx512bw", b"avx512bw2")), "amd-avx2"),
        (b"cpu:type:s390,feature:,0001\n", INFO % (b"AuthenticAMD", b"avx2"), "amd-avx2"),  # a form not known
        (b"", INFO % (b"GenuineIntel", FLAGS), ""),
        (b"", INFO % (b"AuthenticAMD", b"avx2_but_longer"), ""),
        (b"", b"", ""),
    ],
)
def test_amd_is_told_from_sysfs_else_from_cpuinfo(alias, info, right):
    assert amd_here(alias, info) == right


@pytest.mark.parametrize("exe", ["/usr/bin/qemu-x86_64", "/opt/qemu-x86_64-static", "/usr/libexec/valgrind/memcheck"])
def test_under_an_emulator_the_machines_own_processor_is_not_believed(exe):
    assert amd_here(ALIAS % (b"0002", NUMBERS), INFO % (b"AuthenticAMD", FLAGS), exe) == ""


def test_sysfs_and_cpuinfo_agree_about_this_processor():
    scope: dict[str, Any] = {}
    exec(module_text(()), scope)
    head = scope["_head"]
    answers = set()
    for hidden in ("/sys/", "/proc/", ""):
        scope["_head"] = lambda path, hidden=hidden: b"" if hidden and path.startswith(hidden) else head(path)
        answers.add("7" if scope["_holds"]("amd-avx512") else "5" if scope["_holds"]("amd-avx2") else None)
    if not head("/sys/devices/system/cpu/modalias"):
        pytest.skip("no modalias in sysfs")
    assert answers == {mkl_type()}


def test_under_qemu_no_avx_is_promised(tmp_path):
    """MKL_DEBUG_CPU_TYPE=7 ends a process whose processor has no AVX-512, although /proc and /sys say it has."""
    if shutil.which("qemu-x86_64") is None:
        pytest.skip("no qemu-user on this machine")
    environment = Environment("3.7", tmp_path)
    environment.install(CHOSEN)
    environment.words = ["qemu-x86_64", "-cpu", "Nehalem,pcid=off,x2apic=off,tsc-deadline=off", *environment.words]
    assert environment.run().keys() == expected().keys() - {"MKL_DEBUG_CPU_TYPE"} | {"IDEEPDOCTOR_SET"}


@pytest.mark.parametrize("inherited", ["5", "7"])
def test_our_value_from_another_machine_is_replaced(environment, inherited):
    environment.install(CHOSEN)
    answer = environment.run(MKL_DEBUG_CPU_TYPE=inherited, IDEEPDOCTOR_SET="MKL_DEBUG_CPU_TYPE")
    assert marked(answer) == set(expected())
    assert answer == expected()
    # The user's own is not.
    assert environment.run(MKL_DEBUG_CPU_TYPE=inherited)["MKL_DEBUG_CPU_TYPE"] == inherited


def test_the_first_of_several_that_holds_counts_and_an_empty_one_leaves_it_unset(environment):
    here = f"cpus={CPUS}"
    environment.install(
        [
            Variable("ELSEWHERE", "1", "why", f"cpus={CPUS + 1}&{here}"),
            Variable("ELSEWHERE", "2", "why", here),
            Variable("ELSEWHERE", "3", "why"),
            Variable("ON_LESS", "", "why", f"{here}&{here}"),
            Variable("ON_LESS", "3", "why"),
        ]
    )
    assert environment.run() == {"ELSEWHERE": "2", "IDEEPDOCTOR_SET": "ELSEWHERE"}
    assert "ON_LESS" not in environment.run(ON_LESS="3", IDEEPDOCTOR_SET="ON_LESS")


def test_a_condition_may_name_the_processor_as_linux_does():
    alias = Path("/sys/devices/system/cpu/modalias")
    if not alias.exists() or ",ven" not in alias.read_text():
        pytest.skip("no modalias in sysfs")
    name = alias.read_text().partition(",")[2].partition(":")[0]
    scope: dict[str, Any] = {}
    exec(module_text(()), scope)
    assert scope["_holds"](f"cpu={name}")
    assert not scope["_holds"](f"cpu={name}0") and not scope["_holds"](f"cpu={name[:-1]}")


def test_the_module_is_ascii_and_holds_the_variables_once():
    text = module_text(CHOSEN)
    assert text.isascii()
    assert text.count("DEFAULTS = (") == 1
    scope: dict[str, Any] = {}
    exec(text, scope)
    assert scope["DEFAULTS"] == tuple((item.name, item.value, item.only_on) for item in CHOSEN)


def test_the_files_lie_side_by_side_the_module_first():
    module, pth = startup_files(CHOSEN, "/site/")
    assert (module.path, pth.path) == (f"/site/{MODULE}.py", f"/site/{PTH}")
    assert pth.content == PTH_LINE and PTH_LINE.startswith("import ") and PTH_LINE.count("\n") == 1


def test_the_file_holds_what_other_machines_need_the_best_first():
    scope: dict[str, Any] = {}
    exec(module_text(recommended(facts(cpu=AMD))), scope)
    assert scope["DEFAULTS"][1:] == (("MKL_DEBUG_CPU_TYPE", "7", "amd-avx512"), ("MKL_DEBUG_CPU_TYPE", "5", "amd-avx2"))


@pytest.mark.parametrize("bad", [Variable("A B", "1", "why"), Variable("A", "\u00e9", "why")])
def test_what_no_file_can_hold_is_refused(bad):
    with pytest.raises(ValueError, match="no start-up file"):
        startup_files([bad], "/site")


def test_the_file_reads_nothing_and_starts_nothing_but_two_small_files(tmp_path):
    """The budget of 2 ms is measured elsewhere; this keeps out what could never fit it."""
    (tmp_path / "traced.py").write_text(module_text(CHOSEN))
    code = (
        "import sys; before = set(sys.modules); seen = []; "
        "sys.addaudithook(lambda name, args: seen.append((name, str(args[0]) if args else ''))); "
        f"sys.path.insert(0, {str(tmp_path)!r}); import traced; "
        "print([args for name, args in seen if name == 'open' and not args.startswith("
        f"{str(tmp_path)!r})], [name for name, _ in seen if 'exec' in name and name != 'exec' or 'fork' in name],"
        " sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-B", "-I", "-c", code], capture_output=True, text=True, check=True)
    opened, started, modules = done.stdout.split("] [")
    assert opened.count("'") // 2 <= 2
    assert started == ""
    assert modules.strip("[]\n") == "'traced'"
