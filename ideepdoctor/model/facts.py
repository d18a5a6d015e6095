"""Facts: what is, without judgement. Data only; JSON in and out is facts/serialize.py.

``None`` always means "not known" (could not be read, or not collected in this run) and never "absent": an absent
package is a package that is not in ``Facts.packages``, an unset variable a name that is not in ``Variables``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ideepdoctor.model.build import BuildFacts, BuildInfo
from ideepdoctor.model.native import Native
from ideepdoctor.model.outcome import Outcome as Outcome

FACTS_SCHEMA = "ideepdoctor-facts"
FACTS_SCHEMA_VERSION = "1"
PROFILE_SCHEMA = "ideepdoctor-profile"
PROFILE_SCHEMA_VERSION = "1"


@dataclass(frozen=True, slots=True)
class Platform:
    """The operating system that the target runs on."""

    system: str
    """``platform.system()``: Linux, Darwin, Windows."""
    machine: str
    """``platform.machine()``: x86_64, aarch64."""
    kernel: str | None = None
    """Release of the kernel, as ``uname -r``."""
    os_name: str | None = None
    """PRETTY_NAME of /etc/os-release."""
    libc: str | None = None
    """``glibc`` or ``musl``."""
    libc_version: str | None = None
    container: str | None = None
    """docker, podman, lxc, kubernetes...; None where no sign of one was seen."""


@dataclass(frozen=True, slots=True)
class Cpu:
    """The processor as the target sees it. Flags are the kernel's names (avx2, avx512f), sorted."""

    vendor: str | None = None
    """GenuineIntel, AuthenticAMD...; by CPUID where it can be read, else by /proc/cpuinfo."""
    model_name: str | None = None
    cpuinfo_flags: tuple[str, ...] | None = None
    """What /proc/cpuinfo says: under an emulator that is the host's processor."""
    cpuid_flags: tuple[str, ...] | None = None
    """The flags among those that the probe's own CPUID reader knows; None where executable memory is refused."""
    cpuid_vendor: str | None = None
    xcr0: int | None = None
    """Register state that the system saves; AVX needs bits 1 and 2, AVX-512 bits 5 to 7 too."""
    ldso_levels: tuple[str, ...] | None = None
    """x86-64-v2... that the dynamic loader of the target supports (glibc 2.33 and later)."""
    hypervisor: str | None = None
    """Vendor string of the hypervisor (CPUID leaf 0x40000000), such as KVMKVMKVM."""
    sockets: int | None = None
    physical_cores: int | None = None
    logical_cpus: int | None = None
    signature: str | None = None
    """Vendor, family and model as Linux spells them in sysfs: ``ven0002fam001Amod0002``."""
    emulated: bool | None = None
    """True where CPUID and /proc/cpuinfo disagree: then CPUID is what will run."""

    @property
    def flags(self) -> frozenset[str] | None:
        """The flags that count: /proc/cpuinfo's, but CPUID's alone under emulation. None where neither is known."""
        if self.emulated and self.cpuid_flags is not None:
            return frozenset(self.cpuid_flags)
        if self.cpuinfo_flags is not None:
            return frozenset(self.cpuinfo_flags)
        return None if self.cpuid_flags is None else frozenset(self.cpuid_flags)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the target may use of the machine."""

    affinity_cpus: tuple[int, ...] | None = None
    """Numbers of the CPUs that the scheduler may use for it."""
    cgroup_version: int | None = None
    quota_cpus: float | None = None
    """CPU quota of the control group in CPUs (quota / period, the tightest of all levels); None: no quota known."""
    memory_total_bytes: int | None = None
    memory_available_bytes: int | None = None
    memory_limit_bytes: int | None = None
    """Memory limit of the control group, the tightest of all levels; None: no limit."""
    disk_free_bytes: int | None = None
    """Free space for this user in the file system of the target's prefix."""
    processes_limit: int | None = None
    """Processes and threads that this user or control group may have, the tightest of pids.max and RLIMIT_NPROC (which
    binds no root); None: no limit, or not known."""
    address_space_bytes: int | None = None
    """RLIMIT_AS (``ulimit -v``); None: no limit."""
    stack_bytes: int | None = None
    """RLIMIT_STACK (``ulimit -s``), the soft one; None: no limit."""
    shared_memory_bytes: int | None = None
    """Size of the file system at /dev/shm; 0: there is none; None: not known."""
    executable_memory: bool | None = None
    """Whether a process may write code into memory and run it, as MKL-DNN does; None: not tried."""
    prefix_noexec: bool | None = None
    """Whether the file system of the target's prefix refuses to map code (mount option noexec)."""


@dataclass(frozen=True, slots=True)
class PipScript:
    """A ``pip`` command in the target's scripts folder."""

    path: str
    interpreter: str | None
    """What its first line starts; None where that cannot be told."""
    same_environment: bool | None
    """Whether that interpreter belongs to this environment."""


@dataclass(frozen=True, slots=True)
class Python:
    """The target interpreter."""

    executable: str
    """``sys.executable`` as started, not resolved: a venv's own path."""
    real_path: str
    version: str
    """Three numbers: 3.7.16."""
    implementation: str
    """CPython, PyPy."""
    abi: str
    """cp37m, cp27mu, cp311: the ABI tag that a wheel must have."""
    bits: int
    prefix: str
    base_prefix: str
    kind: str
    """venv, conda, pyenv, uv, system or other."""
    externally_managed: str | None = None
    """Path of the EXTERNALLY-MANAGED marker (PEP 668) that applies to this interpreter; None: there is none."""
    purelib: str | None = None
    platlib: str | None = None
    scripts: str | None = None
    user_site: str | None = None
    pip_scripts: tuple[PipScript, ...] = ()

    @property
    def minor(self) -> str:
        """``3.7`` of ``3.7.16``."""
        return ".".join(self.version.split(".")[:2])


@dataclass(frozen=True, slots=True)
class AlteredFile:
    """A file that is not what its distribution's RECORD says."""

    path: str
    problem: str
    """missing, size or sha256."""
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class Package:
    """A distribution that is installed where the target looks."""

    name: str
    """Normalised (PEP 503)."""
    version: str
    location: str
    """The folder on sys.path that holds it."""
    requires: tuple[str, ...] = ()
    """Requires-Dist lines, as written."""
    integrity: str | None = None
    """How its files were compared with RECORD: ``size`` (quick), ``sha256``, or None (not compared)."""
    altered: tuple[AlteredFile, ...] = ()
    tags: tuple[str, ...] | None = None
    """The tags of its wheel, as its file WHEEL has them: ``cp37-cp37m-manylinux1_x86_64``; None: there is no such
    file, or it was not read (it is read of ideep4py alone)."""
    installer: str | None = None
    """Who installed it, by its file INSTALLER: pip, uv, conda; None: not told."""


@dataclass(frozen=True, slots=True)
class PipSetting:
    """An option of pip that a file or a variable sets for this interpreter."""

    name: str
    """The long option without dashes: ``index-url``, ``no-binary``."""
    value: str
    """As written, passwords in URLs left out."""
    source: str
    """The file, or the variable."""
    command: str = "global"
    """``global``, or the command of pip that the section of the file is for: install, download."""


@dataclass(frozen=True, slots=True)
class Lasting:
    """What a process shows that goes on: its memory over many calls, and its children after a fork."""

    fixed_calls: int = 0
    """Training steps with the same shapes, after a warm-up."""
    fixed_growth_bytes: int | None = None
    """How much resident memory they took more and more of; None: not measured."""
    varying_shapes: int = 0
    """Different input shapes, one step each."""
    varying_growth_bytes: int | None = None
    numpy_growth_bytes: int | None = None
    """The same shapes computed by NumPy."""
    fork: Outcome | None = None
    """A child that was forked after iDeep had computed, and computes itself; None: not tried."""


@dataclass(frozen=True, slots=True)
class Shadow:
    """A module that Python takes from somewhere else than the installed distribution or the standard library."""

    module: str
    path: str
    """The file that wins."""
    source: str
    """``current folder``, ``PYTHONPATH`` or ``user site``."""


@dataclass(frozen=True, slots=True)
class ChainerState:
    """What Chainer itself says, in a child started as the user's Python would be."""

    use_ideep: str | None = None
    """``chainer.config.use_ideep``."""
    dtype: str | None = None
    """``chainer.config.dtype`` (float32, float64, mixed16...)."""
    ideep_available: bool | None = None
    """``chainer.backends.intel64.is_ideep_available()``."""
    ideep_reason: str | None = None
    """Why not, in Chainer's words."""


@dataclass(frozen=True, slots=True)
class NativeLibrary:
    """A shared object of interest mapped into the process after the imports (MKL, MKL-DNN, OpenMP, BLAS)."""

    name: str
    path: str
    imported_by: str
    """The module whose import brought it."""


@dataclass(frozen=True, slots=True)
class Variables:
    """Environment variables of the allow-list (names in payload/probe.py)."""

    inherited: Mapping[str, str] = field(default_factory=dict)
    """What the user has: the environment as it was when the target was started."""
    effective: Mapping[str, str] | None = None
    """What a program of the target sees after start-up (the doctor's .pth file included)."""
    set_by_doctor: tuple[str, ...] = ()
    """The names in ``effective`` whose values the doctor's start-up file set."""


@dataclass(frozen=True, slots=True)
class Correction:
    """One correction of the guard, as it stands in a process of the target."""

    name: str
    """As IDEEPDOCTOR_GUARD switches it: bn, product..."""
    rule: str
    """Code of the rule that explains it."""
    what: str
    active: bool
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Guard:
    """The guard in the target: what corrects Chainer with an ideep4py that is known to be wrong."""

    choice: bool | None = None
    """What the target's start-up file says: True: the import of Chainer loads it; False: somebody disabled it; None:
    there is no start-up file, or one that knows no guard."""
    path: str | None = None
    """The file that would be imported; None: there is none."""
    current: bool | None = None
    """Whether it is the guard of the release of ideepdoctor that collected these facts; None: it could not be read."""
    corrections: tuple[Correction, ...] | None = None
    """In a process that has imported Chainer; None where none was started, or the guard was not loaded there."""
    why_not: str = ""
    """Why it corrects nothing there; empty where it corrects something."""
    problems: tuple[str, ...] = ()
    """What failed inside it."""


@dataclass(frozen=True, slots=True)
class TunedVariable:
    """A variable of a tuned profile."""

    name: str
    value: str
    """Empty: it is left unset although it has a default."""
    why: str
    early: bool = False
    """It is read before Python starts: ``run`` and ``env`` set it, a start-up file cannot."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What ``tune`` found for a target, kept in its environment."""

    path: str
    cpu: str = ""
    """Model name of the processor that it was measured on."""
    cpus: int = 0
    """CPUs that were open to the process there."""
    subject: str = ""
    """What was measured: ``alexnet, batch 8`` or ``FILE:FUNCTION``."""
    variables: tuple[TunedVariable, ...] = ()
    to_intel64: bool | None = None
    """Whether the model's parameters are to be in iDeep's layouts; None: not looked at."""
    ratio: float | None = None
    """Time of the default / time of this setting, with its 95 % interval."""
    ratio_low: float | None = None
    ratio_high: float | None = None
    date: str = ""
    """UTC, ISO 8601."""
    tool_version: str = ""
    problem: str = ""
    """Why the file could not be understood."""


@dataclass(frozen=True, slots=True)
class TimedStep:
    """Training steps of a network as bench or tune measured them."""

    engine: str
    """``ideep``, ``numpy`` or ``mkl`` (NumPy with MKL)."""
    subject: str
    """``alexnet, batch 8``."""
    threads: int
    seconds: float
    """Median of forward + backward, with its 95 % interval."""
    low: float
    high: float
    of_ceiling: float | None = None
    """GFLOP/s by the best matrix product that was measured here."""


@dataclass(frozen=True, slots=True)
class Slower:
    """An engine at a net that takes longer than in an earlier run of bench."""

    engine: str
    subject: str
    """``alexnet, batch 8``."""
    baseline: str
    """The earlier run."""
    why: str
    """How much, and how it was told."""
    changed: tuple[str, ...] = ()
    """What is not as it was then."""


@dataclass(frozen=True, slots=True)
class BenchFacts:
    """The summary of a measurement on this machine."""

    steps: tuple[TimedStep, ...] = ()
    quiet: bool = True
    """Whether nothing else took the machine's time."""
    noise: tuple[str, ...] = ()
    """What did, in sentences."""
    unused: tuple[str, ...] = ()
    """Engines of iDeep whose convolutions NumPy computed."""
    slower: tuple[Slower, ...] = ()
    """What takes longer than before by more than the limit that was asked for."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python found on this machine."""

    path: str
    real_path: str
    version: str
    implementation: str
    abi: str
    bits: int
    libc: str | None
    """``glibc 2.36``."""
    source: str
    """Where it was found: PATH, pyenv, conda, uv, venv..."""


@dataclass(frozen=True, slots=True)
class OpCheck:
    """One operation compared with its NumPy float64 reference."""

    op: str
    """Such as ``convolution``, ``batch_normalization backward``."""
    case: str
    """Shapes and other parameters, as text."""
    threads: int
    status: str
    """right, wrong, crashed, raised, timeout or not-run."""
    used_ideep: bool | None
    """Whether the output was an ideep4py.mdarray (None where the op cannot tell)."""
    max_relative_error: float | None
    """max |a - b| / max |b| over outputs and gradients, b being the float64 reference."""
    tolerance: float | None
    hazard: str | None = None
    """Name of the known hazard that this case is about (H1...), None for none."""
    message: str = ""
    """Signal, exception or other text that explains the status."""

    @property
    def failed(self) -> bool:
        """Whether it was tried and did not go right."""
        return self.status in ("wrong", "crashed", "raised", "timeout")


@dataclass(frozen=True, slots=True)
class ConvTiming:
    """Interleaved convolution forward + backward, NumPy against iDeep, in one process."""

    case: str
    repeats: int
    numpy_seconds: float
    """Median."""
    ideep_seconds: float
    """Median."""
    ratio: float
    """Median over the repeats of NumPy's time / iDeep's time."""
    ratio_low: float
    """First quartile of that ratio."""
    ratio_high: float
    """Third quartile."""
    ideep_gflops: float
    """Floating-point operations (10^9) per second, forward + backward, at the median."""


@dataclass(frozen=True, slots=True)
class Smoke:
    """The smoke test's answer: used, right, faster."""

    threads: int
    used: bool | None
    """Output is an mdarray and MKLDNN_VERBOSE named a JIT convolution; None where it could not be tried."""
    kernel: str | None
    """The implementation MKLDNN_VERBOSE names for convolution: jit:avx512_common, jit:avx2..."""
    checks: tuple[OpCheck, ...] = ()
    timing: ConvTiming | None = None
    seconds: float = 0.0
    failure: str = ""
    """Why the test as a whole could not run (import failed...); empty where it ran."""


@dataclass(frozen=True, slots=True)
class TargetRef:
    """Which target was examined and why that one."""

    python: str
    """Path of the interpreter, as the user would type it."""
    transport: tuple[str, ...] = ()
    """Words that reach its machine: ``docker exec -i NAME``, ``ssh HOST``; empty for this one."""
    emulator: tuple[str, ...] = ()
    """Words that it runs under: ``qemu-x86_64 -cpu Haswell``."""
    reason: str = ""
    address: str = ""
    """Where it is, as ``--target`` takes it: ``ssh:HOST``; empty for this machine."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that the rules look at."""

    tool_version: str
    collected_at: str
    """UTC, ISO 8601 with Z."""
    mode: str
    """``quick`` (static only) or ``full``."""
    target: TargetRef
    platform: Platform
    cpu: Cpu
    limits: Limits
    python: Python
    variables: Variables
    packages: tuple[Package, ...] | None = None
    duplicates: tuple[Package, ...] = ()
    """Further installed distributions of a name that is in ``packages`` already: Python does not take their files, or
    takes a mixture where the folder is the same."""
    pip_settings: tuple[PipSetting, ...] | None = None
    """What pip is told before anybody types an option; None: not read."""
    imports: Mapping[str, Outcome] | None = None
    """By module name: numpy, ideep4py, chainer, and chainer.links.caffe where protobuf and Chainer are installed."""
    first_op: Outcome | None = None
    """A relu through ideep4py in a child of its own; None where ideep4py could not be imported or in quick mode."""
    shadows: tuple[Shadow, ...] = ()
    chainer: ChainerState | None = None
    guard: Guard | None = None
    libraries: tuple[NativeLibrary, ...] | None = None
    native: Native | None = None
    """The shared libraries: who exists, who wins; None where they were not looked at."""
    interpreters: tuple[Interpreter, ...] | None = None
    """Other Pythons of this machine; None where they were not looked for."""
    smoke: Smoke | None = None
    profile: Profile | None = None
    """What ``tune`` left in the environment; None where it left nothing."""
    lasting: Lasting | None = None
    """What certify saw of memory and of forked children; None where it did not look."""
    bench: BenchFacts | None = None
    """What bench or tune measured in this run; None where they measured nothing."""
    build: BuildFacts | None = None
    """What a build from source needs and has, or what its log says; None where none was asked for."""
    built: BuildInfo | None = None
    """What the installed ideep4py says of its own build; None for a wheel of the index."""
    planned_ideep4py: str | None = None
    """The release that setup or install is about to install; rules then judge it instead of the installed one."""

    def package(self, name: str) -> Package | None:
        """Return the installed distribution of this (normalised) name that Python would import, or None."""
        return next((package for package in self.packages or () if package.name == name), None)
