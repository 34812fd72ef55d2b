"""TLS policies on their way from a table to the handshake."""

import logging

import pytest

from fakes.gateway.table import compiled, host, load, new_compiler
from fakes.gateway.tls_listener import asking
from headgate.common.table import TlsPolicy, VirtualHost
from headgate.common.table_image import TableImage
from headgate.gateway.table.route import CompiledRoute
from headgate.gateway.tls.policy import ClientGuard


def with_tls(name: str, policy: TlsPolicy | None) -> VirtualHost:
    return host(name).model_copy(update={"tls": policy})


def guard_of(route: CompiledRoute) -> ClientGuard | None:
    return route.policies.guard if route.policies is not None else None


STRICT, LAX = TlsPolicy(min_version="1.3"), TlsPolicy(min_version="1.0")


@pytest.mark.parametrize(
    ("server_name", "expected"),
    [
        (b"foo.com", STRICT),
        (b"a.foo.com", LAX),
        (b"plain.foo.com", None),
        (b"a.b.foo.com", None),
        (b"a.b.deep.com", STRICT),
        (b"bar.com", None),
        (b"", None),
    ],
)
def test_policy_is_that_of_the_host_which_takes_the_name(server_name: bytes, expected: TlsPolicy | None) -> None:
    compiler = compiled(
        [
            with_tls("foo.com", STRICT),
            with_tls("*.foo.com", LAX),
            with_tls("plain.foo.com", None),
            with_tls("**.deep.com", STRICT),
        ]
    )
    found = compiler.find_tls(server_name)
    assert (found.policy if found else None) == expected


def test_names_that_no_host_takes_have_the_policy_of_the_default_host() -> None:
    found = compiled([with_tls("*", STRICT)]).find_tls(b"")
    assert found is not None
    assert found.policy == STRICT


def test_no_policy_is_found_before_the_first_table() -> None:
    assert new_compiler().find_tls(b"foo.com") is None


def test_changed_policy_reaches_the_routes_of_its_host_and_an_equal_one_keeps_them() -> None:
    compiler = new_compiler()
    first = asking(b"one")
    load(compiler, TableImage([with_tls("foo.com", first)]))
    before = compiler.hosts.compiled()
    (_, kept) = next(iter(before))
    load(compiler, TableImage([with_tls("foo.com", asking(b"one")), host("bar.com")]), (1, 2))
    assert compiler.find_tls(b"foo.com") is kept.tls
    load(compiler, TableImage([with_tls("foo.com", asking(b"two"))]), (1, 3))
    assert compiler.find_tls(b"foo.com") is not kept.tls
    ((_, route),) = next(iter(compiler.hosts.compiled()))[1].routes
    assert guard_of(route) is compiler.find_tls(b"foo.com").guard


def test_policy_that_cannot_be_had_costs_its_host_only_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        compiler = compiled([with_tls("bad.com", asking(b"nothing")), with_tls("foo.com", STRICT)])
    assert [record.host for record in caplog.records if record.message == "TLS policy refused"] == ["bad.com"]
    routes = {name: compiled_host.routes[0][1] for name, compiled_host in compiler.hosts.compiled()}
    assert guard_of(routes["bad.com"]).problem.startswith("tls.client_auth.ca_pem")
    assert guard_of(routes["foo.com"]) is None
