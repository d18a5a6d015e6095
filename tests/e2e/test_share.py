"""``report`` in a real environment full of secrets: none of them is in any format, nor in the file of --share."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ideepdoctor.options import Format
from tests.formats import READ

ROOT = Path(__file__).parents[2]
USER, HOST, PROJECT = "\u5c71\u7530\u592a\u90ce", "gpu07", "geheimprojekt"
SECRETS = {
    "token": "ghp_A1b2C3d4E5f6G7h8",
    "password": "hunter2xyz",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "aws_secret": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "mail": "jane.doe@klinik.example",
    "ssh": "jane@bastion.klinik.example",
    "address": "10.23.45.67",
    "mac": "02:42:ac:11:00:02",
    "service": "172.20.0.1",
    "index": "pypi.klinik.example",
}
GONE = (*SECRETS.values(), USER, PROJECT, HOST, "klinik", "bastion", "hunter2", "geheim", "node117", "janedoe")
URL = f"https://janedoe:{SECRETS['password']}@{SECRETS['index']}/simple?token={SECRETS['token']}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """An environment below a home folder with a Japanese name, and the variables of its user's shell."""
    home = tmp_path_factory.mktemp("home") / USER
    env = home / PROJECT / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(env)], check=True)
    site = next(env.glob("lib/python*/site-packages"))
    (env / "pip.conf").write_text(f"[global]\nindex-url = {URL}\n")
    for name in ("numpy", "chainer", PROJECT):
        info = site / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\nAuthor-email: {SECRETS['mail']}\n")
        (info / "direct_url.json").write_text(f'{{"url": "git+{URL}", "vcs_info": {{"vcs": "git"}}}}')
        (info / "RECORD").write_text(f"{name}/__init__.py,sha256=x,1\n")
        (site / name).mkdir()
    told = " ".join(SECRETS.values())
    (site / "numpy" / "__init__.py").write_text(
        f"import sys; sys.stderr.write({told!r}); raise ImportError({told!r})\n"
    )
    (site / "chainer" / "__init__.py").write_text(f"raise RuntimeError('{URL} of {USER} on {HOST}')\n")
    (site / f"{PROJECT}.pth").write_text(f"/home/{USER}/{PROJECT}/lib\n")
    (home / ".bashrc").write_text(f"export LD_PRELOAD=/opt/{PROJECT}/libmkldnn.so.0 # {SECRETS['token']}\n")
    variables = {
        "HOME": str(home),
        "USER": "janedoe",
        "LOGNAME": "janedoe",
        "HOSTNAME": HOST,
        "SLURM_NODELIST": "node[116-118]",
        "SLURMD_NODENAME": "node117",
        "EMAIL": SECRETS["mail"],
        "AWS_ACCESS_KEY_ID": SECRETS["aws"],
        "AWS_SECRET_ACCESS_KEY": SECRETS["aws_secret"],
        "GITHUB_TOKEN": SECRETS["token"],
        "PIP_INDEX_URL": URL,
        "SSH_CONNECTION": f"{SECRETS['address']} 50022 10.0.0.9 22",
        "KUBERNETES_SERVICE_HOST": SECRETS["service"],
        "KUBERNETES_PORT_443_TCP_ADDR": SECRETS["service"],
        "LD_LIBRARY_PATH": f"/srv/{PROJECT}/{USER}/lib:/mnt/{HOST}/node117/lib",
        "PYTHONPATH": f"{home}/{PROJECT}/src",
        "OMP_NUM_THREADS": SECRETS["token"],
        "CHAINER_DTYPE": f"{URL} {SECRETS['mac']}",
        "MKL_CBWR": f"C:\\Users\\janedoe\\{PROJECT}",
        "IDEEPDOCTOR_STATE_DIR": str(home / "state"),
        "IDEEPDOCTOR_CACHE_DIR": str(home / "cache"),
    }
    return env, {**{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}, **variables}


def report(world: tuple[Path, dict[str, str]], *words: str) -> subprocess.CompletedProcess[str]:
    env, variables = world
    python = str(env / "bin" / "python")
    line = [
        sys.executable,
        "-c",
        "import sys; sys.path.insert(0, sys.argv.pop(1)); from ideepdoctor.cli import main; main()",
    ]
    done = subprocess.run(
        [*line, str(ROOT), "report", "--python", python, *words],
        capture_output=True,
        text=True,
        env=variables,
        cwd=env.parent,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done


def leaks(text: str) -> list[str]:
    """Secrets, and parts of them, that a text has; escapes of JSON and URLs are undone."""
    plain = re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)
    return [secret for secret in GONE if secret.lower() in plain.lower() or secret.lower() in text.lower()]


@pytest.mark.slow
def test_the_secrets_are_where_the_doctor_looks(world):
    env, variables = world
    words = ["diagnose", "--python", str(env / "bin" / "python"), "--format", "json", "--save-facts", "facts.json"]
    line = [sys.executable, "-m", "ideepdoctor", *words]
    subprocess.run(line, env={**variables, "PYTHONPATH": str(ROOT)}, cwd=env.parent, capture_output=True, timeout=300)
    assert len(leaks((env.parent / "facts.json").read_text("utf-8"))) >= 8


@pytest.mark.slow
@pytest.mark.parametrize("form", list(Format))
def test_no_format_tells_a_secret(world, form):
    done = report(world, "--format", form)
    READ[form](done.stdout)
    assert leaks(done.stdout) == []
    assert len(done.stdout) > 100


@pytest.mark.slow
@pytest.mark.parametrize("name", ["shared.md", "shared.json"])
def test_the_file_that_is_sent_tells_no_secret(world, name):
    report(world, "--share", name, "--yes")
    text = (world[0].parent / name).read_text("utf-8")
    assert leaks(text) == []
    assert "numpy" in text
