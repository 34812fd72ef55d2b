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

from headgate.common.plugins.checking import check_use
from headgate.common.plugins.errors import PluginFault
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
_AUTHENTICATIONS = {"keyAuth": "key-auth", "basicAuth": "basic-auth"}


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
_OF_PLUGINS = {
    "cors": "enable-cors",
    "csrf": "csrf-key",
    "fault-injection": "http-allow-methods",
    "forward-auth": "auth-uri",
    "ip-restriction": "allowlist-source-range",
    "proxy-rewrite": "rewrite-target",
    "redirect": "http-redirect",
    "response-rewrite": "enable-response-rewrite",
}
"""At which annotation it is said that a plugin does not take what it is told."""


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
        uses = tuple(self._checked(use) for use in self._plugins())
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
            plugins=tuple(use for use in uses if use is not None),
            problems=tuple(self._problems),
            unreadable=tuple(self._unreadable),
        )

    def _checked(self, use: PluginUse) -> PluginUse | None:
        try:
            check_use(use)
        except PluginFault as fault:
            self._refuse(_OF_PLUGINS.get(use.name, "auth-type"), f"must be what plugin {use.name} takes: {fault.fault}")
            return None
        return use

    # Plugins

    def _plugins(self) -> Iterator[PluginUse]:
        made = {
            "cors": self._cors(),
            "csrf": self._csrf(),
            "fault-injection": self._methods(),
            "forward-auth": self._forward_auth(),
            "ip-restriction": self._ip_restriction(),
            "proxy-rewrite": self._proxy_rewrite(),
            "redirect": self._redirect(),
            "response-rewrite": self._response_rewrite(),
        }
        for name, config in made.items():
            if config is not None:
                yield PluginUse(name=name, config=config)
        if "auth-type" in self._values:
            yield PluginUse(name=self._values["auth-type"])

    def _some(self, **fields: str) -> dict[str, Any]:
        return {field: self._values[name] for field, name in fields.items() if name in self._values}

    def _cors(self) -> JsonObject | None:
        if not self._values.get("enable-cors"):
            return None
        return self._some(
            allow_origins="cors-allow-origin", allow_headers="cors-allow-headers", allow_methods="cors-allow-methods"
        )

    def _csrf(self) -> JsonObject | None:
        if not self._values.get("enable-csrf"):
            return None
        if not self._values.get("csrf-key"):
            self._refuse("enable-csrf", "must be together with csrf-key")
            return None
        return {"key": self._values["csrf-key"]}

    def _methods(self) -> JsonObject | None:
        """Refuse methods as the controller does; http-allow-methods goes first."""
        allowed, blocked = self._values.get("http-allow-methods"), self._values.get("http-block-methods")
        if not allowed and not blocked:
            return None
        condition = ["request_method", "!", "in", allowed] if allowed else ["request_method", "in", blocked]
        return {"abort": {"http_status": 405, "vars": [[condition]]}}

    def _forward_auth(self) -> JsonObject | None:
        if "auth-uri" not in self._values:
            return None
        return self._some(
            uri="auth-uri",
            ssl_verify="auth-ssl-verify",
            request_headers="auth-request-headers",
            upstream_headers="auth-upstream-headers",
            client_headers="auth-client-headers",
        )

    def _ip_restriction(self) -> JsonObject | None:
        found = self._values
        allowed = found.get("allowlist-source-range") or found.get("whitelist-source-range")
        denied = found.get("blocklist-source-range") or found.get("blacklist-source-range")
        if not allowed and not denied:
            return None
        return {name: one for name, one in (("whitelist", allowed), ("blacklist", denied)) if one}

    def _proxy_rewrite(self) -> JsonObject | None:
        found = self._values
        if "rewrite-target" in found:
            return {"uri": found["rewrite-target"]}
        regex, template = found.get("rewrite-target-regex"), found.get("rewrite-target-regex-template")
        if regex and template:
            return {"regex_uri": [regex, template]}
        if regex or template:
            names = ("rewrite-target-regex", "rewrite-target-regex-template")
            present, absent = names if regex else names[::-1]
            self._refuse(present, f"must be together with {absent}")
        return None

    def _redirect(self) -> JsonObject | None:
        if self._values.get("http-to-https", self._values.get("ssl-redirect")):
            return {"http_to_https": True}
        if "http-redirect" not in self._values:
            return None
        code = self._values.get("http-redirect-code", 301)
        return {"uri": self._values["http-redirect"], "ret_code": code if 301 <= code <= 308 else 301}

    def _response_rewrite(self) -> JsonObject | None:
        if not self._values.get("enable-response-rewrite"):
            return None
        config = self._some(status_code="response-rewrite-status-code", body="response-rewrite-body")
        if "response-rewrite-body-base64" in self._values:
            config |= {"body": self._values["response-rewrite-body-base64"], "body_base64": True}
        headers = self._some(
            add="response-rewrite-add-header",
            set="response-rewrite-set-header",
            remove="response-rewrite-remove-header",
        )
        return config | ({"headers": headers} if headers else {})


def _problem(severity: Severity, reason: str, name: str, message: str, written: object) -> Problem:
    value = None if written is None else shown(written)
    return Problem(severity=severity, reason=reason, field=apisix_field(name), value=value, message=message)
