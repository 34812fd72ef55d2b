# One image for each service, and one with the whole command. `docker build --target gateway -t headgate/gateway .`
# BUILD needs pip and a C compiler, RUNTIME only a Python of the same minor version: gcr.io/distroless/python3-debian12 does.
ARG BUILD=python:3.11-bookworm
ARG RUNTIME=python:3.11-slim-bookworm

# What requirements.lock names, each file checked against its digest there; everything below installs from these only.
FROM ${BUILD} AS wheels
WORKDIR /src
COPY requirements.lock .
RUN python3 -m pip wheel --quiet --require-hashes --requirement requirements.lock --wheel-dir /wheels
RUN python3 -m pip install --quiet --no-index --find-links /wheels editables hatchling mypy setuptools
COPY libs libs
COPY services services
COPY cli cli
RUN python3 -m pip wheel --quiet --no-deps --no-build-isolation --no-index --wheel-dir /wheels \
        ./libs/common ./services/watcher ./services/translator ./services/gateway ./cli \
    && install --directory --owner 65532 --group 65532 /state

FROM wheels AS watcher-files
RUN python3 -m pip install --quiet --no-index --find-links /wheels --target /opt/headgate headgate-watcher

FROM wheels AS translator-files
RUN python3 -m pip install --quiet --no-index --find-links /wheels --target /opt/headgate headgate-translator

FROM wheels AS gateway-files
RUN python3 -m pip install --quiet --no-index --find-links /wheels --target /opt/headgate headgate-gateway

FROM wheels AS headgate-files
RUN python3 -m pip install --quiet --no-index --find-links /wheels --target /opt/headgate headgate

# Nothing is written but /var/lib/headgate, so the root file system may be read-only; no step and no check needs a shell.
FROM ${RUNTIME} AS service
ARG VERSION=0.1.0
ARG REVISION=
LABEL org.opencontainers.image.title="Headgate" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV PYTHONPATH=/opt/headgate PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PATH=/opt/headgate/bin:/usr/local/bin:/usr/bin:/bin \
    HEADGATE_DATA_DIR=/var/lib/headgate HEADGATE_ADMIN_HOST=0.0.0.0 HEADGATE_ADMIN_PORT=9080
COPY --from=wheels --chown=65532:65532 /state /var/lib/headgate
WORKDIR /var/lib/headgate
USER 65532:65532
EXPOSE 9080
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s CMD ["python3", "-m", "headgate.common.healthcheck"]

FROM service AS watcher
LABEL org.opencontainers.image.description="Watches one cluster, or folders of manifests, and publishes every change"
COPY --from=watcher-files /opt/headgate /opt/headgate
ENTRYPOINT ["python3", "-m", "headgate.watcher"]

FROM service AS translator
LABEL org.opencontainers.image.description="Translates the resources of all clusters into one versioned route table"
COPY --from=translator-files /opt/headgate /opt/headgate
ENTRYPOINT ["python3", "-m", "headgate.translator"]

FROM service AS gateway
LABEL org.opencontainers.image.description="Serves traffic by the current route table"
COPY --from=gateway-files /opt/headgate /opt/headgate
EXPOSE 8080 8443
ENTRYPOINT ["python3", "-m", "headgate.gateway"]

# The `headgate` command, with all services and a NATS server: for trying things out, for one machine, for questions.
FROM service AS headgate
LABEL org.opencontainers.image.description="The headgate command, with all services and a NATS server"
COPY --from=headgate-files /opt/headgate /opt/headgate
EXPOSE 8080 8443
ENTRYPOINT ["python3", "-m", "headgate.cli"]
CMD ["up", "--manifests", "/manifests", "--data-dir", "/var/lib/headgate"]
