"""Facts for strangers: planted secrets are gone, and the rules say what they said before."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ideepdoctor.facts.redact import NOBODY
from ideepdoctor.facts.serialize import facts_from_json, facts_to_json, load_facts
from ideepdoctor.facts.share import shareable
from ideepdoctor.facts.vocabulary import vocabulary
from ideepdoctor.model.facts import Facts
from ideepdoctor.rules import RULES
from ideepdoctor.rules.engine import judge
from ideepdoctor.rules.overlay import apply

HOSTS = {
    path.stem: facts_to_json(load_facts(str(path))) for path in (Path(__file__).parents[1] / "hosts").glob("*.json")
}
SECRETS = (
    "hunter2secret",
    "ghp_A1b2C3d4E5f6G7h8",
    "janedoe",
    "projekt_blau",
    "10.23.45.67",
    "vault-7f3a",
    "4111111111111111",
    "AKIAIOSFODNN7EXAMPLE",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "glpat-x7Qz-Kd93ks0qL",
    "jane.doe@klinik.example",
    "root@gpu01.internal",
    "02:42:ac:11:00:02",
    "00-11-22-33-44-55",
    "fe80::42:acff:fe11:2",
    "2001:db8::8a2e:370:7334",
    "123e4567-e89b-12d3-a456-426614174000",
    "C:\\Users\\Erika\\geheim",
    "/home/\u5c71\u7530\u592a\u90ce/\u7814\u7a76",
    "/home/Zo\u00eb",
    "%E5%B1%B1%E7%94%B0",
    r"\u5c71\u7530",
    r"\xe5\xb1\xb1",
    "a1b2c3-d4e5f6-g7h8i9",
    "https://bob:tr0ub4dor@pypi.klinik.example/simple",
    "http://10.1.2.3:8080/token=s3cr3tXyz",
)
"""What must be gone as a whole; and every part of it that is not a word that everybody uses."""
PARTS = re.compile(r"[^\W\d_]{4,}|\d{9,}|[^\x00-\x7f]+")


def clean(facts: Facts) -> Facts:
    return shareable(facts, home="/home/janedoe", user="janedoe", host="blau-17.example.org")


def planted(value: Any, secret: str, field: str = "") -> Any:
    """The JSON value with a secret in every text."""
    if isinstance(value, str):
        return f"{value} {secret}" if value else secret
    if isinstance(value, dict):
        return {key: planted(item, secret, key) for key, item in value.items()}
    if isinstance(value, list):
        return [planted(item, secret) for item in value]
    return value


@pytest.mark.parametrize("host", sorted(HOSTS))
def test_a_secret_in_any_text_is_gone(host):
    dirty = planted(HOSTS[host], " ".join(SECRETS))
    dirty |= {name: HOSTS[host][name] for name in ("schema", "schema_version")}
    left = str(facts_to_json(clean(facts_from_json(dirty))))
    for secret in SECRETS:
        assert secret not in left
        for part in PARTS.findall(secret):
            assert part.lower() in vocabulary() or part not in left


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_that_is_a_whole_text_is_gone(secret):
    overlay = {"imports": {"numpy": {"stderr_tail": secret}}}
    assert clean(facts_from_json(apply(HOSTS["py37-healthy"], overlay))).imports["numpy"].stderr_tail != secret


def test_secrets_where_people_have_them():
    overlay = {
        "variables": {
            "effective": {
                "LD_LIBRARY_PATH": "/home/janedoe/projekt_blau/lib:/srv/kundendaten/lib",
                "PIP_INDEX_URL": "https://janedoe:hunter2secret@pypi.kundendaten.example/simple?token=ghp_A1b2C3",
            }
        },
        "imports": {
            "ideep4py": {
                "ok": False,
                "error_type": "ImportError",
                "error_text": "/home/janedoe/projekt_blau/libmkldnn.so.0: cannot open shared object file",
                "stderr_tail": "WARNING token=hunter2secret user janedoe on blau-17.example.org",
            }
        },
        "packages": {"projekt_blau": "1.0", "numpy": "1.21.6"},
    }
    facts = facts_from_json(apply(HOSTS["py37-healthy"], overlay))
    shared = json.dumps(facts_to_json(clean(facts)))
    for secret in ("janedoe", "hunter2", "ghp_", "kundendaten", "projekt", "blau"):
        assert secret not in shared
    assert "libmkldnn.so.0: cannot open shared object file" in shared
    assert "~/" in shared


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code())
def test_what_is_left_is_judged_as_the_whole_was(rule):
    for example in rule.bad[:2]:
        whole = facts_from_json(apply(HOSTS[example.host], example.overlay))
        left = clean(whole)
        wanted = [item.code for item in judge(whole, RULES).findings]
        assert [item.code for item in judge(left, RULES).findings] == wanted, example.name


def test_the_same_word_has_the_same_stand_in():
    overlay = {"shadows": [], "variables": {"effective": {"LD_LIBRARY_PATH": "/zzyzx/lib:/zzyzx/qwxv"}}}
    left = clean(facts_from_json(apply(HOSTS["py37-healthy"], overlay)))
    one, other = left.variables.effective["LD_LIBRARY_PATH"].split(":")
    assert one.split("/")[1] == other.split("/")[1] != "zzyzx"
    assert one.split("/")[2] == "lib"
    assert other.split("/")[2] != one.split("/")[1]


def test_versions_digests_and_names_that_the_rules_need_stay():
    left = facts_to_json(clean(facts_from_json(HOSTS["py37-healthy"])))
    assert {"numpy", "chainer", "ideep4py"} <= {item["name"] for item in left["packages"]}
    assert left["python"]["version"] == "3.7.16"
    assert left["platform"]["os_name"] == "Debian GNU/Linux 12 (bookworm)"
    assert left["collected_at"] == HOSTS["py37-healthy"]["collected_at"]
    assert "site-packages/ideep4py" in json.dumps(left)


@settings(max_examples=25, deadline=None)
@given(st.from_regex(r"[a-zA-Z0-9_]{5,24}", fullmatch=True))
def test_a_word_stays_only_if_it_is_known(word):
    overlay = {"imports": {"numpy": {"stderr_tail": f"x {word} y"}}}
    text = clean(facts_from_json(apply(HOSTS["py37-healthy"], overlay))).imports["numpy"].stderr_tail
    if text == f"x {word} y":
        import re

        parts = [part.lower() for part in re.findall("[A-Za-z_]{2,}", word)]
        assert all(part in vocabulary() for part in parts) or re.fullmatch(
            r"\d{1,8}|v?\d{1,4}[a-z]{0,5}\d{0,4}|0x.*", word
        )


NAMED = st.from_regex(r"[a-z]{2,8}[-_]?[0-9]{0,4}", fullmatch=True).filter(lambda name: name not in NOBODY)


@settings(max_examples=25, deadline=None)
@given(NAMED, st.sampled_from(["/data/{}/lib", "ssh {}: refused", "at {}:22", "{}", "x_{} {}.py", "<{}>", "{}=1"]))
def test_a_name_that_is_told_is_gone_even_where_it_is_a_known_word(name, place):
    overlay = {"imports": {"numpy": {"stderr_tail": place.format(name, name)}}}
    facts = facts_from_json(apply(HOSTS["py37-healthy"], overlay))
    left = shareable(facts, home="/home/x", user="x1", host="y1", names=(name,)).imports["numpy"].stderr_tail
    words = set(re.findall(r"[A-Za-z0-9]+", left))
    for part in re.findall(r"[A-Za-z0-9]{2,}", name):
        assert part.isdigit() or part not in words or part in re.findall(r"[A-Za-z0-9]+", place)


@settings(max_examples=25, deadline=None)
@given(st.text(st.characters(min_codepoint=0xC0, exclude_categories=("Cs", "P", "Zs")), min_size=2, max_size=12))
def test_no_letter_of_another_script_is_left(name):
    overlay = {"imports": {"numpy": {"stderr_tail": f"/home/{name}/lib {name}"}}}
    left = clean(facts_from_json(apply(HOSTS["py37-healthy"], overlay))).imports["numpy"].stderr_tail
    assert name not in left or name in ("\u00d7\u00d7",)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 255), min_size=6, max_size=6), st.sampled_from(":-"))
def test_no_hardware_address_is_left(numbers, separator):
    address = separator.join(f"{number:02x}" for number in numbers)
    overlay = {"imports": {"numpy": {"stderr_tail": f"on {address}, {address.upper()}"}}}
    left = clean(facts_from_json(apply(HOSTS["py37-healthy"], overlay))).imports["numpy"].stderr_tail
    assert address not in left and address.upper() not in left


@pytest.mark.parametrize(
    "text",
    [
        "x86-64-v2 x86-64-v3",
        "avx512_common libiomp5.so cp37m x86_64",
        "2026-01-01 12:30:45",
        "Intel(R) Xeon(R) Platinum 8180 CPU",
        "6.1.0-37-amd64",
        "mkldnn::error",
        "CPUs 0-3,8-11",
    ],
)
def test_what_says_nothing_of_anybody_stays(text):
    overlay = {"imports": {"numpy": {"stderr_tail": text}}}
    assert clean(facts_from_json(apply(HOSTS["py37-healthy"], overlay))).imports["numpy"].stderr_tail == text


def test_the_own_names_of_a_person_are_no_known_words():
    overlay = {"imports": {"numpy": {"stderr_tail": "written by chainer at library"}}}
    facts = facts_from_json(apply(HOSTS["py37-healthy"], overlay))
    left = shareable(facts, home="/home/chainer", user="chainer", host="library")
    assert "library" not in left.imports["numpy"].stderr_tail
