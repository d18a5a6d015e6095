#!/bin/sh
# The documentation in both languages: sh docs/build.sh [FOLDER]; without FOLDER, build/docs. Prints its first page.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$here/recipes/common.sh"

make_venv "$here/.venv"
venv=$here/.venv/bin
"$venv/python" -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' >&2
"$venv/python" -m pip install --quiet --disable-pip-version-check --editable "$here" --group "$here/pyproject.toml:docs" >&2
exec "$venv/python" "$here/docs/build.py" "$@"
