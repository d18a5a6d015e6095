"""What tune may change on a machine, dimension by dimension. Pure: facts in, settings out."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ideepdoctor.model.facts import Facts, TunedVariable
from ideepdoctor.rules.installed import set_by_user, variable
from ideepdoctor.treatment.variables import defaults, mkl_type

EARLY = ("LD_PRELOAD", "GLIBC_TUNABLES", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_MMAP_THRESHOLD_")
"""Variables that are read before Python starts: a start-up file comes too late for them."""
ALLOCATORS = ("libjemalloc", "libtcmalloc_minimal", "libmimalloc")
QUICK_OPTIONS = 2
"""Of each dimension: the nearest numbers of threads."""
_HUGE_PAGES = (2, 35)
"""The first glibc that knows glibc.malloc.hugetlb."""


@dataclass(frozen=True, slots=True)
class Option:
    """One choice in one dimension.

    Attributes:
        dimension: its name.
        label: for people.
        variables: names and values; an empty value leaves the variable unset.
        to_intel64: whether the model is brought into iDeep's layouts; None: no matter of this dimension.
        restless: its threads never sleep, so that it must not stay while others are measured.
    """

    dimension: str
    label: str
    variables: tuple[tuple[str, str], ...] = ()
    to_intel64: bool | None = None
    restless: bool = False


@dataclass(frozen=True, slots=True)
class Dimension:
    """What can be changed by itself; the default is in none of the options.

    Attributes:
        name: threads, mkl, layouts, affinity, blocktime, allocator or pages.
        title: for people.
        default: the default's label.
        options: the others.
        ordered: the options are numbers in order: what lies between two neighbours is worth a look.
    """

    name: str
    title: str
    default: str
    options: tuple[Option, ...]
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Setting:
    """The default with these options in place of it, at most one in a dimension."""

    options: tuple[Option, ...] = ()

    def with_option(self, option: Option) -> Setting:
        """The same with another choice in the option's dimension."""
        kept = (item for item in self.options if item.dimension != option.dimension)
        return Setting(tuple(sorted((*kept, option), key=lambda item: item.dimension)))

    def without(self, dimension: str) -> Setting:
        """The same with the default in a dimension."""
        return Setting(tuple(item for item in self.options if item.dimension != dimension))

    def option(self, dimension: str) -> Option | None:
        """The choice in a dimension; None: the default."""
        return next((item for item in self.options if item.dimension == dimension), None)

    @property
    def variables(self) -> dict[str, str]:
        """What it sets; an empty value leaves the variable unset."""
        return {name: value for item in self.options for name, value in item.variables}

    @property
    def to_intel64(self) -> bool:
        """Whether the model is brought into iDeep's layouts, which is the default."""
        return next((item.to_intel64 for item in self.options if item.to_intel64 is not None), True)

    @property
    def restless(self) -> bool:
        """Whether its threads never sleep."""
        return any(item.restless for item in self.options)

    @property
    def label(self) -> str:
        """For people: ``OMP_NUM_THREADS=4, KMP_BLOCKTIME=0``."""
        return ", ".join(item.label for item in self.options) or "the default"

    def tuned(self) -> tuple[TunedVariable, ...]:
        """Its variables as a profile holds them."""
        return tuple(
            TunedVariable(name, value, f"tuned: {item.label}", name in EARLY)
            for item in self.options
            for name, value in item.variables
        )


DEFAULT = Setting()


def most_threads(facts: Facts) -> int:
    """The most threads that can help: CPUs that are open to the process, less where a quota is tighter."""
    affinity = facts.limits.affinity_cpus
    cpus = len(affinity) if affinity else facts.cpu.logical_cpus or 1
    quota = facts.limits.quota_cpus
    return cpus if quota is None or quota <= 0 else min(cpus, max(1, math.ceil(quota)))


def dimensions(facts: Facts, allocators: Sequence[str] = (), *, model: bool = False) -> tuple[Dimension, ...]:
    """The dimensions of this machine, those with the largest gain to be expected first.

    A variable that the user has set is the user's: its dimension is left out.

    Args:
        facts: of the target.
        allocators: paths of other allocators that the loader would find.
        model: the user's own model is measured, which decides on its layouts itself.
    """
    found = [_mkl(facts), _threads(facts)]
    if not model:
        plain = Option("layouts", "without to_intel64()", (), to_intel64=False)
        found.append(Dimension("layouts", "layouts of parameters", "to_intel64()", (plain,)))
    found += [_affinity(facts), _blocktime(facts), _allocator(facts, allocators), _pages(facts)]
    return tuple(item for item in found if item is not None and item.options)


def quick_dimensions(facts: Facts) -> tuple[Dimension, ...]:
    """The two that matter most, in one: what ``setup`` looks at in one race."""
    found = [item for item in (_mkl(facts), _threads(facts)) if item is not None and item.options]
    if not found:
        return ()
    options = tuple(option for item in found for option in item.options[:QUICK_OPTIONS])
    title, default = " and ".join(item.title for item in found), " and ".join(item.default for item in found)
    return (Dimension("quick", title, default, options),)


def _mine(facts: Facts, name: str) -> bool:
    """Whether the user has set a variable."""
    return set_by_user(facts, name) and bool(variable(facts, name))


def _default(facts: Facts, name: str) -> str:
    return next((item.value for item in defaults(facts) if item.name == name), "")


def _single(dimension: str, name: str, values: Sequence[str], default: str) -> tuple[Option, ...]:
    return tuple(
        Option(dimension, f"{name}={value}" if value else f"{name} unset", ((name, value),))
        for value in values
        if value != default
    )


def _mkl(facts: Facts) -> Dimension | None:
    """MKL's kind of processor: on AMD alone, and never what the processor does not have."""
    best = mkl_type(facts)
    if best is None or _mine(facts, best.name):
        return None
    values = ("7", "5", "") if best.value == "7" else ("5", "")
    return Dimension(
        "mkl", "MKL's code for AMD", f"{best.name}={best.value}", _single("mkl", best.name, values, best.value)
    )


def _threads(facts: Facts) -> Dimension | None:
    name, most = "OMP_NUM_THREADS", most_threads(facts)
    if _mine(facts, name) or most < 2:
        return None
    cores = facts.cpu.physical_cores
    default = int(_default(facts, name) or most)
    counts = {most} | {2**power for power in range(most.bit_length()) if 2**power <= most}
    counts |= {cores} if cores is not None and cores <= most else set()
    options = tuple(thread_option(count) for count in sorted(counts, reverse=True) if count != default)
    return Dimension("threads", "threads", f"{default} threads", options, ordered=True)


def thread_option(count: int) -> Option:
    """A number of threads."""
    return Option("threads", f"OMP_NUM_THREADS={count}", (("OMP_NUM_THREADS", str(count)),))


def threads_of(option: Option | None) -> int | None:
    """The number of threads that an option sets; None where it sets none."""
    value = dict(option.variables).get("OMP_NUM_THREADS", "") if option is not None else ""
    return int(value) if value.isdecimal() else None


def _affinity(facts: Facts) -> Dimension | None:
    """Where threads stay; none is the default. OMP_PROC_BIND and OMP_PLACES come before it, on 3.7 with one thread."""
    bound = any(variable(facts, name) for name in ("OMP_PROC_BIND", "OMP_PLACES"))
    if _mine(facts, "KMP_AFFINITY") or bound or most_threads(facts) < 2:
        return None
    values = ("granularity=fine,compact,1,0", "granularity=fine,scatter")
    return Dimension("affinity", "places of threads", "the system's", _single("affinity", "KMP_AFFINITY", values, ""))


def _blocktime(facts: Facts) -> Dimension | None:
    if _mine(facts, "KMP_BLOCKTIME") or most_threads(facts) < 2:
        return None
    forever = Option("blocktime", "KMP_BLOCKTIME=infinite", (("KMP_BLOCKTIME", "infinite"),), restless=True)
    none = Option("blocktime", "KMP_BLOCKTIME=0", (("KMP_BLOCKTIME", "0"),))
    return Dimension("blocktime", "how long idle threads wait", "200 ms", (forever, none))


def _allocator(facts: Facts, paths: Sequence[str]) -> Dimension | None:
    if facts.platform.libc != "glibc":
        return None
    options = []
    if not _mine(facts, "LD_PRELOAD"):
        options = [Option("allocator", path.rpartition("/")[2], (("LD_PRELOAD", path),)) for path in paths]
    if not any(_mine(facts, name) for name in EARLY[2:]):
        values: Mapping[str, str] = dict(zip(EARLY[2:], ("1073741824", "67108864", "33554432"), strict=True))
        options.append(Option("allocator", "glibc's allocator keeps what was freed", tuple(values.items())))
    return Dimension("allocator", "allocator", "glibc's", tuple(options))


def _pages(facts: Facts) -> Dimension | None:
    version = re.match(r"(\d+)\.(\d+)", facts.platform.libc_version or "")
    new = version is not None and (int(version[1]), int(version[2])) >= _HUGE_PAGES
    if facts.platform.libc != "glibc" or not new or _mine(facts, "GLIBC_TUNABLES"):
        return None
    name, value = "GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"
    return Dimension("pages", "huge pages", "the system's", _single("pages", name, (value,), ""))
