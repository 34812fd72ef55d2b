"""The keys of upstreams in a table.

A key has parts and one encoding, so that a table which is read back from a store says which Service's endpoints each of
its upstreams has.
"""

from typing import NamedTuple, Self


class UpstreamKey(NamedTuple):
    """Key of an upstream in the table, in its parts.

    Written `cluster/namespace/name:port` for a port of a Service and `cluster/namespace/Kind.group/name` for any other
    object. The variant follows, each part after a slash. No part has a slash in it, and only names of Services have a
    colon after them, so the two forms are never mistaken for each other.
    """

    cluster: str
    namespace: str
    name: str
    kind: str = "Service"
    """With its group after a dot, where it has one."""
    port: int | str | None = None
    """The port by number or by name. A name has a letter in it, so the two are never mistaken for each other."""
    variant: tuple[str, ...] = ()
    """How this upstream differs from others of the same object."""

    def __str__(self) -> str:
        what = f"{self.kind}/{self.name}" if self.port is None else f"{self.name}:{self.port}"
        return "/".join((self.cluster, self.namespace, what, *self.variant))

    @classmethod
    def parse(cls, written: str) -> Self:
        """Undo `str`. Raises ValueError for what it never returns."""
        cluster, namespace, what, *rest = written.split("/")
        name, colon, port = what.partition(":")
        if colon:
            number = int(port) if port.isdecimal() else port
            return cls(cluster, namespace, name, port=number, variant=tuple(rest))
        name, *variant = rest
        return cls(cluster, namespace, name, what, variant=tuple(variant))
