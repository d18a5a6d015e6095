"""What ``tune`` found, as lines, as data and as a sentence. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ideepdoctor.model.bench import Noise
from ideepdoctor.proof.statistics import Interval
from ideepdoctor.proof.tune_data import MARGIN, Choice, Looked, Trial
from ideepdoctor.proof.tune_nodes import Nodes

EXPLAIN = {
    "mkl": "MKL of 2018 takes its slow path on AMD unless it is told which code to use; linear layers feel it",
    "threads": "threads that share a core, a quota or too little work wait for each other",
    "layouts": "to_intel64() keeps parameters in iDeep's layouts, so that they are not reordered in each step",
    "affinity": "threads that stay on their cores keep their caches",
    "blocktime": "threads that spin between two operations are there at once; threads that sleep leave the core free",
    "allocator": "memory that goes back to the system has to be cleared and mapped again",
    "pages": "larger pages need fewer entries of the processor's address table",
}
_VERDICTS = {
    "gain": "faster",
    "noise": "within noise of the default",
    "default": "the default is faster",
    "unknown": "cannot be told apart here and now",
    "skipped": "there was no time for it",
}


def ratio(gain: Interval) -> str:
    """``1.31 times (1.25 to 1.38)``."""
    return f"{gain.median:.2f} times ({gain.low:.2f} to {gain.high:.2f})"


def lines(subject: str, choice: Choice, noise: Noise) -> tuple[str, ...]:
    """A table: each dimension with what its options gain; below it what was refused, and how noisy it was."""
    told = [f"speed of {subject} by setting, the default is 1"]
    for looked in choice.looked:
        told.append(f"  {looked.dimension.title} (default: {looked.dimension.default}): {_said(looked)}")
        told += [f"    {_name(trial):40} {_result(trial)}" for trial in looked.trials]
        if looked.chosen is not None:
            told.append(f"    {EXPLAIN.get(looked.dimension.name, '')}")
    told += [f"  refused: {item.setting.label}, {ratio(item.gain)}: {item.why}" for item in choice.refused]
    told += [f"  noise: {message}" for message in noise.messages]
    return tuple(told)


def _said(looked: Looked) -> str:
    return _VERDICTS[looked.verdict]


def _name(trial: Trial) -> str:
    return "default" if trial.option is None else trial.option.label


def _result(trial: Trial) -> str:
    return trial.why or ("not measured" if trial.gain is None else ratio(trial.gain))


def sentence(subject: str, choice: Choice, noise: Noise) -> str:
    """The verdict: what is fastest and right, or why the default stays."""
    refused = ""
    if choice.refused:
        first = choice.refused[0]
        refused = f" {first.setting.label} was faster and is refused: {first.why}."
    if choice.gain is not None:
        what = f"{choice.setting.label} makes {subject} {ratio(choice.gain)} as fast as the default, and is certified."
        return f"TUNED: {what}{refused}"
    if not choice.telling:
        why = "; ".join(noise.messages) or "the times of one setting vary by more than what is looked for"
        return f"CANNOT TELL here and now ({why}): the default stays.{refused}"
    whole = "" if choice.complete else " among what there was time for"
    return f"THE DEFAULT STAYS: for {subject} nothing is faster by more than {100 * MARGIN:.0f} %{whole}.{refused}"


def as_data(subject: str, choice: Choice, noise: Noise, seconds: float, budget: float) -> dict[str, Any]:
    """Everything, JSON-ready."""
    return {
        "subject": subject,
        "seconds": round(seconds, 1),
        "budget_seconds": budget,
        "complete": choice.complete,
        "telling": choice.telling,
        "noise": {"quiet": noise.quiet, "messages": list(noise.messages)},
        "dimensions": [
            {
                "name": looked.dimension.name,
                "title": looked.dimension.title,
                "default": looked.dimension.default,
                "verdict": looked.verdict,
                "chosen": None if looked.chosen is None else looked.chosen.label,
                "explanation": EXPLAIN.get(looked.dimension.name, ""),
                "trials": [_trial(trial) for trial in looked.trials],
            }
            for looked in choice.looked
        ],
        "choice": {
            "default": choice.gain is None,
            "label": choice.setting.label,
            "variables": choice.setting.variables,
            "to_intel64": choice.setting.to_intel64,
            "gain": _interval(choice.gain),
        },
        "refused": [{"label": r.setting.label, "gain": _interval(r.gain), "why": r.why} for r in choice.refused],
    }


def _trial(trial: Trial) -> dict[str, Any]:
    variables = {} if trial.option is None else dict(trial.option.variables)
    return {"label": _name(trial), "variables": variables, "gain": _interval(trial.gain), "why": trial.why}


def _interval(gain: Interval | None) -> dict[str, float] | None:
    return None if gain is None else {"ratio": gain.median, "low": gain.low, "high": gain.high}


def proposals(subject: str, nodes: Sequence[Sequence[int]], measured: Nodes) -> tuple[str, ...]:
    """What no variable of one process can do: a process for each node of memory, or its memory over all nodes."""
    if len(nodes) < 2:
        return ()
    each = min(len(cpus) for cpus in nodes)
    told = [f"  {len(nodes)} nodes of memory (images per second; one process over all of them is 1)"]
    rows = (
        (measured.each, f"one process on each, OMP_NUM_THREADS={each} numactl --cpunodebind=N --membind=N ..."),
        (measured.interleaved, "one process, numactl --interleave=all ..."),
    )
    told += [f"    {how}: {ratio(gain)}" for gain, how in rows if gain is not None]
    if measured.why:
        told.append(f"    {subject} could not be measured on one node: {measured.why}")
    elif measured.each is not None and measured.each.low > 1 + MARGIN:
        told.append("    train data-parallel, one process on each node: their gradients are averaged (ChainerMN)")
    return tuple(told)
