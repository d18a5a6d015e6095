"""IDP917: a requirement that cannot be installed, or that is wrong with Chainer and iDeep."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from ideepdoctor.lint.base import Check, Note, Sample
from ideepdoctor.lint.module import Module
from ideepdoctor.lint.pins import Pin, Scope
from ideepdoctor.model.findings import Severity
from ideepdoctor.rules.compat import (
    BEST_RELEASE,
    NUMPY_WINDOWS,
    RELEASES,
    Pair,
    Release,
    is_built,
    outside,
    pair,
    right_release,
)
from ideepdoctor.stacks.catalog import all_stacks

_LAST = {"2.7": "2.7.18", "3.5": "3.5.10", "3.6": "3.6.15", "3.7": "3.7.17", "3.10": "3.10.99", "3.11": "3.11.99"}
"""The last release of each Python that counts here: what ``>=3.7.2`` or ``==3.7.*`` is compared with."""
_WRITE = f"ideep4py=={BEST_RELEASE}"
_OTHERS = ("ideep", "libideep", "libideep-dev", "dev-libs/ideep", "sci-libs/ideep")
_OLD_SOURCE = ("@v1", "@v2.0.0", "@ideep4py", "-b v1", "-b v2.0.0", "-b ideep4py", "--branch v2.0.0", "--branch=v2.0.0")
"""What names the part of the repository that has the Python module."""


class IDP917(Check):
    """A requirement that no release meets, or that does not go with Chainer and iDeep.

    What it checks
        Files of requirements (``requirements*.txt``, ``constraints*.txt``, ``*requirements*.in``), Dockerfiles and
        Containerfiles (what their RUN lines give to pip, stage by stage), ``environment.yml``, ``setup.cfg``,
        ``pyproject.toml`` and ``Pipfile``: releases of ideep4py that are not on the index, or not for the Python of
        the base image, of ``requires-python`` or of the environment; ``--no-binary``; pairs of Chainer and ideep4py
        that are not used or compute wrong gradients; NumPy and setuptools that break them; other things called ideep.

    Why it matters
        pip ends with ``No matching distribution found``, or installs something with which iDeep is silently not used.
        ``==2.0.0`` does not match ``2.0.0.post3``, and no other release of 2.0.0 is there any more.

    How to fix
        ``ideep4py==2.0.0.post3`` with Chainer 5 to 7 on Python 2.7, 3.5, 3.6 or 3.7. For a newer Python build it:
        ``ideepdoctor setup --build``. A marker (``; python_version < "3.8"``) says for whom a line is.

    References
        intel/ideep #36 and #43 (another library in the same repository), numpy/numpy #27405 and pypa/setuptools #4612
        (setuptools 74), chainer/chainer #8632 (NumPy 2). PEP 440: an exact version matches no post-release.
    """

    title = "A requirement that cannot be met"
    severity = Severity.ERROR
    needed = f"{_WRITE} with Chainer 5 to 7 on Python 2.7 or 3.5 to 3.7, as a wheel"
    ok = (
        Sample("the release that is there", "chainer==7.8.1\nideep4py==2.0.0.post3\nnumpy<1.22\n", "requirements.txt"),
        Sample("for old Pythons only", 'chainer\nideep4py ; python_version < "3.8"\n', "requirements.txt"),
        Sample("Python 3.7", "FROM python:3.7-slim\nRUN pip install chainer ideep4py 'numpy<1.22'\n", "Dockerfile"),
        Sample(
            "Chainer 4 with ideep4py 1",
            '[project]\ndependencies = ["chainer<5", "ideep4py==1.0.4"]\n',
            "pyproject.toml",
        ),
        Sample("without Chainer", "numpy>=2\nsetuptools>=80\n", "requirements.txt"),
    )
    bad = (
        Sample("no such release", "chainer==7.8.1\nideep4py==2.0.0\n", "requirements.txt"),
        Sample("no wheel", "FROM python:3.8-slim\nRUN pip install chainer \\\n    ideep4py\n", "Dockerfile"),
        Sample("another thing", "dependencies:\n  - chainer\n  - pip:\n      - ideep\n", "environment.yml"),
        Sample("from source", "--no-binary ideep4py\nideep4py\n", "requirements.txt"),
        Sample("Chainer 4", '[packages]\nchainer = "==4.5.0"\nideep4py = "==2.0.0.post3"\n', "Pipfile"),
        Sample("NumPy 2", "[options]\ninstall_requires =\n    chainer\n    numpy>=2\n", "setup.cfg"),
    )

    def check(self, module: Module) -> Iterator[Note]:
        """Report each requirement once, for the worst that is wrong with it."""
        for scope in module.source.demanded or ():
            seen: set[int] = set()
            for note in _notes(scope):
                line = getattr(note.node, "lineno", 1)
                if line not in seen:
                    seen.add(line)
                    yield note


def _at(line: int, found: str, consequence: str, next_step: str, severity: Severity | None = None) -> Note:
    return Note(ast.Constant(None, lineno=line, col_offset=0), found, consequence, next_step, severity)


def _notes(scope: Scope) -> Iterator[Note]:
    ours = next((item for item in scope.pins if item.name == "ideep4py"), None)
    chainer = next((item for item in scope.pins if item.name == "chainer"), None)
    yield from _others(scope)
    for item in scope.pins:
        if item.name == "ideep4py" and not item.url:
            yield from _release(item, scope)
    if ours is not None or chainer is not None:
        yield from _from_source(scope, ours)
        yield from _numpy(scope, ours)
        yield from _setuptools(scope, chainer)
    if ours is not None and chainer is not None and not (ours.url or chainer.url):
        yield from _pair(ours, chainer)


def _others(scope: Scope) -> Iterator[Note]:
    """Other things that are called ideep."""
    for line, name in [(item.line, item.name) for item in scope.pins] + list(scope.system):
        if name in _OTHERS:
            yield _at(
                line,
                f"{name} is required",
                "it is not Chainer's iDeep: the index has no such project, and the distributions' is a C++ library",
                f"write {_WRITE}",
            )
    sources = [(item.line, item.url) for item in scope.pins] + list(scope.cloned)
    for line, url in sources:
        if _is_repository(url) and not any(part in url for part in _OLD_SOURCE):
            yield _at(
                line,
                "the newest state of intel/ideep is required",
                "it has no Python module any more: that is in its tag v2.0.0",
                f"write {_WRITE}, or ideepdoctor build",
            )


def _is_repository(url: str) -> bool:
    bare = url.replace(":", "/").replace(".git", "")
    return any(f"{word}/".startswith("intel/ideep/") for word in _tails(bare))


def _tails(text: str) -> Iterator[str]:
    """The last two parts of each path in a text, what follows ``@``, ``#`` or ``?`` left out."""
    for word in text.split():
        parts = word.split("://")[-1].split("#")[0].split("?")[0].split("/")
        if len(parts) >= 2:
            yield "/".join([parts[-2].rpartition("@")[2], parts[-1].partition("@")[0]]).lower()


def _meeting(item: Pin) -> list[Release]:
    """The releases on the index that meet it, oldest first."""
    return [release for release in RELEASES.values() if item.specifier.contains(release.version, prereleases=True)]


def _release(item: Pin, scope: Scope) -> Iterator[Note]:
    exact = _exact(item.specifier)
    if exact is not None and is_built(exact):
        return
    meeting = _meeting(item)
    if not meeting:
        yield _at(
            item.line,
            f"ideep4py{item.specifier} is required",
            "no release on the index meets it: pip finds no matching distribution",
            f"write {_WRITE}",
        )
    elif all(release.broken for release in meeting):
        yield _at(item.line, f"ideep4py{item.specifier} is required", f"{meeting[-1].broken}", f"write {_WRITE}")
    elif scope.python is not None and not item.marked and not _wheels(meeting, scope.python):
        yield _at(
            item.line,
            f"ideep4py is required with Python {scope.python}",
            "there is no wheel of it for that Python, and no source on the index: pip finds no matching distribution",
            "use Python 3.7, or ideepdoctor setup --build for a newer one",
        )


def _wheels(releases: list[Release], python: SpecifierSet) -> bool:
    """Whether one of these releases has a wheel for a Python that is allowed."""
    minors = {f"{tag[2]}.{tag[3:].rstrip('mu')}" for release in releases for tag in release.abis}
    return any(python.contains(_LAST[minor]) for minor in minors)


def _from_source(scope: Scope, ours: Pin | None) -> Iterator[Note]:
    for line, name in scope.not_binary:
        if name.lower() == "ideep4py" or (name == ":all:" and ours is not None):
            yield _at(
                line,
                f"--no-binary {name}",
                "ideep4py is on the index as wheels alone: pip finds no matching distribution",
                "leave ideep4py out of --no-binary; from source: ideepdoctor build",
            )


def _numpy(scope: Scope, ours: Pin | None) -> Iterator[Note]:
    for item in (found for found in scope.pins if found.name == "numpy" and not found.marked):
        least, most = _least(item.specifier), _exact(item.specifier)
        if least is not None and Version(least) >= Version("2"):
            yield _at(
                item.line,
                f"numpy{item.specifier} is required with Chainer",
                "no Chainer can be imported with NumPy 2: AttributeError, np.sctypes",
                "write numpy<1.22" if ours is not None else "write numpy<2",
            )
            continue
        windows = NUMPY_WINDOWS.values()
        above = least is not None and all(outside(least, window) == "above" for window in windows)
        below = most is not None and all(outside(most, window) == "below" for window in windows)
        built = ours is not None and (ours.marked or ours.url or is_built(_exact(ours.specifier) or ""))
        if ours is not None and not built and (above or below):
            yield _at(
                item.line,
                f"numpy{item.specifier} is required with ideep4py",
                "no Python that has a wheel of ideep4py has this NumPy"
                if above
                else "the extension module of ideep4py refuses it",
                "write numpy>=1.16,<1.22",
            )


def _setuptools(scope: Scope, chainer: Pin | None) -> Iterator[Note]:
    fails = scope.python is not None and any(scope.python.contains(_LAST[minor]) for minor in ("3.10", "3.11"))
    fails = fails and not any(
        scope.python is not None and scope.python.contains(_LAST[minor]) for minor in NUMPY_WINDOWS
    )
    for item in scope.pins:
        least = _least(item.specifier) if item.name == "setuptools" and not item.marked else None
        if fails and chainer is not None and least is not None and Version(least) >= Version("74"):
            yield _at(
                item.line,
                f"setuptools{item.specifier} is required with Chainer on Python {scope.python}",
                "the import of Chainer fails: No module named 'distutils.msvccompiler'",
                "write setuptools<74",
            )


def _pair(ours: Pin, chainer: Pin) -> Iterator[Note]:
    """Judge what pip would choose of both."""
    release, other = _chosen(ours), _chosen_chainer(chainer)
    verdict = Pair.UNKNOWN if release is None or other is None else pair(other, release)
    if release is None or other is None or verdict not in (Pair.UNUSED, Pair.WRONG):
        return
    wrong = verdict is Pair.WRONG
    yield _at(
        ours.line,
        f"ideep4py {release} comes with Chainer {other}",
        "Chainer uses it, and the gradients of BatchNormalization are wrong"
        if wrong
        else "Chainer does not recognise it and silently goes on with NumPy",
        f"write {right_release(other).replace('ideep4py ', 'ideep4py==')}",
        Severity.ERROR if wrong else Severity.WARNING,
    )


def _chosen(ours: Pin) -> str | None:
    """The newest release that meets it, betas only where nothing else does; None where none can be installed."""
    usable = [release.version for release in _meeting(ours) if not release.broken]
    stable = [version for version in usable if not Version(version).is_prerelease]
    choice = stable or usable
    return choice[-1] if choice else None


def _chosen_chainer(chainer: Pin) -> str | None:
    """The newest known Chainer that meets it, or the one that is pinned."""
    known = sorted({stack.chainer for stack in all_stacks()}, key=Version)
    meeting = [version for version in known if chainer.specifier.contains(version)]
    return meeting[-1] if meeting else _exact(chainer.specifier)


def _exact(specifier: SpecifierSet) -> str | None:
    """The only version that it allows; None where it allows several."""
    found = [item.version for item in specifier if item.operator in ("==", "===") and _is_version(item.version)]
    return found[0] if found else None


def _least(specifier: SpecifierSet) -> str | None:
    """The lowest version that it allows; None where nothing bounds it below."""
    bounds = [item.version.removesuffix(".*") for item in specifier if item.operator in ("==", "===", ">=", ">", "~=")]
    return max((text for text in bounds if _is_version(text)), key=Version, default=None)


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True
