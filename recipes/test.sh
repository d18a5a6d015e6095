#!/bin/sh
# From a fresh clone to the whole test command: sh recipes/test.sh [options of pytest]
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$here/recipes/common.sh"

make_venv "$here/.venv"
venv=$here/.venv/bin
"$venv/python" -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' >&2
"$venv/python" -m pip install --quiet --disable-pip-version-check --editable "$here" --group "$here/pyproject.toml:test" >&2
cd "$here"
"$venv/ruff" check .
"$venv/ruff" format --check .
"$venv/mypy"
"$venv/vermin" --quiet --no-tips --violations -t=2.7- -t=3.5- ideepdoctor/payload/*.py
# Two at once, a file of tests each: the machines that this is for have two processors.
exec "$venv/pytest" -n 2 --dist loadfile "$@"
