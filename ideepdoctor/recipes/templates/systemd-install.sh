#!/bin/sh
# Made by: ideepdoctor recipe systemd
# As root, in this folder: sh install.sh [/path/of/the/environment]
set -eu
IDEEPDOCTOR_REQUIREMENT=${IDEEPDOCTOR_REQUIREMENT:-"[= requirement =]"}
environment=${1:-/opt/ideep}
root=${DESTDIR:-}
cd "$(dirname "$0")"

# DynamicUser= reads it as a stranger: homes that are closed to others need User= ("systemctl edit ideep-drift.service").
[ -e "$root$environment/bin/python" ] || { echo "no environment at $environment; for example:
  ideepdoctor setup --env $environment --python [= python =] --stack [= stack.name =]" >&2; exit 2; }
python=
for name in python3.13 python3.12 python3.11 python3; do
    if "$name" -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$name
        break
    fi
done
[ -n "$python" ] || { echo "ideepdoctor needs a Python 3.11 or later on PATH (and its venv)" >&2; exit 3; }
[ -x "$root/opt/ideepdoctor/bin/ideepdoctor" ] || "$python" -m venv "$root/opt/ideepdoctor"
"$root/opt/ideepdoctor/bin/python" -m pip install --quiet --upgrade "$IDEEPDOCTOR_REQUIREMENT"
install -m 755 ideep-drift-report "$root/opt/ideepdoctor/bin/"
install -d "$root/etc/systemd/system"
for unit in ideep-drift.service ideep-drift.timer ideep-drift-baseline.service ideep-drift-report.service; do
    sed "s|^Environment=IDEEP_ENV=.*|Environment=IDEEP_ENV=$environment|" "$unit" >"$root/etc/systemd/system/$unit"
done
[ -z "$root" ] || exit 0
systemctl daemon-reload
systemctl start ideep-drift-baseline.service
systemctl enable --now ideep-drift.timer
systemctl start ideep-drift.service
