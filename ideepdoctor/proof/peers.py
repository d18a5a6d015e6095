"""The engines that bench compares the target's Chainer with: which there are, where each runs, how it is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ideepdoctor.errors import ApplyFailed, CouldNotCheck, NotPossibleHere, UsageError
from ideepdoctor.model.report import Report
from ideepdoctor.proof.bench_engines import EngineSpec
from ideepdoctor.proof.peer_environments import Agree, Recipe, make, version_of
from ideepdoctor.proof.source_peer import CHECK as _SOURCE
from ideepdoctor.proof.source_peer import source_recipe
from ideepdoctor.stacks.catalog import Lock, all_stacks
from ideepdoctor.stacks.peer_catalog import all_peers
from ideepdoctor.system import System
from ideepdoctor.targets.target import Target
from ideepdoctor.treatment.state import cache_folder

if TYPE_CHECKING:
    from ideepdoctor.commands.session import Session

# Bound late, as the worker does it: empty stand-ins are all that some environments have of CUDA.
_TORCH = (
    "import os, sys; sys.setdlopenflags(getattr(os, 'RTLD_LAZY', 1)); import torch; "
    "torch.zeros(2, 2).mm(torch.ones(2, 2)); print('PyTorch ' + torch.__version__)"
)
_OPENCV = "import cv2, onnx; cv2.dnn; print('OpenCV ' + cv2.__version__ + ' DNN')"
_MKL = (
    "import chainer, numpy; loaded = open('/proc/self/maps').read(); assert 'libmkl' in loaded, 'NumPy has no MKL'; "
    "print('Chainer ' + chainer.__version__ + ' + NumPy ' + numpy.__version__ + ' with MKL')"
)
_IDEEP = (
    "import chainer, ideep4py; from chainer.backends import intel64; intel64.check_ideep_available(); "
    "print('Chainer ' + chainer.__version__ + ' + iDeep ' + getattr(ideep4py, '__version__', '1'))"
)
_OLD_STACK = "chainer4.5.0-ideep4py1.0.4"


@dataclass(frozen=True, slots=True)
class Kind:
    """How a peer is asked.

    Attributes:
        environment: name of what it is made from; two peers may share one.
        kind: as in a result file.
        payload: its worker.
        check: Python that prints its versions where it can be used.
        options: what ``load`` is asked besides the net and the batch.
        legacy: whether its Python is one of Chainer's, else it is the doctor's own.
        forward_only: it has no backward pass.
        columns: its convolutions unfold their input in memory.
        note: what the reader must know of it.
    """

    environment: str
    kind: str
    payload: str
    check: str
    options: Mapping[str, Any] = field(default_factory=dict)
    legacy: bool = False
    forward_only: bool = False
    columns: bool = False
    note: str = ""


KINDS: Mapping[str, Kind] = {
    "torch": Kind("torch", "torch", "bench_torch", _TORCH, {"channels_last": False}),
    "torch-channels-last": Kind("torch", "torch", "bench_torch", _TORCH, {"channels_last": True}),
    "opencv": Kind(
        "opencv", "opencv", "bench_opencv", _OPENCV, forward_only=True, note="forward only, as in inference"
    ),
    "mkl": Kind("mkl", "numpy", "bench", _MKL, {"use": "never", "to_intel64": False}, legacy=True, columns=True),
    "ideep-1.0.4": Kind("ideep-1.0.4", "ideep", "bench", _IDEEP, {"use": "auto", "to_intel64": True}, legacy=True),
    "source": Kind("source", "ideep", "bench", _SOURCE, {"use": "auto", "to_intel64": True}, legacy=True),
}
"""By the name that ``--peer`` takes, which is the engine's id, too."""

_NO_CAFFE = (
    "Caffe cannot be had here: neither the Python package index nor Debian 12 has one with MKL-DNN (the index has one "
    "without, to be built from source, and its package caffe is empty)"
)


def asked_peers(words: Sequence[str]) -> dict[str, str | None]:
    """Names and interpreters of ``--peer NAME`` and ``--peer NAME=PYTHON``, in order.

    Raises:
        UsageError: there is no such peer, or it cannot be had.
    """
    found: dict[str, str | None] = {}
    for word in words:
        name, equals, python = word.partition("=")
        name = name.strip().lower()
        if name == "caffe":
            hint = "compare with a result file of a machine that has it: ideepdoctor bench compare HERE.json THERE.json"
            raise UsageError(_NO_CAFFE, hint=hint)
        if name not in KINDS:
            raise UsageError(f"there is no peer {name!r}", hint=f"--peer takes one of: {', '.join(KINDS)}")
        if equals and not python.strip():
            raise UsageError(f"--peer {word} names no interpreter", hint=f"such as --peer {name}=/path/to/python")
        found[name] = python.strip() or None
    return found


def engines(session: Session, words: Sequence[str], minor: str | None = None) -> list[EngineSpec]:
    """The engines that were named, their environments made where they are not there.

    Args:
        session: this run; asked before much is downloaded.
        words: of ``--peer``: names, or ``NAME=PYTHON``.
        minor: version of the target's Python (``3.7``), which engines of Chainer take, too, where they can.

    Raises:
        UsageError: a name that is none, a peer that cannot be had, or nobody agreed to the download.
        CouldNotCheck, ApplyFailed, Busy: see ``peer_environments.make``.
    """
    system, environ = session.system, session.environ
    asked = asked_peers(words)
    # What the user named is looked at before anything is made.
    given = {name: find_peer(system, environ, name, python) for name, python in asked.items() if python is not None}
    recipes = {
        KINDS[name].environment: recipe_for(system, environ, name, minor, session.cwd)
        for name in asked
        if name not in given
    }
    made = make_peers(
        system,
        environ,
        list(recipes.values()),
        tell=session.progress.detail,
        agree=lambda plan: session.agrees(Report("bench", plan=plan)),
    )
    found = []
    for name in asked:
        target, label = given[name] if name in given else made[KINDS[name].environment]
        kind = KINDS[name]
        spec = EngineSpec(
            name,
            f"{label}, channels last" if kind.options.get("channels_last") else label,
            kind.kind,
            target,
            kind.payload,
            kind.options,
            forward_only=kind.forward_only,
            columns=kind.columns,
            note=kind.note,
        )
        found.append(spec)
    return found


def find_peer(system: System, environ: Mapping[str, str], name: str, python: str) -> tuple[Target, str]:
    """The interpreter that the user named for a peer, and what it is called with its versions.

    Raises:
        UsageError: it is no Python, or does not have the peer.
    """
    from ideepdoctor.targets.asked import look_up

    found = look_up(system, environ, python)
    try:
        label = version_of(system, f"what --peer {name} needs", found.place.path, KINDS[name].check)
    except ApplyFailed as error:
        raise UsageError(error.message, hint=error.hint, context=error.context) from error
    return Target(found.place.path, reason=f"asked for: --peer {name}={python}"), label


def make_peers(
    system: System, environ: Mapping[str, str], recipes: Sequence[Recipe], *, tell: Callable[[str], None], agree: Agree
) -> dict[str, tuple[Target, str]]:
    """Targets and labels of environments in the doctor's cache, by their names. Raises as ``make``."""
    if not recipes:
        return {}
    pythons = make(system, recipes, cache_folder(environ), tell, agree)
    labels = {recipe.peer: recipe.label for recipe in recipes}
    return {name: (Target(python, reason="made by the doctor"), labels[name]) for name, python in pythons.items()}


def recipe_for(system: System, environ: Mapping[str, str], name: str, minor: str | None, cwd: str = ".") -> Recipe:
    """How the environment of a peer is made on this machine. Raises UsageError: it cannot be."""
    kind = KINDS[name]
    if name == "source":
        return source_recipe(system, environ, cwd, minor)
    peer = all_peers().get(kind.environment)
    locks = _old_stack_locks() if peer is None else peer.locks
    base, abi = _legacy_base(system, environ, name, locks, minor) if kind.legacy else _own_base(name, locks)
    lock = next(lock for lock in locks if abi in lock.abis)
    label = "Chainer 4.5.0 + iDeep 1.0.4" if peer is None else peer.label_of(lock)
    return Recipe(kind.environment, label, lock, base, kind.check, None if peer is None else peer.stand_ins)


def _old_stack_locks() -> Sequence[Lock]:
    return next(stack.locks for stack in all_stacks() if stack.name == _OLD_STACK)


def _legacy_base(
    system: System, environ: Mapping[str, str], name: str, locks: Sequence[Lock], minor: str | None
) -> tuple[str, str]:
    """Path and ABI for a peer of Chainer's: of the target's version if there is a lock for it, else the best found."""
    from ideepdoctor.targets.choose import base_for_new_environment

    tried = [lock for lock in locks if lock.tried]
    abis = [abi for lock in tried for abi in lock.abis]
    same = next((lock.python for lock in tried if lock.python == minor), None)
    hint = ""
    for asked in dict.fromkeys((same, None)):
        try:
            found = base_for_new_environment(system, environ, asked, abis)
        except (UsageError, NotPossibleHere, CouldNotCheck) as error:
            hint = error.hint
        else:
            return found.path, found.abi
    pythons = " or ".join(lock.python for lock in tried)
    raise UsageError(f"--peer {name} needs Python {pythons}, and there is none here", hint=hint)


def _own_base(name: str, locks: Sequence[Lock]) -> tuple[str, str]:
    """Path and ABI of the interpreter that the doctor runs in."""
    import platform
    import sys

    abi = f"cp{sys.version_info[0]}{sys.version_info[1]}{sys.abiflags}"
    if platform.machine() != "x86_64" or not any(abi in lock.abis for lock in locks):
        pythons = ", ".join(lock.python for lock in locks)
        raise UsageError(
            f"--peer {name} can be made on x86_64 for Python {pythons}, and the doctor runs in "
            f"{platform.python_version()} on {platform.machine()}",
            hint=f"name an interpreter that has it: --peer {name}=PYTHON",
        )
    return sys.executable, abi
