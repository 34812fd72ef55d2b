"""Where configurations of plugins name variables: in templates, as keys, in conditions."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from headgate.common.plugins.expressions import compared_names
from headgate.common.plugins.variables import REFERENCE, Phase, field_of_body


class _Place(NamedTuple):
    """A field."""

    path: str
    """With dots; `*` is each member."""
    phase: Phase = Phase.REQUEST
    """When it is read."""


class Mention(NamedTuple):
    """A variable that a configuration names."""

    field: str
    """Below the plugin: `config.headers.set.X-A`."""
    variable: str
    phase: Phase
    """When it is read."""


def _all(*paths: str, phase: Phase = Phase.REQUEST) -> tuple[_Place, ...]:
    return tuple(_Place(path, phase) for path in paths)


_LIMIT: Final = ("count", "time_window", "rate", "burst", "conn")
_RULES: Final = tuple(f"rules.*.{name}" for name in ("key", *_LIMIT))
_FORWARD_AUTH: Final = ("extra_headers.*", "signin", "uri", "cache.key")
_LOGGERS: Final = (
    "clickhouse-logger",
    "file-logger",
    "google-cloud-logging",
    "http-logger",
    "kafka-logger",
    "loggly",
    "skywalking-logger",
    "splunk-hec-logging",
    "syslog",
    "tcp-logger",
    "udp-logger",
)
_LOG_FORMAT: Final = ("log_format.**", "log_format_extra.**")
_STEPS: Final = tuple(
    f"{program}.*{inner}" for program in ("server", "steps", "errors.*.steps") for inner in ("", ".steps.*")
)
_TEMPLATES: Final[Mapping[str, tuple[_Place, ...]]] = MappingProxyType(
    {
        "api-breaker": _all("break_response_body", "break_response_headers.*.value"),
        "echo": _all("headers.*", phase=Phase.ANSWER),
        "error-page": _all("headers.*", phase=Phase.ANSWER),
        "fault-injection": _all("abort.body", "abort.headers.*"),
        "forward-auth": _all(*_FORWARD_AUTH),
        "limit-conn": _all(*_LIMIT, *_RULES),
        "limit-count": _all(*_LIMIT, *_RULES),
        "limit-req": _all(*_LIMIT, *_RULES),
        "nginx-rewrite": _all(
            "errors.*.url",
            *(f"{each}.{part}" for each in _STEPS for part in ("value", "replacement", "text", "test.value")),
        ),
        "mocking": _all("response_example", "response_headers.*"),
        "proxy-cache": (*_all("cache_key.*", "cache_bypass.*"), *_all("no_cache.*", phase=Phase.ANSWER)),
        "proxy-redirect": _all(
            *(
                f"{name}.*.{text}"
                for name in ("location", "cookie_domain", "cookie_path")
                for text in ("pattern", "replacement")
            ),
            phase=Phase.ANSWER,
        ),
        "proxy-rewrite": _all("uri", "host", "regex_uri.*", "headers.set.**", "headers.add.**", "headers.*"),
        "redirect": _all("uri", "regex_uri.*"),
        "response-rewrite": _all("headers.set.*", "headers.add.*", "headers.*", phase=Phase.ANSWER),
        "satisfy-any": _all(*(f"forward-auth.{path}" for path in _FORWARD_AUTH)),
        "workflow": _all(*(f"rules.*.actions.*.1.{path}" for path in (*_LIMIT, *_RULES))),
        **dict.fromkeys(_LOGGERS, _all(*_LOG_FORMAT, phase=Phase.END)),
        "elasticsearch-logger": _all(*_LOG_FORMAT, "field.index", phase=Phase.END),
        "loki-logger": _all(*_LOG_FORMAT, "log_labels.*", phase=Phase.END),
    }
)
_NAMES: Final[Mapping[str, tuple[_Place, ...]]] = MappingProxyType(
    {"opentelemetry": _all("additional_attributes.*"), "real-ip": _all("source")}
)
_KEYED: Final[Mapping[str, str]] = MappingProxyType(
    {"limit-conn": "", "limit-count": "", "limit-req": "", "workflow": "rules.*.actions.*.1"}
)
"""Where limits are whose `key` is read by its `key_type`."""
_CONDITIONS: Final[Mapping[str, tuple[_Place, ...]]] = MappingProxyType(
    {
        "fault-injection": _all("abort.vars", "delay.vars"),
        "file-logger": _all("match", phase=Phase.END),
        "response-rewrite": _all("vars", phase=Phase.ANSWER),
        "traffic-split": _all("rules.*.match.*.vars"),
        "workflow": _all("rules.*.case"),
    }
)
_OF_ALL: Final = (
    _Place("_meta.filter", Phase.END),
    _Place("include_req_body_expr"),
    _Place("include_resp_body_expr", Phase.ANSWER),
)


def mentions(plugin: str, config: Mapping[str, Any]) -> Iterator[Mention]:
    """Yield the variables that the configuration of a plugin names, if it was accepted."""
    yield from _in_templates(_TEMPLATES.get(plugin, ()), config)
    for place in _NAMES.get(plugin, ()):
        for field, text in _texts(config, place.path):
            yield Mention(field, text.removeprefix("$"), place.phase)
    if plugin in _KEYED:
        yield from _in_keys(_KEYED[plugin], config)
    for place in (*_CONDITIONS.get(plugin, ()), *_OF_ALL):
        for field, value in _values(config, place.path.split("."), "config"):
            if isinstance(value, list | tuple):
                yield from (Mention(field, name, place.phase) for name in compared_names(tuple(value)))


def body_is_read(plugin: str, config: Mapping[str, Any]) -> Phase | None:
    """Return when templates and keys of a plugin first look at fields of the request's body; None: never."""
    in_keys = _in_keys(_KEYED[plugin], config) if plugin in _KEYED else ()
    named = (*_in_templates(_TEMPLATES.get(plugin, ()), config), *in_keys)
    return min((one.phase for one in named if field_of_body(one.variable) is not None), default=None)


def _in_templates(places: tuple[_Place, ...], config: Mapping[str, Any]) -> Iterator[Mention]:
    for place in places:
        for field, text in _texts(config, place.path):
            yield from (Mention(field, name, place.phase) for name in _referred(text))


def _referred(text: str) -> Iterator[str]:
    return filter(None, (found[2] or found[4] for found in REFERENCE.finditer(text)))


def _in_keys(path: str, config: Mapping[str, Any]) -> Iterator[Mention]:
    for field, limit in _values(config, path.split(".") if path else [], "config"):
        key = limit.get("key") if isinstance(limit, Mapping) else None
        if not isinstance(key, str) or limit.get("rules"):
            continue
        kind = limit.get("key_type", "var")
        if kind == "var":
            yield Mention(f"{field}.key", key.removeprefix("$"), Phase.REQUEST)
        elif kind == "var_combination":
            yield from (Mention(f"{field}.key", name, Phase.REQUEST) for name in _referred(key))


def _texts(config: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for field, value in _values(config, path.split("."), "config"):
        if isinstance(value, str):
            yield field, value


def _values(value: Any, path: list[str], field: str) -> Iterator[tuple[str, Any]]:
    """Yield what is at a path, with its field; `**` at its end is all that is within."""
    if not path:
        yield field, value
        return
    step, rest = path[0], path[1:]
    if isinstance(value, Mapping):
        members = [(f"{field}.{name}", each) for name, each in value.items() if step in ("*", "**", name)]
    elif isinstance(value, list | tuple):
        members = [(f"{field}[{at}]", each) for at, each in enumerate(value) if step in ("*", "**", str(at))]
    else:
        members = [(field, value)] if step == "**" else []
        rest = []
    for place, each in members:
        is_deeper = step == "**" and isinstance(each, Mapping | list | tuple)
        yield from _values(each, path if is_deeper else rest, place)
