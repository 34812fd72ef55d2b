"""Versions, ciphers and curves as Go names them, and as the table does.

The source is Go's package `crypto/tls`, and IANA's registry "TLS Cipher Suites"; Traefik takes names of curves as RFC
8446 has them as well.
"""

from collections.abc import Mapping
from typing import Final

from headgate.common.table.tls import Curve

VERSIONS: Final[Mapping[str, str]] = {
    "VersionTLS10": "1.0",
    "VersionTLS11": "1.1",
    "VersionTLS12": "1.2",
    "VersionTLS13": "1.3",
}
NEWER_CIPHERS: Final = frozenset(
    ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_FALLBACK_SCSV")
)
"""Those of TLS 1.3, which nobody chooses among, and what is no cipher."""
_ECDHE: Final[Mapping[str, str]] = {
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "CHACHA20_POLY1305": "CHACHA20-POLY1305",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "RC4_128_SHA": "RC4-SHA",
}
CIPHERS: Final[Mapping[str, str]] = {
    "TLS_RSA_WITH_RC4_128_SHA": "RC4-SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA": "DES-CBC3-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA": "ECDHE-RSA-DES-CBC3-SHA",
    **{
        f"TLS_ECDHE_{signature}_WITH_{go}": f"ECDHE-{signature}-{openssl}"
        for signature in ("ECDSA", "RSA")
        for go, openssl in _ECDHE.items()
    },
}
"""OpenSSL's names; of those that its build lacks, such as RC4, it takes no notice."""
CURVES: Final[Mapping[str, Curve]] = {
    "CurveP256": "P-256",
    "secp256r1": "P-256",
    "CurveP384": "P-384",
    "secp384r1": "P-384",
    "CurveP521": "P-521",
    "secp521r1": "P-521",
    "X25519": "X25519",
    "x25519": "X25519",
    "X25519MLKEM768": "X25519MLKEM768",
    "x25519mlkem768": "X25519MLKEM768",
    "SecP256r1MLKEM768": "SecP256r1MLKEM768",
    "secp256r1mlkem768": "SecP256r1MLKEM768",
    "SecP384r1MLKEM1024": "SecP384r1MLKEM1024",
    "secp384r1mlkem1024": "SecP384r1MLKEM1024",
}
