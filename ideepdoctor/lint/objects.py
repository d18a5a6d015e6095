"""Which object an expression is, as far as one function tells, and what holds what. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ideepdoctor.lint.flow import Flow, Step, dotted
from ideepdoctor.lint.names import Names

_RETURN_SELF = ("to_intel64", "to_cpu", "to_gpu", "to_device", "to_chx", "from_chx", "setup")
_ELSEWHERE = ("to_cpu", "to_gpu", "to_chx", "to_device")
_WRAPPERS = ("chainer.links.Classifier", "chainer.Sequential", "chainer.ChainList", "chainer.Chain")


@dataclass(frozen=True, slots=True)
class Place:
    """An object: where it comes from, and the way from there.

    Attributes:
        root: the call or statement that made it, or ``name`` as the function found it.
        way: attributes from there.
    """

    root: ast.AST | str
    way: tuple[str, ...] = ()

    def related(self, other: Place) -> bool:
        """Whether one is the other, or a part of it."""
        length = min(len(self.way), len(other.way))
        return self.root == other.root and self.way[:length] == other.way[:length]


Places = frozenset[Place]


def meet(first: Places, second: Places) -> bool:
    """Whether two expressions can be the same object, or one a part of the other."""
    return any(one.related(other) for one in first for other in second)


@dataclass(frozen=True, slots=True)
class Event:
    """Something done to an object at a step."""

    step: Step
    places: Places


class Objects:
    """The objects of one function.

    Args:
        names: of the module.
        flow: of the function.
    """

    def __init__(self, names: Names, flow: Flow) -> None:
        self.names = names
        self.flow = flow
        self.conversions: list[Event] = []
        """``to_intel64()`` and ``to_device('@intel64')``, and the making of a class that does it for itself."""
        self.departures: list[Event] = []
        """The way back: ``to_cpu()`` and its like make plain arrays."""
        self.setups: list[tuple[Step, Places, Places]] = []
        """``optimizer.setup(model)``: the step, the optimizer, the model."""
        for step in flow.calls():
            self._see(step)

    def places(self, node: ast.expr | None, step: Step, depth: int = 0) -> Places:
        """The objects that an expression can be at a step."""
        if node is None or depth > 20:
            return frozenset()
        if isinstance(node, ast.IfExp):
            return self.places(node.body, step, depth + 1) | self.places(node.orelse, step, depth + 1)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _RETURN_SELF:
            return self.places(node.func.value, step, depth + 1)
        if isinstance(node, ast.NamedExpr):
            return self.places(node.value, step, depth + 1)
        name = dotted(node)
        if isinstance(node, ast.Name) or (name and self.flow.bindings(name)):
            return self._named(name, node, step, depth)
        if isinstance(node, ast.Attribute):
            base = self.places(node.value, step, depth + 1)
            return frozenset(Place(item.root, (*item.way, node.attr)) for item in base)
        if isinstance(node, ast.Subscript):
            base = self.places(node.value, step, depth + 1)
            return frozenset(Place(item.root, (*item.way, ast.dump(node.slice))) for item in base)
        return frozenset((Place(node),))

    def within(self, places: Places, *, through_optimizers: bool = True) -> Places:
        """The objects and all that they are known to hold: the net of a classifier, the model of a trainer.

        Args:
            places: where to begin.
            through_optimizers: False: what these objects themselves were set up with does not count, because loading
                an optimizer does not load its model.
        """
        found = set(places)
        todo = [(item, through_optimizers) for item in places]
        while todo:
            item, follow = todo.pop()
            inner = set(self._given(item))
            if follow:
                inner |= {part for _, optimizer, model in self.setups if item in optimizer for part in model}
            for part in inner - found:
                found.add(part)
                todo.append((part, True))
        return frozenset(found)

    def converted(self, places: Places, step: Step) -> Event | None:
        """The last conversion to iDeep's arrays that still holds for one of these objects at a step."""
        for event in reversed(self.conversions):
            if not self.flow.reaches(event.step, step) or not meet(event.places, places):
                continue
            if any(
                self.flow.reaches(event.step, back.step)
                and self.flow.reaches(back.step, step)
                and meet(back.places, event.places)
                for back in self.departures
            ):
                continue
            return event
        return None

    def made(self, places: Places) -> list[ast.Call]:
        """The calls that made these objects; fewer than the objects where one comes from elsewhere."""
        return [item.root for item in places if isinstance(item.root, ast.Call)]

    def method(self, step: Step) -> str:
        """The name of the method that a step calls; empty where it calls something else."""
        call = step.node
        return call.func.attr if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else ""

    def _named(self, name: str, node: ast.expr, step: Step, depth: int) -> Places:
        held = self.flow.held(name, step)
        known = held if held is not None else [b for b in self.flow.bindings(name) if self.flow.reaches(b, step)]
        found: set[Place] = set()
        for binding in known:
            if binding.value is None:
                found.add(Place(binding.node))
            else:
                found |= self.places(binding.value, binding, depth + 1)
        if held is None:
            found.add(self._from_outside(name, node))
        return frozenset(found)

    def _from_outside(self, name: str, node: ast.expr) -> Place:
        """What a name is when the function begins: the module's object where it is bound once, by a call."""
        if isinstance(node, ast.Name) and not self.flow.bindings(name):
            bound = self.names.bindings(node)
            if len(bound) == 1 and bound[0].kind == "value" and isinstance(bound[0].value, ast.Call):
                return Place(bound[0].value)
        return Place(name)

    def _see(self, step: Step) -> None:
        call = step.node
        assert isinstance(call, ast.Call)
        maker = self.names.class_of(call.func)
        if maker is not None and converts_itself(maker):
            self.conversions.append(Event(step, frozenset((Place(call),))))
        if not isinstance(call.func, ast.Attribute):
            return
        what = call.func.attr
        if what == "to_intel64" or (what == "to_device" and self._names_intel64(call)):
            self.conversions.append(Event(step, self.places(call.func.value, step)))
        elif what in _ELSEWHERE:
            self.departures.append(Event(step, self.places(call.func.value, step)))
        elif what == "setup" and len(call.args) == 1:
            self.setups.append((step, self.places(call.func.value, step), self.places(call.args[0], step)))

    def _names_intel64(self, call: ast.Call) -> bool:
        for node in ast.walk(call):
            found = self.names.constant(node)
            if found is not None and isinstance(found.value, str) and "intel64" in found.value:
                return True
        return False

    def _given(self, item: Place) -> Iterator[Place]:
        """What an object was made from, where it is a wrapper, an updater or a trainer."""
        call = item.root
        if item.way or not isinstance(call, ast.Call) or call not in self.flow.at or not self._wraps(call):
            return
        for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
            for part in _flat(argument):
                yield from self.places(part, self.flow.at[call])

    def _wraps(self, call: ast.Call) -> bool:
        path = self.names.called(call) or ""
        if path.startswith("chainer.training."):
            return path.endswith(("Updater", ".Trainer"))
        if path in _WRAPPERS:
            return True
        maker = self.names.class_of(call.func)
        return maker is not None and any(
            base.startswith("chainer.") for base in (self.names.path(item) or "" for item in maker.bases)
        )


def converts_itself(maker: ast.ClassDef) -> bool:
    """Whether the ``__init__`` of a class calls ``self.to_intel64()``."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "to_intel64"
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
        for method in maker.body
        if isinstance(method, ast.FunctionDef) and method.name == "__init__"
        for node in ast.walk(method)
    )


def _flat(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        for item in node.elts:
            yield from _flat(item)
    elif isinstance(node, ast.Dict):
        for item in node.values:
            yield from _flat(item)
    elif isinstance(node, ast.Starred):
        yield from _flat(node.value)
    else:
        yield node
