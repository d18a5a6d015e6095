# The doctor with a Python of its own, in one folder: Chainer's Python is [= "another one" if recipe.built else "too old for it" =].
FROM ${DOCTOR_IMAGE} AS tool
ARG INDEX_URL=""
RUN cp -a /usr/local /opt/doctor
[% if copied %]
COPY [= copied =] [= copied_to =]
[% endif %]
ARG IDEEPDOCTOR_REQUIREMENT="[= installed =]"
RUN --mount=type=cache,target=/root/.cache,sharing=locked \
    /opt/doctor/bin/python3 -m pip install --disable-pip-version-check --root-user-action=ignore \
        ${INDEX_URL:+--index-url "$INDEX_URL"} "$IDEEPDOCTOR_REQUIREMENT"
