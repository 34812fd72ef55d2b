"""Getting PEM into OpenSSL contexts without a disk: its loaders take paths only, and a key does not go to one."""

import contextlib
import os
import ssl
from collections.abc import Iterator


def load_key_pair(context: ssl.SSLContext, chain_pem: bytes, key_pem: bytes) -> None:
    """Load a certificate chain and its key. Raises ssl.SSLError for what is no pair."""
    with in_memory_file(chain_pem) as chain, in_memory_file(key_pem) as key:
        # Without a password function an encrypted key would make OpenSSL ask on the terminal.
        context.load_cert_chain(chain, key, password="")


@contextlib.contextmanager
def in_memory_file(content: bytes) -> Iterator[str]:
    """Path of an anonymous file in memory."""
    descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
