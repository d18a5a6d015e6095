"""An ideep4py that ``build`` made is judged as the release that its source is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.commands.install import refuse_if_wrong
from ideepdoctor.facts.serialize import facts_from_json
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Judgement
from ideepdoctor.rules import RULES
from ideepdoctor.rules.built_host import BUILT, built_host
from ideepdoctor.rules.compat import Pair, built_version, built_window, guarded, is_built, outside, pair, released
from ideepdoctor.rules.engine import judge
from ideepdoctor.rules.installed import build_command, new_environment_command, release
from ideepdoctor.rules.overlay import apply
from ideepdoctor.treatment.leftover import wants_guard

HOSTS = Path(__file__).parents[1] / "hosts"


def facts(overlay: dict[str, Any], host: str = "py37-healthy") -> Facts:
    return facts_from_json(apply(json.loads((HOSTS / f"{host}.json").read_text()), overlay))


def judged(overlay: dict[str, Any], host: str = "py37-healthy") -> Judgement:
    return judge(facts(overlay, host), RULES)


def codes(found: Judgement) -> list[str]:
    return [item.code for item in found.findings]


@pytest.mark.parametrize(
    ("version", "public", "ours"),
    [
        ("2.0.0.post3+doctor.v3", "2.0.0.post3", True),
        ("2.0.0.post3+doctor.v4.znver4", "2.0.0.post3", True),
        ("1.0.4+doctor", "1.0.4", True),
        (built_version("1.0.4"), "1.0.4", True),
        ("2.0.0.post3", "2.0.0.post3", False),
        ("2.0.0.post3+local", "2.0.0.post3+local", False),
        ("2.0.0.post3+doctors.v3", "2.0.0.post3+doctors.v3", False),
        ("no version", "no version", False),
        ("", "", False),
    ],
)
def test_ours_are_told_by_their_label(version: str, public: str, ours: bool) -> None:
    assert released(version) == public
    assert is_built(version) is ours


@pytest.mark.parametrize("release", ["1.0.3", "1.0.4", "2.0.0b1.post1", "2.0.0.post3"])
@pytest.mark.parametrize("chainer", ["3.5.0", "4.0.0b4", "4.5.0", "5.0.0b4", "5.0.0rc1", "5.4.0", "7.8.1"])
def test_a_pair_is_judged_alike(chainer: str, release: str) -> None:
    assert pair(chainer, f"{release}+doctor.v3") is pair(chainer, release)
    assert pair(chainer, f"{release}+mine") is Pair.UNKNOWN
    assert guarded(chainer, f"{release}+doctor.v3") == guarded(chainer, release)


@pytest.mark.parametrize(
    ("numpy", "inside", "below", "above"),
    [("1.23.2", ("1.23.2", "1.26.4"), "1.23.1", "2.0.0"), ("2.1.0", ("2.1.0", "2.5.5"), "1.26.4", "3.0")],
)
def test_the_window_of_a_build(numpy: str, inside: tuple[str, str], below: str, above: str) -> None:
    window = built_window(numpy)
    assert [outside(version, window) for version in (*inside, below, above)] == [None, None, "below", "above"]


def test_nothing_is_wrong_with_what_setup_makes() -> None:
    found = judged(built_host())
    assert codes(found) == [] and not found.unknown
    assert wants_guard(facts(built_host())) is True


@pytest.mark.parametrize("host", ["py37-healthy", "py36-healthy"])
def test_nor_with_a_build_for_a_python_that_has_a_wheel(host: str) -> None:
    built = {"packages": {"ideep4py": "2.0.0.post3+doctor.v3"}, "built": {**BUILT, "numpy": "1.16.6"}}
    found = judged(built, host)
    assert codes(found) == [] and not found.unknown


@pytest.mark.parametrize(
    ("overlay", "expected"),
    [
        (built_host(chainer="6.7.0"), ["IDP319"]),
        (built_host(chainer="4.5.0"), ["IDP304"]),
        (built_host(chainer="3.5.0"), ["IDP303"]),
        (built_host(ideep4py="1.0.4+doctor.v3"), ["IDP303"]),
        (built_host(numpy="2.0.2"), ["IDP305"]),
        (built_host(numpy="1.21.6"), ["IDP305"]),
        ({**built_host(), "built": {**BUILT, "cpu_flags": ["avx512_fp16"]}}, ["IDP820"]),
        ({**built_host(), "cpu": {"cpuinfo_flags": ["sse2"], "cpuid_flags": None, "xcr0": None}}, ["IDP820"]),
    ],
)
def test_what_is_wrong_is_found_once(overlay: dict[str, Any], expected: list[str]) -> None:
    assert [code for code in codes(judged(overlay)) if not code.startswith(("IDP113", "IDP7"))] == expected


def test_the_cure_of_a_build_is_a_build() -> None:
    broken = facts(built_host(chainer="4.5.0"))
    assert new_environment_command(broken) == "ideepdoctor setup --build --python 3.11"
    on_37 = {"packages": {"ideep4py": "2.0.0.post3+doctor.v3", "chainer": "4.5.0"}, "built": BUILT}
    assert new_environment_command(facts(on_37)) == "ideepdoctor setup --python 3.7"


@pytest.mark.parametrize(
    ("python", "expected"),
    [
        ({"version": "3.13.0", "abi": "cp313"}, "ideepdoctor setup --build --python 3.13"),
        ({"version": "3.8.18", "abi": "cp38"}, "ideepdoctor setup --build --python 3.8"),
        ({"version": "3.14.0", "abi": "cp314"}, None),
        ({"version": "3.11.7", "abi": "cp311", "bits": 32}, None),
        ({"version": "3.9.1", "abi": "pypy39_pp73", "implementation": "PyPy"}, None),
    ],
)
def test_where_a_build_is_offered(python: dict[str, Any], expected: str | None) -> None:
    found = facts({"python": python}, "py311-nothing")
    assert build_command(found) == expected


def test_a_planned_build_is_judged_for_this_python() -> None:
    for version, expected in ((built_version("2.0.0.post3"), []), ("2.0.0.post3", ["IDP201"])):
        found = judge(facts({"planned_ideep4py": version}, "py311-nothing"), RULES)
        assert [code for code in codes(found) if code in ("IDP201", "IDP110", "IDP111")] == expected
    on_amd = facts({"planned_ideep4py": built_version("1.0.3")}, "py36-healthy")
    assert "IDP111" in codes(judge(on_amd, RULES))
    assert release(on_amd) is not None


def test_chainer_alone_on_a_new_python_is_sent_to_both_ways() -> None:
    alone = {
        "packages": {"chainer": "7.8.1", "numpy": "1.23.5", "setuptools": "73.0.1"},
        "imports": {"chainer": {"ok": True, "error_text": None, "error_type": None}},
    }
    (finding,) = [item for item in judged(alone, "py311-nothing").findings if item.code == "IDP201"]
    assert finding.severity == "warning"
    assert finding.next_step == (
        "ideepdoctor setup; or have one built for this Python: ideepdoctor setup --build --python 3.11"
    )


def test_install_refuses_what_it_refuses_of_the_release() -> None:
    with pytest.raises(Exception, match=r"no wheel for Python 3\.11") as caught:
        refuse_if_wrong(facts(built_host()), "2.0.0.post3")
    assert "setup --build" in caught.value.hint  # type: ignore[attr-defined]
