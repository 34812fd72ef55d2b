"""Putting what is missing into a Secret of a cluster: a key pair, and passwords.

The Secret must exist: its one object can then be named in a Role, with `get` and `patch`, where a right to create
Secrets could not be narrowed. What is there is never replaced.
"""

import asyncio
import base64
import secrets
from collections.abc import Sequence

from nacl.public import PrivateKey

from headgate.cli.terminal.errors import Unreachable, UsageMistake
from headgate.common.resources import JsonObject
from headgate.common.sealing import PRIVATE_KEY_FILE, key_pair_files
from headgate.watcher.api.lease import pod_namespace
from headgate.watcher.api.transport import KubernetesTransport
from headgate.watcher.api.wire import decode_object
from headgate.watcher.errors import Absent, ApiError, Forbidden


def fill_secret(
    name: str, namespace: str, passwords: Sequence[str], private_keys: Sequence[str], *, with_pair: bool
) -> list[str]:
    """Add to a Secret what it lacks, and return the names of what was added.

    Args:
        name: of the Secret.
        namespace: empty for the pod's own.
        passwords: keys that each hold a random password.
        private_keys: keys that each hold a private key in base64.
        with_pair: whether it holds a key pair too.

    Raises:
        ClusterConfigError: it is not known which server to ask, or as whom.
        UsageMistake: the Secret is not there, may not be written, or holds half a pair.
        Unreachable: no answer.
    """
    return asyncio.run(
        _fill(name, namespace or pod_namespace() or "default", passwords, private_keys, with_pair=with_pair)
    )


async def _fill(
    name: str, namespace: str, passwords: Sequence[str], private_keys: Sequence[str], *, with_pair: bool
) -> list[str]:
    transport = KubernetesTransport()
    path = f"/api/v1/namespaces/{namespace}/secrets/{name}"
    try:
        found = decode_object(await transport.request("GET", path))
        missing = _missing(found.get("data") or {}, passwords, private_keys, with_pair=with_pair)
        if missing:
            # The version makes of two that do this at once one that fails, instead of two halves of two pairs.
            patch = {
                "metadata": {"resourceVersion": found["metadata"]["resourceVersion"]},
                "data": {key: base64.b64encode(value).decode() for key, value in missing.items()},
            }
            await transport.request("PATCH", path, body=patch, content_type="application/merge-patch+json")
    except Absent as error:
        raise UsageMistake(f"there is no Secret {namespace}/{name}: make an empty one first") from error
    except Forbidden as error:
        raise UsageMistake(f"{error}; a Role needs get and patch of Secret {name} in {namespace}") from error
    except ApiError as error:
        raise Unreachable(f"Secret {namespace}/{name} was not filled: {error}; try again") from error
    finally:
        await transport.close()
    return list(missing)


def _missing(
    data: JsonObject, passwords: Sequence[str], private_keys: Sequence[str], *, with_pair: bool
) -> dict[str, bytes]:
    # A letter first: NATS reads a value that begins with digits as a number.
    missing = {key: b"p" + secrets.token_hex(24).encode() for key in passwords if not data.get(key)}
    missing |= {
        key: key_pair_files(PrivateKey.generate())[PRIVATE_KEY_FILE] for key in private_keys if not data.get(key)
    }
    pair = key_pair_files(PrivateKey.generate()) if with_pair else {}
    there = [file for file in pair if data.get(file)]
    if there and len(there) < len(pair):
        (half,) = there
        raise UsageMistake(f"the Secret has {half} without its other half: add that, or take away {half}")
    return missing if there else {**pair, **missing}
