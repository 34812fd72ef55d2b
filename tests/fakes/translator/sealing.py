"""Sealed values, as a watcher makes them and a table has them."""

from collections.abc import Sequence

from nacl.public import PublicKey

from headgate.common.sealing import ClusterValue, Purpose, Sealer


def seal(
    value: bytes, recipients: Sequence[PublicKey], purpose: Purpose = Purpose.PRIVATE_KEY, *, cluster: str = "c1"
) -> ClusterValue:
    """A value that a watcher of a cluster sealed, in a table that has it of that cluster."""
    return Sealer(cluster, recipients).seal(value, purpose).of(cluster)
