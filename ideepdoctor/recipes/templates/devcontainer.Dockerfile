# syntax=docker/dockerfile:1
# What devcontainer.json starts from: Python [= python =] with a compiler and git, and ideepdoctor in a folder of its own.
# The environment itself is made by post-create.sh, on the machine and with the user that it is for.
ARG PYTHON_IMAGE=[= full_image =]
ARG DOCTOR_IMAGE=[= doctor_image =]

[% include "docker-tool.Dockerfile" %]

FROM ${PYTHON_IMAGE}
COPY --from=tool /opt/doctor /opt/doctor
RUN useradd --uid 1000 --create-home --shell /bin/bash dev
USER 1000:1000
