"""What limits count by."""

from typing import Final

from headgate.common.plugins.client_address import ClientAddressConfig
from headgate.common.plugins.limits.limits import KeyType
from headgate.gateway.plugins.interface.messages import Request
from headgate.gateway.plugins.interface.variables import variable
from headgate.gateway.plugins.kit.client_addresses import AddressReader
from headgate.gateway.plugins.kit.patterns import Template

_NO_ADDRESS: Final = "-"
"""What requests without the address that counts are counted by."""


class KeyReader:
    """Reads from a request what a limit counts by."""

    __slots__ = ("_address", "_is_optional", "_kind", "_template", "_text")

    def __init__(
        self, text: str, kind: KeyType, *, is_optional: bool = False, client: ClientAddressConfig | None = None
    ) -> None:
        """Take a key; an optional one is None for a request that has nothing of it, and an address goes before it."""
        self._address = AddressReader(client) if client is not None else None
        self._text = text.removeprefix("$") if kind == "var" else text
        self._kind = kind
        self._template = Template(text)
        self._is_optional = is_optional

    def read(self, request: Request) -> str | None:
        """Return the key; the client's address where the request has nothing of it, as Apache APISIX does."""
        if self._address is not None:
            return self._address.read(request) or _NO_ADDRESS
        if self._is_optional:
            return self._template.render_known(request)
        if self._kind == "constant":
            return self._text
        if self._kind == "var":
            return variable(request, self._text) or request.client
        return self._template.render(request).strip() or request.client
