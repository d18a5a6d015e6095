#!/bin/sh
# What depends on the machine is decided where the container starts, not where the image was built: whether its
# processor can run this ideep4py (if not: exit code 69), the number of threads, the code that MKL takes.
# A variable that is set already stays as it is.
set -eu

refuse() {
    echo "ideep-entrypoint: $1" >&2
    exit 69
}

line=$(grep -m1 '^flags' /proc/cpuinfo) || line=
flags=" ${line#*: } "
vendor=$(grep -m1 '^vendor_id' /proc/cpuinfo) || vendor=
vendor=${vendor#*: }

needed=$(cat /opt/ideep/cpu_flags)  # what the compiler used, as the wheel says it
if [ -n "$line" ]; then
    for flag in $needed; do
        case $flags in
            *" $flag "*) ;;
            *) refuse "ideep4py needs $flag, which the processor of this host does not have or its hypervisor hides" ;;
        esac
    done
fi

if [ -z "${OMP_NUM_THREADS:-}" ]; then
    # OpenMP goes by the CPUs that it may be scheduled on: it ignores the quota of a control group (docker --cpus, a
    # limit of Kubernetes) and takes hyper-threads for CPUs.
    threads=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
    # shellcheck disable=SC2046 # two words
    set -- $(awk -F ': *' '/^processor/ { cpus++ } /^physical id/ { chip = $2 } /^core id/ { cores[chip " " $2] }
        END { for (core in cores) n++; print cpus + 0, n + 0 }' /proc/cpuinfo) "$@"
    if [ "$2" -gt 0 ] && [ "$threads" -eq "$1" ] && [ "$threads" -ge $(($2 * 2)) ]; then
        threads=$2
    fi
    shift 2
    quota=max period=0
    if [ -r /sys/fs/cgroup/cpu.max ]; then
        read -r quota period < /sys/fs/cgroup/cpu.max
    elif [ -r /sys/fs/cgroup/cpu/cpu.cfs_quota_us ]; then
        read -r quota < /sys/fs/cgroup/cpu/cpu.cfs_quota_us
        read -r period < /sys/fs/cgroup/cpu/cpu.cfs_period_us
    fi
    if [ "$quota" != max ] && [ "$quota" -gt 0 ] && [ "$period" -gt 0 ]; then
        share=$(((quota + period - 1) / period))
        [ "$share" -ge "$threads" ] || threads=$share
    fi
    export OMP_NUM_THREADS="$threads"
fi

if [ -z "${MKL_DEBUG_CPU_TYPE:-}" ] && [ "$vendor" = AuthenticAMD ]; then
    # MKL of 2018 takes its slowest code on other processors than Intel's: matrix products take 3 to 5 times as long.
    type=7
    for flag in avx512bw avx512cd avx512dq avx512f avx512vl; do
        case $flags in *" $flag "*) ;; *) type=5 ;; esac
    done
    case $flags in *" avx2 "*) export MKL_DEBUG_CPU_TYPE="$type" ;; esac
fi

exec "$@"
