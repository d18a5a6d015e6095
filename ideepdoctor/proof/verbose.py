"""Parser of the lines that MKL-DNN prints under MKLDNN_VERBOSE=1."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_FIELDS = 8


@dataclass(frozen=True, slots=True)
class Execution:
    """One primitive that was executed; the names are MKL-DNN's (0.12 to 0.21 print the same eight fields)."""

    primitive: str
    """convolution, reorder, batch_normalization..."""
    implementation: str
    """Kernel and ISA: jit:avx512_common, jit:avx2, gemm:blas, ref:any."""
    propagation: str
    """forward_training, forward_inference, backward_data, backward_weights or undef."""
    formats: str
    """Layout of each memory: ``fsrc:nChw16c fwei:OIhw16i16o fbia:x fdst:nChw16c``."""
    auxiliary: str
    """Algorithm and flags: ``alg:convolution_direct``; may be empty."""
    problem: str
    """The shape: ``mb4_g1ic16oc32_ih14oh14kh3sh1dh0ph1_iw14ow14kw3sw1dw0pw1``."""
    milliseconds: float

    @property
    def is_jit(self) -> bool:
        """Whether code made for this processor ran, and not a general loop or a matrix product."""
        return self.implementation.startswith("jit")


def parse_line(line: str) -> Execution | None:
    """Read one line; None where it is not the record of an execution (``info`` and ``create`` lines, cut lines)."""
    words = line.strip().split(",")
    if words[:2] != ["mkldnn_verbose", "exec"] or len(words) != _FIELDS + 1:
        return None
    try:
        milliseconds = float(words[8])
    except ValueError:
        return None
    return Execution(words[2], words[3], words[4], words[5], words[6], words[7], milliseconds)


def parse(lines: Iterable[str]) -> tuple[Execution, ...]:
    """Read the lines that are records of executions, in order."""
    return tuple(execution for line in lines if (execution := parse_line(line)) is not None)


def convolution_kernel(executions: Iterable[Execution]) -> str | None:
    """The implementation that convolutions run with: the first JIT one, else the first; None without a convolution."""
    names = [execution for execution in executions if execution.primitive == "convolution"]
    best = next((execution for execution in names if execution.is_jit), names[0] if names else None)
    return None if best is None else best.implementation
