"""IDP306: Chainer cannot be imported on this Python with these packages."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from ideepdoctor.model.facts import Facts, Outcome
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.compat import is_older
from ideepdoctor.rules.installed import build_command, outcome, package, python_command

_NEEDED_BY_NEW = "Python 3.11 or older, or the start-up file of this doctor and an older setuptools"
_CURABLE = ("3.8", "3.9", "3.10", "3.11")

_MARKS = (
    ("pkg_resources", "no pkg_resources (setuptools is missing, or 82 and later)"),
    ("distutils.msvccompiler", "no distutils.msvccompiler (setuptools 74 and later)"),
    ("np.sctypes", "no np.sctypes (NumPy 2)"),
    ("numpy.distutils", "no numpy.distutils (Python 3.12 and later)"),
)
"""Texts of the errors, and what is behind them."""


class IDP306(Rule):
    """Modules and names that Chainer needs at its import are gone.

    What it checks
        The text of a failed ``import chainer`` for pkg_resources,
        distutils.msvccompiler, numpy.distutils and np.sctypes; without an import (``--quick``) the versions that are
        known to fail.

    Why it matters
        Chainer ends with version 7.8.1 of 2022. On Python 3.8 to 3.11 it needs an older setuptools and NumPy; on 3.12
        and later no choice of versions makes it importable: there the start-up file of an environment that this
        doctor makes offers what is gone (numpy.distutils, np.sctypes) while Chainer is being imported.

    How to fix
        Python 3.8 to 3.11: ``pip install 'setuptools<74' 'numpy<2'``. Better: an environment with Python 3.7, where
        iDeep works too, or ``ideepdoctor setup --build``, which builds iDeep for Python 3.8 to 3.13.

    References
        chainer #8632, espnet #5942 (NumPy 2); pypa/setuptools #4612; PCANet #12.

        Reports: chflame163/ComfyUI_LayerStyle #424 (numpy.distutils); numpy #27405 (distutils.msvccompiler).
    """

    title = "Chainer cannot be imported with these packages"
    severity = Severity.ERROR
    requires = ("IDP204", "IDP401")
    ok = (
        Example("3.7"),
        Example(
            "3.11 with older packages",
            {"packages": {"chainer": "7.8.1", "numpy": "1.23.5", "setuptools": "68.2.2"}, "imports": None},
            "py311-nothing",
        ),
        Example(
            "3.13 with the start-up file, without an import",
            {
                "python": {"version": "3.13.0", "abi": "cp313"},
                "packages": {"chainer": "7.8.1", "numpy": "2.2.6", "setuptools": "73.0.1"},
                "imports": None,
                "mode": "quick",
                "guard": {"choice": True},
            },
            "py311-nothing",
        ),
    )
    bad = (
        Example(
            "NumPy 2",
            {
                "packages": {"chainer": "7.8.1", "numpy": "2.0.2", "setuptools": "68.2.2"},
                "imports": {
                    "chainer": {
                        "ok": False,
                        "seconds": 0.5,
                        "error_type": "AttributeError",
                        "error_text": "`np.sctypes` was removed in the NumPy 2.0 release.",
                    }
                },
            },
            "py311-nothing",
            ("IDP201",),
        ),
        Example(
            "setuptools 80",
            {
                "packages": {"chainer": "7.8.1", "numpy": "1.26.4", "setuptools": "80.9.0"},
                "imports": {
                    "chainer": {
                        "ok": False,
                        "seconds": 0.5,
                        "error_type": "ModuleNotFoundError",
                        "error_text": "No module named 'distutils.msvccompiler'",
                    }
                },
            },
            "py311-nothing",
            ("IDP201",),
        ),
        Example(
            "3.12 without an import",
            {
                "python": {"version": "3.12.1", "abi": "cp312"},
                "packages": {"chainer": "7.8.1", "numpy": "1.26.4"},
                "imports": None,
                "mode": "quick",
            },
            "py311-nothing",
            ("IDP201",),
        ),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Match the error text; without one, compare versions."""
        chainer = package(facts, "chainer")
        if chainer is None or facts.planned_ideep4py is not None:
            return
        result = outcome(facts, "chainer")
        if result is None:
            causes = _predicted(facts) if facts.mode == "quick" else []
        elif result.ok:
            return
        else:
            text = "\n".join(_errors(result))
            matched = [(mark, cause) for mark, cause in _MARKS if mark in text]
            # The text names only the cause that came first, the versions name all that they show.
            shown = _predicted(facts) if matched else []
            causes = shown + [cause for mark, cause in matched if mark not in "; ".join(shown)]
        # On 2.7 to 3.7 nothing that Chainer needs is gone: a missing setuptools is a missing package (IDP311).
        if not causes or Version(facts.python.minor) < Version("3.8"):
            return
        too_new = facts.python.minor not in _CURABLE
        pins = python_command(facts, "-m pip install 'setuptools<74' 'numpy<2'")
        stuck = too_new or facts.python.externally_managed is not None
        yield self.finding(
            found="; ".join(causes),
            needed=_NEEDED_BY_NEW if too_new else "setuptools<74 and numpy<2 (Python 3.8 to 3.11)",
            consequence="import chainer fails" + (f": {result.error_text}" if result and result.error_text else ""),
            next_step=(build_command(facts) if too_new else None) or "ideepdoctor setup" if stuck else pins,
            evidence=(Evidence("import it", None, python_command(facts, "-c 'import chainer'")),),
        )


def _errors(result: Outcome) -> list[str]:
    """What was raised: the error, and the lines of standard error that are no part of a traceback.

    The files and lines of a traceback, which are indented, name modules that are there: NumPy's own numpy.distutils
    looks for distutils.msvccompiler. The first of several lines may be half of one.
    """
    lines = result.stderr_tail.splitlines()
    shown = lines[1:] if len(lines) > 1 else lines
    return [result.error_text or "", *(line for line in shown if not line.startswith(" "))]


def _predicted(facts: Facts) -> list[str]:
    """Causes that the versions alone show. Source: measured on Python 3.8 to 3.13."""
    causes = []
    numpy, setuptools = facts.package("numpy"), facts.package("setuptools")
    newest = Version(facts.python.minor)
    offered = newest >= Version("3.12") and _has_startup_file(facts)
    if newest >= Version("3.12") and not offered:
        causes.append(f"Python {facts.python.minor}, which has no distutils for numpy.distutils")
    if numpy is not None and not is_older(numpy.version, "2") and not offered:
        causes.append(f"NumPy {numpy.version}, which lacks np.sctypes")
    if newest >= Version("3.8"):
        if setuptools is None:
            causes.append("no setuptools, which has pkg_resources")
        elif not is_older(setuptools.version, "82"):
            causes.append(f"setuptools {setuptools.version}, which lacks pkg_resources")
        elif not is_older(setuptools.version, "74"):
            causes.append(f"setuptools {setuptools.version}, which lacks distutils.msvccompiler")
    return causes


def _has_startup_file(facts: Facts) -> bool:
    """Whether the doctor's start-up file, which offers what is gone, runs in this environment."""
    return bool(facts.variables.set_by_doctor) or (facts.guard is not None and facts.guard.choice is not None)
