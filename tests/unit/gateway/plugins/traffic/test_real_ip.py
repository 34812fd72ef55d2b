import pytest

from unit.gateway.plugins.running import asked, chain, request


async def client(config, target="/", headers=(), chain_of: str | None = None, peer="192.0.2.1") -> str:
    claims = {} if chain_of is None else {b"x-forwarded-for": chain_of.encode()}
    given = request(target, headers, client=peer, claims=claims)
    await asked(chain(("real-ip", config)), given)
    return given.client


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("203.0.113.1", "203.0.113.1"),
        ("203.0.113.1:8080", "203.0.113.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]:80", "2001:db8::1"),
        ("nobody", "192.0.2.1"),
        ("", "192.0.2.1"),
    ],
)
async def test_address_is_taken_from_a_variable(value, expected) -> None:
    assert await client({"source": "arg_realip"}, f"/?realip={value}") == expected


async def test_address_is_taken_from_a_header() -> None:
    assert await client({"source": "http_x_client"}, headers=[("X-Client", "203.0.113.1")]) == "203.0.113.1"


async def test_only_trusted_peers_are_asked() -> None:
    config = {"source": "arg_a", "trusted_addresses": ["10.0.0.0/8"]}
    assert await client(config, "/?a=203.0.113.1") == "192.0.2.1"
    assert await client(config, "/?a=203.0.113.1", peer="10.1.2.3") == "203.0.113.1"


@pytest.mark.parametrize(
    ("recursive", "chain_of", "expected"),
    [
        (False, "203.0.113.1, 10.0.0.1", "10.0.0.1"),
        (True, "203.0.113.1, 10.0.0.1", "203.0.113.1"),
        (True, "198.51.100.9, 203.0.113.1, 10.0.0.1", "203.0.113.1"),
        (True, "10.0.0.2, 10.0.0.1", "10.0.0.2"),
        (True, "", "10.9.9.9"),
        (True, None, "10.9.9.9"),
    ],
)
async def test_chain_is_read_from_its_end(recursive, chain_of, expected) -> None:
    config = {"source": "http_x_forwarded_for", "trusted_addresses": ["10.0.0.0/8"], "recursive": recursive}
    assert await client(config, chain_of=chain_of, peer="10.9.9.9") == expected


async def test_plugins_behind_it_go_by_the_new_address() -> None:
    plugins = chain(("real-ip", {"source": "arg_a"}), ("ip-restriction", {"blacklist": ["203.0.113.1"]}))
    refused = await asked(plugins, request("/?a=203.0.113.1"))
    assert refused is not None
    assert refused.status == 403


@pytest.mark.parametrize(
    ("realip", "expected"),
    [
        ("1.2.3.4:9080", "1.2.3.4 9080 192.0.2.1"),
        ("[2001:db8::1]:80", "2001:db8::1 80 192.0.2.1"),
        ("1.2.3.4", "1.2.3.4  192.0.2.1"),
    ],
)
async def test_the_port_that_is_named_with_an_address_is_the_clients(realip, expected) -> None:
    shown = {"headers": {"set": {"X-A": "$remote_addr $remote_port $realip_remote_addr"}}}
    given = request(f"/?realip={realip}")
    await asked(chain(("real-ip", {"source": "arg_realip"}), ("proxy-rewrite", shown)), given)
    assert given.headers.get("X-A") == expected
