"""How servers are verified, with the same demands on all versions of Python.

From 3.13 on, `ssl.create_default_context` refuses certificates whose form is not that of RFC 5280, such as those that
lack an Authority Key Identifier, and trusts an intermediate authority without its root. Private authorities often issue
such certificates, to API servers among others, so connections would end with a newer Python. Requests to backends are
made without these flags, so health checks with them would judge endpoints by other rules than requests do.
"""

import ssl
from os import PathLike
from typing import Final

OF_NEWER_PYTHON: Final = ssl.VerifyFlags.VERIFY_X509_STRICT | ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN


def verifying_context(ca_file: str | PathLike[str] | None = None, ca_pem: str = "") -> ssl.SSLContext:
    """Make a client's context that verifies chain and name; without authorities by those of the system.

    Raises:
        OSError: the authorities cannot be read; `ssl.SSLError` is one.
    """
    context = ssl.create_default_context(cafile=ca_file, cadata=ca_pem or None)
    context.verify_flags &= ~OF_NEWER_PYTHON
    return context
