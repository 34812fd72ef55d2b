"""The `k8s.apisix.apache.org/*` annotations of Apache APISIX' ingress controller, on an Ingress or an ApisixRoute.

Most of them say how a plugin is configured, and become that plugin. One that cannot be read is named in the object's
status; where it keeps requests out, all are refused until it is mended.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.common.plugins.authentication.basic_auth import BasicAuthConfig
from headgate.common.plugins.authentication.forward_auth import ForwardAuthConfig
from headgate.common.plugins.authentication.key_auth import KeyAuthConfig
from headgate.common.plugins.checking import check_size, faults_of
from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.errors import PluginFault
from headgate.common.plugins.expressions import Comparison, write_comparison
from headgate.common.plugins.security.cors import CorsConfig
from headgate.common.plugins.security.csrf import CsrfConfig
from headgate.common.plugins.security.ip_restriction import IpRestrictionConfig
from headgate.common.plugins.traffic.proxy_rewrite import ProxyRewriteConfig
from headgate.common.plugins.traffic.redirect import RedirectConfig
from headgate.common.plugins.transformation.fault_injection import Abort, FaultInjectionConfig
from headgate.common.plugins.transformation.response_rewrite import AnswerHeaderChanges, ResponseRewriteConfig
from headgate.common.problems import Problem
from headgate.common.resources import JsonObject
from headgate.common.table import BackendProtocol, PathType, PluginUse
from headgate.translator.annotations.annotation import Annotation, AnnotationTable
from headgate.translator.annotations.reading import Reading
from headgate.translator.manifests import texts

APISIX_PREFIX: Final = "k8s.apisix.apache.org/"
DEFAULT_TIMEOUT_S: Final = 60.0
_NAME = r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?"
_SCHEMES = {
    "http": BackendProtocol.HTTP,
    "https": BackendProtocol.HTTPS,
    "grpc": BackendProtocol.H2C,
    "grpcs": BackendProtocol.H2,
}
_AUTHENTICATIONS: Mapping[str, type[PluginConfig]] = {"keyAuth": KeyAuthConfig, "basicAuth": BasicAuthConfig}


def _boolean(text: str) -> bool:
    return text == "true"


def _object_name(text: str) -> str:
    if not re.fullmatch(_NAME, text):
        raise ValueError("must be the name of an object")
    return text


def _methods(text: str) -> list[str]:
    found = [method.upper() for method in texts.words(text)]
    if wrong := [method for method in found if not re.fullmatch(r"[A-Z][A-Z_-]*", method)]:
        raise ValueError(f"must be methods such as GET,POST; {wrong[0]!r} is none")
    return found


def _pairs(text: str) -> dict[str, str]:
    found = {}
    for part in texts.words(text):
        name, colon, value = part.partition(":")
        if not colon or not name.strip():
            raise ValueError(f"must be headers such as X-A:1,X-B:2; {part!r} is none")
        found[name.strip()] = value.strip()
    return found


def _base64(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("must be base64") from None
    return text


def _on_ingress(name: str, read: Callable[[str], Any], approximation: str = "") -> Annotation:
    """Return an annotation that becomes no plugin: an ApisixRoute has a field for it, and it is not followed there."""
    return Annotation(name, read, kinds=("Ingress",), approximation=approximation)


def _guard(name: str, read: Callable[[str], Any], *, is_private: bool = False) -> Annotation:
    """Return an annotation that keeps requests out."""
    return Annotation(name, read, guards=True, is_private=is_private)


APISIX_ANNOTATIONS: Final = AnnotationTable.of(
    APISIX_PREFIX,
    (
        _on_ingress("use-regex", _boolean, "patterns are RE2, and looked for from the path's beginning"),
        _on_ingress("enable-websocket", _boolean),
        _on_ingress("svc-namespace", _object_name),
        _on_ingress("plugin-config-name", _object_name),
        _on_ingress("upstream-scheme", lambda text: texts.one_of(_SCHEMES)(text.lower())),
        _on_ingress("upstream-retries", texts.whole(0, 1000), "10 at most; what cannot be sent again is not"),
        _on_ingress("upstream-connect-timeout", texts.duration),
        _on_ingress("upstream-read-timeout", texts.duration),
        _on_ingress("upstream-send-timeout", texts.duration),
        Annotation("enable-cors", _boolean),
        Annotation("cors-allow-origin", str),
        Annotation("cors-allow-headers", str),
        Annotation("cors-allow-methods", str),
        _guard("enable-csrf", _boolean),
        _guard("csrf-key", str, is_private=True),
        Annotation("http-to-https", _boolean),
        Annotation("ssl-redirect", _boolean),
        Annotation("http-redirect", str),
        Annotation(
            "http-redirect-code", texts.whole(100, 999), approximation="301 for codes that are not from 301 to 308"
        ),
        Annotation("rewrite-target", str),
        Annotation("rewrite-target-regex", texts.regex),
        Annotation("rewrite-target-regex-template", str),
        Annotation("enable-response-rewrite", _boolean),
        Annotation("response-rewrite-status-code", texts.whole(200, 598)),
        Annotation("response-rewrite-body", str),
        Annotation("response-rewrite-body-base64", _base64),
        Annotation("response-rewrite-add-header", texts.words),
        Annotation("response-rewrite-set-header", _pairs),
        Annotation("response-rewrite-remove-header", texts.words),
        _guard("auth-uri", str),
        Annotation("auth-ssl-verify", lambda text: text != "false"),
        Annotation("auth-request-headers", texts.words),
        Annotation("auth-upstream-headers", texts.words),
        Annotation("auth-client-headers", texts.words),
        _guard("allowlist-source-range", lambda text: list(texts.networks(text))),
        _guard("whitelist-source-range", lambda text: list(texts.networks(text))),
        _guard("blocklist-source-range", lambda text: list(texts.networks(text))),
        _guard("blacklist-source-range", lambda text: list(texts.networks(text))),
        _guard("http-allow-methods", _methods),
        _guard("http-block-methods", _methods),
        _guard("auth-type", texts.one_of(_AUTHENTICATIONS)),
    ),
)


@dataclass(frozen=True, slots=True)
class ApisixAnnotations:
    """What an object's annotations say."""

    path_type: PathType | None
    """Of paths whose type is up to the implementation; None: as ever."""
    websocket: bool | None
    namespace: str
    """Of the Services, instead of the object's own."""
    plugin_config: str
    """Name of an ApisixPluginConfig."""
    protocol: BackendProtocol | None
    retries: int | None
    timeouts: Mapping[str, float]
    """Fields of `Timeouts`."""
    plugins: tuple[PluginUse, ...]
    problems: tuple[Problem, ...]
    unreadable: tuple[str, ...]
    """Those that keep requests out and cannot be followed."""


def apisix_annotations(manifest: JsonObject) -> JsonObject:
    """Return an object's annotations with that prefix, sorted by name."""
    return APISIX_ANNOTATIONS.written(manifest)


def read_apisix_annotations(annotations: Mapping[str, Any]) -> ApisixAnnotations:
    """Read annotations with that prefix."""
    return _Reading(annotations).result()


class _Reading:
    def __init__(self, annotations: Mapping[str, Any]) -> None:
        self._reading = Reading(APISIX_ANNOTATIONS)
        for key, written in annotations.items():
            name = key.removeprefix(APISIX_PREFIX)
            if name in APISIX_ANNOTATIONS.rows:
                self._reading.take(name, written)
            else:
                self._reading.warn_unknown(name, written)
        self._values = self._reading.group()

    def result(self) -> ApisixAnnotations:
        found = self._values
        plugins = tuple(self._plugins())
        times = {name: found.get(f"upstream-{name}-timeout") for name in ("connect", "read", "send")}
        is_timed = any(times.values())
        return ApisixAnnotations(
            path_type=PathType.REGEX if found.get("use-regex") else None,
            websocket=found.get("enable-websocket"),
            namespace=found.get("svc-namespace", ""),
            plugin_config=found.get("plugin-config-name", ""),
            protocol=found.get("upstream-scheme"),
            retries=found.get("upstream-retries"),
            timeouts={f"{name}_s": value or DEFAULT_TIMEOUT_S for name, value in times.items() if is_timed},
            plugins=plugins,
            problems=tuple(self._reading.problems),
            unreadable=tuple(f"{APISIX_PREFIX}{name}" for name in self._reading.unreadable),
        )

    # Plugins

    def _plugins(self) -> Iterator[PluginUse]:
        makers: tuple[tuple[str, type[PluginConfig], Callable[[], PluginConfig | None]], ...] = (
            ("enable-cors", CorsConfig, self._cors),
            ("csrf-key", CsrfConfig, self._csrf),
            ("http-allow-methods", FaultInjectionConfig, self._methods),
            ("auth-uri", ForwardAuthConfig, self._forward_auth),
            ("allowlist-source-range", IpRestrictionConfig, self._ip_restriction),
            ("rewrite-target", ProxyRewriteConfig, self._proxy_rewrite),
            ("http-redirect", RedirectConfig, self._redirect),
            ("enable-response-rewrite", ResponseRewriteConfig, self._response_rewrite),
        )
        for annotation, model, make in makers:
            use = self._made(annotation, model, make)
            if use is not None:
                yield use
        if "auth-type" in self._values:
            yield PluginUse.of(self._values["auth-type"]())

    def _made(
        self, annotation: str, model: type[PluginConfig], make: Callable[[], PluginConfig | None]
    ) -> PluginUse | None:
        """Return a plugin's use; None without one, or if it does not take a value, which is said at an annotation."""
        try:
            with faults_of(model):
                config = make()
            use = PluginUse.of(config) if config is not None else None
            if use is not None:
                check_size(use)
        except PluginFault as fault:
            self._reading.refuse(annotation, f"must be what plugin {model.plugin} takes: {fault.fault}")
            return None
        return use

    def _some(self, **fields: str) -> dict[str, Any]:
        return {field: self._values[name] for field, name in fields.items() if name in self._values}

    def _cors(self) -> CorsConfig | None:
        if not self._values.get("enable-cors"):
            return None
        given = self._some(
            allow_origins="cors-allow-origin", allow_headers="cors-allow-headers", allow_methods="cors-allow-methods"
        )
        return CorsConfig(**given)

    def _csrf(self) -> CsrfConfig | None:
        if not self._values.get("enable-csrf"):
            return None
        if not self._values.get("csrf-key"):
            self._reading.refuse("enable-csrf", "must be together with csrf-key")
            return None
        return CsrfConfig(key=self._values["csrf-key"])

    def _methods(self) -> FaultInjectionConfig | None:
        """Refuse methods as the controller does; http-allow-methods goes first."""
        allowed, blocked = self._values.get("http-allow-methods"), self._values.get("http-block-methods")
        if not allowed and not blocked:
            return None
        refused = Comparison("request_method", "in", tuple(allowed or blocked or ()), is_turned=bool(allowed))
        return FaultInjectionConfig(abort=Abort(http_status=405, vars=([write_comparison(refused)],)))

    def _forward_auth(self) -> ForwardAuthConfig | None:
        if "auth-uri" not in self._values:
            return None
        given = self._some(
            uri="auth-uri",
            ssl_verify="auth-ssl-verify",
            request_headers="auth-request-headers",
            upstream_headers="auth-upstream-headers",
            client_headers="auth-client-headers",
        )
        return ForwardAuthConfig(**given)

    def _ip_restriction(self) -> IpRestrictionConfig | None:
        found = self._values
        allowed = found.get("allowlist-source-range") or found.get("whitelist-source-range")
        denied = found.get("blocklist-source-range") or found.get("blacklist-source-range")
        if not allowed and not denied:
            return None
        given = {name: one for name, one in (("whitelist", allowed), ("blacklist", denied)) if one}
        return IpRestrictionConfig(**given)

    def _proxy_rewrite(self) -> ProxyRewriteConfig | None:
        found = self._values
        if "rewrite-target" in found:
            return ProxyRewriteConfig(uri=found["rewrite-target"])
        regex, template = found.get("rewrite-target-regex"), found.get("rewrite-target-regex-template")
        if regex and template:
            return ProxyRewriteConfig(regex_uri=(regex, template))
        if regex or template:
            names = ("rewrite-target-regex", "rewrite-target-regex-template")
            present, absent = names if regex else names[::-1]
            self._reading.refuse(present, f"must be together with {absent}")
        return None

    def _redirect(self) -> RedirectConfig | None:
        if self._values.get("http-to-https", self._values.get("ssl-redirect")):
            return RedirectConfig(http_to_https=True)
        if "http-redirect" not in self._values:
            return None
        code = self._values.get("http-redirect-code", 301)
        return RedirectConfig(uri=self._values["http-redirect"], ret_code=code if 301 <= code <= 308 else 301)

    def _response_rewrite(self) -> ResponseRewriteConfig | None:
        if not self._values.get("enable-response-rewrite"):
            return None
        given = self._some(status_code="response-rewrite-status-code", body="response-rewrite-body")
        if "response-rewrite-body-base64" in self._values:
            given |= {"body": self._values["response-rewrite-body-base64"], "body_base64": True}
        headers = self._some(
            add="response-rewrite-add-header",
            set="response-rewrite-set-header",
            remove="response-rewrite-remove-header",
        )
        if headers:
            given["headers"] = AnswerHeaderChanges(**headers)
        return ResponseRewriteConfig(**given)
