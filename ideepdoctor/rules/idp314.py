"""IDP314: the files of ideep4py are those of another Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ideepdoctor.model.facts import AlteredFile, Facts
from ideepdoctor.model.findings import Evidence, Finding, FixSafety, Severity
from ideepdoctor.model.plan import Step
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.installed import (
    cure_command,
    ideep4py_fix,
    ideep4py_steps,
    outcome,
    package,
    python_command,
)

_UNICODE = {"cp27m": "UCS2", "cp27mu": "UCS4"}
_SUFFIX = re.compile(r"\.cpython-(\w+)(?:-[-\w]*)?\.so$")
_NARROW = {"ideep4py": {"tags": ["cp27-cp27m-manylinux1_x86_64"]}}
_FAILED = {"ok": False, "error_type": "ImportError", "error_text": "undefined symbol: PyUnicodeUCS2_AsUTF8String"}


class IDP314(Rule):
    """The installed ideep4py was made for another Python than the one that it lies in.

    What it checks
        The tags in the file WHEEL of the distribution, or the suffix of the extension module where there are none,
        against the ABI and the word size of the interpreter; not where its import succeeds.

    Why it matters
        Each wheel fits one ABI: Python 3.6 and 3.7 do not share it, nor do the two widths of Unicode of Python 2.7
        (cp27m, cp27mu), nor a debug build (cp37dm). pip never mixes them; a folder that was copied, or a wheel that
        was unpacked by hand, does. The import fails (``undefined symbol: PyUnicodeUCS2_...``, ``No module named
        'ideep4py._ideep4py'``), and Chainer silently computes with NumPy.

    How to fix
        Install the wheel of this Python: ``ideepdoctor fix`` does so by hash.

    References
        pyenv/pyenv #257 and #425; al45tair/netifaces #2; alkaline-ml/pmdarima #16.
    """

    title = "This ideep4py is for another Python"
    severity = Severity.ERROR
    requires = ("IDP201", "IDP204", "IDP301", "IDP302", "IDP309")
    fix = FixSafety.SAFE
    ok = (
        Example("its own wheel"),
        Example("a wide 2.7", host="py27-healthy"),
        Example("no tags, the right suffix", {"packages": {"ideep4py": {"tags": None}}}),
        Example("other tags, and it works", {"packages": {"ideep4py": {"tags": ["cp36-cp36m-linux_x86_64"]}}}),
    )
    bad = (
        Example(
            "the wheel of a narrow 2.7 in a wide one",
            {"packages": _NARROW, "imports": {"ideep4py": _FAILED}},
            "py27-healthy",
        ),
        Example(
            "copied from 3.6, without an import",
            {
                "packages": {"ideep4py": {"tags": ["cp36-cp36m-manylinux1_x86_64"]}},
                "imports": None,
                "first_op": None,
                "chainer": None,
                "mode": "quick",
            },
        ),
        Example(
            "the suffix of a debug build",
            {
                "packages": {"ideep4py": {"tags": None}},
                "imports": {"ideep4py": {"ok": False, "error_text": "No module named 'ideep4py._ideep4py'"}},
                "native": {"binding": "/home/user/ideep/lib/_ideep4py.cpython-37dm-x86_64-linux-gnu.so"},
            },
        ),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Compare the ABI of the tags, or of the suffix, with the interpreter's."""
        found = package(facts, "ideep4py")
        result = outcome(facts, "ideep4py")
        if found is None or facts.planned_ideep4py is not None or (result is not None and result.ok):
            return
        shown = _made_for(facts, found.tags)
        if shown is None:
            return
        abi = facts.python.abi
        safety = ideep4py_fix(facts)
        width = result is None and {shown, abi} == {"cp27m", "cp27mu"}
        yield self.finding(
            found=f"ideep4py {found.version} for {_words(shown)} in a Python of {_words(abi)}",
            needed=f"the wheel of ideep4py for {_words(abi)}",
            consequence="the import may fail: the two have strings of other widths (2.0.0.post3 was seen to work)"
            if width
            else "import ideep4py fails, and Chainer silently computes with NumPy alone",
            next_step=cure_command(facts, safety),
            evidence=(Evidence(f"made for {shown}", found.location, python_command(facts, "-c 'import ideep4py'")),),
            severity=Severity.WARNING if width else None,
            fix=safety,
        )

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Install the release that is right here, again where it is the same."""
        return ideep4py_steps(_as_altered(facts))


def _as_altered(facts: Facts) -> Facts:
    """Facts in which the files of ideep4py are not its own: the same release is then installed again."""
    row = AlteredFile("ideep4py", "abi", facts.python.abi, "another")
    packages = (replace(one, altered=(row,)) if one.name == "ideep4py" else one for one in facts.packages or ())
    return replace(facts, packages=tuple(packages))


def _made_for(facts: Facts, tags: tuple[str, ...] | None) -> str | None:
    """What ideep4py was made for where that is not this Python: an ABI tag, or the name of the processor.

    None where it fits, or where neither its tags nor its suffix say what it was made for (2.7 has no suffix).
    """
    python = facts.python
    parts = [parts for tag in tags or () if len(parts := tag.split("-")) == 3]
    if parts:
        fitting = [one for one in parts if one[1] in (python.abi, "abi3", "none")]
        if not fitting:
            return parts[0][1]
        wide = [one[2] for one in fitting if _bits(one[2]) in (None, python.bits)]
        return None if wide else fitting[0][2]
    binding = "" if facts.native is None else facts.native.binding or ""
    suffix = _SUFFIX.search(binding)
    if suffix is None or python.implementation != "CPython":
        return None
    abi = f"cp{suffix[1]}"
    return None if abi == python.abi else abi


def _bits(platform: str) -> int | None:
    """The word size that the last part of a tag names; None where it names none."""
    if platform.endswith(("x86_64", "amd64")):
        return 64
    return 32 if platform.endswith(("i686", "i386")) else None


def _words(tag: str) -> str:
    return f"{tag} ({_UNICODE[tag]})" if tag in _UNICODE else tag
