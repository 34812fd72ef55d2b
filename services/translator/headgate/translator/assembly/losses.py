"""What objects claim in vain, and what it is about."""

from collections.abc import Iterable, Iterator, Mapping

from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.translator.assembly.claims import claimed_names, claimed_ports
from headgate.translator.assembly.credentials import credential_names
from headgate.translator.fragments.fragment import Fragment, StreamPort

Place = tuple[str, str]
"""`host`, `name` or `port`, and which one; `GLOBAL_RULES` or `OWN_LISTENERS`."""
GLOBAL_RULES: Place = ("plugins", "")
OWN_LISTENERS: Place = ("listeners", "")
HTTPS = StreamPort(is_udp=False, port=0)
Losses = Mapping[Place, Mapping[ObjectRef, tuple[Problem, ...]]]
"""What objects claim in vain, by what it is about."""


def claimed_places(fragment: Fragment, hosts: Iterable[str]) -> Iterator[Place]:
    """Yield where an object may have lost something."""
    yield from (("host", host) for host in hosts)
    yield from (("name", name) for name in claimed_names(fragment))
    yield from (("port", str(port)) for port in claimed_ports(fragment))
    yield from (("credential", str(credential)) for credential in credential_names(fragment))
    yield from (GLOBAL_RULES, OWN_LISTENERS)


def lost_at(places: Iterable[Place], losses: Losses, ref: ObjectRef) -> Iterator[Problem]:
    """Yield what an object has lost at some places."""
    for place in places:
        yield from losses.get(place, {}).get(ref, ())
