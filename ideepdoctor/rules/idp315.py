"""IDP315: one name installed twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ideepdoctor.model.facts import Facts, Package
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.installed import new_environment_command, package, python_command

_JUDGED = ("numpy", "ideep4py", "chainer")
_SITE = "/home/user/ideep/lib/python3.7/site-packages"
_CONDA = "/conda-meta"


def _again(name: str, version: str, location: str = _SITE, installer: str | None = "pip") -> dict[str, Any]:
    return {"duplicates": [{"name": name, "version": version, "location": location, "installer": installer}]}


class IDP315(Rule):
    """NumPy, ideep4py or Chainer is installed twice: by two releases, in two folders, or by conda and by pip.

    What it checks
        The distributions in the folders of sys.path, and in an environment of conda the list that conda keeps itself.
        Other packages are left alone, and so is a twin of the same version in another folder.

    Why it matters
        Two lists of files in one folder mean that two releases were unpacked over each other: files of both are
        there, and an import takes a mixture (``cannot import name '_mklinit'``, ``numpy.core.multiarray failed to
        import``, wrong numbers). Uninstalling one removes files of the other. In two folders the first one wins, and
        what you install into the second has no effect. Where pip has replaced a package of conda, the next ``conda
        install`` mixes the two.

    How to fix
        Make a new environment, with one installer: ``ideepdoctor setup``. By hand: ``pip uninstall`` the name until
        pip knows it no longer, remove what is left of its folder, and install it again.

    References
        numpy #9670 and #10981; conda #2248 and #7913; ContinuumIO/anaconda-issues #720.
    """

    title = "A package is installed twice"
    severity = Severity.ERROR
    requires = ("IDP101", "IDP204")
    ok = (
        Example("each once"),
        Example("of others", _again("requests", "2.0")),
        Example("the same release elsewhere", _again("numpy", "1.21.6", "/usr/lib/python3/dist-packages")),
    )
    bad = (
        Example("two NumPys in one folder", _again("numpy", "1.16.6")),
        Example("two ideep4py in one folder", _again("ideep4py", "1.0.4")),
        Example("an older NumPy further down", _again("numpy", "1.13.3", "/usr/lib/python3/dist-packages", None)),
        Example("pip over conda", _again("numpy", "1.21.5", "/home/user/ideep/conda-meta", "conda")),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report each further distribution that matters."""
        if facts.planned_ideep4py is not None:
            return
        for further in facts.duplicates:
            first = package(facts, further.name) if further.name in _JUDGED else None
            if first is None:
                continue
            if further.location.endswith(_CONDA):
                yield self._over_conda(facts, first, further)
            elif further.location == first.location:
                yield self._mixed(facts, first, further)
            elif further.version != first.version:
                yield self._hidden(facts, first, further)

    def _mixed(self, facts: Facts, first: Package, further: Package) -> Finding:
        by = {one.installer for one in (first, further)} - {None}
        installers = f", by {' and '.join(sorted(str(one) for one in by))}" if len(by) > 1 else ""
        return self.finding(
            found=f"{first.name} {first.version} and {further.version} are both in {first.location}{installers}",
            needed=f"one {first.name} in a folder",
            consequence="an import takes files of both: it fails, or computes with a mixture",
            next_step=new_environment_command(facts),
            evidence=_evidence(facts, first, further),
        )

    def _hidden(self, facts: Facts, first: Package, further: Package) -> Finding:
        return self.finding(
            found=f"{first.name} {first.version} in {first.location} hides {further.version} in {further.location}",
            needed=f"one {first.name}",
            consequence=f"Python takes {first.version}; what is installed into {further.location} has no effect",
            next_step=f"nothing, where {first.version} is the one that you want",
            evidence=_evidence(facts, first, further),
            severity=Severity.INFO,
        )

    def _over_conda(self, facts: Facts, first: Package, further: Package) -> Finding:
        by = first.installer or "something else than conda"
        return self.finding(
            found=f"{first.name} {first.version} by {by}, while conda lists {further.version}",
            needed="one installer for the packages of an environment",
            consequence="it works as it is; the next conda install or update mixes the files of both",
            next_step="install nothing more with conda here",
            evidence=_evidence(facts, first, further),
            severity=Severity.INFO,
        )


def _evidence(facts: Facts, first: Package, further: Package) -> tuple[Evidence, ...]:
    show = python_command(facts, f"-c 'import {first.name}; print({first.name}.__version__, {first.name}.__file__)'")
    return (
        Evidence(f"{first.name} {first.version}", first.location, show),
        Evidence(f"{further.name} {further.version}", further.location, f"ls -d {further.location}/{further.name}*"),
    )
