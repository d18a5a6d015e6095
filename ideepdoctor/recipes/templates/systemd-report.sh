#!/bin/sh
# Made by: ideepdoctor recipe systemd
# ideep-drift-report FOLDER: what is new, and which change explains it.
set -u
folder=$1
doctor=${0%/*}/ideepdoctor

told() {
    echo "iDeep on $(uname -n): the drift check failed"
    # The last report: new findings, or why nothing could be checked. None of this run: the check itself did not come so far.
    "${0%/*}/python" - "$folder/last.json" <<'END' || echo "  no report: see journalctl -u ideep-drift.service"
import json, sys
report = json.load(open(sys.argv[1], encoding="utf-8"))
if report["error"]:
    print("  could not check:", report["error"]["message"])
    print("  ", report["error"]["hint"])
for item in report["findings"]:
    print("  %s %s %s: %s" % (item["severity"], item["code"], item["title"], item["found"]))
    print("    next:", item["treatment"]["next_step"])
END
    if [ -e "$folder/baseline.facts.json" ] && [ -e "$folder/last.facts.json" ]; then
        echo "what changed since the baseline:"
        "$doctor" diff "$folder/baseline.facts.json" "$folder/last.facts.json" || true
    fi
    echo "accept what is there now: systemctl start ideep-drift-baseline"
}

text=$(told 2>&1)
printf '%s\n' "$text"
if [ -n "${MAILTO:-}" ]; then
    printf 'To: %s\nSubject: iDeep drifted on %s\n\n%s\n' "$MAILTO" "$(uname -n)" "$text" | /usr/sbin/sendmail -t
fi
