"""IDP203: a pip that belongs to another environment."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.installed import python_command


class IDP203(Rule):
    """``bin/pip`` of this environment starts another environment's Python.

    What it checks
        The first line of pip's commands in the scripts folder, against the environment that they lie in.

    Why it matters
        In an environment that was copied or moved, ``pip install`` acts on the original. What you install does not
        arrive, and the other environment changes.

    How to fix
        Type ``python -m pip`` instead of ``pip``, or make the environment anew.

    References
        Virtual environments are not relocatable (documentation of venv).
    """

    title = "bin/pip acts on another environment"
    severity = Severity.WARNING
    requires = ("IDP101",)
    ok = (
        Example("pip of its own"),
        Example("no pip at all", {"python": {"pip_scripts": []}}),
        Example(
            "a pip that cannot be read",
            {"python": {"pip_scripts": [{"path": "/e/bin/pip", "interpreter": None, "same_environment": None}]}},
        ),
    )
    bad = (
        Example(
            "a copied environment",
            {
                "python": {
                    "pip_scripts": [
                        {
                            "path": "/home/user/copy/bin/pip",
                            "interpreter": "/home/user/ideep/bin/python",
                            "same_environment": False,
                        }
                    ]
                }
            },
        ),
        Example(
            "two of them are one finding",
            {
                "python": {
                    "pip_scripts": [
                        {"path": "/e/bin/pip", "interpreter": "/gone/bin/python", "same_environment": False},
                        {"path": "/e/bin/pip3", "interpreter": "/gone/bin/python", "same_environment": False},
                    ]
                }
            },
        ),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look at each pip command; report them together."""
        strangers = [script for script in facts.python.pip_scripts if script.same_environment is False]
        if strangers:
            first = strangers[0]
            yield self.finding(
                found=f"{first.path} starts {first.interpreter}",
                needed=f"a pip that starts {facts.python.executable}",
                consequence="what you install with pip arrives in the other environment",
                next_step=f"type {python_command(facts, '-m pip')} instead of pip",
                evidence=tuple(Evidence("first line", script.path, f"head -n 2 {script.path}") for script in strangers),
            )
