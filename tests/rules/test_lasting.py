"""IDP620 to IDP622 at their edges, and what they say."""

from __future__ import annotations

from typing import Any

import pytest

from ideepdoctor.model.findings import Finding
from ideepdoctor.rules.idp620 import IDP620
from ideepdoctor.rules.idp621 import IDP621
from ideepdoctor.rules.idp622 import IDP622
from ideepdoctor.rules.lasting import child, grows_with_shapes, lasting, leaks, megabytes
from tests.rules.hosts import facts_on


def one(rule: Any, overlay: dict[str, Any], host: str = "py37-healthy") -> Finding:
    """The only finding."""
    (finding,) = rule().check(facts_on(host, overlay))
    return finding


def none(rule: Any, overlay: dict[str, Any]) -> bool:
    return list(rule().check(facts_on("py37-healthy", overlay))) == []


@pytest.mark.parametrize("rule", [IDP620, IDP621, IDP622])
def test_nobody_looked(rule: Any) -> None:
    assert none(rule, {"lasting": None})


def test_calls_that_were_not_counted_are_no_measurement() -> None:
    assert none(IDP620, lasting(fixed_calls=0, fixed_growth_bytes=5000000))
    assert none(IDP620, lasting(fixed_growth_bytes=None))
    assert none(IDP621, lasting(varying_shapes=0, varying_growth_bytes=99999999))
    assert none(IDP621, lasting(varying_growth_bytes=None))
    assert not leaks(None) and not grows_with_shapes(None)


def test_a_leak_says_how_much_and_where_it_leads() -> None:
    finding = one(IDP620, lasting(fixed_growth_bytes=240 * 65536))
    assert finding.found == "240 training steps with the same shapes took 16 MB more and more"
    assert finding.consequence == "a hundred thousand steps take 6.6 GB, and the process is killed"
    assert finding.next_step == "ideepdoctor setup --python 3.7"
    assert finding.evidence[0].text == "66 kB with every step"


def test_shapes_are_compared_with_numpy() -> None:
    finding = one(IDP621, lasting(varying_growth_bytes=66588672))
    assert finding.found == "200 new input shapes took 67 MB of memory (NumPy: 1.2 MB)"
    assert finding.evidence[0].text == "333 kB for each shape"
    alone = one(IDP621, lasting(varying_growth_bytes=66588672, numpy_growth_bytes=None))
    assert alone.found.endswith("took 67 MB of memory")
    assert none(IDP621, lasting(varying_growth_bytes=200 * 16384 + 999, numpy_growth_bytes=1000))
    assert one(IDP621, lasting(varying_growth_bytes=200 * 16384 + 1000, numpy_growth_bytes=1000))


def test_what_to_do_for_a_child_depends_on_python() -> None:
    hung = lasting(child(ok=False, timed_out=True, error_text="it hangs"))
    new, old = one(IDP622, hung), one(IDP622, hung, "py27-healthy")
    assert new.found == old.found == "it hangs"
    assert "set_start_method('spawn')" in new.next_step
    assert old.next_step == "start the workers before iDeep computes for the first time"
    assert new.consequence.endswith("stand still")
    died = one(IDP622, lasting(child(ok=False, signal="SIGABRT")))
    assert died.found == "a child that was forked after iDeep had computed did not end well"
    assert died.consequence.endswith("are lost")


@pytest.mark.parametrize(("size", "text"), [(0, "0.0 MB"), (-5, "0.0 MB"), (1228800, "1.2 MB"), (10**7, "10 MB")])
def test_sizes(size: int, text: str) -> None:
    assert megabytes(size) == text
