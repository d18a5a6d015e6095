# Which interpreters there are, in the order of their claims: a line "COOKIE SOURCE PACKAGES VERSION PATH" for each, on
# standard output; then a line "COOKIE end". Started as "sh -s COOKIE ASKED" with this file on standard input, in any
# POSIX shell, busybox's too. It reads folders; it starts no interpreter and writes nothing.
#   SOURCE    asked, active, folder, path, pyenv, conda, other
#   PACKAGES  chainer, ideep4py, chainer,ideep4py or none: what lies where it would be imported from
#   VERSION   python3.7, as its file is called, or unknown
# ASKED, where it is not empty, is a path: that one alone is looked at.
set -u
cookie=$1
asked=${2:-}
home=${HOME:-}

tell() {
    [ -f "$2" ] && [ -x "$2" ] || return 0
    real=$(readlink -f "$2" 2>/dev/null) || real=$2
    version=${real##*/}
    case $version in
        python2.[0-9] | python3.[0-9] | python3.[0-9][0-9]) pattern=$version ;;
        *) version=unknown pattern='python*' ;;
    esac
    folder=${2%/*}
    packages=
    for name in chainer ideep4py; do
        if has "$name" "${folder%/*}"; then
            packages=$packages,$name
        elif [ ! -e "${folder%/*}/pyvenv.cfg" ] && [ ! -e "$folder/pyvenv.cfg" ]; then
            folder2=${real%/*}
            if has "$name" "${folder2%/*}" || has "$name" "${folder%/*}/local" || has "$name" "$home/.local"; then
                packages=$packages,$name
            fi
        fi
    done
    packages=${packages#,}
    printf '%s\n' "$cookie $1 ${packages:-none} $version $2"
}

has() {
    for place in "$2"/lib/$pattern/site-packages/"$1" "$2"/lib64/$pattern/site-packages/"$1" \
        "$2"/lib/$pattern/dist-packages/"$1" "$2"/lib/python3/dist-packages/"$1"; do
        [ -d "$place" ] && return 0
    done
    return 1
}

folder() {
    for name in python python3 python2 pypy3 pypy; do
        if [ -x "$2/bin/$name" ]; then
            tell "$1" "$2/bin/$name"
            return 0
        fi
    done
}

if [ -n "$asked" ]; then
    case $asked in
        "~") asked=$home ;;
        "~/"*) asked=$home/${asked#"~/"} ;;
        /*) ;;
        *) asked=$PWD/$asked ;;
    esac
    if [ -d "$asked" ]; then folder asked "${asked%/}"; else tell asked "$asked"; fi
    echo "$cookie end"
    exit 0
fi

[ -n "${VIRTUAL_ENV:-}" ] && folder active "$VIRTUAL_ENV"
[ -n "${CONDA_PREFIX:-}" ] && folder active "$CONDA_PREFIX"
folder folder "$PWD/.ideep"
folder folder "$PWD/.venv"
[ "$PWD" != "$home" ] && folder folder "$home/.ideep"

old=$IFS
IFS=:
set -f
for place in ${PATH:-/usr/local/bin:/usr/bin:/bin} /usr/local/bin /usr/bin /bin; do
    set +f
    IFS=$old
    case $place in
        */shims | "" | [!/]*) ;;
        *)
            for name in python python3 python2 python3.7 python3.6 python2.7 python3.5 python3.8 python3.9 python3.10 \
                python3.11 python3.12 python3.13 python3.14; do
                tell path "$place/$name"
            done
            ;;
    esac
    IFS=:
    set -f
done
set +f
IFS=$old

for place in "${PYENV_ROOT:-$home/.pyenv}"/versions/*; do folder pyenv "$place"; done
for root in "${MAMBA_ROOT_PREFIX:-/nowhere}" "$home"/miniconda3 "$home"/anaconda3 "$home"/miniforge3 \
    "$home"/mambaforge "$home"/micromamba "$home"/miniconda2 "$home"/anaconda2 "$home"/.conda /opt/conda \
    /opt/miniconda3 /opt/anaconda3 /opt/miniforge3 /opt/mambaforge /opt/intel/intelpython2 /opt/intel/intelpython3; do
    [ -d "$root" ] || continue
    folder conda "$root"
    for place in "$root"/envs/*; do folder conda "$place"; done
done
if [ -r "$home/.conda/environments.txt" ]; then
    while read -r place; do folder conda "$place"; done <"$home/.conda/environments.txt"
fi
for place in /opt/python/* /opt/*/ "$home"/.local/share/uv/python/*; do folder other "${place%/}"; done
echo "$cookie end"
