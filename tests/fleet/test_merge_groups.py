"""What parts hosts into groups and what does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ideepdoctor.fleet.groups import Cause, cause_key, group_key, is_cause, stable
from ideepdoctor.rules import RULES
from tests.rules.hosts import judged

FOUND = Cause("IDP305", "error", "NumPy that does not fit", "NumPy 1.15.4")


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("/home/ann/env/lib/libiomp5.so: missing", "/opt/x/libiomp5.so: missing"),
        ("numpy comes from ~/work/numpy.py (current folder)", "numpy comes from /srv/b/numpy.py (current folder)"),
        ("/home/ann/env has no pip", "/home/bob/env2 has no pip"),
        ("prefix /data/a.", "prefix /data/b."),
        ("bn (8,16,56,56): off by 46 % (2 threads)", "bn (8,16,56,56): off by 51.5 % (64 threads)"),
        ("relu: crashed (2 threads), and 1 more", "relu: crashed (2 threads), and 12 more"),
        ("1.31 times the time of then (1.28 to 1.35), p = 0.004", "1.5 times the time of then (1.4 to 1.6), p = 0.01"),
        ("no end within 30 s", "no end within 31.5 s"),
        ("worst error 1.3e-05", "worst error 2.7e-04"),
        ("crash at 0x7f00aa", "crash at 0x7fbbcc"),
        ("bound on HOST at node1", "bound on HOST at HOST"),
        ("node1.example.org: gone", "node1: gone"),
    ],
)
def test_what_is_a_hosts_own_does_not_part_hosts(one: str, two: str):
    assert stable(one, "node1.example.org") == stable(two, "node1.example.org").replace("node1", "HOST")


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("NumPy 1.15.4", "NumPy 1.16.6"),
        ("glibc 2.12", "glibc 2.17"),
        ("MKL-DNN 0.19.0 (/opt/a.so.0)", "MKL-DNN 0.20.2 (/opt/a.so.0)"),
        ("/a/libmkldnn.so.0: missing", "/a/libiomp5.so: missing"),
        ("64 threads (OMP_NUM_THREADS=64), 2 CPUs", "64 threads (OMP_NUM_THREADS=64), 4 CPUs"),
        ("CHAINER_USE_IDEEP=never", "CHAINER_USE_IDEEP=1"),
        ("the process ended with SIGSEGV", "the process ended with SIGILL"),
        ("node12 is gone", "node1 is gone"),
    ],
)
def test_what_is_another_cause_stays_another(one: str, two: str):
    assert stable(one, "node1") != stable(two, "node1")


def test_an_address_in_the_last_words_of_a_connection_is_the_hosts_own():
    gone = Cause("unreachable", "failed", "", "connect to 10.0.0.1 port 22: No route to host")
    other = replace(gone, found="connect to 10.0.0.2 port 2222: No route to host")
    refused = replace(gone, found="connect to 10.0.0.1 port 22: Connection refused")
    assert cause_key(gone, "a") == cause_key(other, "b") != cause_key(refused, "a")


def test_the_order_of_causes_does_not_matter_and_a_note_is_none():
    keys = [cause_key(FOUND, "a"), cause_key(replace(FOUND, severity="warning"), "a")]
    assert group_key(keys) == group_key([*reversed(keys), keys[0]]) != group_key(keys[:1])
    assert is_cause(FOUND) and not is_cause(replace(FOUND, severity="info"))


def test_the_examples_of_a_rule_stay_apart_where_their_versions_differ():
    """A rule's own words are the input here: a normaliser that eats too much makes one group of different faults."""
    rule = next(rule for rule in RULES if rule.code() == "IDP305")
    texts = {
        stable(item.found, "node1")
        for example in rule.bad
        for item in judged(example.host, example.overlay).findings
        if item.code == "IDP305"
    }
    assert len(texts) >= 4
