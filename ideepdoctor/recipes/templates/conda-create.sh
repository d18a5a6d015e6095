#!/bin/sh
# Makes the environment "ideep", and "ideepdoctor" beside it, which leaves in the first what corrects the known faults of
# a clean install and sets variables for the machine that it runs on; then proves it. Run it again after a change.
# CONDA=mamba takes another program. Ends with another code than 0 where iDeep is not used, or not right.
set -eu
cd "$(dirname "$0")"
conda=${CONDA:-conda}

for name in ideep ideepdoctor; do
    file=environment.yml
    [ $name = ideep ] || file=doctor.yml
    if "$conda" run --name $name python -c pass >/dev/null 2>&1; then
        "$conda" env update --name $name --file $file
    else
        "$conda" env create --name $name --file $file
    fi
done
prefix=$("$conda" run --name ideep python -c 'import sys; print(sys.prefix)')
"$conda" run --name ideepdoctor ideepdoctor fix --python "$prefix" --yes
"$conda" run --name ideepdoctor ideepdoctor smoke --python "$prefix"
