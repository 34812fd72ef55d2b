import pytest

from headgate.gateway.plugins.errors import PluginRefused
from unit.gateway.plugins.people import chain_for, consumer, directory, with_key
from unit.gateway.plugins.running import asked, chain, request

MODEL = """
[request_definition]
r = sub, obj, act

[policy_definition]
p = sub, obj, act

[role_definition]
g = _, _

[policy_effect]
e = some(where (p.eft == allow))

[matchers]
m = (g(r.sub, p.sub) || keyMatch(r.sub, p.sub)) && keyMatch(r.obj, p.obj) && keyMatch(r.act, p.act)
"""
POLICY = "p, *, /, GET\np, admin, *, *\ng, alice, admin"
CONFIG = {"model": MODEL, "policy": POLICY, "username": "user"}


@pytest.mark.parametrize(
    ("user", "path", "method", "is_allowed"),
    [
        ("", "/", "GET", True),
        ("", "/res", "GET", False),
        ("alice", "/res", "POST", True),
        ("bob", "/res", "POST", False),
        ("bob", "/", "GET", True),
        ("bob", "/", "POST", False),
        ("bob", "/%2f", "GET", True),
    ],
)
async def test_the_policy_decides(user, path, method, is_allowed) -> None:
    plugins = chain(("authz-casbin", CONFIG))
    for _ in range(2):
        response = await asked(plugins, request(path, [("user", user)] if user else [], method=method))
        assert (response is None) is is_allowed
        assert response is None or (response.status, response.reason) == (403, "Access Denied")


async def test_a_recognised_consumer_can_be_the_subject() -> None:
    people = directory(consumer("alice", ("key-auth", {"key": "a"})), consumer("bob", ("key-auth", {"key": "b"})))
    plugins = chain_for(people, ("key-auth", {}), ("authz-casbin", {**CONFIG, "username": "X-Consumer-Username"}))
    assert await asked(plugins, with_key("a", "/res")) is None
    response = await asked(plugins, with_key("b", "/res"))
    assert response is not None
    assert response.status == 403


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"model": "[matchers]"}, "config.model: a model of Casbin has a section [request_definition]"),
        ({"policy": "p, a, b\nallow all"}, "config.policy: line 2 is no rule of Casbin: p, alice, /orders/*, GET"),
        ({"username": ""}, "config.username"),
    ],
)
def test_what_is_no_policy_is_refused(changed, expected) -> None:
    with pytest.raises(PluginRefused, match=r"plugin authz-casbin, ") as refused:
        chain(("authz-casbin", {**CONFIG, **changed}))
    assert expected in str(refused.value)
