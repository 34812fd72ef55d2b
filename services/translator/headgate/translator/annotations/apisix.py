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
from headgate.common.problems import Problem, Severity
from headgate.common.resources import JsonObject
from headgate.common.table import BackendProtocol, PathType, PluginUse
from headgate.translator.annotations.reading import nearest
from headgate.translator.manifests import texts
from headgate.translator.manifests.reading import as_object, metadata, shown, type_name

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


_READERS: Mapping[str, Callable[[str], Any]] = {
    "use-regex": _boolean,
    "enable-websocket": _boolean,
    "svc-namespace": _object_name,
    "plugin-config-name": _object_name,
    "upstream-scheme": lambda text: texts.one_of(_SCHEMES)(text.lower()),
    "upstream-retries": texts.whole(0, 1000),
    "upstream-connect-timeout": texts.duration,
    "upstream-read-timeout": texts.duration,
    "upstream-send-timeout": texts.duration,
    "enable-cors": _boolean,
    "cors-allow-origin": str,
    "cors-allow-headers": str,
    "cors-allow-methods": str,
    "enable-csrf": _boolean,
    "csrf-key": str,
    "http-to-https": _boolean,
    "ssl-redirect": _boolean,
    "http-redirect": str,
    "http-redirect-code": texts.whole(100, 999),
    "rewrite-target": str,
    "rewrite-target-regex": texts.regex,
    "rewrite-target-regex-template": str,
    "enable-response-rewrite": _boolean,
    "response-rewrite-status-code": texts.whole(200, 598),
    "response-rewrite-body": str,
    "response-rewrite-body-base64": _base64,
    "response-rewrite-add-header": texts.words,
    "response-rewrite-set-header": _pairs,
    "response-rewrite-remove-header": texts.words,
    "auth-uri": str,
    "auth-ssl-verify": lambda text: text != "false",
    "auth-request-headers": texts.words,
    "auth-upstream-headers": texts.words,
    "auth-client-headers": texts.words,
    "allowlist-source-range": lambda text: list(texts.networks(text)),
    "whitelist-source-range": lambda text: list(texts.networks(text)),
    "blocklist-source-range": lambda text: list(texts.networks(text)),
    "blacklist-source-range": lambda text: list(texts.networks(text)),
    "http-allow-methods": _methods,
    "http-block-methods": _methods,
    "auth-type": texts.one_of(_AUTHENTICATIONS),
}
_GUARDS = frozenset(
    (
        "enable-csrf",
        "csrf-key",
        "auth-uri",
        "allowlist-source-range",
        "whitelist-source-range",
        "blocklist-source-range",
        "blacklist-source-range",
        "http-allow-methods",
        "http-block-methods",
        "auth-type",
    )
)
"""Annotations that keep requests out."""
ON_INGRESS_ONLY: Final = frozenset(
    (
        "use-regex",
        "enable-websocket",
        "svc-namespace",
        "plugin-config-name",
        "upstream-scheme",
        "upstream-retries",
        "upstream-connect-timeout",
        "upstream-read-timeout",
        "upstream-send-timeout",
    )
)
"""Annotations that become no plugin: an ApisixRoute has fields for them, and they are not followed there."""
APPROXIMATIONS: Final[Mapping[str, str]] = {
    "use-regex": "patterns are RE2, and looked for from the path's beginning",
    "upstream-retries": "10 at most; what cannot be sent again is not",
    "http-redirect-code": "301 for codes that are not from 301 to 308",
}
"""Annotations that are not followed in every case as by Apache APISIX, and how they are."""


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
    annotations = as_object(metadata(manifest).get("annotations"))
    return {key: annotations[key] for key in sorted(annotations) if key.startswith(APISIX_PREFIX)}


def read_apisix_annotations(annotations: Mapping[str, Any]) -> ApisixAnnotations:
    """Read annotations with that prefix."""
    return _Reading(annotations).result()


def apisix_field(name: str) -> str:
    """Return the field path of an annotation."""
    return f"metadata.annotations[{APISIX_PREFIX}{name}]"


class _Reading:
    def __init__(self, annotations: Mapping[str, Any]) -> None:
        self._problems: list[Problem] = []
        self._unreadable: list[str] = []
        self._values: dict[str, Any] = {}
        self._written = {key.removeprefix(APISIX_PREFIX): value for key, value in annotations.items()}
        for name, written in self._written.items():
            self._take(name, written)

    def _take(self, name: str, written: Any) -> None:
        read = _READERS.get(name)
        if read is None:
            near = nearest(name, _READERS)
            hint = f"; the nearest is {APISIX_PREFIX}{near}" if near else ""
            message = f"there is no annotation {APISIX_PREFIX}{name}{hint}; it is ignored"
            self._problems.append(_problem(Severity.WARNING, "UnknownAnnotation", name, message, written))
        elif not isinstance(written, str):
            self._refuse(name, f"must be a string, but is {type_name(written)}; put it in quotes")
        else:
            try:
                self._values[name] = read(written.strip())
            except ValueError as error:
                self._refuse(name, str(error))

    def _refuse(self, name: str, message: str) -> None:
        guards = name in _GUARDS
        if guards:
            self._unreadable.append(APISIX_PREFIX + name)
        severity = Severity.ERROR if guards else Severity.WARNING
        consequence = "until then the last good version stays in force, or every request is refused"
        text = f"{message}; {consequence if guards else 'it is ignored'}"
        written = "***" if name == "csrf-key" else self._written.get(name)
        self._problems.append(_problem(severity, "InvalidAnnotation", name, text, written))

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
            problems=tuple(self._problems),
            unreadable=tuple(self._unreadable),
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
            self._refuse(annotation, f"must be what plugin {model.plugin} takes: {fault.fault}")
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
            self._refuse("enable-csrf", "must be together with csrf-key")
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
            self._refuse(present, f"must be together with {absent}")
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


def _problem(severity: Severity, reason: str, name: str, message: str, written: object) -> Problem:
    value = None if written is None else shown(written)
    return Problem(severity=severity, reason=reason, field=apisix_field(name), value=value, message=message)
