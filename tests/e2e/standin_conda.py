"""A stand-in of conda for the recipe: ``env create``, ``env update`` and ``run``, with interpreters of this machine.

What it does as conda does: the pip part of an environment file goes into a requirements file beside it, which the
environment's own pip installs with ``-U --exists-action=b``; ``variables`` are set by ``run``; ``conda-meta`` marks the
folder. What conda itself would fetch (Python, pip) comes from a virtual environment.

    python standin_conda.py ROOT PYTHONS(JSON) env create --name NAME --file FILE
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import yaml
from uv import find_uv_bin


def main(root: Path, pythons: dict[str, str], words: list[str]) -> int:
    action = words[0] if words[0] == "run" else " ".join(words[:2])
    name = words[words.index("--name") + 1]
    prefix = root / "envs" / name
    if action == "run":
        return run(prefix, words[words.index("--name") + 2 :])
    if action not in ("env create", "env update") or (action == "env create") == prefix.exists():
        print(f"conda: error: {action} {name}", file=sys.stderr)
        return 1
    file = Path(words[words.index("--file") + 1]).resolve()
    told = yaml.safe_load(file.read_text())
    plain = [item for item in told["dependencies"] if isinstance(item, str)]
    [pip] = [item["pip"] for item in told["dependencies"] if not isinstance(item, str)]
    [version] = [item.partition("=")[2] for item in plain if item.startswith("python=")]
    if not prefix.exists():
        subprocess.run(
            [find_uv_bin(), "venv", "--quiet", "--seed", "--python", pythons[version], str(prefix)], check=True
        )
        (prefix / "conda-meta").mkdir()
        (prefix / "conda-meta" / "history").write_text("")
    (prefix / "conda-meta" / "state").write_text(json.dumps({"env_vars": told.get("variables", {})}))
    requirements = file.parent / "condaenv.standin.requirements.txt"
    requirements.write_text("\n".join(pip) + "\n")
    try:
        words = ["-m", "pip", "install", "-U", "-r", str(requirements), "--exists-action=b"]
        return subprocess.run([str(prefix / "bin" / "python"), *words], cwd=file.parent).returncode
    finally:
        requirements.unlink()


def run(prefix: Path, words: list[str]) -> int:
    if not prefix.exists():
        print(f"EnvironmentLocationNotFound: {prefix}", file=sys.stderr)
        return 1
    own = json.loads((prefix / "conda-meta" / "state").read_text())["env_vars"]
    env = {**os.environ, **own, "PATH": f"{prefix}/bin:{os.environ['PATH']}", "CONDA_PREFIX": str(prefix)}
    return subprocess.run(words, env=env).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:]))
