"""Before any figure: does the proxy route every host, whole bodies, and add the headers that all must add?"""

import http.client
import ssl

from bench.errors import BenchError
from bench.peers import Running
from bench.setup.workload import (
    FORWARDED_HEADERS,
    HEADERS_PATH,
    LARGE_BYTES,
    LARGE_PATH,
    SMALL_BYTES,
    SMALL_PATH,
    Workload,
)


def check_answers(proxy: Running, workload: Workload) -> None:
    """Ask for every host once, then for the large body, the headers and over TLS.

    Raises:
        BenchError: an answer is wrong; the text says which.
    """
    plain = http.client.HTTPConnection("127.0.0.1", proxy.http_port, timeout=10)
    for host in workload.hosts:
        _expect_body(proxy, plain, host, SMALL_PATH, SMALL_BYTES)
    _expect_body(proxy, plain, workload.hosts[0], LARGE_PATH, LARGE_BYTES)
    _expect_headers(proxy, plain, workload.hosts[0])
    plain.close()
    context = ssl.create_default_context(cafile=str(workload.certificate))
    secure = http.client.HTTPSConnection("localhost", proxy.https_port, timeout=10, context=context)
    _expect_body(proxy, secure, workload.hosts[-1], SMALL_PATH, SMALL_BYTES)
    secure.close()


def _get(connection: http.client.HTTPConnection, host: str, path: str) -> tuple[int, bytes]:
    connection.request("GET", path, headers={"Host": host})
    answer = connection.getresponse()
    return answer.status, answer.read()


def _expect_body(proxy: Running, connection: http.client.HTTPConnection, host: str, path: str, length: int) -> None:
    status, body = _get(connection, host, path)
    if status != 200 or body.strip(b"x") or len(body) != length:
        raise BenchError(f"{proxy.name} answers {status} with {len(body)} bytes for {host}{path}: {body[:200]!r}")


def _expect_headers(proxy: Running, connection: http.client.HTTPConnection, host: str) -> None:
    status, body = _get(connection, host, HEADERS_PATH)
    seen = {
        name.strip(): value.strip() for name, _, value in (line.partition(":") for line in body.decode().split("\n"))
    }
    lacking = [name for name in FORWARDED_HEADERS if not seen.get(name)]
    if status != 200 or lacking or seen.get("host") != host:
        raise BenchError(f"{proxy.name} forwards without {lacking} or with another host: {seen}")
