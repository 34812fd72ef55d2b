"""Where Redis is, as URLs and settings say it."""

from pathlib import Path

import pytest

from headgate.common.errors import SettingsError
from headgate.common.service.settings import load_settings
from headgate.common.stores.redis.target import Login, RedisTarget, Server, parse_redis_url
from headgate.common.stores.settings import StoreSettings

HOST = Server("redis.test", 6379)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("redis://redis.test", RedisTarget((HOST,))),
        ("redis://redis.test/", RedisTarget((HOST,))),
        ("redis://redis.test:7000/3", RedisTarget((Server("redis.test", 7000),), database=3)),
        ("redis://[::1]:7000", RedisTarget((Server("::1", 7000),))),
        ("rediss://redis.test", RedisTarget((HOST,), is_tls=True)),
        ("redis://me:p%40ss@redis.test", RedisTarget((HOST,), login=Login("me", "p@ss"))),
        ("redis://:p:w@redis.test", RedisTarget((HOST,), login=Login("", "p:w"))),
        (
            "redis+sentinel://a,b:7000/tables",
            RedisTarget((Server("a", 26379), Server("b", 7000)), service="tables"),
        ),
        (
            "rediss+sentinel://me:pw@a:1/tables/2",
            RedisTarget((Server("a", 1),), service="tables", database=2, is_tls=True, login=Login("me", "pw")),
        ),
    ],
)
def test_a_url_says_where_redis_is(url: str, target: RedisTarget) -> None:
    found = parse_redis_url(url)
    assert (found, found.login) == (target, target.login)


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("http://redis.test", "must be redis://host:port"),
        ("redis://", "must be redis://host:port"),
        ("redis://redis.test /", "must be redis://host:port"),
        ("redis://a,b", "one server"),
        ("redis://redis.test:0", "host:port"),
        ("redis://redis.test:65536", "host:port"),
        ("redis://redis.test:port", "host:port"),
        ("redis://redis.test/one", "number of a database"),
        ("redis://redis.test/0/1", "number of a database"),
        ("redis+sentinel://a:1", "name the service"),
        ("redis+sentinel://a:1,/tables", "host:port"),
    ],
)
def test_what_is_no_url_of_redis_is_refused_with_what_would_be_right(url: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_redis_url(url)


def test_a_target_shows_where_it_is_and_no_password() -> None:
    target = parse_redis_url("rediss+sentinel://me:secret@a:1,[::1]:2/tables/4")
    assert str(target) == "rediss+sentinel://a:1,[::1]:2/tables"
    assert "secret" not in repr(target)


def load(*argv: str) -> StoreSettings:
    return load_settings(StoreSettings, argv, program="demo", summary="")


def test_tables_are_on_nats_unless_a_setting_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load().redis is None
    assert load("--store", "nats").redis is None
    monkeypatch.setenv("HEADGATE_STORE", "redis://redis.test")
    assert load().redis == RedisTarget((HOST,))


def test_settings_go_before_what_the_url_says() -> None:
    login = ("--store-user", "me", "--store-password", "new")
    sentinel = ("--store-sentinel-user", "watch", "--store-sentinel-password", "dog")
    found = load("--store", "redis+sentinel://other:old@a:1/tables", *login, *sentinel).redis
    assert found is not None
    assert (found.login, found.sentinel_login) == (Login("me", "new"), Login("watch", "dog"))
    kept = load("--store", "redis://other:old@redis.test").redis
    assert kept is not None
    assert kept.login == Login("other", "old")


def test_files_for_tls_are_passed_on() -> None:
    files = ("--store-ca-file", "ca.pem", "--store-certificate-file", "c.pem", "--store-key-file", "k.pem")
    found = load("--store", "rediss://redis.test", *files).redis
    assert found is not None
    assert (found.ca_file, found.certificate_file, found.key_file) == (Path("ca.pem"), Path("c.pem"), Path("k.pem"))


def test_a_certificate_without_its_key_is_refused() -> None:
    with pytest.raises(SettingsError, match="both or neither"):
        load("--store-certificate-file", "c.pem")


def test_a_store_that_is_none_is_refused_without_telling_a_password() -> None:
    with pytest.raises(SettingsError, match=r"store: 'redis://\*\*\*@a,b': must name one server") as refused:
        load("--store", "redis://me:secret@a,b")
    assert "secret" not in str(refused.value)
