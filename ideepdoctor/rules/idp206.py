"""IDP206: pip here cannot build Chainer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from packaging.version import Version

from ideepdoctor.model.facts import Facts, Package
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.built_host import built_host
from ideepdoctor.rules.compat import is_older
from ideepdoctor.rules.installed import build_command, package, python_command
from ideepdoctor.rules.pip_options import setting, switched_off

_FIRST = "3.9"
"""setuptools 82, the first without pkg_resources, is for Python 3.9 and later."""
_WITHOUT = "82"
_ALWAYS_ISOLATED = "25.3"
_IMPORTABLE = ("3.9", "3.10", "3.11")
_PINS = "'numpy<2' 'protobuf<3.21'"


def _bare(pip: str, **more: Any) -> dict[str, Any]:
    return {"packages": {"pip": pip, "setuptools": "65.5.0"}, **more}


class IDP206(Rule):
    """On Python 3.9 and later ``pip install chainer`` stops while it builds Chainer.

    What it checks
        Where Chainer is not installed: the versions of Python, pip and setuptools, whether wheel is there, and whether
        a setting of pip gives the build an older setuptools (``build-constraint``; ``constraint`` for pip before 25.3;
        ``no-build-isolation``).

    Why it matters
        Chainer comes as source alone, and its ``setup.py`` imports pkg_resources. pip 25.3 and later
        build with the newest setuptools, whatever is installed (older ones where setuptools or wheel is missing), and
        setuptools 82 has none: ``ModuleNotFoundError: No module named
        'pkg_resources'``. PIP_CONSTRAINT, which many advise, does not reach the build since pip 25.3.

    How to fix
        Build with an older setuptools: ``PIP_BUILD_CONSTRAINT=FILE`` with ``setuptools<82`` in FILE (pip 25.3 and
        later), or ``--no-build-isolation`` with setuptools 73 and wheel installed. Or let ``ideepdoctor setup`` make
        the environment.

    References
        omry/omegaconf #1234, fonttools/skia-pathops #84, html5lib/html5lib-python #593: the same of other packages.
    """

    title = "pip cannot build Chainer here"
    severity = Severity.INFO
    requires = ("IDP101",)
    ok = (
        Example("3.7", {"packages": {"chainer": None}}),
        Example("no pip", host="py311-nothing"),
        Example("Chainer is there", _bare("26.3", chainer=None) | {"packages": {"pip": "26.3", "chainer": "7.8.1"}}),
        Example(
            "an older setuptools for builds",
            _bare("26.3", pip_settings=[{"name": "build-constraint", "value": "b.txt", "source": "PIP_X"}]),
            "py311-nothing",
        ),
        Example("an older pip builds with what is there", built_host(chainer=None)),
    )
    bad = (
        Example("3.11 with a new pip", _bare("26.3"), "py311-nothing", ("IDP201",)),
        Example("3.13", _bare("25.0", python={"version": "3.13.0", "abi": "cp313"}), "py311-nothing", ("IDP201",)),
        Example("beside a build of ideep4py", built_host(chainer=None, pip="26.3"), also=("IDP308",)),
        Example(
            "a constraint that does not reach the build",
            _bare("25.3", pip_settings=[{"name": "constraint", "value": "c.txt", "source": "PIP_CONSTRAINT"}]),
            "py311-nothing",
            ("IDP201",),
        ),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Compare versions, and look for a setting that helps."""
        pip = package(facts, "pip")
        if pip is None or package(facts, "chainer") is not None or facts.planned_ideep4py is not None:
            return
        python = Version(facts.python.minor)
        builds_with = _stops(facts, pip)
        if python < Version(_FIRST) or builds_with is None:
            return
        importable = facts.python.minor in _IMPORTABLE and facts.python.externally_managed is None
        first = python_command(facts, f"-m pip install 'setuptools<74' wheel {_PINS}")
        second = python_command(facts, f"-m pip install --no-build-isolation chainer==7.8.1 {_PINS}")
        yield self.finding(
            found=f"pip {pip.version} on Python {facts.python.minor} builds with {builds_with}",
            needed="a build with setuptools 81 or older, which has pkg_resources",
            consequence="pip install chainer stops: No module named 'pkg_resources'",
            next_step=f"{first} && {second}" if importable else build_command(facts) or "ideepdoctor setup",
            evidence=(Evidence(f"pip {pip.version}", pip.location, python_command(facts, "-m pip --version")),),
        )


def _stops(facts: Facts, pip: Package) -> str | None:
    """The setuptools that pip would build with where that one has no pkg_resources, in words; None where it has.

    Measured with pip 22.3 to 26.3: before 25.3 pip ran ``setup.py`` with what is installed, unless setuptools (from
    23.1 on: or wheel) was missing.
    """
    setuptools, wheel = facts.package("setuptools"), facts.package("wheel")
    complete = setuptools is not None and (wheel is not None or is_older(pip.version, "23.1"))
    old = is_older(pip.version, _ALWAYS_ISOLATED)
    if switched_off(facts, "no-build-isolation") is not None or (old and complete):
        if setuptools is None or is_older(setuptools.version, _WITHOUT):
            return None
        return f"setuptools {setuptools.version}, the installed one"
    # The file of a constraint is not read: whoever set one up for builds knows why.
    helped = setting(facts, "constraint" if old else "build-constraint") is not None
    return None if helped else f"setuptools {_WITHOUT} or later, whatever is installed"
