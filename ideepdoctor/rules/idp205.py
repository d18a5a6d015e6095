"""IDP205: pip's settings stand in the way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ideepdoctor.model.facts import Facts, PipSetting
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.installed import python_command
from ideepdoctor.rules.pip_options import applied_to, setting, settings, switched_on, without, words

_PIP_INSTALLS = ("2.7", "3.5")
"""Pythons whose environments ``setup`` fills with pip; for the others it takes uv, which reads nothing of pip's."""
_OF_THIS_MACHINE = re.compile(r"(localhost|127(\.\d+){3}|\[?::1\]?)(:\d+)?$")


def _settings(**options: str) -> dict[str, Any]:
    file = {"source": "/home/user/.config/pip/pip.conf", "command": "global"}
    rows = [{"name": name.replace("_", "-"), "value": value, **file} for name, value in options.items()]
    return {"pip_settings": rows}


class IDP205(Rule):
    """A file or a variable tells pip what keeps Chainer or ideep4py from being installed here.

    What it checks
        pip's settings as pip reads them for this interpreter, without starting it: ``pip.conf`` of the machine, the
        user and the environment, the file of PIP_CONFIG_FILE, and the variables PIP_*. ``no-binary`` for ideep4py,
        which has no source distribution; ``only-binary`` for Chainer, which has nothing else; ``no-index`` without
        ``find-links``; ``user``, ``target`` and ``prefix``; ``require-virtualenv`` outside of one; ``trusted-host``
        and indexes of plain http. Where ideep4py is missing, also an index that was chosen.

    Why it matters
        pip says ``No matching distribution found`` and not which setting made it so, or installs into another folder,
        or takes what anybody on the way has put in a package's place. What is installed already goes on working: then
        all but the last are notes.

    How to fix
        Take the setting away: ``unset`` the variable, or ``python -m pip config unset global.NAME``; for one command
        ``PIP_CONFIG_FILE=/dev/null``. ``ideepdoctor setup`` and ``fix`` compare every file with a hash that came with
        the doctor, and on Python 3.6 and later they install with uv, which reads none of these settings.

    References
        pypa/pip #10501. pip's pages on its configuration, and on binary and source packages.
    """

    title = "A setting of pip stands in the way"
    severity = Severity.WARNING
    requires = ("IDP101",)
    ok = (
        Example("no setting"),
        Example("an internal mirror", _settings(index_url="https://pypi.company.example/simple", cert="/etc/ca.pem")),
        Example("no-binary for something else", _settings(no_binary="opencv-python,pillow")),
        Example("no-index with a folder", _settings(no_index="true", find_links="/opt/wheels")),
        Example("a mirror on this machine", _settings(index_url="http://localhost:3141/root/pypi/+simple/")),
    )
    bad = (
        Example("no wheels at all", {"packages": {"ideep4py": None}, **_settings(no_binary=":all:")}, also=("IDP301",)),
        Example("only wheels", {"packages": {"chainer": None}, **_settings(only_binary=":all:")}, also=("IDP308",)),
        Example("a note where all is installed", _settings(no_binary="ideep4py")),
        Example("a host that is not checked", _settings(trusted_host="mirror.example")),
        Example("plain http", _settings(index_url="http://mirror.example/simple")),
        Example("into the user's folder", _settings(user="true")),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report each setting that is in the way."""
        planned = facts.planned_ideep4py is not None
        no_pip = facts.packages is not None and facts.package("pip") is None
        if (no_pip and not planned) or (planned and facts.python.minor not in _PIP_INSTALLS):
            return
        for package, option, needed in (
            ("ideep4py", "no-binary", "wheels: ideep4py has no source distribution"),
            ("chainer", "only-binary", "source distributions: Chainer has no wheel"),
        ):
            found = applied_to(facts, option, package)
            if found is not None:
                what = f"pip finds no {package} at all: No matching distribution found"
                yield self._finding(facts, found, needed, what, _severity(facts, package))
        worst = min(_severity(facts, "ideep4py"), _severity(facts, "chainer"), key=list(Severity).index)
        no_index = switched_on(facts, "no-index")
        if no_index is not None and setting(facts, "find-links") is None:
            needed = "an index, or find-links that name a folder with the files"
            yield self._finding(facts, no_index, needed, "pip finds nothing: No matching distribution found", worst)
        yield from self._elsewhere(facts, worst)
        yield from self._unsafe(facts)
        index = setting(facts, "index-url")
        missing = facts.packages is not None and facts.package("ideep4py") is None and not planned
        if missing and index is not None:
            what = "where that index does not have ideep4py, pip finds none"
            yield self._finding(facts, index, "an index that has ideep4py", what, Severity.INFO)

    def _elsewhere(self, facts: Facts, severity: Severity) -> Iterator[Finding]:
        """What makes pip install somewhere else, or not at all."""
        needed = f"pip installs into {facts.python.purelib or facts.python.prefix}"
        venv = facts.python.kind == "venv"
        user, wanted = switched_on(facts, "user"), switched_on(facts, "require-virtualenv")
        if user is not None:
            refused = "pip refuses to install anything: a virtual environment has no user site"
            beside = "what pip installs arrives in the user's folder, for every environment of this Python"
            yield self._finding(facts, user, needed, refused if venv else beside, severity)
        for name in ("target", "prefix"):
            found = setting(facts, name)
            if found is not None and found.value.rstrip("/") != facts.python.prefix.rstrip("/"):
                what = f"what pip installs arrives in {found.value}, where this Python does not look"
                yield self._finding(facts, found, needed, what, severity)
        if wanted is not None and not venv:
            what = "pip refuses to install anything into this Python: it is no virtual environment"
            yield self._finding(facts, wanted, "a virtual environment", what, severity)

    def _unsafe(self, facts: Facts) -> Iterator[Finding]:
        """What lets somebody on the way replace a package; the first is told for all."""
        hosts = [one for one in settings(facts, "trusted-host") if not all(map(_here, one.value.split()))]
        indexes = [setting(facts, name) for name in ("index-url", "extra-index-url")]
        plain = [one for one in indexes if one is not None and any(map(_is_plain, one.value.split()))]
        for one in (*plain, *hosts)[:1]:
            needed = "an index by https whose certificate is checked (cert names a company's own)"
            what = "whoever is on the way can put anything in a package's place, and pip would not see it"
            yield self._finding(facts, one, needed, what, Severity.WARNING)

    def _finding(self, facts: Facts, one: PipSetting, needed: str, consequence: str, severity: Severity) -> Finding:
        return self.finding(
            found=words(one).encode("ascii", "backslashreplace").decode("ascii"),
            needed=needed,
            consequence=consequence,
            next_step=without(facts, one).encode("ascii", "backslashreplace").decode("ascii"),
            evidence=(Evidence("all that pip is told", None, python_command(facts, "-m pip config debug")),),
            severity=severity,
        )


def _severity(facts: Facts, package: str) -> Severity:
    """A warning where the distribution is still to come; what is installed goes on working."""
    there = facts.planned_ideep4py is None and facts.package(package) is not None
    return Severity.INFO if there else Severity.WARNING


def _here(host: str) -> bool:
    return _OF_THIS_MACHINE.match(host) is not None


def _is_plain(url: str) -> bool:
    scheme, _, rest = url.partition("://")
    return scheme == "http" and not _here(rest.split("/")[0].rpartition("@")[2])
