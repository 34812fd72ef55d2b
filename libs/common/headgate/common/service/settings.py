"""Settings of a service: flags, then environment, then a TOML file, then defaults.

A service declares a frozen subclass of `ServiceSettings`; each field's description is one sentence that is also the
flag's help and says where the default comes from. A mistake is one line that names the field, the value and what
would be right, never a traceback.

    class GatewaySettings(ServiceSettings):
        http_port: int = Field(default=8080, description="Port for plain HTTP; 8080 needs no privileges.")

    settings = load_settings(GatewaySettings, argv, program="headgate gateway", summary="Serve traffic.")

Field `http_port` is then `--http-port`, `HEADGATE_HTTP_PORT` and `http_port = 8080` in the TOML file. Lists are
repeated flags, or one text with commas.
"""

import argparse
import json
import os
import re
import socket
import sys
import tomllib
from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal, NoReturn, Self, TypeVar

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    CliSettingsSource,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)
from pydantic_settings.exceptions import SettingsError as SourceError

from headgate.common.bus.access import NatsAccess, NatsTls
from headgate.common.deltas import escape_token
from headgate.common.errors import SettingsError

ENV_PREFIX = "HEADGATE_"
CONFIG_VARIABLE = ENV_PREFIX + "CONFIG"
_SHOWN_VALUE = 80
_NATS_SERVER = re.compile(r"(?:(?:nats|tls|ws|wss)://)?[^\s/]+/?")
_SUBJECT = re.compile(r"[^\s.*>]+(?:\.[^\s.*>]+)*")
_HTTP_URL = re.compile(r"https?://[^\s/]+\S*")
_CREDENTIALS = re.compile(r"//[^/\s]*@")

_file_values: ContextVar[dict[str, Any]] = ContextVar("_file_values", default={})  # noqa: B039 - never changed in place


class _Environment(EnvSettingsSource):
    """Environment variables in which a list may be written with commas instead of as JSON."""

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        text = str(value).strip()
        if text.startswith(("[", "{", '"')):
            return json.loads(text)
        return [item.strip() for item in text.split(",") if item.strip()]


class ServiceSettings(BaseSettings):
    """What every service can be told."""

    model_config = SettingsConfigDict(
        frozen=True, env_prefix=ENV_PREFIX, extra="forbid", validate_default=False, populate_by_name=True
    )

    config: Path | None = Field(default=None, description="TOML file with any of these settings; none by default.")
    nats_url: str = Field(
        default="nats://127.0.0.1:4222", description="NATS server(s), separated by commas; the default is NATS' own."
    )
    nats_user: str = Field(default="", description="User name for NATS; empty by default: no authentication.")
    nats_password: SecretStr = Field(
        default=SecretStr(""), description="Password for NATS; better given by environment than by flag."
    )
    nats_ca_file: Path | None = Field(
        default=None,
        description="Authorities for TLS to NATS, PEM, in place of the system's; given, or with a tls:// URL, servers "
        "without TLS are refused.",
    )
    nats_certificate_file: Path | None = Field(
        default=None, description="Certificate that is shown to NATS, PEM, if it asks for one; none by default."
    )
    nats_key_file: Path | None = Field(default=None, description="Key of that certificate, PEM; none by default.")
    nats_server_name: str = Field(
        default="",
        description="Name that the certificates of the NATS servers must have; by default the host of the URL.",
    )
    nats_inbox: str = Field(
        default="",
        description="Subject below which NATS' answers come; by default _INBOX, with the user behind it if there is "
        "one: _INBOX.gateway.",
    )
    data_dir: Path = Field(
        default=Path(".headgate"), description="Folder for state that survives a restart; here by default."
    )
    instance: str = Field(
        default_factory=socket.gethostname, description="Name of this process among its replicas; default: host name."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severity that is logged; at info a quiet system logs next to nothing."
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="text for people (the default), json for machines."
    )
    admin_host: str = Field(
        default="127.0.0.1", description="Address of the admin site; loopback by default, as it has no authentication."
    )
    admin_port: int = Field(
        default=0, ge=0, le=65535, description="Port of /healthz, /readyz and /metrics; 0, the default, turns it off."
    )
    otlp_endpoint: str = Field(
        default="",
        description="Base URL of an OTLP/HTTP collector for traces, metrics and, with access_log_otlp, logs; empty by "
        "default: none are exported.",
    )
    grace_s: float = Field(
        default=25.0, ge=0, description="Seconds to finish after SIGTERM; 25 stays under Kubernetes' 30 before SIGKILL."
    )

    @field_validator("nats_url")
    @classmethod
    def _check_nats_url(cls, value: str) -> str:
        servers = [server.strip() for server in value.split(",") if server.strip()]
        if not servers or not all(_NATS_SERVER.fullmatch(server) for server in servers):
            raise ValueError("must be nats://host:port or tls://host:port, several separated by commas")
        return value

    @field_validator("nats_inbox")
    @classmethod
    def _check_nats_inbox(cls, value: str) -> str:
        if value and not _SUBJECT.fullmatch(value):
            raise ValueError("must be a subject without wildcards, such as _INBOX.gateway")
        return value

    @model_validator(mode="after")
    def _check_nats_certificate(self) -> Self:
        if (self.nats_certificate_file is None) != (self.nats_key_file is None):
            raise ValueError("nats_certificate_file and nats_key_file go together: give both or neither")
        return self

    @property
    def nats(self) -> NatsAccess:
        """Where NATS is and how to get in."""
        tls = NatsTls(self.nats_ca_file, self.nats_certificate_file, self.nats_key_file, self.nats_server_name)
        is_tls = "tls://" in self.nats_url or tls != NatsTls()
        inbox = self.nats_inbox or ".".join(("_INBOX", *map(escape_token, filter(None, [self.nats_user]))))
        return NatsAccess(
            url=self.nats_url,
            user=self.nats_user,
            password=self.nats_password.get_secret_value(),
            inbox=inbox,
            tls=tls if is_tls else None,
        )

    @field_validator("otlp_endpoint")
    @classmethod
    def _check_otlp_endpoint(cls, value: str) -> str:
        if value and not _HTTP_URL.fullmatch(value):
            raise ValueError("must begin with http:// or https://, such as http://127.0.0.1:4318")
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Keyword arguments, then environment, then the TOML file; `load_settings` puts flags before them."""
        return init_settings, _Environment(settings_cls), InitSettingsSource(settings_cls, _file_values.get())


S = TypeVar("S", bound=ServiceSettings)


def load_settings(cls: type[S], argv: Sequence[str] | None, *, program: str, summary: str) -> S:
    """Read a service's settings from flags, environment and TOML file, in this order of precedence.

    Args:
        cls: the service's settings.
        argv: flags without the program's name; None takes those of this process.
        program: as users type it, for `--help`.
        summary: a few sentences for `--help`.

    Raises:
        SettingsError: one line that names the field, the value and what would be right.
        SystemExit: `--help` was asked for and printed.
    """
    flags = list(sys.argv[1:] if argv is None else argv)
    token = _file_values.set(_read_file(cls, _config_path(flags)))
    try:
        source: CliSettingsSource[Any] = CliSettingsSource(
            cls,
            cli_parse_args=flags,
            root_parser=_parser(program, summary),
            cli_kebab_case=True,
            cli_implicit_flags=True,
            cli_hide_none_type=True,
            cli_avoid_json=True,
            add_argument_method=_add_argument,
        )
        return cls(_cli_settings_source=source)
    except ValidationError as error:
        raise SettingsError(_explain(cls, error)) from error
    except (SourceError, json.JSONDecodeError) as error:
        raise SettingsError(_one_line(str(error))) from error
    finally:
        _file_values.reset(token)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SettingsError(f"{_one_line(message)}; see {self.prog} --help")


def _parser(program: str, summary: str) -> argparse.ArgumentParser:
    return _Parser(
        prog=program,
        description=summary,
        epilog=f"Every --some-flag is also {ENV_PREFIX}SOME_FLAG in the environment and some_flag in the TOML file; "
        "flags go before the environment, the environment before the file.",
        allow_abbrev=False,
        formatter_class=_HelpFormatter,
    )


def _add_argument(parser: Any, *names: str, **options: Any) -> Any:
    """Add a flag with help for people: `PATH` in place of `tuple[Path,...]`, and no default that is nothing."""
    if "metavar" in options:
        options["metavar"] = _placeholder(str(options["metavar"]))
    if "help" in options:
        options["help"] = _NO_DEFAULT.sub("", str(options["help"]))
    return argparse.ArgumentParser.add_argument(parser, *names, **options)


_NO_DEFAULT = re.compile(r" \(default(: (None|\(\)|\[\]|)| factory: [^)]*)\)")
_ELEMENT = re.compile(r"^(?:tuple|list|set|frozenset|Sequence|Collection)\[(.*?)(?:,\s*\.\.\.)?\]$")
_PLACEHOLDERS = {"str": "TEXT", "SecretStr": "TEXT", "int": "N", "float": "NUMBER", "Path": "PATH"}


def _placeholder(annotation: str) -> str:
    if found := _ELEMENT.match(annotation):
        annotation = found[1]
    return _PLACEHOLDERS.get(annotation, annotation)


class _HelpFormatter(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=110)


def _config_path(flags: Sequence[str]) -> Path | None:
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config")
    chosen = parser.parse_known_args(flags)[0].config or os.environ.get(CONFIG_VARIABLE)
    return Path(chosen) if chosen else None


def _read_file(cls: type[ServiceSettings], path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"config: {str(path)!r} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"config: {str(path)!r} is not TOML: {_one_line(str(error))}") from error
    values = {name.replace("-", "_"): value for name, value in values.items()}
    for name in values:
        if name not in cls.model_fields:
            raise SettingsError(f"{name}: no such setting (in {path}); there are {', '.join(sorted(cls.model_fields))}")
    return values


def _explain(cls: type[ServiceSettings], error: ValidationError) -> str:
    return "; ".join(_explain_one(cls, dict(item)) for item in error.errors(include_url=False))


def _explain_one(cls: type[ServiceSettings], item: dict[str, Any]) -> str:
    path = [str(part) for part in item["loc"]]
    name = path[0] if path else ""
    field = cls.model_fields.get(name)
    message = item["msg"].removeprefix("Value error, ")
    if field is None:
        return f"{'.'.join(path)}: {message}" if path else message
    flag, variable = f"--{name.replace('_', '-')}", f"{ENV_PREFIX}{name.upper()}"
    where = f"({flag}, {variable} or {name} in the TOML file)"
    if item["type"] == "missing":
        return f"{name}: required {where}: {field.description or message}"
    return f"{'.'.join(path)}: {_shown(field, item['input'])}: {message[:1].lower()}{message[1:]} {where}"


def _shown(field: FieldInfo, value: object) -> str:
    if field.annotation is not None and "Secret" in repr(field.annotation):
        return "***"
    text = _CREDENTIALS.sub("//***@", repr(value))
    return text if len(text) <= _SHOWN_VALUE else text[: _SHOWN_VALUE - 3] + "..."


def _one_line(text: str) -> str:
    return " ".join(text.split())
