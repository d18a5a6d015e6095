"""``install``: what pins one release, and what is refused before anything is changed."""

from __future__ import annotations

import pytest

from ideepdoctor.commands.install import refuse_if_wrong, wanted_version
from ideepdoctor.errors import NotPossibleHere, UsageError
from ideepdoctor.rules.compat import RELEASES
from tests.rules.hosts import facts_on

OLD_STACK = {"packages": {"chainer": "4.5.0", "ideep4py": "1.0.4"}}


@pytest.mark.parametrize("version", RELEASES)
def test_every_release_can_be_asked_for(version: str):
    assert wanted_version(f"ideep4py=={version}") == version


@pytest.mark.parametrize(
    "spec", ["IDEEP4PY == 2.0.0.post3", "ideep4py==2.0.0post3", " ideep4py==2.0.0-3", "ideep4py (==2.0.0.post3)"]
)
def test_however_it_is_written(spec: str):
    assert wanted_version(spec) == "2.0.0.post3"


@pytest.mark.parametrize(
    "spec",
    [
        "ideep4py",
        "numpy==1.21.6",
        "ideep4py>=2.0.0.post3",
        "ideep4py~=2.0",
        "ideep4py===2.0.0.post3",
        "ideep4py==1.0.4,==1.0.4",
        "ideep4py==1.0.4,<2",
        "ideep4py[x]==2.0.0.post3",
        "ideep4py==2.0.0.post3; python_version<'3'",
        "ideep4py @ file:///tmp/ideep4py.whl",
    ],
)
def test_what_pins_no_single_release_is_refused(spec: str):
    with pytest.raises(UsageError, match="does not pin one release") as caught:
        wanted_version(spec)
    assert caught.value.hint == "such as: ideepdoctor install ideep4py==2.0.0.post3"


@pytest.mark.parametrize("spec", ["", "ideep4py=2.0.0.post3", "ideep4py==", "--user ideep4py", "ideep4py == 1.0.4 x"])
def test_what_is_no_requirement_is_refused(spec: str):
    with pytest.raises(UsageError, match="is no requirement"):
        wanted_version(spec)


@pytest.mark.parametrize("version", ["2.0.0", "2.0.0.post1", "2.0.*", "1.0", "3.0.0", "2.0.0.post3+mine"])
def test_a_release_that_is_not_on_the_index_is_told_with_those_that_are(version: str):
    with pytest.raises(UsageError, match="not on the package index") as caught:
        wanted_version(f"ideep4py=={version}")
    assert "2.0.0.post3" in caught.value.hint
    assert "1.0.4" in caught.value.hint


INTEL = {"cpu": {"vendor": "GenuineIntel"}}
AVX2 = {"cpu": {"cpuinfo_flags": ["avx", "avx2", "sse2"], "xcr0": 7}}


@pytest.mark.parametrize(
    ("version", "host", "overlays"),
    [
        ("2.0.0.post3", "py37-healthy", []),
        ("2.0.0.post3", "py36-healthy", [AVX2]),
        ("2.0.0.post3", "py27-healthy", []),
        ("2.0.0.post3", "py37-healthy", [{"packages": {"chainer": None}}]),
        ("2.0.0.post3", "py37-healthy", [{"packages": {"chainer": "5.0.0rc1"}}]),
        ("1.0.4", "py36-healthy", [OLD_STACK]),
        ("1.0.4", "py36-healthy", [OLD_STACK, {"cpu": {"cpuinfo_flags": ["sse2"], "xcr0": None}}]),
        ("1.0.3", "py36-healthy", [OLD_STACK, INTEL]),
        ("2.0.0b1.post1", "py36-healthy", [{"packages": {"chainer": "5.0.0rc1"}}]),
    ],
)
def test_what_can_be_right_is_let_through(version: str, host: str, overlays: list[dict[str, object]]):
    assert refuse_if_wrong(facts_on(host, *overlays), version) is None


@pytest.mark.parametrize(
    ("version", "host", "overlays", "why"),
    [
        ("1.0.2", "py36-healthy", [OLD_STACK, INTEL], "it works nowhere: it needs libglog.so.0"),
        ("2.0.0b1", "py36-healthy", [], "it works nowhere: its wheel lacks"),
        ("1.0.4", "py37-healthy", [], r"it has no wheel for Python 3\.7\.16 \(cp37m\)"),
        ("2.0.0.post3", "py311-nothing", [], r"it has no wheel for Python 3\.11"),
        ("2.0.0.post3", "py37-healthy", [{"python": {"bits": 32}}], "CPython of 64 bits, this is CPython of 32"),
        ("2.0.0.post3", "py37-healthy", [{"python": {"implementation": "PyPy"}}], "this is PyPy of 64"),
        ("2.0.0.post3", "py37-healthy", [{"platform": {"machine": "aarch64"}}], "Linux x86_64 with glibc"),
        ("2.0.0.post3", "py37-healthy", [{"platform": {"system": "Darwin"}}], "Linux x86_64 with glibc"),
        ("2.0.0.post3", "py37-healthy", [{"platform": {"libc": "musl"}}], "Linux x86_64 with glibc"),
        ("1.0.3", "py36-healthy", [OLD_STACK], "it dies at import on a CPU of AuthenticAMD"),
        ("1.0.3", "py36-healthy", [OLD_STACK, {"cpu": {"vendor": None}}], "unknown vendor"),
        ("2.0.0.post3", "py37-healthy", [{"cpu": {"cpuinfo_flags": ["sse2"]}}], "it needs avx, which"),
        ("2.0.0b1.post1", "py36-healthy", [AVX2], "it needs avx512f, avx512cd"),
        ("1.0.4", "py36-healthy", [], "Chainer 7.8.1 does not use it"),
        ("2.0.0.post3", "py36-healthy", [OLD_STACK], "Chainer 4.5.0 computes wrong gradients with it"),
        (
            "1.0.3",
            "py36-healthy",
            [{"packages": {"chainer": "5.0.0b1"}}, INTEL],
            "Chainer 5.0.0b1 was never tried with it",
        ),
    ],
)
def test_what_cannot_be_right_is_refused_with_the_reason(
    version: str, host: str, overlays: list[dict[str, object]], why: str
):
    facts = facts_on(host, *overlays)
    with pytest.raises(NotPossibleHere, match=why) as caught:
        refuse_if_wrong(facts, version)
    assert f"ideep4py {version} cannot be right in {facts.python.prefix}" in caught.value.message
    chainer = facts.package("chainer")
    assert caught.value.hint.startswith(f"right for Chainer {chainer.version}: " if chainer else "")


def test_the_hint_names_the_release_that_is_right_for_the_installed_chainer():
    with pytest.raises(NotPossibleHere) as caught:
        refuse_if_wrong(facts_on("py36-healthy", OLD_STACK), "2.0.0.post3")
    assert caught.value.hint == "right for Chainer 4.5.0: ideep4py 1.0.4"
    with pytest.raises(NotPossibleHere) as caught:
        refuse_if_wrong(facts_on("py311-nothing"), "2.0.0.post3")
    assert caught.value.hint == "built for this Python: ideepdoctor setup --build --python 3.11"
