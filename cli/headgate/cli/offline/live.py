"""Objects of a cluster as they are now, as `headgate.cli.offline.tables` has those of files."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from headgate.cli.offline.tables import CLUSTER
from headgate.cli.terminal.errors import Unreachable, UsageMistake
from headgate.common.resources import JsonObject, KindChoice, ObjectRef, ResourceKind
from headgate.watcher.api.transport import KubernetesTransport
from headgate.watcher.errors import ApiError, ApiStatusError, Unauthorized
from headgate.watcher.objects.preparing import strip
from headgate.watcher.sources import Listed, Unavailable
from headgate.watcher.sources.kubernetes.present import read_present
from headgate.watcher.sources.kubernetes.source import KubernetesScope
from headgate.watcher.sources.manifests.files import FileObject


class LiveRead(NamedTuple):
    """What was read of a cluster."""

    server: str
    """Its URL, and where that is from."""
    objects: tuple[FileObject, ...]
    unavailable: tuple[Unavailable, ...]
    """Kinds that are not there, or may not be listed."""


def read_live(
    choices: Sequence[KindChoice], kubeconfig: Path | None, context: str | None, namespaces: Sequence[str] = ()
) -> LiveRead:
    """List objects; nothing else is asked of the API server.

    Args:
        choices: kinds to list.
        kubeconfig: the file; None looks where kubectl looks, and for a service account.
        context: one of the file's; None takes its current one.
        namespaces: only these, and nothing that has no namespace; empty for everything.

    Raises:
        ClusterConfigError: it is not known which server to ask, or as whom.
        UsageMistake: the server does not know these credentials.
        Unreachable: no answer.
    """
    scope = KubernetesScope(namespaces=tuple(namespaces), reads_cluster_scoped=not namespaces)
    return asyncio.run(_read(KubernetesTransport(kubeconfig, context), choices, scope))


async def _read(transport: KubernetesTransport, choices: Sequence[KindChoice], scope: KubernetesScope) -> LiveRead:
    objects: list[FileObject] = []
    unavailable: list[Unavailable] = []
    try:
        await transport.prepare()
        server = transport.description
        async for found in read_present(transport, choices, scope):
            if isinstance(found, Listed):
                objects += (_object(found.kind, one) for one in found.objects)
            else:
                unavailable.append(found)
    except Unauthorized as error:
        raise UsageMistake(
            f"the API server {server} refuses the credentials: check the token or client certificate"
        ) from error
    except ApiError as error:
        said = "answers" if isinstance(error, ApiStatusError) else "does not answer"
        raise Unreachable(
            f"the API server {server} {said}: {error}; check that it is the right one, and that it runs"
        ) from error
    finally:
        await transport.close()
    return LiveRead(server, tuple(objects), tuple(unavailable))


def _object(kind: ResourceKind, manifest: JsonObject) -> FileObject:
    metadata = manifest["metadata"]
    ref = ObjectRef(CLUSTER, kind.group, kind.resource, metadata.get("namespace", ""), metadata["name"])
    return FileObject.of(kind, ref, strip(kind, manifest))
