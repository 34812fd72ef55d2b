"""Parts that the specs of several kinds have."""

import re
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, WithJsonSchema

from headgate.translator.manifests.models import INT_OR_STRING, Model, Name

_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST: Final = 9_223_372_036.0
"""Seconds that Go's durations can say."""


def go_duration(value: Any) -> float:
    """Read a duration of Go as seconds: `1m30s`, `100ms`, `-1ns`; a number alone is seconds."""
    wrong = ValueError("must be a time such as 500ms, 5s or 1m30s, or a number of seconds")
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise wrong
    text = str(value)
    sign, digits = (-1.0, text[1:]) if text.startswith("-") else (1.0, text.removeprefix("+"))
    if digits.isascii() and digits.isdecimal() and len(digits) <= 12:
        seconds = float(digits)
    elif digits and len(digits) <= 64 and not _PART.sub("", digits):
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(digits))
    else:
        raise wrong
    if seconds > _LONGEST:
        raise ValueError("must be a time of less than 292 years")
    return sign * seconds


Duration = Annotated[float, BeforeValidator(go_duration), WithJsonSchema(INT_OR_STRING)]
"""Seconds, written as Go writes durations."""
Port = Annotated[int, Field(ge=1, le=65535)]


class ObjectReference(Model):
    """An object of this API group."""

    name: Name = Field(description="Name of the object.")
    namespace: str = Field(default="", description="Namespace of the object; that of the referrer by default.")


class LocalSecret(Model):
    """A Secret in the object's own namespace."""

    secret_name: Name = Field(description="Name of the Secret.")


class Domain(Model):
    """Names that a certificate is asked for."""

    main: str = Field(default="", description="First name of the certificate.")
    sans: tuple[str, ...] = Field(default=(), description="Further names of the certificate.")


class RootCertificates(Model):
    """Authorities from a Secret or a ConfigMap."""

    secret: str = Field(default="", description="Secret with the authorities, under tls.ca or ca.crt.")
    config_map: str = Field(default="", description="ConfigMap with the authorities, under tls.ca or ca.crt.")


class SubjectName(Model):
    """A name that a server's certificate may have."""

    type: str = Field(default="", description="What the name is: DNS, IP or URI.")
    value: str = Field(default="", description="The name.")


class Spiffe(Model):
    """Identities of workloads by SPIFFE."""

    ids: tuple[str, ...] = Field(default=(), description="Identities that servers may have.")
    trust_domain: str = Field(default="", description="Trust domain that servers must be of.")


class ProxyProtocol(Model):
    """The PROXY protocol towards servers."""

    version: int = Field(default=2, ge=1, le=2, description="Version of the header; 2 by default.")
