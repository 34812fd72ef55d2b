# One image for each service, and one with the whole command. `docker build --target gateway -t headgate/gateway .`
# BUILD needs pip and a C compiler, RUNTIME only a Python of the same minor version: gcr.io/distroless/python3-debian12 does.
# Each fetches what it runs and no more, in the versions of requirements.lock. The libraries are a layer below our own code
# and are installed again only when requirements.lock or a pyproject.toml changes. The stages of a service stand before its
# image, for builders that make all stages down to their target.
ARG BUILD=python:3.11-bookworm
ARG RUNTIME=python:3.11-slim-bookworm

# What all services need, as wheels that were checked against the digests in requirements.lock.
FROM ${BUILD} AS libraries
WORKDIR /src
ENV PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1
COPY requirements.lock deploy/images/libraries.py libs/common/pyproject.toml ./
RUN python3 libraries.py fetch pyproject.toml

FROM libraries AS code
RUN python3 libraries.py tools pyproject.toml
COPY libs libs
RUN python3 -m pip wheel --quiet --no-deps --no-build-isolation --no-index --wheel-dir /own ./libs/common

FROM ${BUILD} AS state
COPY deploy/images/healthcheck.c .
RUN gcc -static -Os -s -Wall -Wextra -Werror -o /healthcheck healthcheck.c \
    && install --directory --owner 65532 --group 65532 /state \
    && for each in all nats gateway watcher-local watcher-kubernetes translator reader operator redis grafana tools log; do \
        install --directory --owner 65532 --group 65532 "/made/$each"; done

# Nothing is written but /var/lib/headgate, so the root file system may be read-only; no step and no check needs a shell.
FROM ${RUNTIME} AS service
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="Headgate" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
ENV PYTHONPATH=/opt/headgate PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PATH=/opt/headgate/bin:/usr/local/bin:/usr/bin:/bin \
    HEADGATE_DATA_DIR=/var/lib/headgate HEADGATE_ADMIN_HOST=0.0.0.0 HEADGATE_ADMIN_PORT=9080
COPY LICENSE /usr/share/doc/headgate/LICENSE
COPY --from=state /healthcheck /usr/local/bin/healthcheck
COPY --from=state --chown=65532:65532 /state /var/lib/headgate
WORKDIR /var/lib/headgate
USER 65532:65532
EXPOSE 9080
HEALTHCHECK --interval=10s --timeout=10s --start-period=30s CMD ["healthcheck"]

FROM libraries AS watcher-libraries
COPY services/watcher/pyproject.toml service.toml
RUN python3 libraries.py install /opt/headgate pyproject.toml service.toml

FROM code AS watcher-code
COPY services/watcher services/watcher
RUN python3 -m pip wheel --quiet --no-deps --no-build-isolation --no-index --wheel-dir /own ./services/watcher \
    && python3 -m pip install --quiet --no-deps --target /opt/headgate /own/*.whl

FROM service AS watcher
LABEL org.opencontainers.image.description="Watches one cluster, or folders of manifests, and publishes every change"
COPY --from=watcher-libraries /opt/headgate /opt/headgate
COPY --from=watcher-code /opt/headgate /opt/headgate
ENTRYPOINT ["python3", "-m", "headgate.watcher"]

FROM libraries AS translator-libraries
COPY libs/operations/pyproject.toml operations.toml
COPY services/translator/pyproject.toml service.toml
RUN python3 libraries.py install /opt/headgate pyproject.toml operations.toml service.toml

FROM code AS translator-code
COPY services/translator services/translator
RUN python3 -m pip wheel --quiet --no-deps --no-build-isolation --no-index --wheel-dir /own \
        ./libs/operations ./services/translator \
    && python3 -m pip install --quiet --no-deps --target /opt/headgate /own/*.whl

FROM service AS translator
LABEL org.opencontainers.image.description="Translates the resources of all clusters into one versioned route table"
COPY --from=translator-libraries /opt/headgate /opt/headgate
COPY --from=translator-code /opt/headgate /opt/headgate
ENTRYPOINT ["python3", "-m", "headgate.translator"]

FROM libraries AS gateway-libraries
COPY services/gateway/pyproject.toml service.toml
RUN python3 libraries.py install /opt/headgate pyproject.toml service.toml

# The one part that is compiled, which takes a minute or two.
FROM code AS gateway-code
COPY services/gateway/pyproject.toml service.toml
RUN python3 libraries.py tools service.toml
COPY services/gateway services/gateway
RUN HEADGATE_ENGINE=compiled python3 -m pip wheel --quiet --no-deps --no-build-isolation --no-index --wheel-dir /own ./services/gateway \
    && python3 -m pip install --quiet --no-deps --target /opt/headgate /own/*.whl

FROM service AS gateway
LABEL org.opencontainers.image.description="Serves traffic by the current route table"
COPY --from=gateway-libraries /opt/headgate /opt/headgate
COPY --from=gateway-code /opt/headgate /opt/headgate
EXPOSE 8080 8443 8443/udp
ENTRYPOINT ["python3", "-m", "headgate.gateway"]

FROM libraries AS headgate-libraries
COPY services/watcher/pyproject.toml watcher.toml
COPY services/translator/pyproject.toml translator.toml
COPY services/gateway/pyproject.toml gateway.toml
COPY services/console/pyproject.toml console.toml
COPY libs/operations/pyproject.toml operations.toml
COPY cli/pyproject.toml cli.toml
RUN python3 libraries.py install /opt/headgate pyproject.toml watcher.toml translator.toml gateway.toml console.toml operations.toml cli.toml

FROM gateway-code AS headgate-code
COPY services/watcher services/watcher
COPY services/translator services/translator
COPY services/console services/console
COPY cli cli
RUN python3 -m pip wheel --quiet --no-deps --no-build-isolation --no-index --wheel-dir /own \
        ./libs/operations ./services/watcher ./services/translator ./services/console ./cli \
    && python3 -m pip install --quiet --no-deps --target /opt/whole /own/*.whl

# The `headgate` command, with all services and a NATS server: for trying things out, for one machine, for questions.
FROM service AS headgate
LABEL org.opencontainers.image.description="The headgate command, with all services and a NATS server"
COPY --from=headgate-libraries /opt/headgate /opt/headgate
COPY --from=headgate-code /opt/whole /opt/headgate
EXPOSE 8080 8443 8443/udp
ENTRYPOINT ["python3", "-m", "headgate.cli"]
CMD ["up", "--manifests", "/manifests", "--data-dir", "/var/lib/headgate"]

# All of the command, as pages ask it about manifests and tables of the past.
FROM headgate AS console
LABEL org.opencontainers.image.description="Shows what is served, by whom, and why: pages and an HTTP API"
EXPOSE 9090
ENTRYPOINT ["python3", "-m", "headgate.console"]
CMD []

# What fills the volumes of compose.yaml: a volume belongs to whom the folder belongs that it is first mounted over.
FROM headgate AS stack
LABEL org.opencontainers.image.description="Makes the secrets of the compose stack"
COPY --from=state --chown=65532:65532 /made /made
COPY deploy/stack/fill_secrets.py deploy/nats/watcher-local.conf deploy/redis/users.conf /opt/stack/
ENTRYPOINT ["python3", "/opt/stack/fill_secrets.py"]
CMD []
