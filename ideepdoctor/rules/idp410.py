"""IDP410: ideep4py's folder is one of the system's library folders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.loading import native, own_file, own_folder, stranger


def _in_cache(row: dict[str, Any]) -> dict[str, Any]:
    return {"native": {"files": [{**row, "places": [*row["places"], "ld.so cache"]}]}}


class IDP410(Rule):
    """The folder of ideep4py's libraries is in the cache of the dynamic loader.

    What it checks
        Whether files of ideep4py's own folder are among the libraries that ``ldconfig -p`` lists.

    Why it matters
        ideep4py itself is not harmed, and the words that ldconfig says about it ("libmkldnn.so.0 is not a symbolic
        link") mean nothing: the wheel has three copies instead of links. But every program of this machine that needs
        a libmkldnn.so.0 or libiomp5.so now gets those of this environment, whose MKL-DNN of 2018 has functions that
        others lack, and lacks some that others have.

    How to fix
        Take the folder out of /etc/ld.so.conf.d and run ``ldconfig``. ideep4py finds its libraries without it.

    References
        carykh/lazykh #13. Seen on hosted notebooks, whose images put all of dist-packages there. Measured: with the
        folder in the cache ideep4py computes as before.
    """

    title = "ideep4py's libraries are everybody's on this machine"
    severity = Severity.INFO
    requires = ("IDP101", "IDP102", "IDP301")
    ok = (
        Example("in its own folder alone"),
        Example("another MKL-DNN is in the cache", _in_cache(stranger())),
    )
    bad = (
        Example("its folder is in the cache", _in_cache(own_file())),
        Example("and nothing was started", {**_in_cache(own_file()), "mode": "quick"}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look for its own files among those of the cache."""
        found = native(facts)
        if found is None:
            return
        own = [item.file.path for item in found.files if item.own and "ld.so cache" in item.places]
        if own:
            folder = own[0].rpartition("/")[0]
            yield self.finding(
                found=f"{folder} is in the cache of the dynamic loader",
                needed="a folder that ideep4py alone uses",
                consequence="other programs of this machine take these libraries for their own; ideep4py is not harmed",
                next_step=f"grep -rl {own_folder(found)} /etc/ld.so.conf /etc/ld.so.conf.d; delete that line; ldconfig",
                evidence=tuple(Evidence("in the cache", path, "ldconfig -p") for path in own[:3]),
            )
