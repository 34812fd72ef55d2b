"""Headers from ConfigMaps: of answers (`custom-headers`, `add-headers`), of requests (`proxy-set-headers`)."""

import re
from typing import Final

from headgate.common.plugins.fields import is_reserved
from headgate.common.plugins.traffic.proxy_rewrite import HeaderChanges, ProxyRewriteConfig
from headgate.common.plugins.transformation.response_rewrite import AnswerHeaderChanges, ResponseRewriteConfig
from headgate.common.resources import ObjectRef
from headgate.common.table import PluginUse
from headgate.translator.annotations.reading import Reading
from headgate.translator.sources.config_maps import CONFIG_MAPS
from headgate.translator.world.graph import Lookups

_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_VALUE: Final = re.compile(r"""[a-zA-Z0-9_ :;.,\\/"'?!(){}\[\]@<>=\-+*#$&`|~^%]+""")
_DOLLAR: Final = "${literal_dollar ?? $}"
"""Stands for a `$` in templates: values of `custom-headers` have no variables, as with ingress-nginx."""
UNREAD: Final = "not found, or the watcher does not read it (HEADGATE_WATCH_REFERENCED_CONFIG_MAPS)"


def header_uses(ref: ObjectRef, reading: Reading, lookups: Lookups) -> tuple[PluginUse, ...]:
    """Return the plugins that set headers by ConfigMaps; what is wrong goes to the reading."""
    if lookups.is_assumed:
        return ()
    added = reading.group("headers")
    answers = _of_all(added.get("answers", ""), lookups) | _custom(ref, reading, lookups)
    requests = _of_all(added.get("requests", ""), lookups)
    uses = []
    if answers:
        uses.append(PluginUse.of(ResponseRewriteConfig(headers=AnswerHeaderChanges(set=answers))))
    if requests:
        uses.append(PluginUse.of(ProxyRewriteConfig(headers=HeaderChanges(set=requests))))
    return tuple(uses)


def named_headers(ref: ObjectRef, annotation: str, named: str, reading: Reading, lookups: Lookups) -> dict[str, str]:
    """Return the headers in a ConfigMap that an annotation of the Ingress names.

    Where it cannot be used the paths are closed, and there are none.
    """
    namespace, _, name = named.rpartition("/")
    may_be_anywhere = reading.group("security").get("crosses_namespaces", False)
    if namespace not in ("", ref.namespace) and not may_be_anywhere:
        reading.close(annotation, f"must be a ConfigMap of namespace {ref.namespace}")
        return {}
    config_map = lookups.get(CONFIG_MAPS, namespace or ref.namespace, name)
    if config_map is None:
        reading.close(annotation, f"ConfigMap {namespace or ref.namespace}/{name} {UNREAD}")
        return {}
    headers = config_map.as_dict()
    wrong = next((name for name in headers if not _NAME.fullmatch(name) or is_reserved(name)), None)
    if wrong is not None:
        reading.close(annotation, f"must name headers that can be set; {wrong[:60]!r} is none")
        return {}
    return headers


def _custom(ref: ObjectRef, reading: Reading, lookups: Lookups) -> dict[str, str]:
    """Return those of `custom-headers`: the operator has to allow each."""
    custom = reading.group("custom_headers")
    if not custom.get("source"):
        return {}
    headers, allowed = (
        named_headers(ref, "custom-headers", custom["source"], reading, lookups),
        custom.get("allowed", ()),
    )
    for name, value in headers.items():
        if name not in allowed:
            reading.close("custom-headers", f"header {name} is not among those of global-allowed-response-headers")
            return {}
        if not _VALUE.fullmatch(value):
            reading.close("custom-headers", f"the value of header {name} has characters that are not taken")
            return {}
    return {name: value.replace("$", _DOLLAR) for name, value in headers.items()}


def _of_all(named: str, lookups: Lookups) -> dict[str, str]:
    """Return the headers in a ConfigMap that the options name; what cannot be set is left out."""
    namespace, _, name = named.partition("/")
    found = lookups.get(CONFIG_MAPS, namespace, name) if name else None
    headers = found.as_dict() if found is not None else {}
    return {name: value for name, value in headers.items() if _NAME.fullmatch(name) and not is_reserved(name)}
