# syntax=docker/dockerfile:1
# Chainer [= stack.chainer =] for Python [= python =], with an ideep4py that is built from source here; rendered by
# ideepdoctor [= doctor_version =].
#
#   docker build --tag ideep .                             built, proved, installed, proved again
#   docker build --tag ideep:doctor --target doctor .      the same, and ideepdoctor in it
#   docker build --target wheel --output wheels .          the wheel alone
#
# Build and run it on x86-64. Another source than upstream's: --build-arg SOURCE=(an address of git), or ideep.tar.gz
# beside this file and --build-arg SOURCE=/upstream/ideep.tar.gz; --build-arg REF=(a tag or commit of it).
ARG PYTHON_IMAGE=[= image =]
ARG BUILD_IMAGE=[= full_image =]
ARG DOCTOR_IMAGE=[= doctor_image =]

[% include "docker-tool.Dockerfile" %]

# With a compiler, make, git and Python's headers. The wheel is handed out only where it was proved; entrypoint.sh is
# copied because COPY wants at least one file, whether there is an archive or not.
# MARCH is what the code may use: x86-64-v3 runs on every processor with AVX2; native on those like this one alone.
FROM ${BUILD_IMAGE} AS compile
ARG INDEX_URL=""
ARG SOURCE=""
ARG REF=""
ARG MARCH=x86-64-v3
ARG MKL=wheel
COPY --from=tool /opt/doctor /opt/doctor
COPY entrypoint.sh ideep*.tar.gz /upstream/
RUN --mount=type=cache,target=/root/.cache,sharing=locked \
    IDEEPDOCTOR_INDEX_URL="$INDEX_URL" UV_LINK_MODE=copy CI=true \
    /opt/doctor/bin/ideepdoctor build --python /usr/local/bin/python[= python =] --chainer [= stack.chainer =] \
        ${SOURCE:+--source "$SOURCE"} ${REF:+--ref "$REF"} --march "$MARCH" --mkl "$MKL" --output /wheels

FROM scratch AS wheel
COPY --from=compile /wheels /

[% include "docker-base.Dockerfile" %]

# The environment, by hash, with the proof that iDeep is used and right: where it is not, the build ends here.
# What is right for this machine alone is not tuned. The last step leaves entrypoint.sh what the wheel may use.
FROM base AS build
ARG INDEX_URL=""
COPY --from=tool /opt/doctor /opt/doctor
COPY --from=compile /wheels /wheels
RUN --mount=type=cache,target=/root/.cache,sharing=locked \
    IDEEPDOCTOR_INDEX_URL="$INDEX_URL" UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy CI=true \
    /opt/doctor/bin/ideepdoctor setup --python /usr/local/bin/python[= python =] --env /opt/ideep \
        --chainer [= stack.chainer =] --build --wheelhouse /wheels --no-tune \
    && /opt/ideep/bin/python -c "import glob, json; \
print(*json.load(open(*glob.glob('/opt/ideep/lib/python*/site-packages/ideep4py-*/ideepdoctor-build.json')))['cpu_flags'])" \
        > /opt/ideep/cpu_flags

[% include "docker-runtime.Dockerfile" %]
