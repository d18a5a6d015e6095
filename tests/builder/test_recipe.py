"""Which release of the source serves whom, and how a name or a hash leads to it."""

from __future__ import annotations

import pytest
from packaging.version import Version

from ideepdoctor.builder.recipe import RELEASES, is_commit, recipe_of, release_for, release_of
from ideepdoctor.errors import UsageError
from ideepdoctor.model.build import Layout, SourceTree


def tree(layout: Layout, version: str, release: str | None = None) -> SourceTree:
    return SourceTree("/s", "a" * 40, "/s/mkl-dnn", "b" * 40, layout, version, release)


@pytest.mark.parametrize(
    ("chainer", "version"),
    [
        (None, "2.0.0.post3"),
        ("7.8.1", "2.0.0.post3"),
        ("7.8.1.post1", "2.0.0.post3"),
        ("5.0.0rc1", "2.0.0.post3"),
        ("5.4.0", "2.0.0.post3"),
        ("5.0.0b2", "1.0.4"),
        ("4.5.0", "1.0.4"),
        ("4.0.0b4", "1.0.4"),
    ],
)
def test_the_release_for_a_chainer(chainer: str | None, version: str):
    assert release_for(chainer).version == version


@pytest.mark.parametrize("chainer", ["3.5.0", "4.0.0b3", "5.0.0b3", "5.0.0b4", "7.9.0", "8.0.0"])
def test_a_chainer_that_no_release_is_right_with(chainer: str):
    with pytest.raises(UsageError, match=chainer) as caught:
        release_for(chainer)
    assert "2.0.0.post3 serves 5.0.0rc1 to 7.8.1" in caught.value.hint


def test_a_chainer_that_is_no_version():
    with pytest.raises(UsageError, match="newest is no release"):
        release_for("newest")


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("v1.0.3", "1.0.3"),
        ("1.0.4", "1.0.4"),
        ("refs/tags/v2.0.0", "2.0.0"),
        ("v2.0.0.post3", "2.0.0.post3"),
        ("8800808", "2.0.0.post3"),
        ("8800808" + "f" * 33, "2.0.0.post3"),
        ("880080", None),
        ("8800809", None),
        ("8800808x", None),
        ("master", None),
        ("", None),
    ],
)
def test_the_release_of_a_name(name: str, version: str | None):
    found = release_of(name)
    assert (found.version if found else None) == version


def test_a_hash_matches_only_releases_whose_hash_is_recorded():
    assert all(release_of("0" * size) is None for size in range(7, 41))


@pytest.mark.parametrize(
    ("layout", "version", "like"),
    [
        (Layout.PREPARE, "1.0.2", "1.0.3"),
        (Layout.CMAKE, "1.0.5", "1.0.4"),
        (Layout.CMAKE, "2.0.0", "2.0.0.post3"),
        (Layout.CMAKE, "3.1", "2.0.0.post3"),
    ],
)
def test_somebody_s_own_source_is_built_like_the_release_nearest_to_it(layout: Layout, version: str, like: str):
    assert recipe_of(tree(layout, version)).version == like


def test_a_known_source_has_its_own_recipe():
    assert recipe_of(tree(Layout.CMAKE, "2.0.0", "2.0.0")).wrong


def test_the_table_is_sound():
    assert [Version(version) for version in RELEASES] == sorted(Version(version) for version in RELEASES)
    for version, release in RELEASES.items():
        assert release.version == version
        assert bool(release.chainer_first) == bool(release.chainer_last) != bool(release.wrong)
        for digits in filter(None, (release.commit, release.mkldnn_commit)):
            assert is_commit(digits)
    assert [version for version, release in RELEASES.items() if release.intel_only] == ["1.0.3"]
