FROM base AS runtime
LABEL ideepdoctor.stack="[= stack.name =]" ideepdoctor.version="[= doctor_version =]"
COPY --from=build /opt/ideep /opt/ideep
COPY --chmod=0755 entrypoint.sh /usr/local/bin/ideep-entrypoint
ENV PATH=/opt/ideep/bin:$PATH
WORKDIR /work
USER 1000:1000
ENTRYPOINT ["ideep-entrypoint"]
CMD ["python"]

# With the doctor. The proof is made once more, with the files and the user of the image that is kept.
FROM runtime AS doctor
COPY --from=tool /opt/doctor /opt/doctor
ENV PATH=/opt/ideep/bin:/opt/doctor/bin:$PATH \
    IDEEPDOCTOR_PYTHON=/opt/ideep
RUN ideepdoctor smoke --format json --output /tmp/proof.json
CMD ["ideepdoctor", "diagnose"]

# What is kept when no target is named: nothing of the doctor but its proof.
FROM runtime
COPY --from=doctor /tmp/proof.json /opt/ideep/proof.json
HEALTHCHECK --interval=10m --timeout=1m --start-period=1m --retries=2 \
    CMD ["python", "-c", "import ideep4py, numpy; ideep4py.mdarray(numpy.ones((1, 8, 4, 4), 'f'))"]
# Your program comes last: what is above stays in the cache.
# COPY --chown=1000:1000 . .
# CMD ["python", "train.py"]
