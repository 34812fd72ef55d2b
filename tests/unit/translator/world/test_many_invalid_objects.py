"""One object in ten is invalid: the others are served as without it, and each of the invalid ones hears of its own.

`HEADGATE_FULL_SIZE=1` makes it 1,000 among 10,000, some half a minute.
"""

import os
from typing import Any

from fakes.translator.deltas import applied, endpoint_slice, ingress, ref_of, service, tls_secret
from fakes.translator.translating import Follower, ListedLog
from headgate.common.snapshot import decode_chunk
from headgate.common.table import TableEntry, VirtualHost, entry_key

OBJECTS = 10_000 if os.environ.get("HEADGATE_FULL_SIZE") == "1" else 1000
EVERY = 10


def broken(number: int) -> tuple[Any, str]:
    """Return an invalid version of an Ingress, and what its message must name."""
    name, host = f"i{number}", f"h{number}.example"
    match number // EVERY % 6:
        case 0:
            return ingress(name, host=host, path=f"no-slash-{number}"), f"no-slash-{number}"
        case 1:
            return ingress(name, host=f"Not A Host {number}"), "lower case"
        case 2:
            return ingress(name, host=host, port=70_000 + number), "65535"
        case 3:
            guard = {"headgate.dev/client-networks": f"10.0.0.{number}/99"}
            return ingress(name, host=host, annotations=guard), f"10.0.0.{number}/99"
        case 4:
            pattern = {"headgate.dev/path-type": "regex"}
            made = ingress(name, host=host, path=f"/({number}", annotations=pattern)
            made["spec"]["rules"][0]["http"]["paths"][0]["pathType"] = "ImplementationSpecific"
            return made, f"/({number}"
        case _:
            paths = {"rules": [{"host": host, "http": {"paths": f"many {number}"}}]}
            return ingress(name, host=host, spec=paths), "list"


def good(number: int) -> list[Any]:
    name, host = f"i{number}", f"h{number}.example"
    return [
        ingress(name, host=host, service=f"s{number}"),
        service(f"s{number}"),
        endpoint_slice(f"s{number}", f"10.{number // 65536}.{number // 256 % 256}.{number % 256}"),
    ]


def is_invalid(number: int) -> bool:
    return number % EVERY == 0


def told(*manifests: Any) -> Follower:
    follower = Follower(ListedLog(), clusters=("a",))
    for manifest in manifests:
        follower.take(follower.log.append(applied(manifest)))
    follower.settle()
    return follower


def entries(follower: Follower) -> dict[str, TableEntry]:
    chunks = follower.translation.assembly.image.chunks()
    return {entry_key(entry): entry for chunk in chunks for entry in decode_chunk(chunk.kind, chunk.content)}


def message_of(follower: Follower, number: int) -> str:
    condition = follower.translation.condition(ref_of(ingress(f"i{number}")))
    assert condition is not None
    return "; ".join(f"{problem} {problem.value}" for problem in condition.problems)


def test_objects_that_never_were_good_leave_all_others_as_they_are() -> None:
    rest = [manifest for number in range(OBJECTS) if not is_invalid(number) for manifest in good(number)]
    invalid = {number: broken(number) for number in range(0, OBJECTS, EVERY)}
    alone, together = told(*rest), told(*(manifest for manifest, _ in invalid.values()), *rest)
    table, expected = entries(together), entries(alone)
    assert {key: table[key] for key in expected} == expected
    messages = {number: message_of(together, number) for number in invalid}
    assert all(named in messages[number] for number, (_, named) in invalid.items())
    assert len(together.conditions) == OBJECTS


def test_objects_that_were_good_stay_as_they_were_and_say_why() -> None:
    follower = told(*(manifest for number in range(OBJECTS) for manifest in good(number)))
    before = follower.image
    for number in range(0, OBJECTS, EVERY):
        manifest, _ = broken(number)
        follower.take(follower.log.append(applied(manifest)))
    follower.settle()
    assert follower.image == before
    stood_in_for = [each for each in follower.translation.assembly.fragments.values() if each.stand_in]
    assert len(stood_in_for) == OBJECTS // EVERY
    assert all(broken(number)[1] in message_of(follower, number) for number in range(0, OBJECTS, EVERY))


def test_certificates_that_cannot_be_used_take_no_other_along() -> None:
    manifests = []
    for number in range(OBJECTS // EVERY):
        host = f"h{number}.example"
        made = ingress(f"i{number}", host=host)
        made["spec"]["tls"] = [{"hosts": [host], "secretName": f"t{number}"}]
        problem = f"broken {number}" if is_invalid(number) else None
        manifests += [made, tls_secret(f"t{number}", host, problem=problem)]
    follower = told(*manifests)
    table = entries(follower)
    hosts = [entry for entry in table.values() if isinstance(entry, VirtualHost)]
    assert len(hosts) == OBJECTS // EVERY
    for number in range(OBJECTS // EVERY):
        assert (f"a/default/t{number}" in table) is not is_invalid(number)
        assert (f"broken {number}" in message_of(follower, number)) is is_invalid(number)
