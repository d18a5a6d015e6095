#!/bin/bash
# Made by: ideepdoctor recipe mpi
# ChainerMN over mpiexec of MPICH, Intel MPI or Open MPI: iDeep is checked on every rank before the training starts.
#     ./ideep-mpi.sh -n 8 -p 4 -f hosts python train_chainermn.py
set -uo pipefail

usage() {
    cat >&2 <<END
usage: $0 -n RANKS [-p RANKS_PER_NODE] [-t THREADS] [-f HOSTFILE] [-c] PROGRAM...
  -n  ranks in all
  -p  ranks on each node [all of them: one node]
  -t  threads of a rank [cores of this node / ranks on it]
  -f  file of hosts, as mpiexec takes it
  -c  check alone, train nothing
variables: IDEEP_HOME (doctor, environment, reports; a folder that all nodes see) [./.ideepdoctor],
           IDEEP_ENV (an environment with Chainer, iDeep and mpi4py) [made there], IDEEP_FAIL_ON [error],
           IDEEP_CHECK_SECONDS [300], MPIEXEC [mpiexec], IDEEPDOCTOR_REQUIREMENT
END
    exit 2
}

IDEEPDOCTOR_REQUIREMENT=${IDEEPDOCTOR_REQUIREMENT:-"ideepdoctor"}
IDEEP_HOME=${IDEEP_HOME:-$PWD/.ideepdoctor}
IDEEP_ENV=${IDEEP_ENV:-$IDEEP_HOME/ideep-3.7-806b3983d96c56a9-mpi}
IDEEP_FAIL_ON=${IDEEP_FAIL_ON:-error}
IDEEP_CHECK_SECONDS=${IDEEP_CHECK_SECONDS:-300}
MPIEXEC=${MPIEXEC:-mpiexec}
STACK="chainer7.8.1-ideep4py2.0.0.post3"
PYTHON="3.7"
ranks='' per_node='' threads='' hosts='' check_alone=''
while getopts n:p:t:f:c option; do
    case $option in
        n) ranks=$OPTARG ;;
        p) per_node=$OPTARG ;;
        t) threads=$OPTARG ;;
        f) hosts=$OPTARG ;;
        c) check_alone=yes ;;
        *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ -n "$check_alone" ] || [ $# -gt 0 ] || usage
per_node=${per_node:-$ranks}
for number in "$ranks" "$per_node" "${threads:-1}"; do
    case $number in '' | 0* | *[!0-9]*) usage ;; esac
done
[ -z "$hosts" ] || [ -r "$hosts" ] || { echo "ideep: cannot read $hosts" >&2; exit 2; }
command -v "$MPIEXEC" >/dev/null || { echo "ideep: there is no $MPIEXEC on PATH (module load ...?)" >&2; exit 3; }

doctor=$IDEEP_HOME/venv/bin/ideepdoctor
export IDEEP_ENV doctor

make_doctor() {
    local python
    [ -x "$doctor" ] && return
    for python in python3.13 python3.12 python3.11 python3 ''; do
        [ -n "$python" ] || { echo "ideep: ideepdoctor needs a Python 3.11 or later on PATH" >&2; return 3; }
        "$python" -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break
    done
    "$python" -m venv "$IDEEP_HOME/venv" &&
        "$IDEEP_HOME/venv/bin/python" -m pip install --quiet "$IDEEPDOCTOR_REQUIREMENT"
}

make_environment() {
    if [ ! -e "$IDEEP_ENV/bin/python" ]; then
        "$doctor" setup --python "$PYTHON" --stack "$STACK" --env "$IDEEP_ENV" --no-tune --yes || return
    fi
    # Compiled against the MPI whose compiler wrapper is first on PATH: the one of this mpiexec, see "one world" below.
    "$IDEEP_ENV/bin/python" -c 'import mpi4py' 2>/dev/null ||
        "$IDEEP_ENV/bin/python" -m pip install --quiet --no-cache-dir --no-binary mpi4py mpi4py==3.1.6
}

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
              "suppressed": [], "error": None, "tool": {"name": "ideepdoctor", "version": "0.1.0", "command": "smoke"}, "host": late}
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

check_rank() {
    local rank=${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${SLURM_PROCID:-0}}}} name
    name=$(hostname)-rank$rank
    fleet_file "$name" "$1/$name.json" "$2"
}

mkdir -p "$IDEEP_HOME" || exit 3
exec 8>"$IDEEP_HOME/lock" && flock 8
make_doctor || { code=$?; echo "ideep: the doctor could not be installed" >&2; exit "$code"; }
make_environment || { code=$?; echo "ideep: no environment with Chainer, iDeep and mpi4py: see above" >&2; exit "$code"; }
exec 8>&-
reports=$(mktemp -d "$IDEEP_HOME/reports-XXXXXX") || exit 3

if [ -z "$threads" ]; then
    # Cores that this process may use (affinity and quota count), shared out among the ranks of a node.
    threads=$("$doctor" cpu --format json | "$IDEEP_HOME/venv/bin/python" -c '
import json, sys
cpu = json.load(sys.stdin)["cpu"]
known = [cpu[name] for name in ("physical_cores", "usable_cpus", "quota_cpus") if cpu[name]]
print(max(1, int(min(known)) // int(sys.argv[1])))' "$per_node") || exit 3
fi
echo "ideep: $ranks ranks, $per_node on a node, $threads threads each" >&2

# Each rank is bound to as many cores as it has threads. Variables go along in the command: no launcher drops those.
case $("$MPIEXEC" --version 2>&1) in
    *"Open MPI"* | *OpenRTE* | *PRRTE*)
        launch=("$MPIEXEC" -n "$ranks" --map-by "ppr:$per_node:node:PE=$threads" --bind-to core)
        [ -z "$hosts" ] || launch+=(--hostfile "$hosts")
        ;;
    *"Intel(R) MPI"*)
        launch=("$MPIEXEC" -n "$ranks" -ppn "$per_node" -genv I_MPI_PIN_DOMAIN "$threads:compact")
        [ -z "$hosts" ] || launch+=(-f "$hosts")
        ;;
    *)  # MPICH and what descends from it
        launch=("$MPIEXEC" -n "$ranks" -ppn "$per_node" -bind-to "core:$threads")
        [ -z "$hosts" ] || launch+=(-f "$hosts")
        ;;
esac
launch+=(env OMP_NUM_THREADS="$threads" IDEEP_ENV="$IDEEP_ENV" doctor="$doctor")

# One world: an mpi4py of another MPI would give each process a world of its own, without any error.
"${launch[@]}" "$IDEEP_ENV/bin/python" -c '
import sys
try:
    from mpi4py import MPI
    import chainermn
except Exception as error:
    sys.exit("ideep: %s: %s" % (type(error).__name__, error))
size, wanted = MPI.COMM_WORLD.Get_size(), int(sys.argv[1])
if size != wanted:
    sys.exit("ideep: mpiexec started %d ranks, mpi4py sees %d: it is built against another MPI (%s)" % (
        wanted, size, MPI.Get_library_version().split("\n")[0]))
' "$ranks" || { echo "ideep: ChainerMN does not run on this MPI: see above" >&2; exit 3; }

"${launch[@]}" bash -c "$(declare -f fleet_file check_rank); check_rank \"\$@\"" bash "$reports" "$IDEEP_CHECK_SECONDS" || true
found=("$reports"/*-rank*.json)
[ -e "${found[0]}" ] || found=()
"$doctor" fleet merge "$reports" --fail-on "$IDEEP_FAIL_ON"
code=$?
if [ "${#found[@]}" -ne "$ranks" ]; then
    echo "ideep: ${#found[@]} of $ranks ranks wrote a report into $reports" >&2
    [ "$code" -ne 0 ] || code=3
fi
[ "$code" -eq 0 ] || { echo "ideep: nothing was trained; the reports are in $reports" >&2; exit "$code"; }
rm -rf "$reports"
[ -z "$check_alone" ] || exit 0

exec "${launch[@]}" "$doctor" run --python "$IDEEP_ENV" -- "$@"
