"""Listeners on addresses that are one object's own, as a Gateway may have them: how their keys tell whose they are.

A host there has nothing to do with the same host at other addresses: it has an owner of its own.
"""

from typing import Final
from urllib.parse import quote

_MARK: Final = "//"


def key_at(place: str, listener: str) -> str:
    """Return the key of a listener on addresses of an object's own.

    Args:
        place: names the object.
        listener: names the listener within it.
    """
    return f"{place}{_MARK}{quote(listener, safe='')}"


def place_of(key: str) -> str:
    """Return the place of a listener's key; empty for listeners on the gateways' addresses, which are all objects'."""
    place, mark, _ = key.partition(_MARK)
    return place if mark else ""
