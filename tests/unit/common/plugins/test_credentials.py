"""What is checked of credentials and of plugins that recognise consumers, with the words that a user gets."""

import pytest

from headgate.common.plugins.checking import check_credential, check_use
from headgate.common.plugins.errors import PluginFault
from headgate.common.plugins.hiding import hide_secrets
from headgate.common.sealing import ClusterValue
from headgate.common.table import PluginUse

SESSION = {"secret": "sixteen letters."}
PROVIDER = {"client_id": "a", "discovery": "https://id.example/.well-known/openid-configuration"}


def sealed(*places: str) -> dict[str, ClusterValue]:
    return {place: ClusterValue(boxes={"r": "x"}) for place in places}


@pytest.mark.parametrize(
    ("name", "config", "fault"),
    [
        ("cors", {}, "plugin cors: recognises no consumers; basic-auth, hmac-auth, "),
        ("key-auth", {}, "plugin key-auth, config.key: is required"),
        ("key-auth", {"key": ""}, "plugin key-auth, config.key: must not be empty"),
        ("key-auth", {"keys": "a"}, "plugin key-auth, config.key: is required"),
        ("basic-auth", {"username": "a:b", "password": "c"}, "plugin basic-auth, config.username: "),
        ("jwt-auth", {"key": "k"}, "plugin jwt-auth, config: algorithm HS256 needs secret"),
        ("jwt-auth", {"key": "k", "algorithm": "RS256"}, "plugin jwt-auth, config: algorithm RS256 needs public_key"),
        ("jwt-auth", {"key": "k", "algorithm": "none"}, "plugin jwt-auth, config.algorithm: must be 'HS256', "),
        (
            "jwt-auth",
            {"key": "k", "secret": "%", "base64_secret": True},
            "plugin jwt-auth, config: secret is not in base64, as base64_secret says",
        ),
        ("hmac-auth", {"key_id": "k"}, "plugin hmac-auth, config.secret_key: is required"),
        ("ldap-auth", {"user_dn": ""}, "plugin ldap-auth, config.user_dn: "),
        ("wolf-rbac", {"server": "wolf"}, "plugin wolf-rbac, config.server: 'wolf' is not a URL as "),
        ("wolf-rbac", {"header_prefix": "X "}, "plugin wolf-rbac, config.header_prefix: 'X ' is not the beginning "),
    ],
)
def test_a_credential_that_no_gateway_could_use_is_refused(name, config, fault) -> None:
    with pytest.raises(PluginFault) as refused:
        check_credential(PluginUse(name=name, config=config))
    assert str(refused.value).startswith(fault)


@pytest.mark.parametrize(
    ("name", "secrets"),
    [
        ("key-auth", ("key",)),
        ("basic-auth", ("username", "password")),
        ("jwt-auth", ("key", "secret", "base64_secret")),
        ("jwt-auth", ("key", "algorithm", "public_key")),
        ("hmac-auth", ("key_id", "secret_key")),
        ("ldap-auth", ("user_dn",)),
        ("wolf-rbac", ("server", "appid")),
        ("jwe-decrypt", ("key", "secret", "is_base64_encoded")),
    ],
)
def test_all_of_a_credential_may_be_sealed(name, secrets) -> None:
    check_credential(PluginUse(name=name, secrets=sealed(*secrets)))


@pytest.mark.parametrize(
    ("name", "config", "fault"),
    [
        ("consumer-restriction", {}, "config: needs one of whitelist, blacklist and allowed_by_methods"),
        ("consumer-restriction", {"type": "label", "whitelist": ["a"]}, "config.type: must be 'consumer_name', "),
        ("multi-auth", {"auth_plugins": [{"key-auth": {}}]}, "config.auth_plugins: "),
        ("multi-auth", {"auth_plugins": [{}, {"key-auth": {}}]}, "config.auth_plugins.0: needs one plugin, "),
        (
            "multi-auth",
            {"auth_plugins": [{"key-auth": {}}, {"basic-auth": {"htpasswd": "a:{SHA}" + "A" * 28}}]},
            "config.auth_plugins.1: basic-auth is tried for consumers only",
        ),
        (
            "multi-auth",
            {"auth_plugins": [{"key-auth": {"header": "a b"}}, {"jwt-auth": {}}]},
            "config.auth_plugins.0.key-auth.header: 'a b' is not the name of a header",
        ),
        (
            "basic-auth",
            {"htpasswd": "a:{SHA}" + "A" * 28, "anonymous_consumer": "a"},
            "config: anonymous_consumer does ",
        ),
        ("ldap-auth", {"ldap_uri": "http://a/b", "base_dn": "dc=a"}, "config.ldap_uri: 'http://a/b' is no LDAP server"),
        ("openid-connect", PROVIDER, "config: session.secret is required unless bearer_only is set"),
        ("openid-connect", {**PROVIDER, "session": {"secret": "short"}}, "config.session: secret needs at least 16 "),
        (
            "openid-connect",
            {**PROVIDER, "session": SESSION, "token_signing_alg_values_expected": "HS256"},
            "config: algorithm HS256 needs client_secret",
        ),
        (
            "openid-connect",
            {**PROVIDER, "session": SESSION, "accept_none_alg": True},
            "config.accept_none_alg: must be ",
        ),
        ("openid-connect", {**PROVIDER, "session": SESSION, "redirect_uri": "back"}, "config.redirect_uri: 'back' is "),
        ("opa", {"host": "opa:8181", "policy": "a"}, "config.host: 'opa:8181' is not a URL as "),
    ],
)
def test_a_plugin_that_recognises_nobody_as_written_is_refused(name, config, fault) -> None:
    with pytest.raises(PluginFault) as refused:
        check_use(PluginUse(name=name, config=config))
    assert str(refused.value).startswith(f"plugin {name}, {fault}")


def test_what_is_secret_in_a_configuration_is_hidden_wherever_it_stands() -> None:
    told = {**PROVIDER, "client_secret": "s", "session": {"secret": "t", "cookie_name": "c"}}
    hidden = hide_secrets("openid-connect", told, lambda secret: f"<{len(secret)}>")
    assert hidden == {**PROVIDER, "client_secret": "<1>", "session": {"secret": "<1>", "cookie_name": "c"}}
    users = {"users": [{"username": "a", "password": "pass"}, {"username": "b", "hash": 7}]}
    shown = hide_secrets("basic-auth", users, lambda secret: "***")["users"]
    assert shown == [{"username": "a", "password": "***"}, {"username": "b", "hash": 7}]
    assert hide_secrets("somebodys", {"key": "k"}, lambda secret: "***") == {"key": "k"}
