"""Middlewares that guard servers and calls: `circuitBreaker`, `encodedCharacters`, `grpcWeb`, `passTLSClientCert`."""

from collections.abc import Sequence
from typing import Any

from headgate.common.plugins.limits.circuit_breaker import CircuitBreakerConfig
from headgate.common.plugins.security.client_certificate import ClientCertificateConfig
from headgate.common.plugins.security.restrictions import UriBlockerConfig
from headgate.common.plugins.transformation.grpc_web import GrpcWebConfig
from headgate.common.table import PluginUse
from headgate.translator.dialects.traefik.middlewares.making import Making, Unfollowed
from headgate.translator.dialects.traefik.models.exchanges import (
    CircuitBreaker,
    GrpcWeb,
    IssuerInfo,
    PassTlsClientCert,
)
from headgate.translator.dialects.traefik.models.rewriting import EncodedCharacters
from headgate.translator.world.entry_point_settings import ESCAPES


def circuit_breaker(written: CircuitBreaker, making: Making) -> tuple[PluginUse, ...]:
    """Refuse requests while servers fail."""
    if not written.expression:
        raise Unfollowed("Required", "expression", "must be given, such as NetworkErrorRatio() > 0.5")
    durations = {
        "check_period": written.check_period,
        "fallback_duration": written.fallback_duration,
        "recovery_duration": written.recovery_duration,
    }
    told: dict[str, Any] = {name: value for name, value in durations.items() if value and value > 0}
    told |= {"expression": written.expression, "response_code": written.response_code}
    return (PluginUse.of(CircuitBreakerConfig.model_validate(told)),)


def encoded_characters(written: EncodedCharacters, making: Making) -> tuple[PluginUse, ...]:
    """Refuse paths with some encoded characters."""
    return refuse_escapes([code for field, code in ESCAPES.items() if not getattr(written, field)])


def refuse_escapes(codes: Sequence[str]) -> tuple[PluginUse, ...]:
    """Refuse paths with some escapes, each of two hexadecimal digits."""
    if not codes:
        return ()
    rule = f"%(?i:{'|'.join(codes)})"
    return (PluginUse.of(UriBlockerConfig(block_rules=(rule,), only_path=True, rejected_code=400)),)


def grpc_web(written: GrpcWeb, making: Making) -> tuple[PluginUse, ...]:
    """Let pages call services of gRPC."""
    return (PluginUse.of(GrpcWebConfig(allow_origins=written.allow_origins, passes_others=True)),)


def pass_client_certificate(written: PassTlsClientCert, making: Making) -> tuple[PluginUse, ...]:
    """Tell servers of the client's certificate."""
    told: dict[str, Any] = {"pem": written.pem}
    info = written.info
    if info is not None:
        told["info"] = {
            "subject": _parts(info.subject),
            "issuer": _parts(info.issuer),
            "serial_number": info.serial_number,
            "not_before": info.not_before,
            "not_after": info.not_after,
            "sans": info.sans,
        }
    return (PluginUse.of(ClientCertificateConfig.model_validate(told)),)


def _parts(written: IssuerInfo | None) -> list[str]:
    """Return the names of the parts, which are those of the manifest's fields."""
    if written is None:
        return []
    fields = type(written).model_fields
    return [field.alias or name for name, field in fields.items() if getattr(written, name)]
