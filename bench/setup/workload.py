"""What every proxy of a comparison is told to serve: the same hosts, services and certificate."""

import datetime
import re
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

DOMAIN = "bench.example"
TLS_SERVER_NAME = "localhost"
"""wrk sends the host of its URL as SNI, and that has to resolve."""

SMALL_PATH = "/"
LARGE_PATH = "/64k"
HEADERS_PATH = "/headers"
SMALL_BYTES = 1024
LARGE_BYTES = 64 * 1024
GRPC_PATH = "/bench.Echo/Say"

FORWARDED_HEADERS = (
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-real-ip",
    "x-request-id",
)
"""What every proxy adds to each request; the origin's answer at HEADERS_PATH shows that it does."""


@dataclass(frozen=True)
class Extra:
    """A service with a host of its own, besides those that hosts share."""

    name: str
    port: int
    speaks_http2: bool = False
    """The origin wants HTTP/2 without TLS, as gRPC services do."""
    plugins: str = ""
    """Of its route, a list in JSON; other proxies than Headgate do without."""

    @property
    def host(self) -> str:
        """Its host."""
        return f"{self.name}.{DOMAIN}"


@dataclass(frozen=True)
class Workload:
    """Hosts in front, services behind, each service an address of the origin."""

    hosts: tuple[str, ...]
    origin_ports: tuple[int, ...]
    """One for each service."""
    certificate: Path
    key: Path
    extras: tuple[Extra, ...] = ()

    def service_of(self, host_index: int) -> int:
        """Index of the service behind a host."""
        return host_index % len(self.origin_ports)


def host_names(count: int) -> tuple[str, ...]:
    """Host names of a workload: `route-0000.bench.example` and so on."""
    return tuple(f"route-{index:04d}.{DOMAIN}" for index in range(count))


def grpc_message(length: int = 100) -> bytes:
    """A gRPC message with its prefix: not compressed, the length, the message."""
    return b"\0" + length.to_bytes(4) + b"m" * length


def browser_headers() -> tuple[str, ...]:
    """Header lines of a desktop browser's request, Host and Connection apart, read from what wrk sends."""
    script = Path(__file__).parents[1].joinpath("clients", "load.lua").read_text()
    lines = re.findall(r"^  [\"'](.+: .+)[\"'],$", script, re.MULTILINE)
    return tuple(line for line in lines if not line.startswith("Connection:"))


def write_certificate(folder: Path) -> tuple[Path, Path]:
    """Make a self-signed ECDSA P-256 certificate for all hosts; return the paths of the chain and of the key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, TLS_SERVER_NAME)])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName(TLS_SERVER_NAME), x509.DNSName(f"*.{DOMAIN}")]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    chain_path, key_path = folder / "tls.crt", folder / "tls.key"
    chain_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return chain_path, key_path
