"""Folding names of hosts, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideepdoctor.fleet.names import fold, natural, printable, unfold


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([], ""),
        (["node1"], "node1"),
        ([f"node{n:03d}" for n in [*range(1, 118), 200]], "node[001-117,200]"),
        (["n8", "n9", "n10"], "n[8-10]"),
        (["n08", "n09", "n10", "n11"], "n[08-11]"),
        (["n099", "n100", "n1000"], "n[099-100,1000]"),
        (["n1", "n01"], "n[1,01]"),
        (["b", "a", "a"], "a,b"),
        (["r1n1", "r1n2", "r2n1", "r1n3"], "r1n[1-3],r2n1"),
        (["node1.dc2.example", "node2.dc2.example"], "node[1-2].dc2.example"),
        (["10.0.0.1", "10.0.0.2"], "10.0.0.[1-2]"),
        (["i-0123456789ab", "i-0123456789ac"], "i-0123456789ab,i-0123456789ac"),
        (["login", "node2", "node1", "node10"], "login,node[1-2,10]"),
    ],
)
def test_names_are_folded_as_slurm_folds_them(names: list[str], folded: str):
    assert fold(reversed(names)) == folded


def test_a_name_cannot_be_taken_for_a_range():
    assert printable("a b,c[1-2]%") == "a%20b%2Cc%5B1-2%5D%25"
    assert printable("node-001.example_x") == "node-001.example_x"
    assert printable("caf\udce9") == "caf\\udce9"


def test_people_sort_numbers_by_their_value():
    assert sorted(["n10", "n2", "m", "n2b", "n"], key=natural) == ["m", "n", "n2", "n2b", "n10"]


NAMES = st.lists(
    st.one_of(
        st.from_regex(r"n[0-9]{1,4}", fullmatch=True),
        st.from_regex(r"r[0-3]n[0-9]{1,2}x?", fullmatch=True),
        st.text(alphabet="ab01-.9", min_size=1, max_size=12),
        st.text(min_size=1, max_size=6).map(printable),
    ),
    max_size=60,
)


@given(NAMES)
def test_what_is_folded_unfolds_to_the_same_names(names: list[str]):
    assert sorted(unfold(fold(names))) == sorted(set(names))


@given(NAMES, st.randoms())
def test_the_order_of_names_does_not_matter(names: list[str], random):
    shuffled = names[:]
    random.shuffle(shuffled)
    assert fold(shuffled) == fold(names)
