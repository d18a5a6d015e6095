"""Whether a setting is right: what its subject gives to iDeep, under exactly its variables, against float64."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ideepdoctor.errors import CouldNotCheck, UsageError
from ideepdoctor.proof.certify import Run, record_model
from ideepdoctor.proof.certify_data import Model, Setting
from ideepdoctor.proof.certify_order import ordered
from ideepdoctor.proof.certify_store import Store
from ideepdoctor.proof.tune_measure import Subject
from ideepdoctor.system import System
from ideepdoctor.targets.target import Target, payload_source

_MODEL = '''

def ideepdoctor_{net}():
    """The net as bench measures it: a link and its images."""
    engine = Engine()
    engine.start()
    model = make_model(engine, NETS["{net}"]())
    shapes = [(node.name, tuple(node.options["shape"])) for node in model.net.nodes if node.op == "image"]

    class Called(type(model)):
        def __call__(self, *images):
            names = [name for name, _ in shapes]
            return tuple(value for value, _ in self.compute(dict(zip(names, images))))

    model.__class__ = Called
    if {layouts}:
        model.to_intel64()
    random = engine.np.random.RandomState(SEED)
    images = [random.standard_normal(({batch},) + shape).astype(engine.np.float32) for _, shape in shapes]
    return tuple([model] + images)
'''


def model_source(net: str, batch: int, layouts: bool) -> bytes:
    """A file for ``certify --model``: the net of the tables as a model; its function is ``ideepdoctor_NET``."""
    text = _MODEL.format(net=net, batch=batch, layouts=layouts)
    return payload_source("bench").replace(b'\nif __name__ == "__main__":', text.encode("ascii") + b"\n\nif False:")


@dataclass(frozen=True, slots=True)
class Certifier:
    """Tries what a subject gives to iDeep.

    Attributes:
        system: starts the processes and writes the model's file.
        target: where.
        subject: what is computed.
        identity: what the results hold for, besides the variables and the model.
        cache: the doctor's cache folder.
        state: its state folder, in which results are kept.
    """

    system: System
    target: Target
    subject: Subject
    identity: Mapping[str, object]
    cache: str
    state: str

    def wrong(self, env: Mapping[str, str], layouts: bool, seconds: float) -> str:
        """Why a setting is wrong; "" where everything that was tried is right.

        Args:
            env: the whole environment under which programs would run.
            layouts: whether to_intel64() is called.
            seconds: after these no further case is begun, and what is left untried counts as not right.
        """
        deadline = time.monotonic() + seconds
        for path, function in self._places(layouts):
            try:
                model = record_model(self.system, self.target, path, function, env=env)
                why = self._wrong_in(model, env, path, deadline)
            except (CouldNotCheck, UsageError) as error:
                why = f"it could not be certified: {error.message}"
            if why:
                return why
        return ""

    def _wrong_in(self, model: Model, env: Mapping[str, str], path: str, deadline: float) -> str:
        if model.ended:
            return f"it ended the process: {model.ended}"
        if model.wrong:
            row = next(row for row in model.gradients or () if not row["right"])
            off = "is no number" if row["error"] is None else f"is off by {100 * float(row['error']):.2g} %"
            return f"{row['name']} {off}" + (f", and {len(model.wrong) - 1} more" if len(model.wrong) > 1 else "")
        identity = {**self.identity, "environ": dict(sorted(env.items())), "model": path}
        store = Store(self.system, self.state, identity)
        run = Run(self.system, self.target, store, ordered(model.cases, [Setting("tuned")]), env=env)
        run.results, run.deadline = store.load(), deadline
        run.go()
        for case, setting in run.pairs:
            result = run.results.get((case.key, setting.name))
            if result is None:
                return "there was no time to certify all of it: give tune a larger --budget"
            if result.failed:
                return f"{case.op} {case.text}: {result.status} {result.message}".strip()
        return ""

    def _places(self, layouts: bool) -> list[tuple[str, str]]:
        """Files and functions of the subject's models; those of nets are written to the cache."""
        if self.subject.model is not None:
            return [self.subject.model]
        found = []
        for net in self.subject.nets:
            data = model_source(net, self.subject.batch, layouts)
            path = Path(self.cache) / "tune" / f"{net}-{hashlib.sha256(data).hexdigest()[:16]}.py"
            if not path.is_file() or path.read_bytes() != data:
                self.system.make_folder(str(path.parent))
                self.system.write_file(str(path), data)
            found.append((str(path), f"ideepdoctor_{net}"))
        return found
