# syntax=docker/dockerfile:1
# [= stack.name =] for Python [= python =]; rendered by ideepdoctor [= doctor_version =].
#
#   docker build --tag ideep .                          Chainer with iDeep, proved while it is built
#   docker build --tag ideep:doctor --target doctor .   the same, and ideepdoctor in it
#   docker run --rm ideep:doctor ideepdoctor smoke      the proof again, on the machine where it runs
#
# Build and run it on x86-64. A mirror of the package index, without a password: --build-arg INDEX_URL=https://...
ARG PYTHON_IMAGE=[= image =]
ARG DOCTOR_IMAGE=[= doctor_image =]
[% if debian != "bookworm" %]
ARG FULL_IMAGE=[= full_image =]
[% endif %]

[% include "docker-tool.Dockerfile" %]

[% if debian != "bookworm" %]
FROM ${FULL_IMAGE} AS full

[% endif %]
[% include "docker-base.Dockerfile" %]

# The environment, by hash, with the proof that iDeep is used and right: where it is not, the build ends here.
# What is right for this machine alone is not tuned, and nothing is set for its number of CPUs (see entrypoint.sh).
FROM base AS build
ARG INDEX_URL=""
COPY --from=tool /opt/doctor /opt/doctor
RUN --mount=type=cache,target=/root/.cache,sharing=locked \
    IDEEPDOCTOR_INDEX_URL="$INDEX_URL" UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy CI=true \
    /opt/doctor/bin/ideepdoctor setup --python /usr/local/bin/python[= python =] --env /opt/ideep \
        --stack [= stack.name =] --no-tune

[% include "docker-runtime.Dockerfile" %]
