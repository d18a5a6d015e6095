#!/bin/sh
# Made by: ideepdoctor recipe cron
# ideep-drift: checks an environment against its baseline; prints only what changed since the last run.
#     ideep-drift             the check
#     ideep-drift --accept    what is there now becomes the baseline
# Exit code: 0 nothing new; 1 something is wrong that was not there before; 3 not checked; 6 another check runs.
set -u
umask 027
state=${IDEEP_DRIFT_STATE:-/var/lib/ideep-drift}
venv=${IDEEP_DRIFT_VENV:-/opt/ideepdoctor}
target=${IDEEP_ENV:-/opt/ideep}
seconds=${IDEEP_DRIFT_SECONDS:-600}
IDEEPDOCTOR_REQUIREMENT=${IDEEPDOCTOR_REQUIREMENT:-"[= requirement =]"}
export IDEEPDOCTOR_CACHE_DIR="$state/cache" IDEEPDOCTOR_STATE_DIR="$state/doctor" CI=true

mkdir -p "$state" || exit 3
exec 9>"$state/lock"
flock -n 9 || exit 6  # a check that hangs is ended by its own time limit, so nothing is lost by silence

if [ ! -x "$venv/bin/ideepdoctor" ]; then
    python=
    for name in python3.13 python3.12 python3.11 python3; do
        "$name" -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && python=$name && break
    done
    [ -n "$python" ] || { echo "ideep-drift: ideepdoctor needs a Python 3.11 or later on PATH (and its venv)"; exit 3; }
    if ! { "$python" -m venv "$venv" && "$venv/bin/python" -m pip install --quiet "$IDEEPDOCTOR_REQUIREMENT"; }; then
        echo "ideep-drift: the doctor could not be installed into $venv"
        exit 3
    fi
fi

look() {
    timeout "$seconds" "$venv/bin/ideepdoctor" diagnose --python "$target" --format json --fail-on warning "$@" \
        >"$state/output" 2>&1
}

# why FILE CODE: what kept the doctor from an answer.
why() {
    if [ "$2" -eq 124 ]; then
        echo "no answer within $seconds seconds"
    else
        cat "$state/output"
        "$venv/bin/python" -c '
import json, sys
error = json.load(open(sys.argv[1], encoding="utf-8"))["error"]
print(error["message"], error["hint"], sep="\n")' "$1" 2>/dev/null
    fi
}

if [ "${1:-}" = --accept ] || [ ! -e "$state/baseline.json" ]; then
    look --output "$state/baseline.new" --save-facts "$state/facts.new"
    code=$?
    # Something wrong today is no reason to watch nothing: it is part of the baseline, and told once.
    case $code in
        0 | 1) ;;
        *) echo "ideep-drift: no baseline of $target:"; why "$state/baseline.new" "$code"; exit 3 ;;
    esac
    mv "$state/baseline.new" "$state/baseline.json"
    mv "$state/facts.new" "$state/baseline.facts.json"
    rm -f "$state/told"
    echo "ideep-drift: $target is watched from now on; what is there now:"
    "$venv/bin/ideepdoctor" diagnose --facts "$state/baseline.facts.json" --fail-on never
    exit 0
fi

rm -f "$state/last.json" "$state/last.facts.json"
look --baseline "$state/baseline.json" --output "$state/last.json" --save-facts "$state/last.facts.json"
code=$?
# What a mail would be about, without what differs at each run.
now=$("$venv/bin/python" - "$state/last.json" "$code" <<'END'
import json, sys
code = int(sys.argv[2])
if code in (0, 1):
    report = json.load(open(sys.argv[1], encoding="utf-8"))
    known = {item["fingerprint"] for item in report["suppressed"]}
    print(code, *sorted(item["fingerprint"] for item in report["findings"] if item["fingerprint"] not in known))
else:
    print(code)
END
)
before=$(cat "$state/told" 2>/dev/null)
if [ "$now" != "${before:-0}" ]; then
    case $code in
        0) echo "ideep-drift: $target is again as it was" ;;
        1)
            echo "ideep-drift: $target has changed:"
            "$venv/bin/ideepdoctor" diff "$state/baseline.facts.json" "$state/last.facts.json"
            echo "accept it: $0 --accept"
            ;;
        *)
            echo "ideep-drift: $target could not be checked:"
            why "$state/last.json" "$code"
            ;;
    esac
    echo "$now" >"$state/told"
fi
case $code in 0 | 1) exit "$code" ;; *) exit 3 ;; esac
