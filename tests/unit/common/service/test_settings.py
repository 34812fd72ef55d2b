"""Settings from flags, environment and file; mistakes in one line."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import Field, SecretStr, ValidationError

from headgate.common.bus.access import NatsAccess, NatsTls
from headgate.common.errors import SettingsError
from headgate.common.service.settings import ServiceSettings, load_settings


class DemoSettings(ServiceSettings):
    http_port: int = Field(default=8080, ge=1, le=65535, description="Port for plain HTTP; 8080 needs no privileges.")
    manifests: tuple[Path, ...] = Field(default=(), description="Folders of manifests; none by default.")
    is_fast: bool = Field(default=False, description="Go fast; off by default.")
    token: SecretStr = Field(default=SecretStr(""), max_length=5, description="A secret; empty by default.")


class DemandingSettings(ServiceSettings):
    cluster: str = Field(description="Name of the cluster; there is no sensible default.")


def load(*argv: str) -> DemoSettings:
    return load_settings(DemoSettings, argv, program="demo", summary="Shows settings.")


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], str]:
    def write(content: str) -> str:
        path = tmp_path / "settings.toml"
        path.write_text(content)
        return str(path)

    return write


def test_defaults_hold_when_nothing_is_said() -> None:
    settings = load()
    assert (settings.nats_url, settings.http_port, settings.admin_port) == ("nats://127.0.0.1:4222", 8080, 0)
    assert settings.instance


def test_flags_go_before_environment_before_file(file: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    path = file('http_port = 1\nlog-level = "debug"\ninstance = "from file"\n')
    monkeypatch.setenv("HEADGATE_HTTP_PORT", "2")
    monkeypatch.setenv("HEADGATE_LOG_LEVEL", "error")
    settings = load("--config", path, "--http-port", "3")
    assert (settings.http_port, settings.log_level, settings.instance) == (3, "error", "from file")


def test_the_file_may_be_named_by_environment(file: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_CONFIG", file("http_port = 7\n"))
    assert load().http_port == 7


@pytest.mark.parametrize("argv", [("--manifests", "a", "--manifests", "b"), ("--manifests", "a,b")])
def test_lists_are_repeated_flags_or_commas(argv: tuple[str, ...]) -> None:
    assert load(*argv).manifests == (Path("a"), Path("b"))


@pytest.mark.parametrize("text", ["a, b", '["a", "b"]'])
def test_lists_in_the_environment_are_commas_or_json(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_MANIFESTS", text)
    assert load().manifests == (Path("a"), Path("b"))


@pytest.mark.parametrize("url", ["nats://a:1,tls://b:2", "127.0.0.1:4222", "nats://me:secret@[::1]:4222/", "wss://a"])
def test_nats_servers_are_taken_as_the_client_takes_them(url: str) -> None:
    assert load("--nats-url", url).nats_url == url


def test_a_switch_is_on_or_off() -> None:
    assert load("--is-fast").is_fast
    assert not load("--no-is-fast").is_fast


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        load().http_port = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("argv", "parts"),
    [
        (("--http-port", "99999"), ("http_port", "99999", "less than or equal to 65535", "HEADGATE_HTTP_PORT")),
        (("--http-port", "many"), ("http_port", "'many'", "integer", "--http-port")),
        (("--log-level", "loud"), ("log_level", "'loud'", "'debug', 'info', 'warning' or 'error'")),
        (("--htp-port", "1"), ("--htp-port", "demo --help")),
        (("--config", "/absent.toml"), ("config", "/absent.toml", "No such file")),
        (("--http-port",), ("http-port", "expected one argument")),
        (("--nats-url", "http://nats:4222"), ("nats_url", "'http://nats:4222'", "must be nats://host:port")),
        (("--nats-url", ""), ("nats_url", "must be nats://host:port")),
        (("--nats-url", "amqp://me:secret@bus"), ("nats_url", "'amqp://***@bus'")),
        (("--otlp-endpoint", "collector:4318"), ("otlp_endpoint", "must begin with http://")),
    ],
)
def test_a_mistake_is_one_line_with_field_value_and_remedy(argv: tuple[str, ...], parts: tuple[str, ...]) -> None:
    with pytest.raises(SettingsError) as caught:
        load(*argv)
    message = str(caught.value)
    assert "\n" not in message
    assert all(part in message for part in parts), message


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("http_prt = 1", ("http_prt", "no such setting", "http_port")),
        ("http_port = ", ("not TOML",)),
        ('http_port = "x"', ("http_port", "'x'", "integer")),
    ],
)
def test_a_mistake_in_the_file_is_named(file: Callable[[str], str], content: str, parts: tuple[str, ...]) -> None:
    with pytest.raises(SettingsError) as caught:
        load("--config", file(content))
    assert all(part in str(caught.value) for part in parts)


def test_broken_json_in_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_MANIFESTS", '["a"')
    with pytest.raises(SettingsError, match="manifests"):
        load()


def test_a_secret_is_not_shown_in_an_error_or_a_dump() -> None:
    with pytest.raises(SettingsError) as caught:
        load("--token", "hunter2")
    assert "hunter2" not in str(caught.value)
    assert "***" in str(caught.value)
    assert "abc" not in repr(load("--token", "abc").token)


def test_a_required_setting_is_asked_for_with_its_description() -> None:
    with pytest.raises(SettingsError, match=r"cluster: required .*HEADGATE_CLUSTER.*no sensible default"):
        load_settings(DemandingSettings, [], program="demo", summary="")


def test_help_teaches_and_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        load("--help")
    printed = capsys.readouterr().out
    assert caught.value.code == 0
    for part in (
        "Shows settings.",
        "--http-port N",
        "--manifests PATH",
        "8080 needs no privileges",
        "HEADGATE_SOME_FLAG",
    ):
        assert part in printed
    assert "default: )" not in printed


def test_every_setting_has_a_sentence_on_its_default() -> None:
    for name, field in ServiceSettings.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name


def test_nats_is_reached_in_the_clear_and_without_a_user_by_default() -> None:
    assert load().nats == NatsAccess("nats://127.0.0.1:4222")


@pytest.mark.parametrize(
    ("argv", "tls"),
    [
        (("--nats-url=nats://a,tls://b",), NatsTls()),
        (("--nats-ca-file=ca.pem",), NatsTls(Path("ca.pem"))),
        (("--nats-certificate-file=c", "--nats-key-file=k"), NatsTls(None, Path("c"), Path("k"))),
        (("--nats-server-name=nats",), NatsTls(server_name="nats")),
    ],
)
def test_a_tls_url_or_a_file_for_tls_demands_tls(argv: tuple[str, ...], tls: NatsTls) -> None:
    assert load(*argv).nats.tls == tls


def test_each_user_has_an_inbox_of_its_own_unless_one_is_named() -> None:
    assert load("--nats-user=watcher.paris").nats.inbox == "_INBOX.watcher=2Eparis"
    assert load("--nats-user=watcher", "--nats-inbox=answers.here").nats.inbox == "answers.here"


def test_the_password_of_nats_is_not_shown() -> None:
    assert "secret" not in repr(load("--nats-user=watcher", "--nats-password=secret").nats)


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (("--nats-certificate-file=c",), "nats_certificate_file and nats_key_file go together"),
        (("--nats-inbox=_INBOX.>",), "must be a subject without wildcards"),
    ],
)
def test_mistakes_about_nats_are_told(argv: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        load(*argv)
