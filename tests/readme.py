"""The README's output blocks: run the real commands and write, or compare, what they print.

    python tests/readme.py     # rewrites the blocks between <!-- output: NAME --> and <!-- end -->

``test_readme.py`` compares. Numbers and folders differ from run to run and are not compared.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"<!-- output: (\w+) -->\n(.*?)<!-- end -->", re.DOTALL)
MEASURED = re.compile(r"<!-- measured: ([\w-]+) -->\n(.*?)<!-- end -->", re.DOTALL)
"""Blocks that show a result file of bench in tests/data/bench: a run takes minutes and a quiet machine."""
RESULTS = Path(__file__).parent / "data" / "bench"


def printed(*words: str, cwd: Path, shown: str) -> str:
    """What a command prints on standard output at 80 columns, as an indented block below the command line."""
    dropped = ("CHAINER_USE_IDEEP", "IDEEPDOCTOR_FORMAT", "OMP_NUM_THREADS", "VIRTUAL_ENV", "CI")
    env = {name: value for name, value in os.environ.items() if name not in dropped}
    env |= {"COLUMNS": "80", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "ideepdoctor", *words], capture_output=True, text=True, env=env, cwd=cwd, timeout=300
    )
    text = done.stdout.replace(f"{cwd}/", "")
    lines = [f"$ {shown}", *(line.rstrip() for line in text.splitlines())]
    return "\n" + "".join(f"    {line}".rstrip() + "\n" for line in lines) + "\n"


def blocks(folder: Path, break_numpy: object) -> dict[str, str]:
    """Every output block of the README, made anew in an empty folder.

    Args:
        folder: where ``.ideep`` is made.
        break_numpy: called with the environment's folder, to put numpy 1.15.4 into it.
    """
    assert callable(break_numpy)
    made = printed("setup", "--python", "3.7", cwd=folder, shown="ideepdoctor setup")
    libraries = printed("libs", cwd=folder, shown="ideepdoctor libs")
    break_numpy(folder / ".ideep")
    broken = printed("diagnose", cwd=folder, shown="ideepdoctor diagnose")
    return {"setup": made, "libs": libraries, "broken": broken}


def measured(name: str, shown: str) -> str:
    """What ``bench`` printed of the run in a result file, below the command line that is shown there."""
    from ideepdoctor.proof.bench_file import read
    from ideepdoctor.render.bench import lines

    first = next(line for line in shown.splitlines() if line.strip().startswith("$"))
    body = "".join(f"    {line}".rstrip() + "\n" for line in lines(read(str(RESULTS / f"{name}.json")), 80))
    return f"\n{first}\n{body}\n"


def comparable(text: str) -> str:
    """A block without what differs from run to run: numbers, folders, line breaks, and the notes on a busy machine.

    (What the quick tune of setup says depends on the noise; tests leave it out. IDP702, a note, says that iDeep was not
    faster: that is so while other programs take the processor.)
    """
    text = re.sub(r",\s+\d+\s+notes?\s+\(-v\s+shows\)", "", text)
    text = re.sub(r"Tuned:.*?(?=run a script)", "", text, flags=re.DOTALL)
    text = re.sub(r"undo \d{8}-\S+", "undo RUN", text)
    text = re.sub(r"\d[\d.e+-]*", "N", text)
    text = re.sub(r"\S*/(?=bin/python|\.ideep)", "", text)
    return re.sub(r"\s+", " ", text).strip()


def main() -> None:
    """Rewrite the blocks."""
    from tests.e2e.environments import pip_install

    with tempfile.TemporaryDirectory() as name:
        os.environ["IDEEPDOCTOR_STATE_DIR"] = f"{name}/state"
        folder = Path(name) / "work"
        folder.mkdir()
        fresh = blocks(folder, lambda env: pip_install(env, "numpy==1.15.4"))
    text = README.read_text("utf-8")
    for found in BLOCK.finditer(text):
        title = found.group(1)
        text = text.replace(found.group(0), f"<!-- output: {title} -->\n{fresh[title]}<!-- end -->")
    for found in MEASURED.finditer(text):
        title = found.group(1)
        block = measured(title, found.group(2))
        text = text.replace(found.group(0), f"<!-- measured: {title} -->\n{block}<!-- end -->")
    README.write_text(text, "utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(README.parent))
    main()
