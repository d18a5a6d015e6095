"""What every test may ask for: the interpreters of this machine, found the way the product finds them."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings

from ideepdoctor.system import RealSystem
from ideepdoctor.targets.find import Found, discover

# A busy machine takes its time; none of these tests is about that.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture(scope="session", autouse=True)
def _own_cache() -> Iterator[None]:
    """Tests neither read nor write the cache of the person who runs them."""
    before = os.environ.get("IDEEPDOCTOR_CACHE_DIR")
    with tempfile.TemporaryDirectory(prefix="ideepdoctor-cache-") as folder:
        os.environ["IDEEPDOCTOR_CACHE_DIR"] = folder
        yield
        if before is None:
            del os.environ["IDEEPDOCTOR_CACHE_DIR"]
        else:
            os.environ["IDEEPDOCTOR_CACHE_DIR"] = before


@functools.cache
def installed_interpreters() -> tuple[Found, ...]:
    """The interpreters of this machine, found once for all tests."""
    return discover(RealSystem(), os.environ)


def legacy_python(version: str) -> str:
    """Path of a CPython of this version (``2.7``, ``3.7``) that is no environment's; where there is none the test is
    skipped, or fails under IDEEPDOCTOR_REQUIRE_LEGACY=1.
    """
    for found in installed_interpreters():
        who = found.identity
        numbers = ".".join(who.version.split(".")[: version.count(".") + 1])
        if numbers == version and who.implementation == "CPython" and not who.is_virtual:
            return found.place.path
    reason = f"no CPython {version} on this machine"
    if os.environ.get("IDEEPDOCTOR_REQUIRE_LEGACY") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def legacy() -> Callable[[str], str]:
    """``legacy("3.7")``: see ``legacy_python``."""
    return legacy_python
