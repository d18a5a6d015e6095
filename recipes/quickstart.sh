#!/bin/sh
# From a fresh clone to a Chainer that uses iDeep: sh recipes/quickstart.sh [options of "ideepdoctor setup"]
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$here/recipes/common.sh"

make_venv "$here/.venv"
"$here/.venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable "$here" >&2
exec "$here/.venv/bin/ideepdoctor" setup "$@"
