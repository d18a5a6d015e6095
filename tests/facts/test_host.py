"""Names of systems, C libraries and containers from recorded texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideepdoctor.facts.host import container_kind, parse_libc, parse_os_name

DEBIAN = 'NAME="Debian GNU/Linux"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\n'


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (DEBIAN, "Debian GNU/Linux 12 (bookworm)"),
        ("PRETTY_NAME='Alpine Linux v3.19'\n", "Alpine Linux v3.19"),
        ("PRETTY_NAME=Arch\n", "Arch"),
        ('PRETTY_NAME="unfinished\n', "unfinished"),
        ("PRETTY_NAME=\n", None),
        ("ID=x\n", None),
    ],
)
def test_os_name(text: str, name: str | None) -> None:
    assert parse_os_name(text) == name


def test_libc() -> None:
    assert parse_libc("glibc 2.36", "/lib64/ld-linux-x86-64.so.2", "Usage") == ("glibc", "2.36")
    musl = "musl libc (x86_64)\nVersion 1.2.4\nDynamic Program Loader\n"
    assert parse_libc(None, "/lib/ld-musl-x86_64.so.1", musl) == ("musl", "1.2.4")
    assert parse_libc("", "/lib/ld-musl-x86_64.so.1", None) == ("musl", None)
    assert parse_libc(None, None, None) == (None, None)


@pytest.mark.parametrize(
    ("signs", "kind"),
    [
        ({}, None),
        ({"files": ["/.dockerenv"]}, "docker"),
        ({"files": ["/.dockerenv", "/run/.containerenv"]}, "podman"),
        ({"files": ["/.dockerenv"], "kubernetes": True}, "kubernetes"),
        ({"init": "lxc"}, "lxc"),
        ({"systemd": "systemd-nspawn\n"}, "systemd-nspawn"),
        ({"init_cgroup": "4:memory:/docker/0123\n"}, "docker"),
        ({"init_cgroup": "0::/kubepods.slice/x\n"}, "kubernetes"),
        ({"init_cgroup": "0::/init.scope\n"}, None),
    ],
)
def test_container(signs: dict[str, object], kind: str | None) -> None:
    nothing = {"files": [], "systemd": None, "init": None, "init_cgroup": None, "kubernetes": False}
    assert container_kind(**{**nothing, **signs}) == kind  # type: ignore[arg-type]


@given(st.text())
def test_arbitrary_text(text: str) -> None:
    parse_os_name("PRETTY_NAME=" + text)
    name, version = parse_libc(text, text, text)
    assert name is not None or version is None
    container_kind(files=[text], systemd=text, init=text, init_cgroup=text, kubernetes=False)
