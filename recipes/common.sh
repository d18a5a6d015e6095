# Shared by quickstart.sh and test.sh (sourced, POSIX sh): find a Python >= 3.11 and make .venv with the project in it.

say() { printf '%s\n' "$*" >&2; }

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

# Print the first Python >= 3.11: on PATH, then in pyenv's folder (its shims may point at an older one).
find_python() {
    for candidate in python3.14 python3.13 python3.12 python3.11 python3 python; do
        path=$(command -v "$candidate" 2>/dev/null) || continue
        if new_enough "$path"; then
            printf '%s\n' "$path"
            return 0
        fi
    done
    for path in "${PYENV_ROOT:-${HOME:-/nonexistent}/.pyenv}"/versions/3.1[1-9]*/bin/python; do
        if [ -x "$path" ] && new_enough "$path"; then
            printf '%s\n' "$path"
            return 0
        fi
    done
    return 1
}

# make_venv FOLDER: a virtual environment there, made once.
make_venv() {
    if [ -x "$1/bin/python" ] && new_enough "$1/bin/python"; then
        return 0
    fi
    if python=$(find_python); then
        if "$python" -m venv --clear "$1" >&2; then
            return 0
        fi
        say "error: $python cannot make a virtual environment."
        say "  Debian and Ubuntu keep that in a package of its own: sudo apt-get install python3-venv"
        return 3
    fi
    if command -v uv >/dev/null 2>&1 && uv venv --quiet --seed --python '>=3.11' "$1"; then
        return 0
    fi
    say "error: no Python 3.11 or newer was found (the doctor itself needs it; Chainer's own Python is another one)."
    say "  Debian 12+, Ubuntu 24.04+: sudo apt-get install python3 python3-venv"
    say "  any Linux, no root:        install uv, then run this again"
    return 3
}
