"""Who claims and uses what: the fragments of all objects, with an index for each thing that they can contend for."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from headgate.common.resources import ObjectRef
from headgate.translator.assembly.claims import (
    HostPath,
    claimed_hosts,
    claimed_names,
    claimed_ports,
    claimed_spots,
    used_certificates,
    used_upstreams,
)
from headgate.translator.assembly.credentials import CredentialName, credential_names
from headgate.translator.assembly.users import Users
from headgate.translator.fragments.fragment import CertificateRef, Fragment, StreamPort
from headgate.translator.fragments.upstream_refs import UpstreamRef

K = TypeVar("K", bound=Hashable)


class Needs(NamedTuple):
    """Upstreams and certificates that came into use, or fell out of it."""

    demanded: tuple[UpstreamRef | CertificateRef, ...]
    released: tuple[UpstreamRef | CertificateRef, ...]


class ChangedClaims(NamedTuple):
    """What an object claimed before, claims now, or both."""

    hosts: Mapping[str, None]
    names: Mapping[str, None]
    ports: Mapping[StreamPort, None]
    credentials: Mapping[CredentialName, None]
    certificates: Mapping[CertificateRef, None]
    """Of its own listeners."""
    needs: Needs


def _either(old: dict[K, None], new: dict[K, None]) -> dict[K, None]:
    return old | new if old else new


class Claimants:
    """All fragments, and the objects that claim a host, a path of it, a server name, a port or a credential, or that
    use an upstream or a certificate.
    """

    def __init__(self) -> None:
        self.fragments: dict[ObjectRef, Fragment] = {}
        self.of_host: Users[str] = Users()
        self.of_spot: Users[HostPath] = Users()
        self.of_name: Users[str] = Users()
        self.of_port: Users[StreamPort] = Users()
        self.of_credential: Users[CredentialName] = Users()
        self.of_upstream: Users[UpstreamRef] = Users()
        self.of_certificate: Users[CertificateRef] = Users()

    def replace(self, ref: ObjectRef, new: Fragment | None) -> ChangedClaims:
        """Take an object's fragment in place of the one before; None takes it away."""
        old = self.fragments.get(ref)
        if new is None:
            del self.fragments[ref]
        else:
            self.fragments[ref] = new
        hosts = claimed_hosts(old), claimed_hosts(new)
        names = claimed_names(old), claimed_names(new)
        ports = claimed_ports(old), claimed_ports(new)
        credentials = credential_names(old), credential_names(new)
        self.of_host.replace(ref, *hosts)
        self.of_spot.replace(ref, claimed_spots(old), claimed_spots(new))
        self.of_name.replace(ref, *names)
        self.of_port.replace(ref, *ports)
        self.of_credential.replace(ref, *credentials)
        upstreams = self.of_upstream.replace(ref, used_upstreams(old), used_upstreams(new))
        certificates = self.of_certificate.replace(ref, used_certificates(old), used_certificates(new))
        needs = Needs((*upstreams[0], *certificates[0]), (*upstreams[1], *certificates[1]))
        return ChangedClaims(
            _either(*hosts),
            _either(*names),
            _either(*ports),
            _either(*credentials),
            {each: None for one in (old, new) if one is not None for each in one.certificates},
            needs,
        )

    def is_on_listeners(self, ref: CertificateRef) -> bool:
        """Whether listeners of an object's own name a certificate."""
        return any(ref in user.certificates for user in self.fragments_of(self.of_certificate.of(ref)))

    def fragments_of(self, refs: Iterable[ObjectRef]) -> Iterator[Fragment]:
        """Yield the fragments of some objects."""
        return (self.fragments[ref] for ref in refs)

    def others(self, users: Iterable[ObjectRef], ref: ObjectRef) -> Iterator[Fragment]:
        """Yield the fragments of some objects but one."""
        return (self.fragments[user] for user in users if user != ref)
