"""What a run of ``bench`` measured: the result file as frozen dataclasses. Times are seconds, UTC dates ISO 8601."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

BENCH_SCHEMA = "ideepdoctor-bench"
BENCH_SCHEMA_VERSION = "1"

Key = tuple[str, int]
"""Net and batch: what two measurements must share to be compared."""


@dataclass(frozen=True, slots=True)
class Tool:
    """What wrote a result file."""

    name: str = "ideepdoctor"
    version: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """Where it was measured; ``name`` is a label that the user may choose, None is not known."""

    name: str
    cpu: str = ""
    vendor: str = ""
    isa: str = ""
    sockets: int | None = None
    physical_cores: int | None = None
    logical_cpus: int | None = None
    cpus_used: int | None = None
    quota_cpus: float | None = None
    memory_bytes: int | None = None
    emulated: bool = False


@dataclass(frozen=True, slots=True)
class Noise:
    """How quiet the machine was; ``busy_percent`` is others' processor time, ``megahertz`` the lowest and highest."""

    quiet: bool = True
    steal_percent: float | None = None
    busy_percent: float | None = None
    load: float | None = None
    megahertz: tuple[float, float] | None = None
    throttled: bool | None = None
    spread_percent: float | None = None
    messages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sgemm:
    """One library's best product of two square single precision matrices."""

    library: str
    gflops: float
    size: int | None = None
    threads: int | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Theoretical:
    """What cores, clock and vector units multiply out to, and how."""

    gflops: float
    basis: str = ""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most that this machine computes: measured (the best of ``sgemm``) and in theory."""

    sgemm: tuple[Sgemm, ...] = ()
    gflops: float | None = None
    theoretical: Theoretical | None = None


@dataclass(frozen=True, slots=True)
class Method:
    """How it was measured."""

    warmup_steps: int | None = None
    blocks: int | None = None
    affinity: tuple[int, ...] = ()
    seconds_per_block: float | None = None


@dataclass(frozen=True, slots=True)
class Engine:
    """What computed: ``kind`` is ideep, numpy, torch, opencv, caffe or cupy."""

    id: str
    label: str = ""
    kind: str = ""
    python: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    threads: int | None = None
    guard: bool = False
    forward_only: bool = False


@dataclass(frozen=True, slots=True)
class Net:
    """A network at a batch; operations are of the whole batch."""

    net: str
    batch: int
    flops_forward: float | None = None
    flops_backward: float | None = None
    parameters: int | None = None

    @property
    def key(self) -> Key:
        """What is compared with what."""
        return self.net, self.batch


@dataclass(frozen=True, slots=True)
class Row:
    """An engine on a net: the seconds of each step, their block, and what they come to.

    ``status`` is measured, skipped or failed; ``median`` is forward + backward (forward alone where ``backward`` is
    empty), ``low`` and ``high`` its 95 % interval. None where there is nothing.
    """

    engine: str
    net: str
    batch: int
    status: str = "measured"
    why: str = ""
    forward: tuple[float, ...] = ()
    backward: tuple[float, ...] = ()
    blocks: tuple[int, ...] = ()
    median: float | None = None
    low: float | None = None
    high: float | None = None
    forward_median: float | None = None
    backward_median: float | None = None
    images_per_second: float | None = None
    gflops: float | None = None
    of_ceiling: float | None = None

    @property
    def key(self) -> Key:
        """What is compared with what."""
        return self.net, self.batch

    @property
    def measured(self) -> bool:
        """Whether there is a time."""
        return self.status == "measured" and self.median is not None

    @property
    def steps(self) -> tuple[float, ...]:
        """Seconds of each step: forward and backward together, or forward alone."""
        if not self.backward:
            return self.forward
        return tuple(one + other for one, other in zip(self.forward, self.backward, strict=True))


@dataclass(frozen=True, slots=True)
class Layer:
    """A primitive of MKL-DNN in a step: milliseconds of all its calls together, operations and bytes likewise."""

    engine: str
    net: str
    primitive: str
    milliseconds: float
    kernel: str = ""
    propagation: str = ""
    problem: str = ""
    layer: str = ""
    calls: int = 1
    flops: float | None = None
    bytes: float | None = None


@dataclass(frozen=True, slots=True)
class Reorder:
    """The part of a step that goes into new layouts, 0 to 1."""

    engine: str
    net: str
    share: float


@dataclass(frozen=True, slots=True)
class Scaling:
    """A step with another number of threads."""

    engine: str
    net: str
    batch: int
    threads: int
    median: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """One run of ``bench`` on one machine; ``complete`` is false where it was interrupted."""

    id: str
    started: str
    machine: Machine
    tool: Tool = field(default_factory=Tool)
    seconds: float = 0.0
    complete: bool = True
    noise: Noise = field(default_factory=Noise)
    ceiling: Ceiling = field(default_factory=Ceiling)
    method: Method = field(default_factory=Method)
    engines: tuple[Engine, ...] = ()
    nets: tuple[Net, ...] = ()
    results: tuple[Row, ...] = ()
    layers: tuple[Layer, ...] = ()
    reorders: tuple[Reorder, ...] = ()
    scaling: tuple[Scaling, ...] = ()

    def engine(self, name: str) -> Engine:
        """The engine of this id; one that only rows name is known by its id alone."""
        return next((item for item in self.engines if item.id == name), Engine(name, name))

    def row(self, engine: str, key: Key) -> Row | None:
        """The row of an engine at a net and a batch; None where there is none."""
        return next((row for row in self.results if row.engine == engine and row.key == key), None)

    def keys(self) -> tuple[Key, ...]:
        """Nets and batches in the order of the file, those too that only rows name."""
        return tuple(dict.fromkeys([*(net.key for net in self.nets), *(row.key for row in self.results)]))
