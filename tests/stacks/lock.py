"""Make the TOML of a stack: download, hash, install for real, prove, measure, write.

    python tests/stacks/lock.py            all stacks of wanted.py
    python tests/stacks/lock.py NAME...    these
    python tests/stacks/lock.py --new      the Pythons that a stack's file lacks; the others stay as they are

Needs uv, the network, Python 3.7 (whose pip downloads for every other ABI), and the interpreters to prove the locks
with; where one is missing, the lock is written as untried. Nothing outside a temporary folder is changed but the TOML.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from packaging.requirements import Requirement as Asked
from packaging.utils import canonicalize_name
from packaging.version import Version

sys.path.insert(0, str(Path(__file__).parents[2]))

from ideepdoctor.model.plan import Requirement
from ideepdoctor.treatment.startup import startup_files
from tests.stacks.wanted import ABIS, COMMON, RESIZE, WANTED, Wanted

STACKS = Path(__file__).parents[2] / "ideepdoctor" / "stacks"
PROVE = Path(__file__).with_name("prove.py")
PROVE_NUMPY = Path(__file__).with_name("prove_numpy.py")
UV = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}") or "uv"
FIRST = ("setuptools", "wheel")
NEED_STARTUP = ("3.13", "3.12")
"""Where Chainer imports with the doctor's start-up file only."""
# ideep4py needs glibc 2.14, so no file may need more; the file for the oldest glibc is taken where there are several.
PLATFORMS = ("manylinux1_x86_64", "manylinux_2_5_x86_64", "manylinux2010_x86_64", "manylinux_2_12_x86_64")
# NumPy's own for newer Pythons need glibc 2.17; what is built here needs this machine's anyway.
MODERN_PLATFORMS = (*PLATFORMS, "manylinux2014_x86_64", "manylinux_2_17_x86_64")


def run(*argv: str | Path, env: dict[str, str] | None = None) -> str:
    """Run a command and return its standard output; its failure ends the script."""
    # A machine's own constraints, kernels and thread counts must not decide what a lock holds and what is proved.
    foreign = ("PIP_FIND_LINKS", "PIP_CONSTRAINT", "PIP_EXTRA_INDEX_URL", "PYTHON", "OPENBLAS_", "MKL", "OMP_", "KMP_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    done = subprocess.run(
        [str(word) for word in argv],
        env={**clean, "PIP_CONFIG_FILE": os.devnull, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(str(word) for word in argv)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def interpreter(python: str) -> str | None:
    """Path of a Python of this minor version that uv or pyenv knows, or None."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [*sorted(pyenv.glob(f"{python}.*/bin/python{python}"), reverse=True), shutil.which(f"python{python}")]
    for candidate in candidates:
        if (
            candidate
            and subprocess.run([str(candidate), "-c", "pass"], capture_output=True, check=False).returncode == 0
        ):
            return str(candidate)
    return None


def downloader(folder: Path) -> Path:
    """An environment whose pip can download for every ABI and can still read Chainer's setup.py."""
    base = interpreter("3.7")
    if base is None:
        raise SystemExit("Python 3.7 is needed to make locks")
    run(UV, "venv", "-q", "-p", base, folder)
    names = ("pip", *FIRST)
    run(UV, "pip", "install", "-q", "-p", folder / "bin/python", *(f"{name}=={COMMON['3.7'][name]}" for name in names))
    return folder / "bin/python"


def download(
    pip: Path,
    folder: Path,
    name: str,
    version: str,
    python: str,
    abi: str,
    platforms: Sequence[str] = PLATFORMS,
) -> Path:
    """The one file that an installer takes for this ABI."""
    folder.mkdir(parents=True)
    words: list[str] = [str(pip), "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder)]
    if name == "chainer":
        words += ["--no-build-isolation", "--no-binary", "chainer"]
    else:
        words += ["--only-binary", ":all:", "--implementation", "cp", "--python-version", python, "--abi", abi]
        words += [word for tag in platforms for word in ("--platform", tag)]
    run(*words, f"{name}=={version}")
    (found,) = folder.iterdir()
    return found


def lock_requirements(pip: Path, folder: Path, stack: Wanted, python: str) -> tuple[tuple[Requirement, ...], int]:
    """Pins with hashes for all ABIs of one Python, and the size of the first ABI's files in bytes."""
    requirements, size = [], 0
    platforms = MODERN_PLATFORMS if python in stack.built else PLATFORMS
    for name, version in sorted(stack.pins(python).items()):
        digests: list[str] = []
        for abi in ABIS[python]:
            file = download(pip, folder / name / abi, name, version, python, abi, platforms)
            size += file.stat().st_size if abi == ABIS[python][0] else 0
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            digests += [digest] if digest not in digests else []
        requirements.append(Requirement(name, version, tuple(digests)))
    return tuple(requirements), size


def requires_dist(file: Path) -> list[str]:
    """The requirements that a wheel or a source distribution declares (of the latter, those without a marker)."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            (name,) = (name for name in wheel.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
            text = wheel.read(name).decode("utf-8")
        return [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("Requires-Dist:")]
    with tarfile.open(file) as sdist:
        (member,) = (member for member in sdist.getmembers() if member.name.endswith(".egg-info/requires.txt"))
        stream = sdist.extractfile(member)
        text = stream.read().decode("utf-8") if stream else ""
    # Some of Chainer's were packed on a machine with CuPy, which its setup.py asks for only where it is installed.
    return [line for line in text.partition("[")[0].split() if not line.startswith("cupy")]


def unsatisfied(files: Path, requirements: Sequence[Requirement], python: str) -> list[str]:
    """What the downloaded files ask for and the lock does not hold, read from their metadata."""
    pins = {item.name: item.version for item in requirements}
    environment = {"python_version": python, "extra": ""}
    wrong = []
    for name in pins:
        (file,) = (files / name / ABIS[python][0]).iterdir()
        for line in requires_dist(file):
            asked = Asked(line)
            held = pins.get(canonicalize_name(asked.name))
            if asked.marker is not None and not asked.marker.evaluate(environment):
                continue
            if held is None or held not in asked.specifier:
                wrong.append(f"{name} asks for {line}")
    return wrong


def tree_bytes(folder: Path) -> int:
    """Size of the files under a folder, without .pyc files, which come and go."""
    return sum(
        path.lstat().st_size for path in folder.rglob("*") if path.is_file() and path.suffix not in (".pyc", ".pyo")
    )


def install(folder: Path, base: str, python: str, requirements: Sequence[Requirement]) -> tuple[Path, int]:
    """Install a lock by hash into a new environment; its interpreter and the bytes that it grew by."""
    env = folder / "env"
    if python == "2.7":
        # The last virtualenv for 2.7; it must not meet platformdirs 4.
        words = ("--no-periodic-update", "--no-download", "--app-data", folder / "app-data", "-q", "-p", base, env)
        run(UV, "tool", "run", "--with", "platformdirs<4", "--from", "virtualenv==20.21.1", "virtualenv", *words)
    else:
        run(UV, "venv", "-q", "-p", base, env)
    target = env / "bin/python"
    before = tree_bytes(env)
    first, whole = folder / "first.txt", folder / "whole.txt"
    first.write_text("".join(item.line() + "\n" for item in requirements if item.name in FIRST))
    whole.write_text("".join(item.line() + "\n" for item in requirements))
    if python == "2.7":
        pip = (target, "-m", "pip", "install", "-q", "--no-cache-dir", "--require-hashes")
        run(*pip, "-r", first)
        run(*pip, "--no-build-isolation", "-r", whole)
    else:
        pip = (UV, "pip", "install", "-q", "-p", target, "--link-mode", "copy", "--require-hashes")
        run(*pip, "-r", first)
        run(*pip, "--no-build-isolation", "-r", whole)
    return target, tree_bytes(env) - before


def prove(target: Path, stack: Wanted, python: str) -> str:
    """Check an installed lock and run prove.py in it; what was seen, for the TOML.

    Where ideep4py is to be built, prove_numpy.py: with the start-up files of setup where Chainer needs them.
    """
    run(target, "-m", "pip", "check")
    if python in stack.built:
        if python in NEED_STARTUP:
            (site,) = (target.parents[1] / "lib").glob("python*/site-packages")
            for file in startup_files((), str(site)):
                Path(file.path).write_text(file.content)
        seen = run(target, "-B", PROVE_NUMPY).strip().removeprefix("PROVED ")
        return f"pip check; {seen}, CPython {python_version(target)} on {cpu_vendor()}; without ideep4py"
    plain = ("plain",) if stack.emulator else ()
    seen = run(*stack.emulator, target, "-B", PROVE, *plain).strip().removeprefix("PROVED ")
    where = f"under {' '.join(stack.emulator)}" if stack.emulator else f"on {cpu_vendor()}"
    return f"pip check; {seen}, CPython {python_version(target)} {where}"


def python_version(target: Path) -> str:
    """Three numbers of the interpreter's version; for 2.7 with its ABI, of which the lock covers two."""
    code = (
        "import sys; wide = 'cp27mu' if sys.maxunicode > 0xffff else 'cp27m'; "
        "print('%d.%d.%d' % sys.version_info[:3] + (' ' + wide if sys.version_info[0] == 2 else ''))"
    )
    return run(target, "-c", code).strip()


def cpu_vendor() -> str:
    """Vendor and most telling vector extension of this processor."""
    text = Path("/proc/cpuinfo").read_text() if platform.system() == "Linux" else ""
    # The first processor's lines win.
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    flags = fields.get("flags", "").split()
    best = next((flag for flag in ("avx512f", "avx2", "avx", "sse2") if flag in flags), "")
    return f"{fields.get('vendor_id', 'unknown')} {best}".strip()


def toml(stack: Wanted, locks: Sequence[str]) -> str:
    """The file's text."""
    head = [
        "# Written by tests/stacks/lock.py; do not edit.",
        f'name = "{stack.name}"',
        f'chainer = "{stack.chainer}"',
        f'ideep4py = "{stack.ideep4py}"',
        f"cpu_flags = {list(stack.cpu_flags)}".replace("'", '"'),
    ]
    if stack.cpu_vendor:
        head.append(f'cpu_vendor = "{stack.cpu_vendor}"')
    head += ["known = [", *(f'    "{phrase}",' for phrase in stack.known), "]"]
    return "\n".join(head) + "\n" + "".join(locks)


def there(stack: Wanted) -> dict[str, str]:
    """The tables of a stack's file, by their Python."""
    file = STACKS / f"{stack.name}.toml"
    tables = file.read_text().split("\n[[lock]]")[1:] if file.exists() else []
    return {table.split('"')[1]: "\n[[lock]]" + table for table in tables}


def main(words: Sequence[str]) -> None:
    """Lock the stacks of these names; all where none is given."""
    names, new = [word for word in words if word != "--new"], "--new" in words
    unknown = set(names) - {stack.name for stack in WANTED}
    if unknown:
        raise SystemExit(f"not in wanted.py: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="lock-") as scratch:
        pip = downloader(Path(scratch) / "downloader")
        for stack in WANTED:
            if names and stack.name not in names:
                continue
            kept = there(stack) if new else {}
            for python in sorted((*stack.built, *stack.pythons), key=Version, reverse=True):
                if python not in kept:
                    kept[python] = one_lock(pip, Path(scratch) / stack.name / python, stack, python)
            tables = [kept[python] for python in sorted(kept, key=Version, reverse=True)]
            (STACKS / f"{stack.name}.toml").write_text(toml(stack, tables))


def one_lock(pip: Path, folder: Path, stack: Wanted, python: str) -> str:
    """Lock, install and prove one stack for one Python; its part of the TOML."""
    requirements, download_bytes = lock_requirements(pip, folder / "files", stack, python)
    wrong = unsatisfied(folder / "files", requirements, python)
    if wrong:
        raise SystemExit(f"{stack.name} {python} is not closed: {'; '.join(wrong)}")
    base = interpreter(python)
    if base is None:
        installed_bytes, proved = 0, "untried: no interpreter"
    else:
        target, installed_bytes = install(folder, base, python, requirements)
        proved = prove(target, stack, python)
    print(f"{stack.name} {python}: {proved}", flush=True)
    lines = [
        "",
        "[[lock]]",
        f'python = "{python}"',
        f"abis = {list(ABIS[python])}".replace("'", '"'),
        f'installer = "{"virtualenv" if python in ("2.7", "3.5") else "uv"}"',
        f"download_bytes = {download_bytes}",
        f"installed_bytes = {installed_bytes}",
        *(['built = ["ideep4py"]'] if python in stack.built else []),
        *([f'known = ["{RESIZE}"]'] if python in NEED_STARTUP else []),
        f'proved = "{proved}"',
        "[lock.requirements]",
    ]
    for item in requirements:
        values = ", ".join(f'"{value}"' for value in (item.version, *item.sha256))
        lines.append(f"{item.name} = [{values}]")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])
