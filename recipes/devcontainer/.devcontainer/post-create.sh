#!/bin/sh
# Makes the environment when the container has been created: by hash, proved, its variables for this very machine.
# Ends with another code than 0, and says why, where iDeep cannot be used or would be wrong here.
set -eu

environment=${IDEEPDOCTOR_PYTHON:-$HOME/.ideep}
doctor=/opt/doctor/bin/ideepdoctor

if [ -e "$environment" ]; then
    # The container was created anew with an old home folder: look, mend, prove.
    "$doctor" fix --python "$environment" --yes
    exec "$doctor" smoke --python "$environment"
fi
# Not from the variable: it names what is to be made, and setup would look for a Python there.
unset IDEEPDOCTOR_PYTHON
exec "$doctor" setup --python /usr/local/bin/python3.7 --env "$environment" --stack chainer7.8.1-ideep4py2.0.0.post3
