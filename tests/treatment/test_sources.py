"""Where installers are told to look: arguments, variables, passwords that never show, a mirror's faults in words."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from ideepdoctor.commands.source import SourceOptions, package_source
from ideepdoctor.errors import CouldNotCheck, UsageError
from ideepdoctor.model.plan import CreateEnv, Install, PackageSource, Plan, WriteFile, with_source
from ideepdoctor.system import RealSystem
from ideepdoctor.trail import listening
from ideepdoctor.treatment import installers, sources
from ideepdoctor.treatment.installers import HashMismatch, install, uv_program
from ideepdoctor.treatment.plandata import plan_to_data
from ideepdoctor.watched import WatchedSystem
from tests.doubles import FakeSystem, completed
from tests.mirror import PASSWORD, USER, Mirror, pin_of, serving, tiny_wheel

WHOLE = "https://me:pa:ss@word@mirror.example/simple"
SHOWN = "https://***@mirror.example/simple"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (WHOLE, SHOWN),
        ("https://token@h/x then http://a:b@h/y", "https://***@h/x then http://***@h/y"),
        ("https://h/simple/@scope", "https://h/simple/@scope"),
        ("mail me@example.org", "mail me@example.org"),
    ],
)
def test_credentials_are_not_shown(text, shown):
    assert sources.shown(text) == shown


def test_a_password_is_found_out_of_its_url_too():
    said = "401 for user me with s3cret"
    assert sources.cleaned(said, {sources.INDEX_VARIABLE: "https://me:s3cret@h/simple"}) == "401 for user me with ***"


@pytest.mark.parametrize(
    ("options", "source"),
    [
        (SourceOptions(), PackageSource()),
        (SourceOptions(offline=True), PackageSource(no_index=True)),
        (SourceOptions(index_url=WHOLE), PackageSource(index_url=SHOWN)),
        (SourceOptions(index_url="http://h/simple"), PackageSource(index_url="http://h/simple")),
    ],
)
def test_options_become_a_source(options, source):
    assert package_source(options) == source


def test_a_wheelhouse_is_an_absolute_folder_that_exists(tmp_path):
    (tmp_path / "wh").mkdir()
    found = package_source(SourceOptions(True, "wh"), str(tmp_path))
    assert found == PackageSource((str(tmp_path / "wh"),), True)
    for missing in ("none", "file"):
        (tmp_path / "file").write_text("")
        with pytest.raises(CouldNotCheck) as caught:
            package_source(SourceOptions(True, missing), str(tmp_path))
        assert "ideepdoctor wheelhouse" in caught.value.hint


@pytest.mark.parametrize("url", ["mirror.example", "ftp://h/x", "https://u:p@h/ x", "https://"])
def test_what_is_no_url_is_refused_without_its_password(url):
    with pytest.raises(UsageError) as caught:
        package_source(SourceOptions(index_url=url))
    assert "u:p" not in caught.value.message


def test_offline_and_a_mirror_exclude_each_other():
    with pytest.raises(UsageError, match="exclude"):
        package_source(SourceOptions(offline=True, index_url="https://h/simple"))


def test_a_plan_never_holds_a_password():
    steps = (CreateEnv("/e", "/p", "virtualenv"), Install("/e/bin/python", (), "uv"), WriteFile("/f", "x", "y"))
    plan = with_source(Plan("x", steps), package_source(SourceOptions(index_url=WHOLE)))
    assert [getattr(step, "source", None) for step in plan.steps] == [PackageSource(index_url=SHOWN)] * 2 + [None]
    assert "ss@word" not in json.dumps(plan_to_data(plan))
    assert "from https://***@mirror.example/simple" in plan.steps[1].title


def test_the_password_comes_from_the_environment_or_is_asked_for():
    source = PackageSource(index_url=SHOWN)
    assert sources.whole_url(source, {sources.INDEX_VARIABLE: WHOLE}) == WHOLE
    for environ in ({}, {sources.INDEX_VARIABLE: "https://me:x@other.example/simple"}):
        with pytest.raises(CouldNotCheck) as caught:
            sources.whole_url(source, environ)
        assert sources.INDEX_VARIABLE in caught.value.hint


GIVEN = {
    "PATH": "/bin",
    "HTTPS_PROXY": "http://proxy",
    "PIP_CERT": "/ca.pem",
    "UV_INDEX_URL": "https://a/simple",
    "PIP_EXTRA_INDEX_URL": "https://b/simple",
    "PIP_FIND_LINKS": "https://c/files",
    "UV_FIND_LINKS": "https://d/files",
}


def test_by_default_the_users_settings_hold():
    assert sources.variables(PackageSource(), GIVEN) == GIVEN


def test_a_mirror_stands_for_every_index_and_keeps_proxy_and_certificates():
    found = sources.variables(PackageSource(index_url="https://m/simple"), GIVEN)
    assert {found[name] for name in ("UV_DEFAULT_INDEX", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")} == {
        "https://m/simple"
    }
    assert not {"UV_INDEX_URL", "PIP_FIND_LINKS", "UV_FIND_LINKS"} & found.keys()
    assert (found["HTTPS_PROXY"], found["PIP_CERT"], found["PIP_NO_INPUT"]) == ("http://proxy", "/ca.pem", "1")


@pytest.mark.parametrize("folders", [(), ("/wh",)])
def test_without_network_nothing_leads_to_it(folders):
    source = PackageSource(folders, no_index=True)
    found = sources.variables(source, GIVEN)
    assert (found["UV_OFFLINE"], found["PIP_NO_INDEX"], found["PIP_CONFIG_FILE"]) == ("1", "1", os.devnull)
    assert "PIP_FIND_LINKS" not in found
    assert "--offline" in sources.uv_words(source)
    if folders:
        assert not any("https://" in value for value in found.values())
        assert sources.uv_words(source) == ["--find-links=/wh", "--offline", "--no-index"]


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_without_network_an_installer_is_asked_once_and_downloads_nothing(tool, monkeypatch, tmp_path):
    monkeypatch.setenv("IDEEPDOCTOR_CACHE_DIR", str(tmp_path))
    system = FakeSystem().on(lambda _call: True, completed(returncode=1, stderr="no matching distribution found for x"))
    step = Install("/e/bin/python", (pin("tiny"),), tool, source=PackageSource(("/wh",), no_index=True))
    with pytest.raises(CouldNotCheck, match="/wh does not hold"):
        install(system, step, "/work", lambda _text: None)
    [words] = system.commands()
    assert ("--no-index" in words, "download" in words) == (True, False)
    assert "/wh" in " ".join(words)


def pin(name: str):
    from ideepdoctor.model.plan import Requirement

    return Requirement(name, "1.0", ("0" * 64,))


def test_removal_comes_before_installation():
    system = FakeSystem().on(lambda _call: True, "")
    install(system, Install("/e/bin/python", (pin("tiny"),), "uv", remove=("old", "older")), "/w", lambda _text: None)
    assert system.commands()[0][1:] == ("pip", "uninstall", "--python", "/e/bin/python", "old", "older")
    alone = FakeSystem().on(lambda _call: True, "")
    install(alone, Install("/e/bin/python", (), "pip", remove=("old",)), "/w", lambda _text: None)
    assert alone.commands() == [("/e/bin/python", "-m", "pip", "uninstall", "--yes", "old")]


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty environment of this Python, and a uv that knows nothing."""
    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    made = RealSystem().run([uv_program(), "venv", "--python", sys.executable, f"{tmp_path}/env"], timeout_seconds=60)
    assert made.ok, made.error_text()
    return tmp_path / "env"


def mended(environment: Path, mirror: Mirror, *names: str, url: str = "") -> list[str]:
    """Install tiny wheels from a mirror; what was told."""
    told: list[str] = []
    wanted = tuple(pin_of(mirror.files[name]) for name in names)
    source = package_source(SourceOptions(index_url=url or mirror.url))
    step = Install(f"{environment}/bin/python", wanted, "uv", source=source)
    install(RealSystem(), step, str(environment.parent / "work"), told.append)
    return told


@pytest.fixture
def mirror(tmp_path: Path):
    folder = tmp_path / "files"
    folder.mkdir()
    for name in ("tiny", "other"):
        tiny_wheel(folder, name)
    with serving(Mirror().add(folder)) as serves:
        yield serves


TINY, OTHER = "tiny-1.0-py3-none-any.whl", "other-1.0-py3-none-any.whl"


def test_real_uv_takes_files_from_a_mirror(environment, mirror):
    mended(environment, mirror, TINY, OTHER)
    assert sorted(set(mirror.fetched())) == [OTHER, TINY]
    assert next(environment.glob("lib/python*/site-packages/tiny.py"))


@pytest.mark.parametrize(
    ("fault", "kind", "code", "told"),
    [
        ("gone", CouldNotCheck, 3, "does not serve it"),
        ("swapped", HashMismatch, 4, "not the one that the stack was locked with"),
        ("private", CouldNotCheck, 3, "wants a user and a password"),
        ("absent", CouldNotCheck, 3, "does not have what is needed"),
    ],
)
def test_the_faults_of_a_mirror_each_by_name(environment, mirror, fault, kind, code, told):
    if fault == "private":
        mirror.private = True
    elif fault == "absent":
        pins = mirror.files
        mirror.files = {OTHER: pins[OTHER]}
        mirror.files |= {"tiny-0.9-py3-none-any.whl": pins[TINY]}
        source = package_source(SourceOptions(index_url=mirror.url))
        step = Install(f"{environment}/bin/python", (pin("tiny"),), "uv", source=source)
        with pytest.raises(kind, match=told):
            install(RealSystem(), step, str(environment.parent / "work"), lambda _text: None)
        return
    else:
        getattr(mirror, fault).add(TINY)
    with pytest.raises(kind) as caught:
        mended(environment, mirror, TINY)
    assert (told in caught.value.message, int(caught.value.exit_code)) == (True, code), caught.value.message
    assert mirror.url in caught.value.message or fault == "swapped"
    assert not list(environment.glob("lib/python*/site-packages/tiny.py"))


def test_a_password_reaches_the_mirror_and_nobody_else(environment, mirror, monkeypatch):
    mirror.private = True
    monkeypatch.setenv(sources.INDEX_VARIABLE, mirror.whole_url)
    shown: list[str] = []
    monkeypatch.setattr(installers, "_SECONDS", 60.0)
    source = package_source(SourceOptions(index_url=mirror.whole_url))
    step = Install(f"{environment}/bin/python", (pin_of(mirror.files[TINY]),), "uv", source=source)
    with listening(lambda level, event, data: shown.append(f"{event} {data}")):
        install(WatchedSystem(), step, str(environment.parent / "work"), shown.append)
    assert any("process-end" in text for text in shown)
    assert TINY in mirror.fetched()
    mirror.gone.add(OTHER)
    with pytest.raises(CouldNotCheck) as caught:
        mended(environment, mirror, OTHER, url=mirror.whole_url)
    everything = " ".join([*shown, caught.value.message, caught.value.hint, *caught.value.context.values()])
    assert PASSWORD not in everything
    assert f"{USER}:" not in everything
