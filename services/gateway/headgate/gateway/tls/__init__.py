"""TLS on both sides: what listeners present and ask for, who a client is, and how upstreams are verified."""

from headgate.gateway.tls.loading import self_signed
from headgate.gateway.tls.server import FALLBACK_NAME, CertificateEntry, CertificateStore

__all__ = ["FALLBACK_NAME", "CertificateEntry", "CertificateStore", "self_signed"]
