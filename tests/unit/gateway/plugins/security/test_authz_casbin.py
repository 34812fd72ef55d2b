import asyncio
from pathlib import Path

import pytest

from headgate.gateway.plugins.interface import PluginServices
from headgate.gateway.plugins.interface.errors import PluginRefused
from headgate.gateway.plugins.runtime.chain import PluginChain
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
        ({"policy": "p, a, b, c\nallow all"}, "config.policy: line 2 is no rule of Casbin: p, alice, /orders/*, GET"),
        ({"policy": "p, a, b"}, "config.policy: line 1 has 2 values behind p, where the model has 3"),
        ({"model": MODEL.replace("m = ", "m = 9**3999999 > 1 && ")}, "config.model: matchers: '**3999999 > 1"),
        (
            {"model": MODEL.replace("m = ", "m = r.obj.ljust(3000000000) == p.obj || ")},
            "there is no function 'r.obj.ljust'; a matcher has r.NAME, p.NAME, ",
        ),
        ({"username": ""}, "config.username"),
    ],
)
def test_what_is_no_policy_is_refused(changed, expected) -> None:
    with pytest.raises(PluginRefused, match=r"plugin authz-casbin, ") as refused:
        chain(("authz-casbin", {**CONFIG, **changed}))
    assert expected in str(refused.value)


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    """A folder with files, as Kubernetes mounts a ConfigMap: links to a folder of the version."""
    folder = tmp_path / "policies"
    (folder / "..data").mkdir(parents=True)
    for name, text in (("model.conf", MODEL), ("policy.csv", POLICY)):
        (folder / "..data" / name).write_text(text)
        (folder / name).symlink_to(folder / "..data" / name)
    (tmp_path / "secret").write_text("hush")
    (folder / "leak").symlink_to(tmp_path / "secret")
    return folder


def from_files(folder: Path | None, model: str, policy: str) -> PluginChain:
    config = {"model_path": model, "policy_path": policy, "username": "user"}
    return chain(("authz-casbin", config), services=PluginServices(policy_dir=folder))


@pytest.mark.parametrize("is_absolute", [False, True])
async def test_files_below_the_folder_for_such_are_read(policies: Path, is_absolute: bool) -> None:
    before = f"{policies}/" if is_absolute else ""
    plugins = from_files(policies, f"{before}model.conf", f"{before}policy.csv")
    assert await asked(plugins, request("/res", [("user", "alice")], method="POST")) is None
    refused = await asked(plugins, request("/res", [("user", "bob")], method="POST"))
    assert refused is not None
    assert refused.status == 403


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("/etc/passwd", "is not below"),
        ("../secret", "is not below"),
        ("leak", "is not below"),
        ("", "at least 1 character"),
        (".", "is not below"),
        ("..data", "there is no file"),
        ("none", "there is no file none below the folder that the setting plugin_policy_dir names"),
        ("a\0b", "null"),
    ],
)
def test_other_files_are_refused(policies: Path, model: str, words: str) -> None:
    with pytest.raises(PluginRefused, match=words):
        from_files(policies, model, "policy.csv")


def test_without_a_folder_files_are_refused_with_what_to_do() -> None:
    with pytest.raises(
        PluginRefused, match=r"setting plugin_policy_dir names no folder .* write model and policy into"
    ):
        from_files(None, "/model.conf", "/policy.csv")


async def test_a_file_that_is_no_model_lets_nobody_pass(policies: Path) -> None:
    plugins = from_files(policies, "policy.csv", "policy.csv")
    response = await asked(plugins, request("/", [("user", "alice")]))
    assert response is not None
    assert response.status == 500


@pytest.mark.parametrize(
    "config",
    [{"model": MODEL}, {"policy": POLICY}, {}, {"model_path": "a", "model": MODEL, "policy": POLICY}],
)
def test_half_of_a_policy_is_refused(config) -> None:
    with pytest.raises(PluginRefused, match="needs"):
        chain(("authz-casbin", {"username": "user", **config}))


async def test_a_long_decision_lets_others_have_their_turn() -> None:
    policy = "p, nobody, /, GET\n" * 4000 + "p, alice, /res, GET"
    plugins = chain(("authz-casbin", {**CONFIG, "policy": policy}))
    turns: list[str] = []

    async def decide() -> None:
        assert await asked(plugins, request("/res", [("user", "alice")])) is None
        turns.append("decided")

    async def neighbour() -> None:
        turns.append("neighbour")

    await asyncio.gather(decide(), neighbour())
    assert turns == ["neighbour", "decided"]


async def test_nested_repetition_of_an_honest_policy_costs_nothing() -> None:
    model = MODEL.replace("keyMatch(r.obj, p.obj)", "regexMatch(r.obj, p.obj)")
    plugins = chain(("authz-casbin", {**CONFIG, "model": model, "policy": "p, *, ^/re/(a+)+$, GET"}))
    refused = await asked(plugins, request(f"/re/{'a' * 2000}!"))
    assert refused is not None
    assert refused.status == 403


async def test_a_decision_that_takes_too_long_is_given_up() -> None:
    lines = "\n".join(f"p, *, (a|b|ab)*[a-z0-9]{{200}}{number}$, GET" for number in range(30))
    model = MODEL.replace("keyMatch(r.obj, p.obj)", "regexMatch(r.obj, p.obj)")
    plugins = chain(("authz-casbin", {**CONFIG, "model": model, "policy": lines}))
    refused = await asked(plugins, request("/" + "ab" * 4000))
    assert refused is not None
    assert (refused.status, refused.reason) == (503, "the policy takes too long for this request")
