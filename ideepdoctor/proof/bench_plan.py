"""What a run of bench measures when little was asked: the nets, a batch that fits in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ideepdoctor.errors import CouldNotCheck, UsageError
from ideepdoctor.model.facts import Limits
from ideepdoctor.proof.bench_engines import EngineSpec
from ideepdoctor.proof.worker import Refusal, Worker, WorkerDied
from ideepdoctor.system import System
from ideepdoctor.targets.target import Target

NETS = ("alexnet", "googlenet", "vgga", "overfeat", "resnet50", "conv")
USUAL = ("alexnet", "googlenet", "vgga", "overfeat")
"""The nets of the classic chart of convnet-benchmarks."""
BATCHES = (128, 64, 32, 16, 8, 4, 2, 1)
"""The largest that fits is taken; 128 is what convnet-benchmarks measures."""

_ENGINE_BYTES = 400 << 20
"""Of an engine without a net: Python, Chainer or PyTorch, MKL's and OpenMP's own."""
_SHARE = 0.8
"""Of the memory that is available; predictions are rough."""


@dataclass(frozen=True, slots=True)
class Need:
    """Memory of one net at one batch in bytes, for engines that unfold what they convolve and for the others."""

    net: str
    batch: int
    plain: int
    columns: int


class NoRoom(CouldNotCheck):
    """The nets at this batch do not fit in memory; found out before anything was killed."""

    code = "no-memory"


def nets_from(words: Sequence[str]) -> tuple[str, ...]:
    """The nets that were named; USUAL where none was. Raises UsageError: there is no such net."""
    asked = [word.strip().lower() for part in words for word in part.split(",") if word.strip()]
    unknown = [word for word in asked if word not in (*NETS, "all")]
    if unknown:
        raise UsageError(f"there is no net {unknown[0]}", hint=f"--net takes all, or some of: {', '.join(NETS)}")
    if "all" in asked:
        return NETS
    return tuple(dict.fromkeys(asked)) or USUAL


def free_bytes(limits: Limits) -> int | None:
    """Memory that is left for us: what is available, and no more than the control group's limit."""
    known = [size for size in (limits.memory_available_bytes, limits.memory_limit_bytes) if size is not None]
    return min(known, default=None)


def needed(needs: Need, engines: Sequence[EngineSpec]) -> int:
    """Bytes that one net takes while all engines hold it, as they do to take turns."""
    return sum(_ENGINE_BYTES + (needs.columns if spec.columns else needs.plain) for spec in engines)


def needs_of(
    system: System, target: Target, nets: Sequence[str], batches: Sequence[int]
) -> dict[tuple[str, int], Need]:
    """Ask a worker what the nets take; nothing is loaded for it.

    Raises:
        CouldNotCheck: the target does not answer.
    """
    found = {}
    try:
        with Worker(system, target, "bench") as worker:
            for net in nets:
                for batch in batches:
                    answer = worker.ask({"do": "describe", "net": net, "batch": batch}, timeout_seconds=60)
                    memory: Mapping[str, int] = answer["memory"]
                    found[net, batch] = Need(net, batch, int(memory["ideep"]), int(memory["numpy"]))
    except (WorkerDied, Refusal) as error:
        raise CouldNotCheck(f"{target.python} {error}", hint="ideepdoctor diagnose says more") from error
    return found


def choose_batch(
    needs: Mapping[tuple[str, int], Need],
    nets: Sequence[str],
    engines: Sequence[EngineSpec],
    free: int | None,
    asked: int | None,
) -> int:
    """The batch that was asked for, or the largest of BATCHES at which every net fits in memory.

    Args:
        needs: by net and batch; all of BATCHES, and ``asked``.
        nets: those that are measured.
        engines: those that hold a net at the same time.
        free: bytes; None: not known, everything fits.
        asked: a batch, or None.

    Raises:
        NoRoom: one of the nets does not fit.
    """

    def worst(batch: int) -> Need:
        return max((needs[net, batch] for net in nets), key=lambda need: needed(need, engines))

    def fits(batch: int) -> bool:
        return free is None or needed(worst(batch), engines) <= _SHARE * free

    if asked is not None and fits(asked):
        return asked
    largest = next((batch for batch in BATCHES if fits(batch)), None)
    if asked is None and largest is not None:
        return largest
    batch = asked if asked is not None else BATCHES[-1]
    need = worst(batch)
    text = (
        f"{need.net} at batch {batch} takes about {needed(need, engines) / 1e9:.1f} GB with {len(engines)} "
        f"{'engine' if len(engines) == 1 else 'engines'} in turn; {(free or 0) / 1e9:.1f} GB are free"
    )
    fitting = f"--batch {largest} fits, or fewer engines: --engine tuned" if largest else "name smaller nets: --net"
    raise NoRoom(text, hint=fitting)
