#!/bin/sh
# From a fresh clone to a Chainer that uses iDeep: sh recipes/quickstart.sh [options of "ideepdoctor setup"]
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$here/recipes/common.sh"

make_venv "$here/.venv"
"$here/.venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable "$here" >&2
code=0
"$here/.venv/bin/ideepdoctor" setup "$@" || code=$?
case ":$PATH:" in
    *":$here/.venv/bin:"*) ;;
    *) say "ideepdoctor itself is $here/.venv/bin/ideepdoctor (put that folder on PATH to type it short)" ;;
esac
exit "$code"
