"""Where a program sets Chainer's configuration and its environment. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ideepdoctor.lint.module import Module, argument

_CONFIGS = ("chainer.config", "chainer.global_config")


def configured(module: Module, name: str) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Each place that sets ``chainer.config.NAME``, with the value: assignments, setattr and using_config."""
    for node in module.names.nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if module.path(target) in [f"{config}.{name}" for config in _CONFIGS]:
                    yield node, node.value
        elif isinstance(node, ast.Call):
            path = module.path(node)
            if path == "chainer.using_config" and module.word(argument(node, 0, "name")) == name:
                value = argument(node, 1, "value")
            elif _builtin(module, node.func, "setattr") and len(node.args) == 3:
                known = module.path(node.args[0]) in _CONFIGS and module.word(node.args[1]) == name
                value = node.args[2] if known else None
            else:
                continue
            if value is not None:
                yield node, value


def environment(module: Module, name: str) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Each place that sets an environment variable of this process, with the value."""
    for node in module.names.nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if (
                    isinstance(target, ast.Subscript)
                    and module.path(target.value) == "os.environ"
                    and module.word(target.slice) == name
                ):
                    yield node, node.value
        elif isinstance(node, ast.Call):
            path = module.path(node)
            if path in ("os.environ.setdefault", "os.putenv") and len(node.args) == 2:
                if module.word(node.args[0]) == name:
                    yield node, node.args[1]
            elif path == "os.environ.update":
                yield from ((node, value) for value in _updated(module, node, name))


def _updated(module: Module, call: ast.Call, name: str) -> Iterator[ast.expr]:
    for item in call.args:
        if isinstance(item, ast.Dict):
            for key, value in zip(item.keys, item.values, strict=True):
                if module.word(key) == name:
                    yield value
    for keyword in call.keywords:
        if keyword.arg == name:
            yield keyword.value


def _builtin(module: Module, node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and not module.names.bindings(node)


def values(node: ast.expr) -> Iterator[ast.expr]:
    """The values that an expression can be: both of ``a if c else b``, the last ones of ``a or b``."""
    if isinstance(node, ast.IfExp):
        yield from values(node.body)
        yield from values(node.orelse)
    else:
        yield node
