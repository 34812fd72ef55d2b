"""The errors of the TLS package.

GatewayError
└── TlsConfigError               what a policy or upstream asks of TLS cannot be had; the text names the field
"""

from headgate.gateway.errors import GatewayError


class TlsConfigError(GatewayError):
    """A TLS setting that cannot be put into effect."""
