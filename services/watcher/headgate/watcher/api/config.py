"""Which API server to talk to, and as whom.

Configuration comes from a kubeconfig file, or from the service account of the pod. Credentials rotate: the file and
the token behind it are read again at most a minute later, and at once after a 401. Exec plugins run again only when
their token expires or is refused.
"""

import os
from pathlib import Path
from typing import Any

from headgate.watcher.errors import ClusterConfigError

RELOAD_S = 60.0
"""Rotated credentials are used after this long at the latest."""


class KubeconfigLoader:
    """A kubeconfig file and one context of it."""

    def __init__(self, path: str | Path, context: str | None) -> None:
        """Take one file, or several as in `$KUBECONFIG`, joined with `:`."""
        self.origin = f"kubeconfig {path}" + (f", context {context}" if context else "")
        self._path = str(path)
        self._context = context
        self._exec_loader: Any = None
        self._stamp: list[tuple[int, int]] = []

    async def load(self) -> Any:
        """Read the file again; an exec plugin's unexpired token is kept while the file is unchanged."""
        from headgate.watcher.api.exec_plugins import informed_plugins

        if not any(map(os.path.isfile, self._path.split(os.pathsep))):
            raise ClusterConfigError(f"{self.origin}: no such file; give --kubeconfig FILE or set KUBECONFIG")
        configuration = _new_configuration()
        try:
            with informed_plugins(self._path, self._context):
                await self._load_into(configuration)
        except Exception as error:  # the library raises whatever a malformed file leads to
            raise ClusterConfigError(f"{self.origin} cannot be used: {_describe(error)}") from error
        return configuration

    async def _load_into(self, configuration: Any) -> None:
        from kubernetes_asyncio.config import load_kube_config

        if self._exec_loader is not None and self._stamp == self._file_stamp():
            await self._exec_loader.load_and_set(configuration)
            return
        loader = await load_kube_config(
            self._path, self._context, client_configuration=configuration, persist_config=False
        )
        self._exec_loader = loader if hasattr(loader, "exec_plugin_expiry") else None
        self._stamp = self._file_stamp()

    def forget_token(self) -> None:
        """Run an exec plugin again although its token has not expired: the server refuses it."""
        self._exec_loader = None

    def _file_stamp(self) -> list[tuple[int, int]]:
        found = [os.stat(path) for path in self._path.split(os.pathsep) if os.path.isfile(path)]
        return [(file.st_mtime_ns, file.st_size) for file in found]


class InClusterLoader:
    """The service account of the pod that we run in."""

    origin = "the pod's service account"

    async def load(self) -> Any:
        """Read token and CA from where the kubelet keeps them fresh."""
        from kubernetes_asyncio.config import ConfigException, load_incluster_config

        configuration = _new_configuration()
        try:
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        except (ConfigException, OSError) as error:
            raise ClusterConfigError(
                f"not in a pod with a service account ({_describe(error)}); give --kubeconfig FILE or set KUBECONFIG"
            ) from error
        return configuration

    def forget_token(self) -> None:
        """Nothing is kept."""


def _new_configuration() -> Any:
    """Make a configuration that verifies API servers alike on all versions of Python (`headgate.common.trust`)."""
    from kubernetes_asyncio.client import Configuration

    configuration = Configuration()
    configuration.disable_strict_ssl_verification = True
    return configuration


def find_loader(kubeconfig: Path | None, context: str | None) -> KubeconfigLoader | InClusterLoader:
    """Choose as kubectl does: the given file, `$KUBECONFIG`, the service account, `~/.kube/config`."""
    if kubeconfig is not None:
        return KubeconfigLoader(kubeconfig, context)
    if named := os.environ.get("KUBECONFIG"):
        return KubeconfigLoader(named, context)
    if os.environ.get("KUBERNETES_SERVICE_HOST") and not context:
        return InClusterLoader()
    default = Path.home() / ".kube" / "config"
    return KubeconfigLoader(default, context) if default.is_file() or context else InClusterLoader()


def _describe(error: BaseException) -> str:
    return str(error) or type(error).__name__
