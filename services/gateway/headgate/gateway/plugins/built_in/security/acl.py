"""`acl`: which consumers may use a route, by their labels.

A label of a consumer is that of its object. Its value may name several: a JSON array of texts, or texts with commas
between them.
"""

import re
from collections.abc import Mapping

import msgspec

from headgate.common.plugins.security.acl import AclConfig
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response

_SEPARATOR = re.compile(r"\s*+,\s*+")
_Wanted = Mapping[str, frozenset[str]]


class Acl(Plugin[AclConfig]):
    """Lets in whom the labels let in."""

    name = "acl"
    order = 2410
    preview = "yes"
    Config = AclConfig
    is_shareable = True
    waits_for_consumer = True
    decides_by_consumer = True

    def __init__(self, config: AclConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._allowed = _wanted(config.allow_labels)
        self._denied = _wanted(config.deny_labels)

    def on_request(self, request: Request) -> Response | None:
        """Let the request pass, or refuse it."""
        if request.consumer is None:
            return Response.refusal(401, "Missing authentication.")
        labels = request.consumer.labels
        is_denied = self._denied is not None and _has_one(self._denied, labels)
        if is_denied or (self._allowed is not None and not _has_one(self._allowed, labels)):
            return self._refusal()
        return None

    def _refusal(self) -> Response:
        config, reason = self.config, "The consumer is forbidden."
        if config.rejected_msg is None:
            return Response.refusal(config.rejected_code, reason)
        return Response.json(config.rejected_code, {"message": config.rejected_msg}, reason=reason)


def _wanted(labels: Mapping[str, tuple[str, ...]] | None) -> _Wanted | None:
    return None if labels is None else {name: frozenset(values) for name, values in labels.items()}


def _has_one(wanted: _Wanted, labels: Mapping[str, str]) -> bool:
    return any(name in labels and not values.isdisjoint(_values(labels[name])) for name, values in wanted.items())


def _values(label: str) -> list[str]:
    """Return what a label's value names; nothing if it begins as an array of JSON and is none."""
    if not label.startswith("["):
        return _SEPARATOR.split(label)
    try:
        listed = msgspec.json.decode(label)
    except msgspec.MsgspecError:
        return []
    return [value for value in listed if isinstance(value, str)]
