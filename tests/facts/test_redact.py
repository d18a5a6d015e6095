"""Facts that may be shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ideepdoctor.facts.redact import redact, redact_text
from ideepdoctor.facts.serialize import load_facts
from ideepdoctor.model.facts import Outcome, Shadow, Variables

HOST = Path(__file__).parents[1] / "hosts" / "py37-healthy.json"
ALICE = {"home": "/home/alice", "user": "alice", "host": "lab7.example.org"}


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("/home/alice/env/bin/python", "~/env/bin/python"),
        ("/home/alice", "~"),
        ("/home/alice2/env", "/home/alice2/env"),
        ("/data/home/alice/x", "/data/home/USER/x"),
        ("/scratch/alice/env", "/scratch/USER/env"),
        ('File "/home/alice/a.py", line 1', 'File "~/a.py", line 1'),
        ("ssh alice@lab7.example.org", "ssh USER@HOST"),
        ("/net/lab7/x", "/net/HOST/x"),
        ("/net/lab77/x", "/net/lab77/x"),
        ("https://alice:s3cret@pypi.example.org/simple", "https://***@pypi.example.org/simple"),
        ("https://token@host/x?a=b@c", "https://***@host/x?a=b@c"),
        ("/home/alice:/home/alice/lib:/opt", "~:~/lib:/opt"),
        ("malice in /opt", "malice in /opt"),
        ("alice", "alice"),
    ],
)
def test_text(text: str, clean: str) -> None:
    assert redact_text(text, **ALICE) == clean


def test_names_that_tell_nothing_stay() -> None:
    text = "/usr/root/user at localhost"
    assert redact_text(text, home="/", user="root", host="localhost") == text
    assert redact_text("/root/x", home="/root", user="root", host="") == "~/x"


def test_every_text_of_the_facts() -> None:
    facts = load_facts(str(HOST))
    spoiled = replace(
        facts,
        target=replace(facts.target, transport=("ssh", "alice@lab7")),
        variables=Variables({"PYTHONPATH": "/home/alice/lib"}, {"LD_PRELOAD": "/home/alice/x.so"}),
        imports={"numpy": Outcome(False, 0.1, error_text="cannot open /home/alice/x", warnings=("W: /home/alice",))},
        shadows=(Shadow("json", "/home/alice/json.py", "current folder"),),
    )
    clean = redact(spoiled, **ALICE)
    assert "alice" not in repr(clean) and "lab7" not in repr(clean)
    assert clean.variables.inherited == {"PYTHONPATH": "~/lib"}
    assert clean.imports is not None and clean.imports["numpy"].warnings == ("W: ~",)


def test_what_rules_need_stays() -> None:
    facts = load_facts(str(HOST))
    clean = redact(facts, home="/home/user", user="numpy", host="chainer")
    assert clean.packages is not None and facts.packages is not None
    assert [package.name for package in clean.packages] == [package.name for package in facts.packages]
    assert clean.cpu == facts.cpu
    assert clean.python.prefix == "~/ideep"


def test_paths_that_are_keys_are_cleaned_too() -> None:
    facts = load_facts(str(HOST))
    assert facts.native is not None
    clean = redact(facts, home="/home/user", user="user", host="lab7")
    assert clean.native is not None
    assert len(clean.native.objects) == len(facts.native.objects)
    assert all(path.startswith("~/ideep/") for path in clean.native.objects)
    assert clean.imports is not None
    assert facts.imports is not None
    assert set(clean.imports) == set(facts.imports)
