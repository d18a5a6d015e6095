"""pip's settings as the probe reads them: where pip looks, what counts more, and nothing that lets anybody in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ideepdoctor.facts.redact import redact
from ideepdoctor.facts.serialize import facts_from_json, facts_to_json
from ideepdoctor.model.facts import Facts, PipSetting
from tests.conftest import legacy_python
from tests.payload.joined import load
from tests.payload.test_probe import plain_environ, probed

PROBE = load("probe")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment of its own, with pip."""
    folder = tmp_path_factory.mktemp("pip") / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    return folder / "bin" / "python"


def given(facts: Facts) -> list[tuple[str, str, str, str]]:
    """What is told of these tests' files and variables; the machine's own settings are left out."""
    assert facts.pip_settings is not None
    mine = [one for one in facts.pip_settings if not one.source.startswith("/etc/")]
    return [(one.name, one.value, one.source, one.command) for one in mine]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7", "3.8", "3.13"])
def test_every_python_reads_the_same(version: str, tmp_path: Path) -> None:
    user = write(
        tmp_path / ".config/pip/pip.conf",
        "# a comment\n[global]\nno_binary = :all:\ntimeout = 60\nextra-index-url =\n  https://a.example/s\n"
        "  https://b.example/s\n[install]\nuser = yes\n[list]\nformat = columns\n",
    )
    facts = probed(legacy_python(version), environ=plain_environ(HOME=str(tmp_path), PIP_PRE="1"), quick=True)
    assert given(facts) == [
        ("extra-index-url", "\nhttps://a.example/s\nhttps://b.example/s", str(user), "global"),
        ("no-binary", ":all:", str(user), "global"),
        ("user", "yes", str(user), "install"),
        ("pre", "1", "PIP_PRE", "global"),
    ]


def test_where_pip_looks_and_what_counts_more(python: Path, tmp_path: Path) -> None:
    shared, home, config = tmp_path / "shared", tmp_path / "home", tmp_path / "config"
    own, site = tmp_path / "own.conf", python.parents[1] / "pip.conf"
    places = [shared / "pip/pip.conf", home / ".pip/pip.conf", config / "pip/pip.conf", site]
    environ = plain_environ(HOME=str(home), XDG_CONFIG_HOME=str(config), XDG_CONFIG_DIRS=str(shared))
    try:
        for number, place in enumerate(places):
            write(place, f"[global]\nindex-url = https://{number}.example/simple\n")
            told = given(probed(python, environ=environ, quick=True))
            assert told == [("index-url", f"https://{number}.example/simple", str(place), "global")]
            listed = subprocess.run(
                [python, "-m", "pip", "config", "list"], env=environ, capture_output=True, text=True, check=True
            )
            assert f"global.index-url='https://{number}.example/simple'" in listed.stdout, "pip itself says so"
        write(own, "[global]\nno-index = true\n")
        site.unlink()
        told = given(probed(python, environ={**environ, "PIP_CONFIG_FILE": str(own)}, quick=True))
        assert told == [
            ("index-url", "https://0.example/simple", str(shared / "pip/pip.conf"), "global"),
            ("no-index", "true", str(own), "global"),
        ], "the user's own file is not read beside that of the variable"
        gone = {**environ, "PIP_CONFIG_FILE": str(tmp_path / "gone"), "PIP_INDEX_URL": ""}
        assert [row[1] for row in given(probed(python, environ=gone, quick=True))] == ["https://2.example/simple"]
        nothing = {**environ, "PIP_CONFIG_FILE": "/dev/null", "PIP_USER": "0"}
        assert probed(python, environ=nothing, quick=True).pip_settings == (PipSetting("user", "0", "PIP_USER"),)
    finally:
        site.unlink(missing_ok=True)


@pytest.mark.parametrize("text", ["no section\n", "[global]\nuser\n", "[global]\nuser=1\nuser=1\n", "\x00\xff"])
def test_a_file_that_is_no_settings_tells_nothing(text: str, tmp_path: Path) -> None:
    write(tmp_path / ".config/pip/pip.conf", text)
    assert given(probed(sys.executable, environ=plain_environ(HOME=str(tmp_path)), quick=True)) == []


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("index-url", "https://me:s3cret@h.example/simple", "https://***@h.example/simple"),
        ("index-url", "https://me:s3@cret@h.example/simple", "https://***@h.example/simple"),
        ("extra-index-url", "https://a.example https://t0ken@b.example/s", "https://a.example https://***@b.example/s"),
        ("index-url", "https://h.example/simple?key=s3cret", "https://h.example/simple?***"),
        ("find-links", "https://h.example/a#sha256=s3cret", "https://h.example/a?***"),
        ("index-url", "https://h.example/aBcDeF1234567890aBcDeF/simple", "https://h.example/***/simple"),
        ("index-url", "https://h.example/aBcDeF1234567890aBcDeF", "https://h.example/***"),
        ("index-url", "https://h.example/repository/pypi-group-internal/simple", None),
        ("proxy", "me:s3cret@proxy.example:3128", "***@proxy.example:3128"),
        ("proxy", "http://me:s3cret@proxy.example:3128", "http://***@proxy.example:3128"),
        ("no-binary", ":all:", None),
        ("find-links", "/opt/a0123456789012345678901/wheels", None),
        ("trusted-host", "x" * 2000, "x" * 1000),
    ],
)
def test_nothing_that_lets_somebody_in_is_told(name: str, value: str, shown: str | None) -> None:
    assert PROBE["harmless"](name, value) == (value if shown is None else shown)


def test_secrets_do_not_reach_the_facts_from_files_or_variables(tmp_path: Path) -> None:
    write(tmp_path / ".config/pip/pip.conf", "[global]\nindex-url = https://me:s3cret@h.example/simple\n")
    environ = plain_environ(HOME=str(tmp_path), PIP_EXTRA_INDEX_URL="https://t0ken@b.example", PIP_PASSWORD="s3cret")
    facts = probed(sys.executable, environ=environ, quick=True)
    text = str(facts_to_json(facts))
    assert "h.example" in text and "b.example" in text
    assert "s3cret" not in text and "t0ken" not in text and "PIP_PASSWORD" not in text
    assert facts_from_json(facts_to_json(facts)) == facts
    cleaned = redact(facts, home=str(tmp_path), user="somebody", host="elsewhere")
    assert "~/.config/pip/pip.conf" in [one.source for one in cleaned.pip_settings or ()]
