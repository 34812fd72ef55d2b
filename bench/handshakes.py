"""CPU time of TLS handshakes on the gateway's side: `python -m bench.handshakes`.

In one process and without sockets, so that nothing but TLS and the choice of the context is in the figures. Every
handshake gets the certificate for its server name, as in a listener.
"""

import contextlib
import ssl
import statistics
import time

from headgate.common.secret import Secret
from headgate.gateway.tls import CertificateEntry, CertificateStore, self_signed

ROUNDS = 800
NAME = "foo.example.com"


def main() -> None:
    """Measure and print a line for each version."""
    store = CertificateStore()
    chain, key = self_signed(NAME)
    store.set_certificates([CertificateEntry((NAME,), chain.decode(), Secret(key), "measured")])
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        client.minimum_version = client.maximum_version = version
        whole = [shake(store, client, None)[0] for _ in range(ROUNDS)]
        _, session = shake(store, client, None)
        resumed = []
        for _ in range(ROUNDS):
            spent_us, session = shake(store, client, session)
            resumed.append(spent_us)
        print(
            f"{version.name}: {statistics.median(whole):.0f} µs, resumed {statistics.median(resumed):.0f} µs "
            f"({store.counts.resumed} so far)"
        )


def shake(
    store: CertificateStore, context: ssl.SSLContext, session: ssl.SSLSession | None
) -> tuple[float, ssl.SSLSession | None]:
    """Shake hands once; give the server's CPU time in microseconds and the client's session."""
    to_client, from_client, to_server, from_server = (ssl.MemoryBIO() for _ in range(4))
    client = context.wrap_bio(to_client, from_client, server_hostname=NAME, session=session)
    spent_s = 0.0
    server: ssl.SSLObject | None = None
    client_done = server_done = False
    while not (client_done and server_done):
        client_done = client_done or step(client)
        to_server.write(from_client.read())
        started = time.process_time()
        server = server or store.server_context.wrap_bio(to_server, from_server, server_side=True)
        server_done = server_done or step(server)
        spent_s += time.process_time() - started
        to_client.write(from_server.read())
    with contextlib.suppress(ssl.SSLWantReadError):
        client.read()  # takes the session tickets in
    return spent_s * 1e6, client.session


def step(side: ssl.SSLObject) -> bool:
    """Go on with a handshake; tell whether it is complete."""
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


if __name__ == "__main__":
    main()
