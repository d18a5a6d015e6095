FROM ${PYTHON_IMAGE} AS base
[% if debian == "bookworm" %]
# ideep4py needs GNU's OpenMP library, which slim images lack.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/*
[% else %]
# ideep4py needs GNU's OpenMP library, which slim images lack; [= debian =] is old, its packages may be gone from Debian's servers.
COPY --from=full /usr/lib/x86_64-linux-gnu/libgomp.so.1 /usr/lib/x86_64-linux-gnu/libgomp.so.1
[% endif %]
RUN useradd --uid 1000 --create-home --shell /bin/sh ideep \
    && install --directory --owner=1000 --group=1000 /work
