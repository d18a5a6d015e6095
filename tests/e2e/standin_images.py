"""Stand-ins of the official images: Debian of debootstrap, with this machine's interpreters at /usr/local."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ideepdoctor.treatment.installers import patchelf_program
from tests.conftest import installed_interpreters
from tests.e2e.dockerfiles import Engine, Image

SLIM = (
    "ca-certificates,libbz2-1.0,libexpat1,libffi8,liblzma5,libncursesw6,libreadline8,libsqlite3-0,libssl3,libuuid1,"
    "netbase,tzdata,zlib1g"
)
"""What the official slim images of Python have beside Debian's minimum."""
FULL = ("g++", "git", "libc6-dev", "make")
"""What the recipes use of the many packages of the full images."""
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
HANDED_ON = re.compile(
    r"(?i)(https?|no|all)_proxy|PIP_(CERT|INDEX_URL|EXTRA_INDEX_URL)|SSL_CERT_FILE|UV_(DEFAULT_)?INDEX.*"
)
"""Variables without which this machine reaches no package index; a docker client hands its proxies on, too."""


def machine(folder: Path) -> Engine:
    """An engine whose images are what ``image`` adds; its base is made here. Skips where that cannot be."""
    if os.geteuid() != 0:
        pytest.skip("chroots need root")
    if shutil.which("debootstrap", path="/usr/sbin:/usr/bin:/sbin:/bin") is None:
        pytest.skip("no debootstrap here (Debian package of that name)")
    environ = {name: value for name, value in os.environ.items() if HANDED_ON.fullmatch(name)}
    engine = Engine(folder, {}, environ)
    base = engine.layer()
    words = ["debootstrap", "--variant=minbase", f"--include={SLIM}", "bookworm", str(base)]
    path = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **path}, timeout=600)
    if done.returncode:
        pytest.skip(f"debootstrap cannot make a Debian here: {done.stdout[-300:]}")
    for name in ("/etc/resolv.conf", "/etc/hosts"):
        shutil.copyfile(name, f"{base}{name}")
    if CERTIFICATES.exists():  # of a proxy that looks into what it hands on
        shutil.copyfile(CERTIFICATES, base / CERTIFICATES.relative_to("/"))
    engine.images["debian:bookworm-slim"] = Image((base,))
    probe = engine.run(engine.images["debian:bookworm-slim"], ["true"])
    if probe.returncode:
        pytest.skip(f"no overlay file system or no namespaces here: {probe.stderr[-300:]}")
    return engine


def add(engine: Engine, name: str) -> None:
    """The stand-in of ``python:VERSION[-slim]-DEBIAN``; every DEBIAN is the one of debootstrap."""
    if name in engine.images:
        return
    version = name.removeprefix("python:").partition("-")[0]
    layer = engine.layer()
    _interpreter(_prefix(version), layer / "usr/local", version)
    base = engine.images["debian:bookworm-slim"]
    known = engine.layer()  # the loader's cache, as the official images have it: copies of the program need it
    engine.step(replace(base, layers=(*base.layers, layer)), ["ldconfig"], known)
    layers = (*base.layers, layer, known)
    image = replace(base, layers=layers, env={**base.env, "LANG": "C.UTF-8"}, cmd=("python3",))
    if "-slim-" not in name:
        more = engine.layer()
        apt = f"apt-get update -qq && apt-get install -y -qq --no-install-recommends {' '.join(FULL)}"
        done = engine.step(image, ["sh", "-c", apt], more, environ={"DEBIAN_FRONTEND": "noninteractive"})
        assert done.returncode == 0, done.stderr[-2000:]
        image = replace(image, layers=(*image.layers, more))
    engine.images[name] = image


def _prefix(version: str) -> Path:
    """The folder of an interpreter of this machine that is nobody's else: no /usr."""
    for found in installed_interpreters():
        prefix = Path(found.place.path).resolve().parents[1]
        right = found.identity.version.startswith(f"{version}.") and not found.identity.is_virtual
        if right and prefix != Path("/usr") and (prefix / "bin" / f"python{version}").exists():
            return prefix
    pytest.skip(f"no Python {version} here in a folder of its own that can be copied")


def _interpreter(prefix: Path, place: Path, version: str) -> None:
    """A copy that finds its library beside itself, as the official images' does."""
    left_out = shutil.ignore_patterns("test", "tests", "idle_test", "__pycache__", "*.a")
    shutil.copytree(prefix, place, symlinks=True, ignore=left_out)
    program = str(place / "bin" / f"python{version}")
    subprocess.run([patchelf_program(), "--set-rpath", "$ORIGIN/../lib", program], check=True)
    for file in (place / "bin").iterdir():  # pip and others name the folder that they came from
        if not file.is_symlink() and file.read_bytes()[:2] == b"#!":
            file.unlink()
