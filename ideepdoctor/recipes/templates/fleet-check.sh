# fleet_file NAME FILE SECONDS: what the doctor proves and finds here, as one file for "fleet merge".
fleet_file() {
    local folder
    folder=$(mktemp -d) || return
    # Its own cache: many of these run at once, and a home that all hosts share has one.
    IDEEPDOCTOR_CACHE_DIR=$folder/cache timeout "$3" "$doctor" smoke --python "$IDEEP_ENV" --fail-on never \
        --format json --output "$folder/report" || [ $? -ne 124 ] || rm -f "$folder/report"
    IDEEPDOCTOR_CACHE_DIR=$folder/cache timeout "$3" "$doctor" diagnose --python "$IDEEP_ENV" --fail-on never \
        --format json --output "$folder/diagnosis" --save-facts "$folder/facts" || true
    "$(dirname "$doctor")/python" -c '
import json, os, sys
name, folder, out, seconds = sys.argv[1:]
def read(file):
    try:
        with open(os.path.join(folder, file)) as stream:
            return json.load(stream)
    except (OSError, ValueError):
        return None
report = read("report")
if report is None:
    late = {"name": name, "status": "timeout", "message": f"no answer within {seconds} seconds", "seconds": None}
    report = {"schema": "ideepdoctor-report", "schema_version": "1", "target": None, "findings": [], "unknown": [],
              "suppressed": [], "error": None, "tool": {"name": "ideepdoctor", "version": "[= doctor_version =]", "command": "smoke"}, "host": late}
else:
    status, message = ("failed", report["error"]["message"]) if report["error"] else ("ok", "")
    report["host"] = {"name": name, "status": status, "message": message, "seconds": None}
    if (facts := read("facts")) is not None:
        report["facts"] = facts
with open(f"{out}.part", "w") as stream:
    json.dump(report, stream)
os.replace(f"{out}.part", out)
' "$1" "$folder" "$2" "$3"
    rm -rf "$folder"
}
